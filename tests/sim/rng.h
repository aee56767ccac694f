/* Deterministic random numbers: SplitMix64 streams.  Every thread and connection has its own, so that the same seed gives the
 * same demand whatever the policy does with it. */
#ifndef WEIR_TESTS_SIM_RNG_H
#define WEIR_TESTS_SIM_RNG_H

#include <math.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = (r->state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* An independent stream for (seed, which). */
static inline struct rng rng_stream(uint64_t seed, uint64_t which)
{
    struct rng r = {seed * 0xd1342543de82ef95ull + which};

    r.state = rng_next(&r) ^ (which << 32);
    return r;
}

static inline double rng_unit(struct rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
    return (uint32_t)(((rng_next(r) >> 32) * n) >> 32);
}

/* Exponentially distributed with that mean, at least 1. */
static inline uint64_t rng_exp(struct rng *r, double mean)
{
    double x = -mean * log1p(-rng_unit(r));

    return x < 1.0 ? 1 : (uint64_t)x;
}

#endif
