/* Log-linear histogram; see hist.h. */
#include "apps/load/hist.h"

#include <string.h>

#define LARGEST ((1ull << (HIST_TOP_BIT + 1)) - 1)

static unsigned bucket_of(uint64_t value)
{
    unsigned top, shift;

    if (value < HIST_SUB) {
        return (unsigned)value;
    }
    top = 63 - (unsigned)__builtin_clzll(value);
    shift = top - HIST_SUB_BITS;
    /* value >> shift lies in HIST_SUB .. 2 * HIST_SUB - 1 */
    return (shift + 1) * HIST_SUB + (unsigned)(value >> shift) - HIST_SUB;
}

/* Largest value that falls into the bucket. */
static uint64_t upper_edge(unsigned bucket)
{
    unsigned shift;

    if (bucket < HIST_SUB) {
        return bucket;
    }
    shift = bucket / HIST_SUB - 1;
    return (((uint64_t)(bucket % HIST_SUB) + HIST_SUB + 1) << shift) - 1;
}

void hist_reset(struct hist *h)
{
    memset(h, 0, sizeof(*h));
    h->min = UINT64_MAX;
}

void hist_add(struct hist *h, uint64_t value)
{
    h->count++;
    h->sum += value;
    h->max = value > h->max ? value : h->max;
    h->min = value < h->min ? value : h->min;
    if (value > LARGEST) {
        value = LARGEST;
        h->clamped++;
    }
    h->buckets[bucket_of(value)]++;
}

void hist_merge(struct hist *into, const struct hist *from)
{
    into->count += from->count;
    into->sum += from->sum;
    into->clamped += from->clamped;
    into->max = from->max > into->max ? from->max : into->max;
    into->min = from->min < into->min ? from->min : into->min;
    for (unsigned b = 0; b < HIST_BUCKETS; b++) {
        into->buckets[b] += from->buckets[b];
    }
}

uint64_t hist_quantile(const struct hist *h, double share)
{
    uint64_t rank, seen = 0;

    if (!h->count) {
        return 0;
    }
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    rank = (uint64_t)(share * (double)h->count + 0.999999);
    rank = rank < 1 ? 1 : rank > h->count ? h->count : rank;
    for (unsigned b = 0; b < HIST_BUCKETS; b++) {
        seen += h->buckets[b];
        if (seen >= rank) {
            uint64_t edge = upper_edge(b);

            return edge < h->max ? edge : h->max;
        }
    }
    return h->max;
}

double hist_mean(const struct hist *h)
{
    return h->count ? (double)h->sum / (double)h->count : 0.0;
}
