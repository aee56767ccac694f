/* Share of time that somebody is stalled, as exponential averages: exact for a signal that is 0 or 1 between two updates. */
#ifndef WEIR_CORE_KERN_PRESSURE_MATH_H
#define WEIR_CORE_KERN_PRESSURE_MATH_H

#include "core/base/types.h"

#define PRESSURE_ONE (1u << 20) /* all of the time */

/* exp(-dt / span) of PRESSURE_ONE, within 0.4%.  exp(-x) = 2^-(x log2 e): the whole part shifts, the rest is a parabola through
 * its ends and middle. */
static inline u32 pressure_decay(u64 dt_ns, u64 span_ns)
{
    const u64 log2_e = 1512775; /* 1.442695 * 2^20 */
    if (dt_ns / span_ns >= 20) {
        return 0;
    }
    u64 y = (dt_ns / 1000) * log2_e / (span_ns / 1000); /* 2^20 = 1; dt < 20 spans of minutes: no overflow */
    u32 whole = (u32)(y >> 20);
    u64 r = y & (PRESSURE_ONE - 1);
    /* 2^-r on 0..1: 1 - 0.6715729 r + 0.1715729 r^2 */
    u64 value = PRESSURE_ONE - (704200 * r >> 20) + ((179908 * r >> 20) * r >> 20);
    return (u32)(value >> MIN(whole, 31u));
}

/* The average after dt in which the signal was on or off. */
static inline u32 pressure_average(u32 average, bool on, u64 dt_ns, u64 span_ns)
{
    u64 decay = pressure_decay(dt_ns, span_ns);
    u64 goal = on ? PRESSURE_ONE : 0;
    return (u32)((average * decay + goal * (PRESSURE_ONE - decay)) >> 20);
}

/* Delay that a thread owes for each page that it took above high, ns: from 20 us at the level to sixteen times that at max (or an
 * eighth above high if there is no max). */
#define PRESSURE_PAGE_NS 20000ull
#define PRESSURE_STEEPNESS 15u
#define PRESSURE_DELAY_MAX_NS 20000000ull

static inline u64 pressure_delay(u64 owed_pages, u64 used, u64 high, u64 max)
{
    u64 over = used > high ? used - high : 0;
    u64 room = max != UINT64_MAX && max > high ? max - high : MAX(high / 8, 1ull);
    u64 page = PRESSURE_PAGE_NS + PRESSURE_PAGE_NS * PRESSURE_STEEPNESS * MIN(over, room) / room;
    return MIN(MIN(owed_pages, 1000ull) * page, PRESSURE_DELAY_MAX_NS);
}

#endif
