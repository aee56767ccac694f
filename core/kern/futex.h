/* Futexes: words of application memory that threads wait on.
 *
 * Waiters hang in hash buckets by the word's address (one address space: private and shared are the same), under the
 * bucket's lock (RANK_FUTEX; two at once in address order for requeue). Results are Linux's. */
#ifndef WEIR_CORE_KERN_FUTEX_H
#define WEIR_CORE_KERN_FUTEX_H

#include "core/kern/proc.h"

#define FUTEX_BITSET_ANY 0xffffffffu

/* Waits while *addr == expected: 0, -EAGAIN, -ETIMEDOUT, -EINTR, -EFAULT, -EINVAL (unaligned). deadline on
 * arch_clock_ns(). */
i64 futex_wait(u64 addr, u32 expected, u32 bitset, u64 deadline_ns);
/* Wakes up to n waiters whose bitset meets bitset; how many. */
i64 futex_wake(u64 addr, u32 n, u32 bitset);
/* Wakes n, moves up to m more to addr2. check: only while *addr == expected (-EAGAIN). */
i64 futex_requeue(u64 addr, u32 n, u64 addr2, u32 m, bool check, u32 expected);
i64 futex_wake_op(u64 addr, u32 n, u64 addr2, u32 n2, u32 op);
/* Thread exit: walks the robust list, then clears and wakes clear_child_tid. */
void futex_thread_exit(struct kthread *k);
void futex_init(void);

/* ---- statistics ---- */

struct futex_totals {
    u64 calls, waits, wakes, woken, requeued, eagain, etimedout, eintr, efault, asleep_ns, robust_died;
};
void futex_totals(struct futex_totals *out);

struct futex_stat {
    u64 addr; /* 0: the entry that all words share that found no place */
    u64 waits, wakes, woken, eagain, etimedout, eintr, asleep_ns, asleep_max_ns;
};
/* Calls fn for every word that was waited for or woken. */
void futex_stats_for_each(void (*fn)(const struct futex_stat *s, void *arg), void *arg);

#endif
