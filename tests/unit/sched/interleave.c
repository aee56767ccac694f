/* The kernel's own wake, park, switch, migrate and balance code under random interleavings.
 *
 *   interleave [SCHEDULES [FIRST_SEED]]     default 20000 schedules
 *
 * Each seed is one machine (2..4 CPUs), one policy and one scenario.  What must hold in every schedule: no thread runs on two
 * CPUs, none is lost (all finish), affinity is never violated, counters of the board return to zero; with a policy that pulls,
 * no CPU sleeps while a thread waits for one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/log.h"
#include "sched/thread.h"
#include "tests/unit/sched/vmach.h"

#define MAX_WORKERS 6
#define ROUNDS 12
#define MAX_POINTS 3000000ull

struct worker {
    struct thread *thread;
    uint32_t index;
    uint32_t mailbox;  /* wakeups meant for it, not yet taken */
    uint32_t taken;
    bool done;
    uint32_t mask_changes; /* under way: until the call returns it may still run by the old mask */
};

static struct worker workers[MAX_WORKERS];
static uint32_t num_workers, num_cpus, finished, scenario;
static const struct policy *chosen;
static struct waitq gate;
static bool gate_open;
static struct mutex shared_lock;
static uint32_t inside;
static int running_on[MAX_WORKERS];

/* Called by a worker between any two actions. */
static void check_self(struct worker *w)
{
    struct thread *t = current_thread();
    if (t != w->thread) {
        vm_fail("a thread runs with another's identity");
    }
    /* No vm_point() from here to the end: the thread cannot move while it looks. */
    int cpu = (int)vm_here()->cpu;
    if (!w->mask_changes && !(t->affinity & BIT(cpu)) && !this_cpu()->need_resched && !sched_of((u32)cpu)->wake_list &&
        !vm_here()->ipi_pending) {
        vm_fail("affinity violated");
    }
    running_on[w->index] = cpu;
    for (uint32_t i = 0; i < num_workers; i++) {
        if (i != w->index && workers[i].thread && sched_of((u32)cpu)->current == workers[i].thread) {
            vm_fail("two threads on one CPU");
        }
    }
}

static void post(struct worker *to)
{
    __atomic_fetch_add(&to->mailbox, 1, __ATOMIC_SEQ_CST);
    thread_unpark(to->thread);
}

static void take(struct worker *w)
{
    while (__atomic_load_n(&w->mailbox, __ATOMIC_SEQ_CST) == 0) {
        (void)thread_park(NO_DEADLINE, WAIT_OTHER, 0);
        check_self(w);
    }
    __atomic_fetch_add(&w->mailbox, -1u, __ATOMIC_SEQ_CST);
    w->taken++;
}

/* Ring: each worker wakes the next and waits for the one before. */
static void run_ring(struct worker *w)
{
    for (int r = 0; r < ROUNDS; r++) {
        if (w->index != 0 || r > 0) {
            take(w);
        }
        check_self(w);
        post(&workers[(w->index + 1) % num_workers]);
        if (vm_random(4) == 0) {
            thread_yield();
        }
    }
    if (w->index == 0) {
        take(w);
    }
}

/* Everybody posts to random others; everybody gets exactly what was posted. */
static void run_storm(struct worker *w)
{
    for (int r = 0; r < ROUNDS; r++) {
        for (uint32_t i = 0; i < num_workers; i++) {
            if (i != w->index) {
                post(&workers[i]);
            }
        }
        for (uint32_t i = 1; i < num_workers; i++) {
            take(w);
        }
        check_self(w);
    }
}

static void run_mutex(struct worker *w)
{
    for (int r = 0; r < ROUNDS; r++) {
        mutex_lock(&shared_lock);
        if (inside++) {
            vm_fail("mutex held twice");
        }
        vm_point();
        check_self(w);
        inside--;
        mutex_unlock(&shared_lock);
        (void)thread_sleep_until(arch_clock_ns() + 100 + vm_random(5000));
    }
}

/* Affinity changes under way, to oneself and to others. */
static void run_affinity(struct worker *w)
{
    for (int r = 0; r < ROUNDS; r++) {
        struct worker *other = &workers[vm_random(num_workers)];
        cpumask_t mask = BIT(vm_random(num_cpus)) | BIT(vm_random(num_cpus));
        if (!__atomic_load_n(&other->done, __ATOMIC_SEQ_CST)) {
            other->mask_changes++;
            (void)thread_set_affinity(other->thread, mask);
            other->mask_changes--;
        }
        check_self(w);
        (void)thread_park(arch_clock_ns() + 1 + vm_random(3000), WAIT_SLEEP, 0);
        check_self(w);
    }
}

