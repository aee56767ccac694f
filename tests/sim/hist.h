/* Log-linear histogram of nanoseconds (HDR style): 32 steps per power of two, so a quantile is right within 3%. */
#ifndef WEIR_TESTS_SIM_HIST_H
#define WEIR_TESTS_SIM_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS 5
#define HIST_BUCKETS ((64 - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
    uint64_t count, max, sum;
    uint32_t bucket[HIST_BUCKETS];
};

static inline uint32_t hist_index(uint64_t v)
{
    uint32_t shift;

    if (v < 1u << HIST_SUB_BITS) {
        return (uint32_t)v;
    }
    shift = 63u - (uint32_t)__builtin_clzll(v) - HIST_SUB_BITS;
    return ((shift + 1) << HIST_SUB_BITS) + (uint32_t)(v >> shift) - (1u << HIST_SUB_BITS);
}

/* Middle of a bucket. */
static inline uint64_t hist_value(uint32_t index)
{
    uint32_t shift;

    if (index < 2u << HIST_SUB_BITS) {
        return index;
    }
    shift = (index >> HIST_SUB_BITS) - 1;
    return (((index & ((1u << HIST_SUB_BITS) - 1)) | 1ull << HIST_SUB_BITS) << shift) + (1ull << shift) / 2;
}

static inline void hist_add(struct hist *h, uint64_t v)
{
    h->bucket[hist_index(v)]++;
    h->count++;
    h->sum += v;
    h->max = v > h->max ? v : h->max;
}

/* Smallest recorded value that at least the given share of all values does not exceed; 0 if nothing was recorded. */
static inline uint64_t hist_quantile(const struct hist *h, double share)
{
    uint64_t need = (uint64_t)((double)h->count * share + 0.5);
    uint64_t seen = 0;

    if (h->count == 0) {
        return 0;
    }
    need = need == 0 ? 1 : need;
    for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
        seen += h->bucket[i];
        if (seen >= need) {
            uint64_t v = hist_value(i);
            return v > h->max ? h->max : v;
        }
    }
    return h->max;
}

#endif
