/* The idle clock: its arithmetic, and that what other CPUs read of it never falls. */
#include <pthread.h>
#include <stdint.h>

#include "sched/idle_clock.h"
#include "tests/unit/fake/cmocka_all.h"

static u64 time_now;

static u64 fake_time(void)
{
    return __atomic_load_n(&time_now, __ATOMIC_SEQ_CST);
}

static void adds_up(void **state)
{
    u64 clock = 0;
    (void)state;
    time_now = 1000;
    assert_int_equal(idle_clock_read(&clock, fake_time), 0);
    idle_clock_start(&clock, 1000);
    assert_true(idle_clock_runs(&clock));
    assert_int_equal(idle_clock_read(&clock, fake_time), 0);
    time_now = 1700;
    assert_int_equal(idle_clock_read(&clock, fake_time), 700);
    idle_clock_stop(&clock, 1700);
    assert_false(idle_clock_runs(&clock));
    time_now = 5000; /* busy since: nothing is added, and the stretch that has ended not twice */
    assert_int_equal(idle_clock_read(&clock, fake_time), 700);
    idle_clock_start(&clock, 5000);
    time_now = 5001;
    assert_int_equal(idle_clock_read(&clock, fake_time), 701);
    idle_clock_stop(&clock, 5001);
    assert_int_equal(clock, 701);
}

static void late_times(void **state)
{
    u64 clock = 5;
    (void)state;
    idle_clock_start(&clock, IDLE_CLOCK_NS - 1);
    idle_clock_stop(&clock, IDLE_CLOCK_NS);
    assert_int_equal(clock, 6);
}

/* A CPU goes idle and busy; its time passes in both. */
static u64 shared_clock;
static u32 done;

static void *cpu_main(void *arg)
{
    for (u32 i = 0; i < 300000; i++) {
        idle_clock_start(&shared_clock, fake_time());
        __atomic_fetch_add(&time_now, 3, __ATOMIC_SEQ_CST);
        idle_clock_stop(&shared_clock, fake_time());
        __atomic_fetch_add(&time_now, 1000, __ATOMIC_SEQ_CST);
    }
    WRITE_ONCE(done, 1);
    return arg;
}

static void never_falls(void **state)
{
    pthread_t cpu;
    u64 last = 0;
    (void)state;
    time_now = 1;
    shared_clock = 0;
    assert_int_equal(pthread_create(&cpu, NULL, cpu_main, NULL), 0);
    while (!READ_ONCE(done)) {
        u64 seen = idle_clock_read(&shared_clock, fake_time);
        assert_true(seen >= last);
        last = seen;
    }
    assert_int_equal(pthread_join(cpu, NULL), 0);
    assert_int_equal(idle_clock_read(&shared_clock, fake_time), 900000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_up),
        cmocka_unit_test(late_times),
        cmocka_unit_test(never_falls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
