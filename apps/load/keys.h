/*
 * Keys and values: which key a request names, and what a value must look like.
 *
 * Keys are "key:" and 12 digits. The popularity of keys is uniform or Zipf (key number k, from
 * 0, with weight 1 / (k + 1)^theta, then scattered over the numbers so that popular keys do not
 * lie together); drawn by the alias method (A. Walker; M. Vose), O(1) and without floats.
 *
 * A value says which key it belongs to and which write made it, and the rest follows from those
 * two by a fixed function; so each value that is read can be checked in full, whoever wrote it.
 * Values under 16 bytes carry as much of that as fits.
 */
#ifndef LOAD_KEYS_H
#define LOAD_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/load/tunables.h"

struct alias_slot {
    uint32_t keep;          /* chance, in 2^-32, to stay with this slot's own key */
    uint32_t other;         /* the key otherwise */
};

struct keyspace {
    uint64_t keys;
    uint64_t scatter;       /* odd multiplier, coprime with keys */
    struct alias_slot *alias;       /* NULL when uniform */
    uint32_t value_min;     /* bytes; the size of a key's value is fixed by its number */
    uint32_t value_max;
};

/* theta 0: uniform. False with errno when memory is short. keys in 1..LOAD_MAX_KEYS. */
bool keyspace_init(struct keyspace *space, uint64_t keys, double theta, uint32_t value_min,
                   uint32_t value_max);
void keyspace_free(struct keyspace *space);

/* Draws a key number. */
uint64_t keyspace_pick(const struct keyspace *space, uint64_t *rng);

/* Writes LOAD_KEY_BYTES bytes, without a terminator. */
void key_format(char *to, uint64_t key);

/* Size of that key's value. */
uint32_t value_size(const struct keyspace *space, uint64_t key);

/* Fills `size` bytes; `stamp` tells this write from others. */
void value_fill(char *to, uint32_t size, uint64_t key, uint64_t stamp);

/* Is it a value of that key, of the right size, unharmed? */
bool value_check(const struct keyspace *space, const char *from, size_t size, uint64_t key);

#endif
