/*
 * Latency histogram: log-linear, as HdrHistogram keeps it (G. Tene).
 *
 * A value is put into one of HIST_SUB equal steps of its power of two, so that the relative
 * error is under 1 / HIST_SUB wherever the value lies; values under HIST_SUB are exact. Adding
 * takes a count-leading-zeros and an increment. Not thread-safe: one histogram per thread, then
 * hist_merge.
 */
#ifndef LOAD_HIST_H
#define LOAD_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS 7
#define HIST_SUB (1u << HIST_SUB_BITS)      /* steps per power of two: error under 0.8% */
#define HIST_TOP_BIT 39                     /* largest value 2^40 - 1 ns, 18 minutes; more is clamped */
#define HIST_BUCKETS ((HIST_TOP_BIT - HIST_SUB_BITS + 2) * HIST_SUB)

struct hist {
    uint64_t count;
    uint64_t sum;           /* exact, of the unclamped values */
    uint64_t max;           /* exact */
    uint64_t min;           /* exact; UINT64_MAX when empty */
    uint64_t clamped;       /* values beyond the largest bucket */
    uint32_t buckets[HIST_BUCKETS];
};

void hist_reset(struct hist *h);
void hist_add(struct hist *h, uint64_t value);
void hist_merge(struct hist *into, const struct hist *from);

/*
 * The value that `share` (0..1) of the values do not exceed: the upper edge of the bucket that
 * holds it, so never under the true quantile, and at most the maximum. 0 when empty.
 */
uint64_t hist_quantile(const struct hist *h, double share);

/* Mean in the unit of the values; 0 when empty. */
double hist_mean(const struct hist *h);

#endif
