/* What counts as an overrun of a policy's budget: policy_enter() and policy_again(). */
#include "sched/policy_watch.h"
#include "tests/unit/fake/cmocka_all.h"
#include "tests/unit/fake/fake_arch.h"

static u32 overruns;

void policy_overrun(struct domain *d)
{
    (void)d;
    overruns++;
}

/* Overruns counted of one call that starts at `start` and whose n-th try takes ns[n]. *made receives
 * the number of tries. */
static u32 call(u64 start, const u64 *ns, u32 *made)
{
    static struct cpu_sched c;
    static struct domain d;
    u32 tries = 0;
    overruns = *made = 0;
    fake_clock_now = start;
    policy_enter(&c, start);
    do {
        assert_int_not_equal(c.policy_started_ns, 0); /* the watch sees it, at time 0 too */
        fake_clock_now += ns[*made];
        ++*made;
    } while (policy_again(&c, &d, &tries));
    assert_int_equal(c.policy_started_ns, 0);
    return overruns;
}

/* A clock that moves in steps shows the same time at both ends of a short call, odd or even. */
static void no_time_passes(void **state)
{
    static const u64 starts[] = { 1000, 1001, 0 }, none[] = { 0 };
    u32 made;
    (void)state;
    for (u32 i = 0; i < ARRAY_SIZE(starts); i++) {
        assert_int_equal(call(starts[i], none, &made), 0);
        assert_int_equal(made, 1);
    }
}

static void at_the_budget_and_past_it(void **state)
{
    static const u64 at[] = { POLICY_BUDGET_NS };
    static const u64 past[] = { POLICY_BUDGET_NS + 2, POLICY_BUDGET_NS + 2, POLICY_BUDGET_NS + 2, POLICY_BUDGET_NS + 2 };
    u32 made;
    (void)state;
    assert_int_equal(call(1001, at, &made), 0);
    assert_int_equal(made, 1);
    assert_int_equal(call(1001, past, &made), 1);
    assert_int_equal(made, 1 + POLICY_RETRIES);
}

/* The host took the CPU away during all tries but one. */
static void a_hiccup_of_the_host(void **state)
{
    enum { SLOW = 10 * POLICY_BUDGET_NS };
    static const u64 once[] = { SLOW, 1000 }, thrice[] = { SLOW, SLOW, SLOW, 1000 };
    u32 made;
    (void)state;
    assert_int_equal(call(5001, once, &made), 0);
    assert_int_equal(made, 2);
    assert_int_equal(call(5001, thrice, &made), 0);
    assert_int_equal(made, 4);
}

/* A call is cut off at the last of so many looks, none of which counts that follows another at once. */
static void looks_at_a_call_that_does_not_come_back(void **state)
{
    struct policy_suspect s = { 0 };
    u64 now = 1000000;
    (void)state;
    for (u32 i = 1; i < POLICY_HANG_LOOKS; i++, now += POLICY_WATCH_PERIOD_NS) {
        assert_false(policy_look(&s, 11, now));
        assert_false(policy_look(&s, 11, now + POLICY_WATCH_PERIOD_NS / 2 - 1));
    }
    assert_false(policy_look(&s, 13, now)); /* another call: from the begin */
    for (u32 i = 2; i < POLICY_HANG_LOOKS; i++) {
        assert_false(policy_look(&s, 13, now += POLICY_WATCH_PERIOD_NS / 2));
    }
    assert_true(policy_look(&s, 13, now + POLICY_WATCH_PERIOD_NS / 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_time_passes),
        cmocka_unit_test(at_the_budget_and_past_it),
        cmocka_unit_test(a_hiccup_of_the_host),
        cmocka_unit_test(looks_at_a_call_that_does_not_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
