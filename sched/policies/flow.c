/* Policy `flow`: place a thread well when it wakes, fetch work when going idle, and drain what is left every 10 ms.
 *
 * Periodic balancing sees only queues that last until its timer; a receive path that wakes short run-and-block handlers
 * never builds one.  So the wakeup itself looks for an idle CPU, and a CPU that runs out of work looks for a queue. */
#include "sched/policies/drain.h"
#include "sched/policies/policies.h"

/* A pull takes only what has waited this long: less would race the owner to a thread that it is about to run. */
#define FLOW_PULL_MIN_WAIT_NS 0u

/* Idle CPUs the thread may use in word w of the set, as bits. */
static uint64_t idle_allowed(const struct policy_view *view, const struct policy_thread *thread, uint32_t w)
{
    return view->idle[w] & thread->affinity[w];
}

/* An idle CPU that the thread may use, each as likely; POLICY_NO_CPU if there is none. */
static int32_t any_idle(const struct policy_view *view, const struct policy_thread *thread, uint32_t random)
{
    uint32_t words = (view->num_cpus + 63) / 64;
    uint32_t count = 0;
    uint32_t chosen;

    for (uint32_t w = 0; w < words; w++) {
        count += pick_count_bits(idle_allowed(view, thread, w));
    }
    if (count == 0) {
        return POLICY_NO_CPU;
    }
    chosen = pick_below(random, count);
    for (uint32_t w = 0; w < words; w++) {
        uint64_t bits = idle_allowed(view, thread, w);
        uint32_t here = pick_count_bits(bits);

        if (chosen < here) {
            return (int32_t)(w * 64 + pick_nth_bit(bits, chosen));
        }
        chosen -= here;
    }
    return POLICY_NO_CPU;
}

static bool usable(const struct policy_view *view, const struct policy_thread *thread, int32_t cpu)
{
    return cpu >= 0 && (uint32_t)cpu < view->num_cpus && view->cpus[cpu].capacity != 0 &&
           policy_allowed(thread, (uint32_t)cpu);
}

static bool idle_for(const struct policy_view *view, const struct policy_thread *thread, int32_t cpu)
{
    return usable(view, thread, cpu) && policy_bit(view->idle, (uint32_t)cpu);
}

/* The CPU that a thread's packets arrive on, else `home`.  Woken there by its own receive path a thread needs no interrupt
 * to another CPU, and finds what it is to read in the cache.  Only where every second CPU has such a path: a lone one is a
 * bottleneck, and what can run elsewhere had better stay away from it. */
static int32_t near_receive(const struct policy_view *view, int32_t home)
{
    const struct policy_thread *thread = &view->threads[0];

    return view->receive_cpus * 2 >= view->num_cpus && usable(view, thread, thread->receive_cpu) ? thread->receive_cpu : home;
}

/* Where its packets arrive if that CPU is idle, else where it last ran, else any idle CPU, else back where the packets
 * arrive: whoever runs out of work first pulls it from there.
 * (Tried: the less loaded of home and one drawn by lot.  No more throughput, a quarter more migrations, ping-pong.) */
static int32_t place(const struct policy_view *view, int32_t home)
{
    const struct policy_thread *thread = &view->threads[0];
    int32_t near = near_receive(view, home);
    int32_t cpu;

    if (idle_for(view, thread, near)) {
        return near;
    }
    if (idle_for(view, thread, home)) {
        return home;
    }
    cpu = any_idle(view, thread, pick_mix(view->seed, 0));
    if (cpu != POLICY_NO_CPU) {
        return cpu;
    }
    return usable(view, thread, near) ? near : POLICY_NO_CPU;
}

static int32_t flow_place_new(const struct policy_view *view)
{
    return place(view, (int32_t)view->self);
}

static int32_t flow_place_wake(const struct policy_view *view)
{
    return place(view, view->threads[0].last_cpu);
}

static void flow_balance(const struct policy_view *view, struct policy_plan *plan)
{
    drain_pass(view, plan);
}

/* A CPU with someone waiting behind another, each as likely, so that many CPUs going idle at once spread over the queues
 * instead of meeting at the longest. */
static void flow_idle_pull(const struct policy_view *view, struct policy_pull *pull)
{
    uint32_t seen = 0;

    pull->from = POLICY_NO_CPU;
    pull->min_wait_ns = FLOW_PULL_MIN_WAIT_NS;
    pull->min_cold_ns = 0;
    for (uint32_t c = 0; c < view->num_cpus; c++) {
        const struct policy_cpu *cpu = &view->cpus[c];

        if (cpu->queued == 0 || cpu->running + cpu->queued < 2 || c == view->self) {
            continue;
        }
        seen++;
        if (pick_below(pick_mix(view->seed, c), seen) == 0) {
            pull->from = (int32_t)c;
        }
    }
}

const struct policy policy_flow = {
    .name = "flow",
    .summary = "wake on an idle CPU, pull when idle, drain every 10 ms as the backstop",
    .interval_ms = DRAIN_INTERVAL_MS,
    .place_new = flow_place_new,
    .place_wake = flow_place_wake,
    .balance = flow_balance,
    .idle_pull = flow_idle_pull,
};
