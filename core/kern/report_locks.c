/* Kernel lock statistics by class. */
#include "core/base/spinlock.h"
#include "core/kern/report.h"

/* Upper bound of the bucket that holds the given share (per mille) of n observations, ns. */
static u64 quantile(const u64 *hist, u64 n, u32 per_mille)
{
    u64 seen = 0;
    for (u32 i = 0; i < LOCK_HIST_BUCKETS; i++) {
        seen += READ_ONCE(hist[i]);
        if (seen * 1000 >= n * per_mille) {
            return 2ull << i;
        }
    }
    return 2ull << (LOCK_HIST_BUCKETS - 1);
}

void report_locks(struct text *t)
{
    text_add(t, "statistics %s; times in ns, p50 and p99 are upper bounds of powers of two\n",
             READ_ONCE(lock_stats_on) ? "on" : "off (boot with locks=1, or POST on=1)");
    text_add(t, "%-16s %12s %10s %12s %10s %10s %12s %10s %10s %12s\n", "class", "acquired", "contended",
             "wait_total", "wait_p50", "wait_p99", "wait_max", "hold_p50", "hold_p99", "hold_max");
    for (struct lock_class *c = READ_ONCE(lock_classes); c; c = c->next) {
        u64 n = READ_ONCE(c->acquisitions);
        text_add(t, "%-16s %12lu %10lu %12lu %10lu %10lu %12lu %10lu %10lu %12lu\n", c->name, n,
                 c->contended, c->wait_ns_total, quantile(c->wait_hist, n, 500),
                 quantile(c->wait_hist, n, 990), c->wait_ns_max, quantile(c->hold_hist, n, 500),
                 quantile(c->hold_hist, n, 990), c->hold_ns_max);
    }
}
