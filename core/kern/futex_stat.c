/* Futex statistics by word: an open-addressed table filled without locks. Entries are claimed by compare-and-swap and never
 * given up before a reset; when no place is found near the hash, entry 0 ("all others") counts. */
#include "core/base/hash.h"
#include "core/base/errno.h"
#include "core/kern/futex.h"
#include "core/kern/futex_stat.h"

#define PROBES 8

static struct futex_stat table[FUTEX_STATS + 1]; /* [FUTEX_STATS]: all others, addr 0 */
static struct futex_totals totals;
void (*futex_stat_hook)(u64 addr, enum futex_op op, i64 result, u64 asleep_ns, u32 woken);

static void add(u64 *counter, u64 n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static struct futex_stat *entry_of(u64 addr)
{
    u64 hash = mix64(addr);
    for (u32 i = 0; i < PROBES; i++) {
        struct futex_stat *s = &table[(hash + i) & (FUTEX_STATS - 1)];
        u64 seen = READ_ONCE(s->addr);
        if (seen == addr) {
            return s;
        }
        if (seen == 0 && __atomic_compare_exchange_n(&s->addr, &seen, addr, false, __ATOMIC_RELAXED,
                                                     __ATOMIC_RELAXED)) {
            return s;
        }
        if (seen == addr) {
            return s;
        }
    }
    return &table[FUTEX_STATS];
}

static void tell(u64 addr, enum futex_op op, i64 result, u64 asleep_ns, u32 woken)
{
    void (*hook)(u64, enum futex_op, i64, u64, u32) = READ_ONCE(futex_stat_hook);
    if (unlikely(hook != NULL)) {
        hook(addr, op, result, asleep_ns, woken);
    }
}

void futex_stat_wait(u64 addr, i64 result, u64 asleep_ns)
{
    struct futex_stat *s = entry_of(addr);
    tell(addr, FUTEX_OP_WAIT, result, asleep_ns, 0);
    add(&totals.calls, 1);
    add(&totals.waits, 1);
    add(&s->waits, 1);
    switch (result) {
    case -EAGAIN:
        add(&totals.eagain, 1);
        add(&s->eagain, 1);
        return;
    case -ETIMEDOUT:
        add(&totals.etimedout, 1);
        add(&s->etimedout, 1);
        break;
    case -EINTR:
        add(&totals.eintr, 1);
        add(&s->eintr, 1);
        break;
    case -EFAULT:
        add(&totals.efault, 1);
        return;
    default:
        break;
    }
    add(&totals.asleep_ns, asleep_ns);
    add(&s->asleep_ns, asleep_ns);
    if (asleep_ns > READ_ONCE(s->asleep_max_ns)) {
        WRITE_ONCE(s->asleep_max_ns, asleep_ns);
    }
}

void futex_stat_wake(u64 addr, u32 woken)
{
    struct futex_stat *s = entry_of(addr);
    tell(addr, FUTEX_OP_WAKE, 0, 0, woken);
    add(&totals.calls, 1);
    add(&totals.wakes, 1);
    add(&s->wakes, 1);
    if (woken) {
        add(&totals.woken, woken);
        add(&s->woken, woken);
    }
}

void futex_stat_requeue(u64 addr, u32 woken, u32 moved, i64 result)
{
    futex_stat_wake(addr, woken);
    add(&totals.requeued, moved);
    if (result == -EAGAIN) {
        add(&totals.eagain, 1);
    } else if (result == -EFAULT) {
        add(&totals.efault, 1);
    }
}

void futex_stat_robust_died(void)
{
    add(&totals.robust_died, 1);
}

void futex_totals(struct futex_totals *out)
{
    *out = totals;
}

void futex_stats_for_each(void (*fn)(const struct futex_stat *s, void *arg), void *arg)
{
    for (u32 i = 0; i <= FUTEX_STATS; i++) {
        struct futex_stat s = table[i];
        if (s.waits || s.wakes) {
            fn(&s, arg);
        }
    }
}