/* A policy that pulls leaves no CPU asleep while a thread that it may run waits behind another.  A call may be under way, but
 * not for long: CALL_POINTS are some hundred steps of each CPU and less than a balancer's interval. */
#define CALL_POINTS 600u

static bool waits_for(uint32_t asleep)
{
    for (uint32_t c = 0; c < num_cpus; c++) {
        const struct cpu_sched *busy = sched_of(c);
        if (busy->current == busy->idle) {
            continue;
        }
        list_for_each(pos, &busy->runq.order)
        {
            const struct thread *t = container_of(list_entry(pos, struct runq_entity, order), struct thread, entity);
            if (!t->pinned_kernel && (t->affinity & BIT(asleep))) {
                return true;
            }
        }
    }
    return false;
}

static void check_conserved(void)
{
    static uint64_t since[MAX_CPUS]; /* points; 0: all is well */
    if (!chosen->idle_pull) {
        return;
    }
    /* No vm_point() from here to the end: nothing moves meanwhile. */
    for (uint32_t c = 0; c < num_cpus; c++) {
        if (!vm_asleep(c) || !waits_for(c)) {
            since[c] = 0;
        } else if (since[c] == 0) {
            since[c] = vm_points();
        } else if (vm_points() - since[c] > CALL_POINTS) {
            vm_fail("a CPU sleeps while a thread that it may run waits");
        }
    }
}

/* Spin long enough that the balancer and the slice timer get to work. */
static void run_spin(struct worker *w)
{
    uint64_t until = arch_clock_ns() + (w->index + 1) * 6000000ull;
    while (arch_clock_ns() < until) {
        vm_point();
        vm_skip(vm_random(20000)); /* computing: time passes, nothing is touched */
        check_conserved();
    }
    check_self(w);
}

/* CPUs are parked and unparked under running, blocking and waking threads. */
static void run_parking(struct worker *w)
{
    for (int r = 0; r < ROUNDS; r++) {
        if (w->index == 0) {
            (void)sched_set_active(0, 1 + vm_random(num_cpus));
        } else if (w->index == 1) {
            /* The host holds CPUs back and lets them go, at the same time. */
            (void)sched_hold(vm_random(num_cpus), vm_random(2));
        }
        check_self(w);
        (void)thread_park(arch_clock_ns() + 1 + vm_random(3000), WAIT_SLEEP, 0);
        vm_skip(vm_random(5000));
        vm_point();
    }
}

static struct quota group;

/* The group may use half of one CPU: throttled and released many times. */
static void run_quota(struct worker *w)
{
    run_spin(w);
    if (w->index == 0) {
        struct quota_stats stats;
        quota_stats(&group, &stats);
        if (num_workers > 2 && stats.throttled == 0) {
            vm_fail("the group was never throttled");
        }
    }
}

static void worker_main(void *arg)
{
    struct worker *w = arg;
    struct waiter wait;
    for (;;) {
        waitq_enter(&gate, &wait);
        if (__atomic_load_n(&gate_open, __ATOMIC_SEQ_CST)) {
            waitq_leave(&gate, &wait);
            break;
        }
        (void)waitq_park(&wait, NO_DEADLINE, WAIT_OTHER, 0);
        waitq_leave(&gate, &wait);
    }
    static void (*const scenarios[])(struct worker *) = { run_ring, run_storm, run_mutex, run_affinity, run_spin,
                                                         run_parking, run_quota };
    scenarios[scenario](w);
    __atomic_store_n(&w->done, true, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&finished, 1, __ATOMIC_SEQ_CST);
}


