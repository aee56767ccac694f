/* Random numbers for getrandom, /dev/urandom and AT_RANDOM. */
#ifndef WEIR_CORE_KERN_RANDOM_H
#define WEIR_CORE_KERN_RANDOM_H

#include "core/base/types.h"

/* Any context below RANK_STATS. */
void random_bytes(void *out, size_t n);
/* Gathers what the machine and the firmware give. Logs a warning if that is only the clock. */
void random_init(void);

/* One ChaCha20 block (RFC 8439: 20 rounds, 32-bit counter, 96-bit nonce), for tests. */
void chacha20_block(const u32 key[8], u32 counter, const u32 nonce[3], u8 out[64]);

#endif
