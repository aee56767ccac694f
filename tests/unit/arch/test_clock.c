/* Clock arithmetic: scales, calibration, timer counts, dates, and KVM's published structures. */
#include "tests/unit/fake/cmocka_all.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "arch/x86_64/clock_math.h"

static u64 difference(u64 a, u64 b)
{
    return a > b ? a - b : b - a;
}

static void scale_is_exact_to_2_31(void **state)
{
    static const u64 rates[] = {3579545,    10000000,   100000000,  999999999,
                                1000000000, 2445434000, 3000000001, 5300000000};
    (void)state;
    for (u32 i = 0; i < ARRAY_SIZE(rates); i++) {
        struct clock_scale s = clock_scale_make(rates[i], NSEC_PER_SEC);
        assert_true(s.mult >= BIT(31) || rates[i] < 1000000);
        for (u64 seconds = 1; seconds < 10000000; seconds *= 7) {
            u64 ns = clock_scale_apply(s, rates[i] * seconds);
            u64 error = difference(ns, seconds * NSEC_PER_SEC);
            assert_true(error <= 1 + seconds * NSEC_PER_SEC / BIT(30));
        }
    }
}

static void scale_never_runs_backwards(void **state)
{
    u64 rng = test_seed(5);
    struct clock_scale s = clock_scale_make(2445434123ull, NSEC_PER_SEC);
    u64 value = 0, last = 0;
    (void)state;
    for (u32 i = 0; i < 100000; i++) {
        value += test_below(&rng, 1000000000);
        u64 ns = clock_scale_apply(s, value);
        assert_true(ns >= last);
        last = ns;
    }
}

static void scale_of_nonsense_is_zero(void **state)
{
    (void)state;
    assert_int_equal(clock_scale_make(0, 1000).mult, 0);
    assert_int_equal(clock_scale_make(1000, 0).mult, 0);
    assert_int_equal(clock_scale_make(1, ~0ull).mult, 0);
    assert_int_equal(clock_scale_apply(clock_scale_make(0, 5), 1000), 0);
}

static void frequency_of_windows(void **state)
{
    (void)state;
    /* 2 ms of a 100 MHz reference (10 ns = 10^7 fs). */
    assert_int_equal(clock_frequency(4890868, 200000, 10000000), 2445434000ull);
    assert_int_equal(clock_frequency(2000000, 200000, 10000000), 1000000000ull);
    assert_int_equal(clock_frequency(0, 200000, 10000000), 0);
    assert_int_equal(clock_frequency(1, 0, 10000000), 0);
    assert_int_equal(clock_frequency(1, 1, 0), 0);
    /* The ACPI timer: 7159 ticks of 279.365 ns are 2 ms. */
    u64 hz = clock_frequency(6000000, 7159, 1000000000000000ull / 3579545);
    assert_true(difference(hz, 3000000000ull) < 100000);
}

static void timer_counts_are_bounded_and_not_early(void **state)
{
    struct clock_scale s = clock_scale_make(NSEC_PER_SEC, 62500000);
    (void)state;
    assert_int_equal(clock_timer_count(s, 0), 1);
    assert_int_equal(clock_timer_count(s, ~0ull), UINT32_MAX);
    for (u64 ns = 1; ns < 60 * NSEC_PER_SEC; ns = ns * 3 + 1) {
        u64 count = clock_timer_count(s, ns);
        assert_true(count * 16 >= ns);
        assert_true(count * 16 <= ns + ns / 8000 + 32);
    }
}

static void dates_equal_those_of_libc(void **state)
{
    u64 rng = test_seed(7);
    (void)state;
    for (u32 i = 0; i < 20000; i++) {
        struct tm tm = {.tm_year = (int)test_below(&rng, 130) + 70,
                        .tm_mon = (int)test_below(&rng, 12),
                        .tm_mday = 1 + (int)test_below(&rng, 28),
                        .tm_hour = (int)test_below(&rng, 24),
                        .tm_min = (int)test_below(&rng, 60),
                        .tm_sec = (int)test_below(&rng, 60)};
        u64 mine = clock_unix_seconds((u32)tm.tm_year + 1900, (u32)tm.tm_mon + 1, (u32)tm.tm_mday,
                                      (u32)tm.tm_hour, (u32)tm.tm_min, (u32)tm.tm_sec);
        assert_int_equal(mine, (u64)timegm(&tm));
    }
    assert_int_equal(clock_unix_seconds(2024, 2, 29, 23, 59, 59) + 1,
                     clock_unix_seconds(2024, 3, 1, 0, 0, 0));
}

/* ---- KVM ---- */

