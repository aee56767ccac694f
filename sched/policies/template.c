/* A policy to copy.  docs/write-a-policy.md goes through it; sched/policy.h is all that it needs to know.
 *
 * What it does: a thread that wakes goes to the least loaded of three CPUs: the one that it last ran on and two drawn by
 * lot.  Two draws already make the longest queue exponentially shorter than one ("the power of two choices"). */
#include "sched/policies/pick.h"
#include "sched/policies/policies.h"

/* The less loaded of two CPUs, the second only if strictly so; `a` may be POLICY_NO_CPU. */
static int32_t better(const struct policy_view *view, int32_t a, uint32_t b)
{
    const struct policy_cpu *cpu_b = &view->cpus[b];
    const struct policy_cpu *cpu_a;

    if (cpu_b->capacity == 0 || !policy_allowed(&view->threads[0], b)) {
        return a;
    }
    if (a == POLICY_NO_CPU) {
        return (int32_t)b;
    }
    cpu_a = &view->cpus[a];
    return policy_less_loaded(policy_load(cpu_b), cpu_b->capacity, policy_load(cpu_a), cpu_a->capacity) ? (int32_t)b : a;
}

static int32_t template_place_wake(const struct policy_view *view)
{
    int32_t last = view->threads[0].last_cpu;
    int32_t cpu = last == POLICY_NO_CPU ? last : better(view, POLICY_NO_CPU, (uint32_t)last); /* still allowed there? */

    for (uint32_t draw = 0; draw < 2; draw++) {
        cpu = better(view, cpu, pick_below(pick_mix(view->seed, draw), view->num_cpus));
    }
    return cpu; /* POLICY_NO_CPU is a fine answer: the default then applies */
}

const struct policy policy_template = {
    .name = "template",
    .summary = "an example to copy: wake on the least loaded of the last CPU and two drawn by lot",
    .place_wake = template_place_wake,
};
