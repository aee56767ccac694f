/* Policies that misbehave on purpose: what the kernel's protection is tested with (WEIR_TEST_POLICIES, debug kernels only). */
#include "sched/policies/policies.h"

#if defined(WEIR_TEST_POLICIES)

static int32_t loop_for_ever(const struct policy_view *view)
{
    (void)view;
    for (;;) {
    }
    return POLICY_NO_CPU;
}

const struct policy policy_bad_loop = {
    .name = "bad-loop",
    .summary = "never comes back from placing a new thread (test of the watchdog)",
    .place_new = loop_for_ever,
};

static int32_t nowhere(const struct policy_view *view)
{
    return (int32_t)view->num_cpus + 7;
}

static void rubbish(const struct policy_view *view, struct policy_plan *plan)
{
    plan->num_moves = plan->capacity + 5;
    for (uint32_t i = 0; i < plan->capacity; i++) {
        plan->moves[i] = (struct policy_move){ .thread = view->num_threads + i, .to = view->num_cpus };
    }
}

static void pull_from_nowhere(const struct policy_view *view, struct policy_pull *pull)
{
    pull->from = (int32_t)view->num_cpus;
}

const struct policy policy_bad_answer = {
    .name = "bad-answer",
    .summary = "answers with CPUs and threads that do not exist (test of the validation)",
    .interval_ms = 10,
    .place_new = nowhere,
    .place_wake = nowhere,
    .balance = rubbish,
    .idle_pull = pull_from_nowhere,
};

#endif
