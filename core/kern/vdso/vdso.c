/* The vDSO: reads the clock without entering the kernel. Position-independent code that runs in applications; names and
 * versions are those that Linux's x86-64 vDSO has. */
#include "core/kern/vdso/vdso_data.h"

enum { REALTIME = 0, MONOTONIC = 1, MONOTONIC_RAW = 4, REALTIME_COARSE = 5, MONOTONIC_COARSE = 6, BOOTTIME = 7 };
enum { SYS_CLOCK_GETTIME = 228, SYS_CLOCK_GETRES = 229 };

struct timespec {
    i64 sec, nsec;
};

struct timeval {
    i64 sec, usec;
};

/* The page before the image: vdso.ld. */
extern const struct vdso_data vdso_data __attribute__((visibility("hidden")));

int __vdso_clock_gettime(int clock, struct timespec *ts);
int __vdso_clock_getres(int clock, struct timespec *ts);
int __vdso_gettimeofday(struct timeval *tv, void *tz);
i64 __vdso_time(i64 *out);

static inline u64 clock_ns(void)
{
    u32 lo, hi;
    /* Not before the loads that came earlier. */
    __asm__ volatile("lfence\n\trdtsc" : "=a"(lo), "=d"(hi)::"memory");
    u64 counter = (u64)hi << 32 | lo;
    return vdso_data.base_ns +
           (u64)((unsigned __int128)(counter - vdso_data.base_counter) * vdso_data.mult >> vdso_data.shift);
}

static i64 call(i64 nr, i64 a, void *b)
{
    i64 result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(nr), "D"(a), "S"(b) : "rcx", "r11", "memory");
    return result;
}

int __vdso_clock_gettime(int clock, struct timespec *ts)
{
    u64 ns;
    switch (clock) {
    case REALTIME:
    case REALTIME_COARSE:
        ns = vdso_data.wall_base_ns + clock_ns();
        break;
    case MONOTONIC:
    case MONOTONIC_RAW:
    case MONOTONIC_COARSE:
    case BOOTTIME:
        ns = clock_ns();
        break;
    default:
        return (int)call(SYS_CLOCK_GETTIME, clock, ts);
    }
    ts->sec = (i64)(ns / NSEC_PER_SEC);
    ts->nsec = (i64)(ns % NSEC_PER_SEC);
    return 0;
}

int __vdso_clock_getres(int clock, struct timespec *ts)
{
    return (int)call(SYS_CLOCK_GETRES, clock, ts);
}

int __vdso_gettimeofday(struct timeval *tv, void *tz)
{
    if (tv) {
        u64 ns = vdso_data.wall_base_ns + clock_ns();
        tv->sec = (i64)(ns / NSEC_PER_SEC);
        tv->usec = (i64)(ns % NSEC_PER_SEC / NSEC_PER_USEC);
    }
    if (tz) {
        ((u32 *)tz)[0] = ((u32 *)tz)[1] = 0;
    }
    return 0;
}

i64 __vdso_time(i64 *out)
{
    i64 now = (i64)((vdso_data.wall_base_ns + clock_ns()) / NSEC_PER_SEC);
    if (out) {
        *out = now;
    }
    return now;
}
