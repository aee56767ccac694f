#include "arch/x86_64/clock_math.h"

#define FEMTO_PER_SEC 1000000000000000ull

struct clock_scale clock_scale_make(u64 from_hz, u64 to_hz)
{
    if (from_hz == 0 || to_hz == 0) {
        return (struct clock_scale){0, 0};
    }
    u32 shift = (u32)__builtin_clzll(to_hz);
    while ((to_hz << shift) / from_hz > UINT32_MAX) {
        if (shift == 0) {
            return (struct clock_scale){0, 0};
        }
        shift--;
    }
    return (struct clock_scale){(u32)((to_hz << shift) / from_hz), shift};
}

u32 clock_timer_count(struct clock_scale ticks_per_ns, u64 delta_ns)
{
    u64 max_ns =
        BIT(40); /* 18 minutes: beyond any 32-bit counter, and keeps the sum below from wrapping */
    u64 delta = MIN(delta_ns, max_ns);
    u64 ticks = clock_scale_apply(ticks_per_ns, delta + (delta >> 13)) + 1;
    return (u32)MIN(ticks, (u64)UINT32_MAX);
}

u64 clock_frequency(u64 count, u64 reference_ticks, u64 reference_period_fs)
{
    if (reference_ticks == 0 || reference_period_fs == 0) {
        return 0;
    }
    /* Windows are milliseconds: count < 2^26 or so, and the window fits 64 bits of femtoseconds (5
     * hours). */
    u64 window_fs = reference_ticks * reference_period_fs;
    u64 window_ps = window_fs / 1000;
    u64 whole = count / window_ps, rest = count % window_ps;
    u64 hz = whole * (FEMTO_PER_SEC / 1000);
    /* rest * 10^12 / window_ps, in two steps of 10^6 to stay within 64 bits (window_ps < 2^44). */
    u64 step = rest * 1000000 / window_ps, left = rest * 1000000 % window_ps;
    return hz + step * 1000000 + left * 1000000 / window_ps;
}

u64 clock_unix_seconds(u32 year, u32 month, u32 day, u32 hour, u32 minute, u32 second)
{
    /* Days since 1970 with the year starting in March, so that the leap day is the last one. */
    u64 y = month <= 2 ? year - 1 : year;
    u64 m = month <= 2 ? month + 9 : month - 3;
    u64 days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1;
    u64 epoch_days = 719468; /* 1 March 0000 to 1 January 1970 */
    return (days - epoch_days) * 86400 + hour * 3600ull + minute * 60ull + second;
}

u64 pvclock_ns(const struct pvclock_time *t, u64 tsc)
{
    u64 delta = tsc - t->tsc_timestamp;
    if ((i64)delta < 0) {
        delta = 0; /* this CPU's counter is a little behind the host's snapshot */
    }
    if (t->tsc_shift < 0) {
        delta >>= -t->tsc_shift;
    } else {
        delta <<= t->tsc_shift;
    }
    return t->system_time + (u64)((unsigned __int128)delta * t->tsc_to_system_mul >> 32);
}

u64 pvclock_tsc_hz(const struct pvclock_time *t)
{
    if (t->tsc_to_system_mul == 0) {
        return 0;
    }
    /* ns = (ticks << shift) * mul >> 32, hence Hz = (10^9 << 32) / mul >> shift. */
    u64 hz = (NSEC_PER_SEC << 32) / t->tsc_to_system_mul;
    return t->tsc_shift < 0 ? hz << -t->tsc_shift : hz >> t->tsc_shift;
}

bool pvclock_snapshot(const volatile struct pvclock_time *shared, struct pvclock_time *out)
{
    u32 before = __atomic_load_n(&shared->version, __ATOMIC_ACQUIRE);
    out->version = before;
    out->tsc_timestamp = shared->tsc_timestamp;
    out->system_time = shared->system_time;
    out->tsc_to_system_mul = shared->tsc_to_system_mul;
    out->tsc_shift = shared->tsc_shift;
    out->flags = shared->flags;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return !(before & 1) && before == __atomic_load_n(&shared->version, __ATOMIC_RELAXED);
}

bool steal_snapshot(const volatile struct kvm_steal_time *shared, u64 *steal_ns)
{
    u32 before = __atomic_load_n(&shared->version, __ATOMIC_ACQUIRE);
    u64 steal = shared->steal;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (before & 1 || before != __atomic_load_n(&shared->version, __ATOMIC_RELAXED)) {
        return false;
    }
    *steal_ns = steal;
    return true;
}
