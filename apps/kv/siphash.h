/* Keyed hash of short strings: SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input
 * PRF", with one compression and three finalisation rounds). Pure; any thread. */
#ifndef KV_SIPHASH_H
#define KV_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash13(const void *data, size_t len, const uint64_t key[2]);

#endif
