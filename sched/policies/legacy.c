/* Policy `legacy`: every 100 ms move one thread to the least loaded CPU.  Kept as the "before" of every comparison: k
 * threads on one of n CPUs need k - ceil(k / n) passes to spread, 3 s for 32 on 16. */
#include "sched/policies/pick.h"
#include "sched/policies/policies.h"

#define LEGACY_INTERVAL_MS 100u

/* The least loaded CPU that the thread may run on, ties broken by the seed without bias; POLICY_NO_CPU if none. */
static int32_t least_loaded(const struct policy_view *view, const struct policy_thread *thread)
{
    int32_t best = POLICY_NO_CPU;
    uint32_t ties = 0;

    for (uint32_t c = 0; c < view->num_cpus; c++) {
        const struct policy_cpu *cpu = &view->cpus[c];
        const struct policy_cpu *lead = best == POLICY_NO_CPU ? NULL : &view->cpus[best];

        if (c == view->self || cpu->capacity == 0 || !policy_allowed(thread, c)) {
            continue;
        }
        if (lead != NULL && policy_less_loaded(policy_load(lead), lead->capacity, policy_load(cpu), cpu->capacity)) {
            continue;
        }
        if (lead == NULL || policy_less_loaded(policy_load(cpu), cpu->capacity, policy_load(lead), lead->capacity)) {
            ties = 0;
        }
        ties++;
        if (ties == 1 || pick_below(pick_mix(view->seed, c), ties) == 0) {
            best = (int32_t)c;
        }
    }
    return best;
}

static __attribute__((noinline)) void move_one(const struct policy_view *view, struct policy_plan *plan)
{
    const struct policy_cpu *self = &view->cpus[view->self];
    uint32_t load = policy_load(self);
    uint64_t bound = UINT64_MAX;
    uint32_t index;

    while (plan->capacity != 0 && pick_next_thread(view, &bound, &index)) {
        int32_t to = least_loaded(view, &view->threads[index]);

        if (to != POLICY_NO_CPU &&
            pick_worth_moving(load, self->capacity, policy_load(&view->cpus[to]), view->cpus[to].capacity)) {
            plan->moves[0] = (struct policy_move){.thread = index, .to = (uint32_t)to};
            plan->num_moves = 1;
            return;
        }
    }
}

static void legacy_balance(const struct policy_view *view, struct policy_plan *plan)
{
    const struct policy_cpu *self = &view->cpus[view->self];

    plan->num_moves = 0;
    if (pick_any_target(view, policy_load(self), self->capacity)) {
        move_one(view, plan);
    }
}

const struct policy policy_legacy = {
    .name = "legacy",
    .summary = "every 100 ms move one thread to the least loaded CPU",
    .interval_ms = LEGACY_INTERVAL_MS,
    .balance = legacy_balance,
};
