/* How long a CPU has been idle, its present stretch included, readable from any CPU at any time.
 *
 * One word that its CPU alone writes: the total while the clock stands; while it runs, the total less the time at which it
 * was started, so that a reader adds the time now.  Because both are one word, no reader can count a stretch twice or miss
 * it, and what is read never falls.  The top bit tells which; times are taken modulo 2^63 ns (292 years). */
#ifndef WEIR_SCHED_IDLE_CLOCK_H
#define WEIR_SCHED_IDLE_CLOCK_H

#include "core/base/types.h"

#define IDLE_CLOCK_RUNS (1ull << 63)
#define IDLE_CLOCK_NS (IDLE_CLOCK_RUNS - 1)

static inline bool idle_clock_runs(const u64 *clock)
{
    return READ_ONCE(*clock) & IDLE_CLOCK_RUNS;
}

/* Own CPU, interrupts off; the clock stands.  now_ns: not before it was stopped. */
static inline void idle_clock_start(u64 *clock, u64 now_ns)
{
    WRITE_ONCE(*clock, IDLE_CLOCK_RUNS | ((*clock - now_ns) & IDLE_CLOCK_NS));
}

/* Own CPU, interrupts off; the clock runs. */
static inline void idle_clock_stop(u64 *clock, u64 now_ns)
{
    WRITE_ONCE(*clock, (*clock + now_ns) & IDLE_CLOCK_NS);
}

/* Any CPU, any context.  time_ns(): the machine's clock.  Repeated only if the CPU went idle or busy in between: nobody can be
 * held up by a CPU that stands still. */
static inline u64 idle_clock_read(const u64 *clock, u64 (*time_ns)(void))
{
    for (;;) {
        u64 seen = LOAD_ACQUIRE(*clock);
        if (!(seen & IDLE_CLOCK_RUNS)) {
            return seen;
        }
        u64 now = time_ns();
        if (LOAD_ACQUIRE(*clock) == seen) {
            return (seen + now) & IDLE_CLOCK_NS;
        }
    }
}

#endif
