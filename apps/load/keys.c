/* Key popularity and self-describing values; see keys.h. */
#include "apps/load/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/load/rng.h"

#define KEY_PREFIX "key:"
#define KEY_DIGITS (LOAD_KEY_BYTES - 4)

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t r = a % b;

        a = b;
        b = r;
    }
    return a;
}

/* Vose's construction: every slot ends up holding its own key and at most one other. */
static bool build_alias(struct keyspace *space, double theta)
{
    size_t n = space->keys, small = 0, large = 0;
    double *share = malloc(n * sizeof(*share));
    uint32_t *todo_small = malloc(n * sizeof(*todo_small));
    uint32_t *todo_large = malloc(n * sizeof(*todo_large));
    double sum = 0;
    bool good = share && todo_small && todo_large;

    space->alias = good ? malloc(n * sizeof(*space->alias)) : NULL;
    good = good && space->alias;
    for (size_t k = 0; good && k < n; k++) {
        share[k] = pow((double)(k + 1), -theta);
        sum += share[k];
    }
    for (size_t k = 0; good && k < n; k++) {
        share[k] *= (double)n / sum;
        if (share[k] < 1.0) {
            todo_small[small++] = (uint32_t)k;
        } else {
            todo_large[large++] = (uint32_t)k;
        }
    }
    while (good && small && large) {
        uint32_t s = todo_small[--small], l = todo_large[large - 1];

        space->alias[s].keep = (uint32_t)(share[s] * 4294967295.0);
        space->alias[s].other = l;
        share[l] -= 1.0 - share[s];
        if (share[l] < 1.0) {
            large--;
            todo_small[small++] = l;
        }
    }
    /* What is left has a share of 1 but for rounding. */
    while (good && (small || large)) {
        uint32_t k = small ? todo_small[--small] : todo_large[--large];

        space->alias[k].keep = UINT32_MAX;
        space->alias[k].other = k;
    }
    free(share);
    free(todo_small);
    free(todo_large);
    return good;
}

bool keyspace_init(struct keyspace *space, uint64_t keys, double theta, uint32_t value_min,
                   uint32_t value_max)
{
    memset(space, 0, sizeof(*space));
    space->keys = keys;
    space->value_min = value_min;
    space->value_max = value_max;
    space->scatter = 2654435761u;   /* golden ratio; any unit modulo `keys` would do */
    while (gcd(space->scatter, keys) != 1) {
        space->scatter += 2;
    }
    return theta == 0 || build_alias(space, theta);
}

void keyspace_free(struct keyspace *space)
{
    free(space->alias);
    space->alias = NULL;
}

uint64_t keyspace_pick(const struct keyspace *space, uint64_t *rng)
{
    uint64_t slot = rng_below(rng, space->keys);

    if (!space->alias) {
        return slot;
    }
    if ((uint32_t)rng_next(rng) > space->alias[slot].keep) {
        slot = space->alias[slot].other;
    }
    return slot * space->scatter % space->keys;
}

void key_format(char *to, uint64_t key)
{
    memcpy(to, KEY_PREFIX, LOAD_KEY_BYTES - KEY_DIGITS);
    for (int i = LOAD_KEY_BYTES - 1; i >= LOAD_KEY_BYTES - KEY_DIGITS; i--) {
        to[i] = (char)('0' + key % 10);
        key /= 10;
    }
}

uint32_t value_size(const struct keyspace *space, uint64_t key)
{
    uint64_t range = space->value_max - space->value_min + 1;

    if (range == 1) {
        return space->value_min;
    }
    return space->value_min + (uint32_t)(((rng_mix(key + 1) >> 32) * range) >> 32);
}

/* The i-th 8-byte word of a value: 0 the key, 1 the stamp, then what follows from both. */
static uint64_t value_word(uint64_t key, uint64_t stamp, uint32_t i)
{
    return (key ^ stamp ^ i) * 0x9e3779b97f4a7c15ull + (stamp << 7);
}

void value_fill(char *to, uint32_t size, uint64_t key, uint64_t stamp)
{
    uint64_t head[2] = {key, stamp};
    uint32_t at = size < sizeof(head) ? size : (uint32_t)sizeof(head);

    uint32_t i = 2;
    uint64_t word;

    memcpy(to, head, at);
    for (; at + 8 <= size; i++, at += 8) {
        word = value_word(key, stamp, i);
        memcpy(to + at, &word, 8);
    }
    word = value_word(key, stamp, i);
    memcpy(to + at, &word, size - at);
}

bool value_check(const struct keyspace *space, const char *from, size_t size, uint64_t key)
{
    uint64_t head[2] = {0, 0};
    uint32_t at = size < sizeof(head) ? (uint32_t)size : (uint32_t)sizeof(head);
    uint32_t i = 2;
    uint64_t word, found, wrong = 0;

    if (size != value_size(space, key)) {
        return false;
    }
    memcpy(head, from, at);
    if (memcmp(from, &key, at < 8 ? at : 8) != 0) {
        return false;
    }
    for (; at + 8 <= size; i++, at += 8) {
        memcpy(&found, from + at, 8);
        wrong |= found ^ value_word(key, head[1], i);
    }
    word = value_word(key, head[1], i);
    return !wrong && memcmp(from + at, &word, size - at) == 0;
}
