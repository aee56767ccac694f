/* Clocks. Any thread. */
#ifndef KV_CLOCK_H
#define KV_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Unix time, milliseconds. */
static inline uint64_t clock_wall_ms(void)
{
    return clock_ns(CLOCK_REALTIME) / 1000000u;
}

/* Time since an arbitrary start, nanoseconds. */
static inline uint64_t clock_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

#endif
