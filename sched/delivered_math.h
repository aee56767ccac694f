/* What a CPU is really given: arithmetic of the probe and of steal time, apart from the clock so that host tests check it.
 *
 * The probe is a timer: it falls due at instants that have nothing to do with the host's scheduling, and finds the virtual CPU
 * running (it is on time) or not (it is late).  The share of late ones estimates the share of time that is taken away
 * (independent Bernoulli samples: arrivals see time averages; Wolff, "Poisson arrivals see time averages", 1982).  Two standard
 * deviations of such a share are at most 1 / sqrt(n): that is the error bound, and a smaller share is no finding.
 *
 * An outage longer than the time between probes would have made further ones late, had the timer been armed meanwhile: they
 * are counted when it is over, and the next probe falls due on the same grid, so that a long outage weighs what it took and
 * not what one probe does.  They are not independent of each other; so that a single standstill (of the whole host, say) does
 * not outlive a few verdicts, one outage counts for at most a verdict's worth. */
#ifndef WEIR_SCHED_DELIVERED_MATH_H
#define WEIR_SCHED_DELIVERED_MATH_H

#include "core/base/types.h"

#define DELIVERED_FULL 1024u
/* A probe or a gap between two clock reads counts beyond this (ns): far above any section of the kernel that keeps interrupts
 * off, far below a host's time slice (3 ms and more), of which it hides a sixth at most. */
#define DELIVERED_LATE_NS 500000ull
/* Samples to a verdict, and how much of the difference a verdict makes good: 1 / this. */
#define DELIVERED_SAMPLES 32u
#define DELIVERED_SMOOTH 4u
/* Time between two probes: this and a part of the jitter, never a multiple of a host's tick (ns). */
#define DELIVERED_PROBE_MIN_NS (10 * NSEC_PER_MSEC)
#define DELIVERED_PROBE_JITTER_NS (4 * NSEC_PER_MSEC)
/* A published capacity follows only changes of an eighth: the balancer shall not chase noise.  Near the top it snaps. */
#define DELIVERED_STEP 128u
#define DELIVERED_NEAR_FULL 1000u
/* A share of a quarter or less: the CPU is left alone for a while. */
#define DELIVERED_HOLD 256u

static inline u32 delivered_sqrt(u32 n)
{
    u32 root = 0;
    for (u32 bit = 1u << 15; bit; bit >>= 1) {
        if ((u64)(root | bit) * (root | bit) <= n) {
            root |= bit;
        }
    }
    return root;
}

/* Error bound of a share of n samples, of DELIVERED_FULL, rounded up. */
static inline u32 delivered_error(u32 n)
{
    u32 root = delivered_sqrt(n);
    return root ? (DELIVERED_FULL + root - 1) / root : DELIVERED_FULL;
}

/* Probes that an outage hid: due_ns is when the one that ended it was due, interval_ns the time to the next. */
static inline u32 delivered_missed(u64 due_ns, u64 now_ns, u64 interval_ns)
{
    return (u32)MIN((now_ns - due_ns) / interval_ns, (u64)DELIVERED_SAMPLES - 1);
}

/* When the next probe is due: on the grid of the last, after now_ns. */
static inline u64 delivered_next(u64 due_ns, u64 now_ns, u64 interval_ns)
{
    return due_ns + ((now_ns - due_ns) / interval_ns + 1) * interval_ns;
}

/* Share of time taken away: hits of n samples, 0 within the error bound. */
static inline u32 delivered_loss(u32 hits, u32 n)
{
    u32 loss = n ? (u32)((u64)MIN(hits, n) * DELIVERED_FULL / n) : 0;
    return loss > delivered_error(n) ? loss : 0;
}

/* Share of elapsed_ns that the host's report says was stolen. */
static inline u32 delivered_steal(u64 steal_ns, u64 elapsed_ns)
{
    if (!elapsed_ns) {
        return 0;
    }
    if (steal_ns >= elapsed_ns) {
        return DELIVERED_FULL;
    }
    if (elapsed_ns >> 53) { /* 104 days: the product would overflow */
        steal_ns >>= 11;
        elapsed_ns >>= 11;
    }
    return (u32)(steal_ns * DELIVERED_FULL / elapsed_ns);
}

/* The smoothed share after a verdict of `loss`; reaches its goal exactly. */
static inline u32 delivered_smooth(u32 share, u32 loss)
{
    u32 goal = DELIVERED_FULL - MIN(loss, DELIVERED_FULL);
    if (goal > share) {
        return share + (goal - share + DELIVERED_SMOOTH - 1) / DELIVERED_SMOOTH;
    }
    return share - (share - goal + DELIVERED_SMOOTH - 1) / DELIVERED_SMOOTH;
}

/* The capacity to publish, 1..DELIVERED_FULL, given the one that is published. */
static inline u32 delivered_publish(u32 published, u32 share)
{
    if (share >= DELIVERED_NEAR_FULL) {
        return DELIVERED_FULL;
    }
    u32 difference = share > published ? share - published : published - share;
    return difference >= DELIVERED_STEP ? MAX(share, 1u) : published;
}

#endif
