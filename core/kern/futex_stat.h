/* Counting of futex operations, for futex.c. Any context; relaxed atomics, no lock. result: what the call gives. */
#ifndef WEIR_CORE_KERN_FUTEX_STAT_H
#define WEIR_CORE_KERN_FUTEX_STAT_H

#include "core/base/types.h"

/* While set: called by the calling thread after each operation. woken: threads woken by a wake; result: of a wait, what the
 * call gives; of a wake 0. */
enum futex_op { FUTEX_OP_WAIT, FUTEX_OP_WAKE };
extern void (*futex_stat_hook)(u64 addr, enum futex_op op, i64 result, u64 asleep_ns, u32 woken);

void futex_stat_wait(u64 addr, i64 result, u64 asleep_ns);
void futex_stat_wake(u64 addr, u32 woken);
void futex_stat_requeue(u64 addr, u32 woken, u32 moved, i64 result);
void futex_stat_robust_died(void);

#endif
