/* The bounded drain, shared by `drain` and by those that keep it as their backstop. */
#ifndef WEIR_SCHED_POLICIES_DRAIN_H
#define WEIR_SCHED_POLICIES_DRAIN_H

#include "sched/policies/pick.h"

#define DRAIN_INTERVAL_MS 10u

/* A load as one number to compare: threads per share of capacity, 14 fractional bits.  CPUs that take nothing are last. */
static inline uint32_t drain_key(uint32_t load, uint32_t capacity)
{
    const uint32_t shift = 14;

    if (capacity == 0) {
        return UINT32_MAX;
    }
    return load >= 1u << (31 - shift) ? UINT32_MAX - 1 : (load << shift) / capacity;
}

/* Of the CPUs the thread may run on, self excepted, one with the smallest key; each of the tied is as likely. */
static inline int32_t drain_target(const struct policy_view *view, const uint32_t *key,
                                   const struct policy_thread *thread, uint32_t random)
{
    uint32_t best = UINT32_MAX;
    uint32_t ties = 0;
    uint32_t chosen;

    for (uint32_t c = 0; c < view->num_cpus; c++) {
        if (key[c] > best || !policy_allowed(thread, c)) {
            continue;
        }
        ties = key[c] < best ? 1 : ties + 1;
        best = key[c];
    }
    if (best == UINT32_MAX) {
        return POLICY_NO_CPU;
    }
    chosen = pick_below(random, ties);
    for (uint32_t c = 0; c < view->num_cpus; c++) {
        if (key[c] == best && policy_allowed(thread, c) && chosen-- == 0) {
            return (int32_t)c;
        }
    }
    return POLICY_NO_CPU;
}

/* Fills the plan: the most migratable thread to the least loaded CPU, again and again, each move counted at once in the
 * loads that the next one sees, until no move would help or the plan is full.  Ends: every step takes the next thread. */
static __attribute__((noinline)) void drain_fill(const struct policy_view *view, struct policy_plan *plan)
{
    const struct policy_cpu *self = &view->cpus[view->self];
    uint32_t key[POLICY_MAX_CPUS]; /* of each CPU as it will be; self is out of the choice */
    uint32_t load = policy_load(self);
    uint64_t bound = UINT64_MAX;
    uint32_t index;

    if (view->num_cpus > POLICY_MAX_CPUS) {
        return;
    }
    for (uint32_t c = 0; c < view->num_cpus; c++) {
        key[c] = drain_key(policy_load(&view->cpus[c]), view->cpus[c].capacity);
    }
    key[view->self] = UINT32_MAX;
    while (plan->num_moves < plan->capacity && pick_next_thread(view, &bound, &index)) {
        int32_t to = drain_target(view, key, &view->threads[index], pick_mix(view->seed, plan->num_moves));
        uint32_t capacity;
        uint32_t there;

        if (to == POLICY_NO_CPU) {
            continue;
        }
        capacity = view->cpus[to].capacity;
        there = policy_load(&view->cpus[to]);
        for (uint32_t m = 0; m < plan->num_moves; m++) {
            there += plan->moves[m].to == (uint32_t)to;
        }
        if (!pick_worth_moving(load, self->capacity, there, capacity)) {
            continue; /* this thread's CPUs are no better; another's may be */
        }
        plan->moves[plan->num_moves++] = (struct policy_move){.thread = index, .to = (uint32_t)to};
        key[to] = drain_key(there + 1, capacity);
        load--;
    }
}

/* The quick look first, apart from the rest: a balanced pass must not pay for the frame of one that moves. */
static inline void drain_pass(const struct policy_view *view, struct policy_plan *plan)
{
    const struct policy_cpu *self = &view->cpus[view->self];

    plan->num_moves = 0;
    if (pick_any_target(view, policy_load(self), self->capacity)) {
        drain_fill(view, plan);
    }
}

#endif