static void pvclock_scales_by_shift_and_multiplier(void **state)
{
    struct pvclock_time t = {.tsc_timestamp = 1000, .system_time = 500};
    (void)state;
    t.tsc_to_system_mul = 0x80000000u; /* one half */
    assert_int_equal(pvclock_ns(&t, 3000), 500 + 1000);
    t.tsc_shift = 1;
    assert_int_equal(pvclock_ns(&t, 3000), 500 + 2000);
    t.tsc_shift = -2;
    assert_int_equal(pvclock_ns(&t, 3000), 500 + 250);
    assert_int_equal(pvclock_ns(&t, 999), 500); /* behind the snapshot: not before it */
    t.tsc_shift = 0;
    t.tsc_to_system_mul = 0xffffffffu;
    assert_int_equal(pvclock_ns(&t, 1000 + (1ull << 40)), 500 + (1ull << 40) - 256);
}

/* As KVM computes them: ns = (ticks << shift) * mul >> 32, with mul in [2^31, 2^32). */
static struct pvclock_time host_scale(u64 hz)
{
    struct pvclock_time t = {0};
    long double ratio = 1e9L / (long double)hz;
    while (ratio >= 1) {
        ratio /= 2;
        t.tsc_shift++;
    }
    while (ratio < 0.5L) {
        ratio *= 2;
        t.tsc_shift--;
    }
    t.tsc_to_system_mul = (u32)(ratio * 4294967296.0L);
    return t;
}

static void pvclock_gives_the_tsc_rate(void **state)
{
    static const u64 rates[] = {200000000,  999000000,  1000000001,
                                2445434000, 3700000000, 5300000000};
    (void)state;
    for (u32 i = 0; i < ARRAY_SIZE(rates); i++) {
        struct pvclock_time t = host_scale(rates[i]);
        assert_true(difference(pvclock_tsc_hz(&t), rates[i]) <= 1 + rates[i] / 100000000);
        /* A day later the clock is right to 50 us. */
        assert_true(difference(pvclock_ns(&t, rates[i] * 86400), 86400 * NSEC_PER_SEC) < 50000);
    }
    assert_int_equal(pvclock_tsc_hz(&(struct pvclock_time){0}), 0);
}

static void snapshots_refuse_odd_versions(void **state)
{
    struct pvclock_time shared = {.version = 3}, t;
    struct kvm_steal_time steal = {.version = 1, .steal = 77};
    u64 ns = 0;
    (void)state;
    assert_false(pvclock_snapshot(&shared, &t));
    shared.version = 4;
    shared.flags = PVCLOCK_TSC_STABLE;
    assert_true(pvclock_snapshot(&shared, &t));
    assert_int_equal(t.flags, PVCLOCK_TSC_STABLE);
    assert_false(steal_snapshot(&steal, &ns));
    steal.version = 2;
    assert_true(steal_snapshot(&steal, &ns));
    assert_int_equal(ns, 77);
    assert_int_equal(sizeof(shared), 32);
    assert_int_equal(sizeof(steal), 64);
    assert_int_equal(offsetof(struct kvm_steal_time, version), 8);
    assert_int_equal(offsetof(struct pvclock_time, tsc_to_system_mul), 24);
}

/* A host thread that updates while we read: no torn value may pass. */
struct race {
    struct pvclock_time shared;
    bool stop;
};

static void *host_thread(void *arg)
{
    struct race *r = arg;
    for (u64 i = 1; !LOAD_ACQUIRE(r->stop); i++) {
        __atomic_store_n(&r->shared.version, (u32)(2 * i - 1), __ATOMIC_SEQ_CST);
        __atomic_store_n((volatile u64 *)&r->shared.tsc_timestamp, i, __ATOMIC_SEQ_CST);
        __atomic_store_n((volatile u64 *)&r->shared.system_time, i * 3, __ATOMIC_SEQ_CST);
        __atomic_store_n(&r->shared.version, (u32)(2 * i), __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static void snapshots_are_never_torn(void **state)
{
    static struct race r;
    pthread_t host;
    u32 good = 0;
    (void)state;
    assert_int_equal(pthread_create(&host, NULL, host_thread, &r), 0);
    for (u32 i = 0; i < 2000000 || (good == 0 && i < 200000000); i++) {
        struct pvclock_time t;
        if (pvclock_snapshot(&r.shared, &t)) {
            good++;
            assert_int_equal(t.system_time, t.tsc_timestamp * 3);
            assert_int_equal(t.version, (u32)(t.tsc_timestamp * 2));
        }
    }
    STORE_RELEASE(r.stop, true);
    pthread_join(host, NULL);
    assert_true(good > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scale_is_exact_to_2_31),
        cmocka_unit_test(scale_never_runs_backwards),
        cmocka_unit_test(scale_of_nonsense_is_zero),
        cmocka_unit_test(frequency_of_windows),
        cmocka_unit_test(timer_counts_are_bounded_and_not_early),
        cmocka_unit_test(dates_equal_those_of_libc),
        cmocka_unit_test(pvclock_scales_by_shift_and_multiplier),
        cmocka_unit_test(pvclock_gives_the_tsc_rate),
        cmocka_unit_test(snapshots_refuse_odd_versions),
        cmocka_unit_test(snapshots_are_never_torn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
