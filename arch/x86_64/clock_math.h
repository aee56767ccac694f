/* Arithmetic of clocks, apart from the hardware so that host tests can check it. */
#ifndef WEIR_ARCH_X86_64_CLOCK_MATH_H
#define WEIR_ARCH_X86_64_CLOCK_MATH_H

#include "core/base/types.h"

/* out = in * mult >> shift, with a 96-bit product: exact to 2^-31. */
struct clock_scale {
    u32 mult;
    u32 shift;
};

/* Scale from a counter of from_hz to one of to_hz; {0, 0} if either is 0 or the ratio is out of
 * range. */
struct clock_scale clock_scale_make(u64 from_hz, u64 to_hz);

static inline u64 clock_scale_apply(struct clock_scale s, u64 value)
{
    return (u64)((unsigned __int128)value * s.mult >> s.shift);
}

/* One-shot counter value for delta_ns: at least 1, at most 2^32 - 1 (the timer code re-arms), and
 * late by 1/8192 rather than early, for an interrupt that comes early is taken twice. */
u32 clock_timer_count(struct clock_scale ticks_per_ns, u64 delta_ns);

/* Counter frequency from a window: count ticks passed while reference_ticks of reference_period_fs
 * femtoseconds did. */
u64 clock_frequency(u64 count, u64 reference_ticks, u64 reference_period_fs);

/* Seconds since 1970 of a date in the Gregorian calendar; month 1..12, day 1..31. */
u64 clock_unix_seconds(u32 year, u32 month, u32 day, u32 hour, u32 minute, u32 second);

/* ---- KVM paravirtual clock and steal time: Linux, Documentation/virt/kvm/x86/msr.rst ---- */

struct pvclock_time {
    u32 version; /* odd while the host updates */
    u32 pad0;
    u64 tsc_timestamp;
    u64 system_time; /* ns at tsc_timestamp */
    u32 tsc_to_system_mul;
    i8 tsc_shift;
    u8 flags;
    u8 pad[2];
};

#define PVCLOCK_TSC_STABLE BIT(0)

struct kvm_steal_time {
    u64 steal; /* ns */
    u32 version;
    u32 flags;
    u8 preempted;
    u8 u8_pad[3];
    u32 pad[11];
};

/* Nanoseconds of system time at `tsc`. */
u64 pvclock_ns(const struct pvclock_time *t, u64 tsc);
/* TSC frequency in Hz that the structure's scale stands for; 0 if it is not set. */
u64 pvclock_tsc_hz(const struct pvclock_time *t);
/* Copies a structure that the host may be updating; false while it is (odd or changed version). */
bool pvclock_snapshot(const volatile struct pvclock_time *shared, struct pvclock_time *out);
bool steal_snapshot(const volatile struct kvm_steal_time *shared, u64 *steal_ns);

#endif
