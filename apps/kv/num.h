/* Decimal numbers as both protocols write them. Pure. */
#ifndef KV_NUM_H
#define KV_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest decimal text of a 64-bit number with its sign. */
#define NUM_MAX 20

/* Writes v without a terminator; returns the length (1..NUM_MAX). */
size_t num_put_u64(char *to, uint64_t v);
size_t num_put_i64(char *to, int64_t v);

/* The whole text must be a number: digits, with an optional '-' for i64; no blanks, no '+', no
 * leading zeros (i64, as Redis has it). false otherwise or out of range. */
bool num_get_i64(const char *p, size_t len, int64_t *v);
/* Leading zeros allowed (memcached). */
bool num_get_u64(const char *p, size_t len, uint64_t *v);

#endif
