/* Log-linear histogram of nanoseconds: four buckets per doubling (at most 19% off), 0 .. 2^40 ns.
 * No lock of its own: the owner serialises. */
#ifndef KV_HIST_H
#define KV_HIST_H

#include <stdint.h>

#define HIST_BUCKETS 160

struct hist {
    uint64_t n;
    uint64_t sum;
    uint64_t max;
    uint32_t count[HIST_BUCKETS];
};

void hist_add(struct hist *h, uint64_t ns);
void hist_merge(struct hist *into, const struct hist *h);
/* The value that permille/1000 of the samples do not exceed: the upper edge of its bucket, never
 * more than the maximum; 0 when empty. permille: 0..1000. */
uint64_t hist_quantile(const struct hist *h, unsigned permille);

#endif
