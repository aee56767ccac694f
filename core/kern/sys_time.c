/* Clocks and sleeping. */
#include "core/kern/signal.h"
#include "core/kern/syscall.h"
#include "core/kern/time.h"

#define MAX_NS (NO_DEADLINE - 1)
#define TICKS_PER_SEC 100ull
#define TIMER_ABSTIME 1u

i64 time_to_ns(const struct timespec64 *ts, u64 *ns)
{
    if (ts->sec < 0 || ts->nsec < 0 || ts->nsec >= (i64)NSEC_PER_SEC) {
        return -EINVAL;
    }
    u64 sec = (u64)ts->sec;
    *ns = sec >= MAX_NS / NSEC_PER_SEC ? MAX_NS : sec * NSEC_PER_SEC + (u64)ts->nsec;
    return 0;
}

i64 time_load(u64 addr, u64 *ns)
{
    struct timespec64 ts;
    if (!arch_copy_from_app(&ts, addr, sizeof(ts))) {
        return -EFAULT;
    }
    return time_to_ns(&ts, ns);
}

i64 time_store(u64 addr, u64 ns)
{
    struct timespec64 ts = { (i64)(ns / NSEC_PER_SEC), (i64)(ns % NSEC_PER_SEC) };
    return arch_copy_to_app(addr, &ts, sizeof(ts)) ? 0 : -EFAULT;
}

u64 time_after(u64 ns)
{
    u64 now = arch_clock_ns();
    return ns > MAX_NS - now ? MAX_NS : now + ns;
}

u64 time_from_wall(u64 ns)
{
    u64 base = arch_wall_base_ns();
    return ns <= base ? 0 : ns - base;
}

/* pthread_getcpuclockid: ~tid << 3 | 6 for a thread, | 2 for a process. */
static i64 cpu_clock(struct kthread *k, i32 clock, u64 *ns)
{
    u32 id = ~(u32)(clock >> 3);
    if ((clock & 3) != 2) {
        return -EINVAL;
    }
    if (!(clock & 4)) {
        struct proc *p = id ? proc_find(id) : k->proc;
        *ns = p ? proc_runtime_ns(p) : 0;
        return p ? 0 : -EINVAL;
    }
    struct thread *t = thread_find(id ? id : thread_head(k->thread)->id);
    if (!t) {
        return -EINVAL;
    }
    *ns = thread_runtime_ns(t);
    thread_put(t);
    return 0;
}

static i64 clock_read(struct kthread *k, i32 clock, u64 *ns)
{
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        *ns = time_wall_ns();
        return 0;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        *ns = arch_clock_ns();
        return 0;
    case CLOCK_PROCESS_CPUTIME_ID:
        *ns = proc_runtime_ns(k->proc);
        return 0;
    case CLOCK_THREAD_CPUTIME_ID:
        *ns = thread_runtime_ns(k->thread);
        return 0;
    default:
        return clock < 0 ? cpu_clock(k, clock, ns) : -EINVAL;
    }
}

i64 sys_clock_gettime(struct kthread *k, const u64 *a)
{
    u64 ns;
    i64 error = clock_read(k, (i32)a[0], &ns);
    return error < 0 ? error : time_store(a[1], ns);
}

i64 sys_clock_getres(struct kthread *k, const u64 *a)
{
    u64 ns;
    i64 error = clock_read(k, (i32)a[0], &ns);
    return error < 0 || !a[1] ? error : time_store(a[1], 1);
}

i64 sys_clock_settime(struct kthread *k, const u64 *a)
{
    (void)k;
    (void)a;
    return -EPERM;
}

struct timeval64 {
    i64 sec, usec;
};

static struct timeval64 to_timeval(u64 ns)
{
    return (struct timeval64){ (i64)(ns / NSEC_PER_SEC), (i64)(ns % NSEC_PER_SEC / NSEC_PER_USEC) };
}

i64 sys_gettimeofday(struct kthread *k, const u64 *a)
{
    struct timeval64 tv = to_timeval(time_wall_ns());
    static const u32 utc[2];
    (void)k;
    if (a[0] && !arch_copy_to_app(a[0], &tv, sizeof(tv))) {
        return -EFAULT;
    }
    return a[1] && !arch_copy_to_app(a[1], utc, sizeof(utc)) ? -EFAULT : 0;
}

i64 sys_time(struct kthread *k, const u64 *a)
{
    i64 now = (i64)(time_wall_ns() / NSEC_PER_SEC);
    (void)k;
    return a[0] && !arch_copy_to_app(a[0], &now, sizeof(now)) ? -EFAULT : now;
}

/* Linux's struct tms: user, system, children's user, children's system; in ticks. All time counts as user time. */
i64 sys_times(struct kthread *k, const u64 *a)
{
    u64 tick = NSEC_PER_SEC / TICKS_PER_SEC;
    u64 tms[4] = { proc_runtime_ns(k->proc) / tick, 0, 0, 0 };
    if (a[0] && !arch_copy_to_app(a[0], tms, sizeof(tms))) {
        return -EFAULT;
    }
    return (i64)(arch_clock_ns() / tick);
}

i64 sys_getrusage(struct kthread *k, const u64 *a)
{
    enum { RUSAGE_SELF = 0, RUSAGE_CHILDREN = -1, RUSAGE_THREAD = 1 };
    struct {
        struct timeval64 user, system;
        i64 rest[14];
    } usage = { 0 };
    switch ((i32)a[0]) {
    case RUSAGE_SELF:
        usage.user = to_timeval(proc_runtime_ns(k->proc));
        break;
    case RUSAGE_THREAD:
        usage.user = to_timeval(thread_runtime_ns(k->thread));
        break;
    case RUSAGE_CHILDREN:
        break;
    default:
        return -EINVAL;
    }
    return arch_copy_to_app(a[1], &usage, sizeof(usage)) ? 0 : -EFAULT;
}

/* remaining: where the rest goes when a signal ends it; 0 for absolute sleeps. */
static i64 sleep_until(u64 deadline_ns, u64 remaining)
{
    while (thread_sleep_until(deadline_ns) == PARK_INTERRUPTED) {
        if (!signal_wait_ends()) {
            continue;
        }
        u64 now = arch_clock_ns();
        if (remaining && time_store(remaining, now < deadline_ns ? deadline_ns - now : 0) < 0) {
            return -EFAULT;
        }
        return -EINTR;
    }
    return 0;
}

i64 sys_nanosleep(struct kthread *k, const u64 *a)
{
    u64 ns;
    i64 error = time_load(a[0], &ns);
    (void)k;
    return error < 0 ? error : sleep_until(time_after(ns), a[1]);
}

i64 sys_clock_nanosleep(struct kthread *k, const u64 *a)
{
    i32 clock = (i32)a[0];
    u64 ns;
    i64 error = time_load(a[2], &ns);
    (void)k;
    if (error < 0) {
        return error;
    }
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME) {
        return clock == CLOCK_PROCESS_CPUTIME_ID ? -EOPNOTSUPP : -EINVAL;
    }
    if (!((u32)a[1] & TIMER_ABSTIME)) {
        return sleep_until(time_after(ns), a[3]);
    }
    return sleep_until(clock == CLOCK_REALTIME ? time_from_wall(ns) : ns, 0);
}
