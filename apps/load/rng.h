/*
 * Random numbers of the generator: splitmix64 (G. Steele et al., OOPSLA 2014). One state per
 * thread, five instructions a number, repeatable by its seed.
 */
#ifndef LOAD_RNG_H
#define LOAD_RNG_H

#include <stdint.h>

/* A bijection of 64-bit words in which every input bit moves every output bit. */
static inline uint64_t rng_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static inline uint64_t rng_next(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15ull;
    return rng_mix(*state);
}

/* Uniform in 0..bound-1, by multiplication; bound up to 2^32. */
static inline uint64_t rng_below(uint64_t *state, uint64_t bound)
{
    return ((rng_next(state) >> 32) * bound) >> 32;
}

#endif
