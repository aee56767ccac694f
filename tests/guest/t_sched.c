/* Scheduling as programs see it: preemption, affinity, priorities, sleeping. */
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tests/guest/test.h"

static int stop;

static void *spin(void *arg)
{
    unsigned long *turns = arg;
    while (!LOAD(stop)) {
        __atomic_add_fetch(turns, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

TEST(sched_spinners_share_cpus)
{
    /* Three times as many spinners as CPUs: all make progress, and so does this thread. */
    int n = 3 * num_cpus();
    unsigned long *turns = calloc((size_t)n, sizeof(*turns));
    pthread_t *t = calloc((size_t)n, sizeof(*t));
    STORE(stop, 0);
    for (int i = 0; i < n; i++) {
        t[i] = start(spin, &turns[i]);
    }
    for (int i = 0; i < n; i++) {
        CHECK(WAIT_UNTIL(__atomic_load_n(&turns[i], __ATOMIC_RELAXED) > 1000));
    }
    STORE(stop, 1);
    for (int i = 0; i < n; i++) {
        join(t[i]);
    }
    free(t);
    free(turns);
}

static int woken;

static void *sleeper(void *arg)
{
    for (int i = 0; i < 20; i++) {
        sleep_ms(2);
        ADD(woken, 1);
    }
    return arg;
}

static void pin(pthread_t t, int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    CHECK(pthread_setaffinity_np(t, sizeof(set), &set) == 0);
}

static int first_cpu(void)
{
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof(set), &set) == 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            return cpu;
        }
    }
    return 0;
}

TEST(sched_spinner_does_not_starve_sleeper)
{
    unsigned long turns = 0;
    int cpu = first_cpu();
    STORE(stop, 0);
    STORE(woken, 0);
    pthread_t spinner = start(spin, &turns), s = start(sleeper, NULL);
    pin(spinner, cpu);
    pin(s, cpu);
    join(s);
    CHECK(LOAD(woken) == 20);
    STORE(stop, 1);
    join(spinner);
    CHECK(turns > 0);
}

static void *on_every_cpu(void *arg)
{
    cpu_set_t allowed = *(cpu_set_t *)arg, set;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed)) {
            continue;
        }
        pin(pthread_self(), cpu);
        CHECK(sched_getcpu() == cpu);
        CHECK(pthread_getaffinity_np(pthread_self(), sizeof(set), &set) == 0);
        CHECK(CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set));
    }
    return NULL;
}

TEST(sched_affinity_moves_the_thread)
{
    cpu_set_t allowed, empty;
    CHECK(sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
    join(start(on_every_cpu, &allowed));
    CPU_ZERO(&empty);
    CHECK_ERRNO(sched_setaffinity(0, sizeof(empty), &empty), EINVAL);
    CHECK_ERRNO(sched_setaffinity(999999, sizeof(allowed), &allowed), ESRCH);
    CHECK(CPU_COUNT(&allowed) == sysconf(_SC_NPROCESSORS_ONLN));
}

static void *hop(void *allowed)
{
    enum { HOPS = 20 };
    const char *charge = getenv("MIGRATION_NS");
    int cpus[2], found = 0, moved = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
        if (CPU_ISSET(cpu, (cpu_set_t *)allowed)) {
            cpus[found++] = cpu;
        }
    }
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; found == 2 && i < HOPS; i++) {
        int before = sched_getcpu();
        pin(pthread_self(), cpus[i % 2]);
        CHECK(sched_getcpu() == cpus[i % 2]);
        moved += sched_getcpu() != before;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    int64_t took = (end.tv_sec - begin.tv_sec) * 1000000000ll + end.tv_nsec - begin.tv_nsec;
    CHECK(found < 2 || moved >= HOPS - 1);
    CHECK(!charge || took >= moved * atoll(charge));
    return NULL;
}

/* Run with sched.migration_ns and MIGRATION_NS alike (tests/qemu/test_commands.py), every move costs that much. */
TEST(sched_migration_back_and_forth)
{
    cpu_set_t allowed;
    CHECK(sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
    join(start(hop, &allowed));
}

static int moved_to;

static void *report_cpu(void *arg)
{
    while (!LOAD(stop)) {
        STORE(moved_to, sched_getcpu());
    }
    return arg;
}

TEST(sched_affinity_of_a_running_thread)
{
    cpu_set_t allowed;
    CHECK(sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
    STORE(stop, 0);
    pthread_t t = start(report_cpu, NULL);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed)) {
            pin(t, cpu);
            CHECK(WAIT_UNTIL(LOAD(moved_to) == cpu));
        }
    }
    STORE(stop, 1);
    join(t);
}

static int started_count, all;

static void *wait_for_all(void *arg)
{
    ADD(started_count, 1);
    while (LOAD(started_count) < all) {
    }
    return arg;
}

/* As many spinning threads as CPUs, each waiting for all others: one that is never started hangs them all. */
TEST(sched_every_thread_starts)
{
    pthread_t t[64];
    all = num_cpus();
    for (int round = 0; round < 50; round++) {
        STORE(started_count, 0);
        for (int i = 0; i < all; i++) {
            t[i] = start(wait_for_all, NULL);
        }
        for (int i = 0; i < all; i++) {
            join(t[i]);
        }
    }
    CHECK(LOAD(started_count) == all);
}

TEST(sched_nice)
{
    errno = 0;
    int tid = (int)syscall(SYS_gettid);
    int before = getpriority(PRIO_PROCESS, (id_t)tid); /* 0, unless the tests themselves were started with another */
    CHECK(errno == 0 && before < 15);
    CHECK(setpriority(PRIO_PROCESS, (id_t)tid, before + 5) == 0);
    CHECK(getpriority(PRIO_PROCESS, (id_t)tid) == before + 5);
    setpriority(PRIO_PROCESS, (id_t)tid, before); /* Linux lets only root go back */
}

TEST(sched_classes)
{
    CHECK(syscall(SYS_sched_getscheduler, 0) == 0);
    CHECK(syscall(SYS_sched_get_priority_max, 1) == 99);
    CHECK(syscall(SYS_sched_get_priority_min, 1) == 1);
    CHECK(syscall(SYS_sched_get_priority_max, 0) == 0);
    CHECK_ERRNO(syscall(SYS_sched_get_priority_max, 77), EINVAL);
}

TEST(sched_yield_many)
{
    for (int i = 0; i < 1000; i++) {
        CHECK(sched_yield() == 0);
    }
}
