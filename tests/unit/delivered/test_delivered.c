/* Arithmetic of delivered CPU time: error bound, no false finding, steal, smoothing, hysteresis. */
#include <stdint.h>

#include "sched/delivered_math.h"
#include "tests/unit/fake/cmocka_all.h"

static void roots(void **state)
{
    (void)state;
    for (u32 n = 0; n < 70000; n++) {
        u32 r = delivered_sqrt(n);
        assert_true(r * r <= n && (r + 1) * (r + 1) > n);
    }
    assert_int_equal(delivered_sqrt(UINT32_MAX), 65535);
}

static void error_bound(void **state)
{
    (void)state;
    assert_int_equal(delivered_error(0), DELIVERED_FULL);
    assert_int_equal(delivered_error(1), DELIVERED_FULL);
    assert_int_equal(delivered_error(64), 128);
    for (u32 n = 1; n < 5000; n++) {
        assert_true(delivered_error(n + 1) <= delivered_error(n));
        /* Never below 1024 / sqrt(n). */
        assert_true((u64)delivered_error(n) * delivered_error(n) * (n + 1) >= 1024ull * 1024);
    }
}

static u64 seed = 88172645463325252ull;

static u32 draw(u32 below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (u32)(seed >> 33) % below;
}

/* A meter fed with samples of a CPU that is away for `share` of 1024 of the time. */
static u32 settle(u32 share, u32 verdicts, u32 *lowest, u32 *changes)
{
    u32 smooth = DELIVERED_FULL, published = DELIVERED_FULL, n = 0, hits = 0;
    *lowest = DELIVERED_FULL;
    *changes = 0;
    for (u32 v = 0; v < verdicts; v++) {
        while (n < 2 * DELIVERED_SAMPLES) {
            n++;
            hits += draw(1024) < share;
        }
        smooth = delivered_smooth(smooth, delivered_loss(hits, n));
        u32 next = delivered_publish(published, smooth);
        *changes += next != published;
        published = next;
        *lowest = MIN(*lowest, published);
        n /= 2;
        hits /= 2;
    }
    return published;
}

static void quiet_cpu_loses_nothing(void **state)
{
    u32 lowest, changes;
    (void)state;
    assert_int_equal(settle(0, 100000, &lowest, &changes), DELIVERED_FULL);
    assert_int_equal(lowest, DELIVERED_FULL);
    assert_int_equal(changes, 0);
    /* One late timer in a hundred is no finding either. */
    assert_int_equal(settle(10, 100000, &lowest, &changes), DELIVERED_FULL);
    assert_int_equal(changes, 0);
    for (u32 n = 1; n <= 4096; n++) {
        assert_int_equal(delivered_loss(0, n), 0);
    }
    assert_int_equal(delivered_loss(0, 0), 0);
    assert_int_equal(delivered_loss(8, 64), 0); /* within the bound of 1/8 */
    assert_int_equal(delivered_loss(9, 64), 144);
    assert_int_equal(delivered_loss(65, 64), DELIVERED_FULL);
}

static void loss_is_found_within_its_bound(void **state)
{
    static const u32 shares[] = { 256, 512, 768, 1024 };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
        u32 lowest, changes;
        u32 found = settle(shares[i], 200, &lowest, &changes);
        u32 truth = DELIVERED_FULL - shares[i];
        /* The error of a verdict, and the step that is not followed. */
        u32 bound = delivered_error(2 * DELIVERED_SAMPLES) + DELIVERED_STEP;
        assert_true(found + bound >= truth && found <= truth + bound);
        assert_true(changes < 40); /* of 200 verdicts: it does not chase noise */
    }
}

/* A host that takes the CPU away for off_ns out of every cycle_ns, with a random phase; the probe as delivered.c runs it. */
static double found_by_probe(u64 off_ns, u64 cycle_ns, u32 probes)
{
    u64 due = draw(1u << 30), samples = 0, hits = 0;
    while (probes--) {
        u64 at = due % cycle_ns, now = at < off_ns ? due + off_ns - at : due;
        u64 interval = DELIVERED_PROBE_MIN_NS + draw(DELIVERED_PROBE_JITTER_NS);
        u32 weight = 1 + delivered_missed(due, now, interval);
        samples += weight;
        hits += now - due > DELIVERED_LATE_NS ? weight : 0;
        due = delivered_next(due, now, interval);
        assert_true(due > now && due <= now + interval);
    }
    return (double)hits / (double)samples;
}

