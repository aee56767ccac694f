/* cmocka with what it needs before it, and a seeded generator whose seed every failure shows. */
#ifndef WEIR_TESTS_FAKE_CMOCKA_ALL_H
#define WEIR_TESTS_FAKE_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Seed of a random test: TEST_SEED if set, else the given default; printed so that a failure can be
 * repeated. */
static inline uint64_t test_seed(uint64_t fallback)
{
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : fallback;
    print_message("# repeat with TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled",
 * 2016. */
static inline uint64_t test_random(uint64_t *state)
{
    *state += *state == 0;
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dull;
}

/* Uniform enough for tests: 0 .. n-1. */
static inline uint64_t test_below(uint64_t *state, uint64_t n)
{
    return (test_random(state) >> 11) % n;
}

#endif