static void conductor(void)
{
    quota_init(&group);
    if (quota_set(&group, QUOTA_MIN_NS, 2 * QUOTA_PERIOD_MIN_NS)) {
        vm_fail("quota_set");
    }
    for (uint32_t i = 0; i < num_workers; i++) {
        const struct thread_attr attr = { .name = "worker", .quota = scenario == 6 ? &group : NULL };
        if (thread_create(&attr, worker_main, &workers[i], &workers[i].thread)) {
            vm_fail("thread_create");
        }
    }
    for (uint32_t i = 0; i < num_workers; i++) {
        thread_start(workers[i].thread);
    }
    __atomic_store_n(&gate_open, true, __ATOMIC_SEQ_CST);
    (void)waitq_wake(&gate, UINT32_MAX, NULL);
    for (uint32_t i = 0; i < num_workers; i++) {
        thread_join(workers[i].thread);
        thread_put(workers[i].thread);
    }
    if (finished != num_workers) {
        vm_fail("joined a thread that had not finished");
    }
    vm_stop();
    thread_yield();
    for (;;) {
        (void)thread_park(NO_DEADLINE, WAIT_OTHER, 0);
    }
}

static bool machine_ready;

static void cpu_main(uint32_t cpu)
{
    if (cpu == 0) {
        const struct sched_config config = { .num_cpus = num_cpus, .policy = chosen->name, .idle_spin_ns = vm_random(2) * 2000 };
        if (sched_init(&config)) {
            vm_fail("sched_init");
        }
        __atomic_store_n(&machine_ready, true, __ATOMIC_SEQ_CST);
        arch_irq_enable();
        conductor();
    }
    while (!__atomic_load_n(&machine_ready, __ATOMIC_SEQ_CST)) {
        vm_point();
    }
    sched_cpu_entry();
}

static uint32_t num_policies(void)
{
    uint32_t n = 0;
    while (policy_registry[n]) {
        n++;
    }
    return n;
}

static const char *run_one(uint64_t seed)
{
    uint64_t draw = seed * 0x2545f4914f6cdd1dull;
    num_cpus = 2 + (draw >> 60) % 3;
    num_workers = 2 + (draw >> 52) % (MAX_WORKERS - 1);
    scenario = (draw >> 44) % 7;
    chosen = policy_registry[(draw >> 36) % num_policies()];
    memset(workers, 0, sizeof(workers));
    for (uint32_t i = 0; i < MAX_WORKERS; i++) {
        workers[i].index = i;
    }
    finished = 0;
    inside = 0;
    gate_open = machine_ready = false;
    waitq_init(&gate);
    mutex_init(&shared_lock);
    return vm_run(num_cpus, seed, MAX_POINTS, cpu_main);
}

/* Written by the child that runs a seed, read by the parent. */
struct outcome {
    uint64_t points;
    char what[160];
};

/* One process per schedule: every one starts from the kernel's initial data. */
static void run_in_child(uint64_t seed, struct outcome *out)
{
    out->points = 0;
    snprintf(out->what, sizeof(out->what), "crashed");
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        exit(2);
    }
    if (child == 0) {
        const char *what = run_one(seed);
        out->points = vm_points();
        snprintf(out->what, sizeof(out->what), "%s", what ? what : "");
        if (what) {
            printf("seed %llu: %s (policy %s, %u CPUs, %u threads, scenario %u); repeat: interleave 1 %llu\n",
                   (unsigned long long)seed, what, chosen->name, num_cpus, num_workers, scenario,
                   (unsigned long long)seed);
            trace_print();
        }
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

/* Schedules that showed a fault once, whatever else is run: an idle CPU that skipped its last look because of one made before it
 * had run something. */
static const uint64_t failed_once[] = { 53776, 78816, 228317, 258922 };

static bool run_seed(uint64_t seed, struct outcome *out)
{
    run_in_child(seed, out);
    if (out->what[0]) {
        printf("seed %llu: %s\n", (unsigned long long)seed, out->what);
        fflush(stdout);
    }
    return !out->what[0];
}

int main(int argc, char **argv)
{
    uint64_t schedules = argc > 1 ? strtoull(argv[1], NULL, 0) : 20000;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    uint64_t points = 0, failed = 0, done = 0;
    struct outcome *out = mmap(NULL, sizeof(*out), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; argc <= 2 && i < sizeof(failed_once) / sizeof(failed_once[0]); i++, done++) {
        failed += !run_seed(failed_once[i], out);
        points += out->points;
    }
    for (uint64_t seed = first; seed < first + schedules && failed < 5; seed++, done++) {
        failed += !run_seed(seed, out);
        points += out->points;
    }
    printf("%llu schedules, %llu steps\n", (unsigned long long)done, (unsigned long long)points);
    printf("%llu passed, %llu failed\n", (unsigned long long)(done - failed), (unsigned long long)failed);
    return failed != 0;
}