/* Outages short and long weigh what they take: less only by the half millisecond that no probe notices. */
static void duty_is_found_whatever_its_length(void **state)
{
    static const u32 percents[] = { 0, 5, 10, 25, 50, 75, 90 };
    static const u64 lengths_ms[] = { 1, 2, 5, 10, 12, 13, 20, 50, 100, 200 };
    (void)state;
    for (size_t p = 0; p < ARRAY_SIZE(percents); p++) {
        for (size_t l = 0; l < ARRAY_SIZE(lengths_ms); l++) {
            double duty = percents[p] / 100.0;
            u64 off = lengths_ms[l] * NSEC_PER_MSEC, cycle = percents[p] ? off * 100 / percents[p] : off;
            double found = found_by_probe(percents[p] ? off : 0, cycle, 40000);
            double unnoticed = duty * (double)DELIVERED_LATE_NS / (double)off;
            assert_true(found <= duty + 0.02 && found >= duty - unnoticed - 0.02);
            assert_true(percents[p] || found == 0);
        }
    }
}

static void one_standstill_is_soon_forgotten(void **state)
{
    u32 smooth = DELIVERED_FULL, lowest = DELIVERED_FULL, verdicts = 0, hits, n;
    (void)state;
    /* A minute, and then nothing. */
    n = hits = 1 + delivered_missed(0, 60 * NSEC_PER_SEC, DELIVERED_PROBE_MIN_NS);
    assert_int_equal(n, DELIVERED_SAMPLES);
    while (smooth < DELIVERED_NEAR_FULL || !verdicts) {
        smooth = delivered_smooth(smooth, delivered_loss(hits, n));
        lowest = MIN(lowest, smooth);
        n = DELIVERED_SAMPLES;
        hits /= 2;
        verdicts++;
    }
    assert_true(lowest > 2 * DELIVERED_HOLD && verdicts < 20);
}

static void exactly_three_quarters_taken_holds(void **state)
{
    u32 share = DELIVERED_FULL;
    (void)state;
    for (u32 i = 0; i < 60; i++) {
        share = delivered_smooth(share, DELIVERED_FULL * 3 / 4);
    }
    assert_true(share <= DELIVERED_HOLD);
}

static void steal(void **state)
{
    (void)state;
    assert_int_equal(delivered_steal(0, 0), 0);
    assert_int_equal(delivered_steal(5, 0), 0);
    assert_int_equal(delivered_steal(0, 1000), 0);
    assert_int_equal(delivered_steal(500, 1000), 512);
    assert_int_equal(delivered_steal(999, 1000), 1022);
    assert_int_equal(delivered_steal(1000, 1000), DELIVERED_FULL);
    assert_int_equal(delivered_steal(1001, 1000), DELIVERED_FULL);
    assert_int_equal(delivered_steal(UINT64_MAX / 2, UINT64_MAX), 512 - 1);
}

static void smoothing_arrives(void **state)
{
    (void)state;
    for (u32 loss = 0; loss <= DELIVERED_FULL; loss += 64) {
        u32 share = DELIVERED_FULL, back = 0;
        for (u32 i = 0; i < 60; i++) {
            share = delivered_smooth(share, loss);
            back = delivered_smooth(back, loss);
        }
        assert_int_equal(share, DELIVERED_FULL - loss);
        assert_int_equal(back, DELIVERED_FULL - loss);
    }
}

static void hysteresis(void **state)
{
    (void)state;
    assert_int_equal(delivered_publish(1024, 897), 1024);
    assert_int_equal(delivered_publish(1024, 896), 896);
    assert_int_equal(delivered_publish(896, 1000), 1024); /* snaps */
    assert_int_equal(delivered_publish(896, 999), 896);
    assert_int_equal(delivered_publish(512, 640), 640);
    assert_int_equal(delivered_publish(512, 639), 512);
    assert_int_equal(delivered_publish(1024, 0), 1); /* never 0: that means parked */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roots),  cmocka_unit_test(error_bound), cmocka_unit_test(quiet_cpu_loses_nothing),
        cmocka_unit_test(loss_is_found_within_its_bound), cmocka_unit_test(steal), cmocka_unit_test(smoothing_arrives),
        cmocka_unit_test(hysteresis), cmocka_unit_test(duty_is_found_whatever_its_length),
        cmocka_unit_test(one_standstill_is_soon_forgotten), cmocka_unit_test(exactly_three_quarters_taken_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
