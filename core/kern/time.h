/* Times of the Linux ABI. Nanoseconds inside; deadlines on arch_clock_ns(). */
#ifndef WEIR_CORE_KERN_TIME_H
#define WEIR_CORE_KERN_TIME_H

#include "arch/arch.h"
#include "core/base/errno.h"
#include "core/base/types.h"

struct timespec64 {
    i64 sec, nsec;
};

enum clock_id {
    CLOCK_REALTIME = 0,
    CLOCK_MONOTONIC = 1,
    CLOCK_PROCESS_CPUTIME_ID = 2,
    CLOCK_THREAD_CPUTIME_ID = 3,
    CLOCK_MONOTONIC_RAW = 4,
    CLOCK_REALTIME_COARSE = 5,
    CLOCK_MONOTONIC_COARSE = 6,
    CLOCK_BOOTTIME = 7,
};

/* Reads a struct timespec of the application: 0, -EFAULT, -EINVAL. Times past year 2554 are cut to the largest. */
i64 time_load(u64 addr, u64 *ns);
i64 time_store(u64 addr, u64 ns);
i64 time_to_ns(const struct timespec64 *ts, u64 *ns);
/* now + ns, at most NO_DEADLINE - 1 (so never "none"). */
u64 time_after(u64 ns);
/* The instant of CLOCK_REALTIME time ns on arch_clock_ns(). */
u64 time_from_wall(u64 ns);
static inline u64 time_wall_ns(void)
{
    return arch_wall_base_ns() + arch_clock_ns();
}

#endif
