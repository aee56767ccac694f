#include "apps/kv/hist.h"

static unsigned bucket_of(uint64_t ns)
{
    unsigned b, i;

    if (ns < 4) {
        return (unsigned)ns;
    }
    b = 63u - (unsigned)__builtin_clzll(ns);
    i = (b - 1) * 4 + (unsigned)((ns >> (b - 2)) & 3);
    return i < HIST_BUCKETS ? i : HIST_BUCKETS - 1;
}

static uint64_t bucket_top(unsigned i)
{
    unsigned b;

    if (i < 4) {
        return i;
    }
    b = i / 4 + 1;
    return ((4ull + i % 4 + 1) << (b - 2)) - 1;
}

void hist_add(struct hist *h, uint64_t ns)
{
    h->n++;
    h->sum += ns;
    if (ns > h->max) {
        h->max = ns;
    }
    h->count[bucket_of(ns)]++;
}

void hist_merge(struct hist *into, const struct hist *h)
{
    into->n += h->n;
    into->sum += h->sum;
    if (h->max > into->max) {
        into->max = h->max;
    }
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        into->count[i] += h->count[i];
    }
}

uint64_t hist_quantile(const struct hist *h, unsigned permille)
{
    uint64_t want, seen = 0;

    if (h->n == 0) {
        return 0;
    }
    want = (h->n * permille + 999) / 1000;
    if (want == 0) {
        want = 1;
    }
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        seen += h->count[i];
        if (seen >= want) {
            return bucket_top(i) < h->max ? bucket_top(i) : h->max;
        }
    }
    return h->max;
}
