/* Balance passes and idle pulls: the mechanism of sched/balance.c and sched/pull.c. */
#include "tests/sim/internal.h"

/* ---- passes ---- */

void balance_arm(struct sim *s, struct sim_cpu *cpu)
{
    uint64_t offset;
    uint64_t next;

    if (cpu->balance_armed || s->interval == 0) {
        return;
    }
    offset = s->interval / s->n * cpu_index(s, cpu);
    next = s->now < offset ? offset : (s->now - offset) / s->interval * s->interval + s->interval + offset;
    cpu->balance_armed = true;
    sim_event_add(s, next, EV_BALANCE, 0, cpu, NULL);
}

static uint32_t take_candidates(struct sim *s, struct sim_cpu *cpu)
{
    uint32_t count = 0;

    list_for_each(pos, &cpu->queue.order) {
        struct sim_thread *t = entity_thread(list_entry(pos, struct runq_entity, order));

        if (t->pinned) {
            continue;
        }
        view_thread(s, t, &s->candidates[count]);
        s->candidate_threads[count] = t;
        if (++count == s->max_candidates) {
            break;
        }
    }
    return count;
}

static void carry_out(struct sim *s, struct sim_cpu *cpu, const struct policy_move *move, uint32_t count)
{
    struct sim_thread *t;
    struct sim_cpu *to;
    uint32_t c = cpu_index(s, cpu);
    bool kick;
    bool demanded;

    if (move->thread >= count || move->to >= s->n || move->to == c) {
        s->st.moves_rejected[SIM_REJECT_INDEX]++;
        return;
    }
    t = s->candidate_threads[move->thread];
    to = &s->cpus[move->to];
    if (t->state != T_QUEUED || t->cpu != (int32_t)c) {
        s->st.moves_rejected[SIM_REJECT_GONE]++;
        return;
    }
    if (!thread_allowed(t, move->to) || s->pcpus[move->to].capacity == 0) {
        s->st.moves_rejected[SIM_REJECT_AFFINITY]++;
        return;
    }
    if (!policy_less_loaded(sim_load(s, move->to) + 1, s->pcpus[move->to].capacity, sim_load(s, c), s->pcpus[c].capacity)) {
        s->st.moves_rejected[SIM_REJECT_NO_GAIN]++;
        return;
    }
    kick = s->pcpus[move->to].running == 0 || s->pcpus[move->to].queued == 0;
    demanded = sim_load(s, move->to) == 0;
    cpu_migrate(s, cpu, to, t);
    note_move(s, t, (int32_t)c, MOVE_BALANCE, demanded);
    cpu_spend(s, cpu, s->cost.move_ns);
    s->st.moves_accepted++;
    if (kick) {
        cpu_kick(s, to, cpu);
    }
}

void balance_event(struct sim *s, struct sim_cpu *cpu)
{
    struct policy_view view;
    struct policy_plan plan = {.capacity = s->n, .moves = s->moves};
    uint32_t count;

    cpu->balance_armed = false;
    if (cpu->queue.count == 0) {
        return;
    }
    cpu_irq_begin(s, cpu);
    count = take_candidates(s, cpu);
    s->st.passes++;
    cpu_spend(s, cpu, s->cost.pass_base_ns + s->cost.pass_cpu_ns * s->n);
    if (count != 0) {
        view_fill(s, &view, cpu_index(s, cpu));
        view.num_threads = count;
        view.threads = s->candidates;
        s->cfg.policy->balance(&view, &plan);
        if (plan.num_moves > plan.capacity) {
            s->st.moves_rejected[SIM_REJECT_LIMIT]++;
            plan.num_moves = plan.capacity;
        }
        if (plan.num_moves != 0) {
            s->st.move_passes++;
        }
        for (uint32_t i = 0; i < plan.num_moves; i++) {
            carry_out(s, cpu, &s->moves[i], count);
        }
    }
    if (cpu->queue.count != 0) {
        balance_arm(s, cpu);
    }
    cpu_settle(s, cpu);
}

/* ---- pulls ---- */

/* Who has waited longest of those that may come here and are cold enough; arrival order is waiting order. */
static struct sim_thread *choose(struct sim *s, struct sim_cpu *victim, uint32_t here, const struct policy_pull *pull)
{
    list_for_each(pos, &victim->queue.order) {
        struct sim_thread *t = entity_thread(list_entry(pos, struct runq_entity, order));

        if (!thread_allowed(t, here) || s->now - t->entity.queued_ns < pull->min_wait_ns ||
            s->now - t->last_ran < pull->min_cold_ns) {
            continue;
        }
        return t;
    }
    return NULL;
}

bool balance_pull(struct sim *s, struct sim_cpu *cpu)
{
    struct policy_view view;
    struct policy_pull pull = {.from = POLICY_NO_CPU};
    struct sim_cpu *victim;
    struct sim_thread *t;
    uint32_t c = cpu_index(s, cpu);
    uint64_t at;

    s->st.idle_enters += !cpu->idle;
    if (s->waiting != 0) {
        s->st.needed++; /* this CPU has nothing to do while a thread waits elsewhere */
    }
    if (s->ideal || s->overloaded_cpus == 0 || s->cfg.policy->idle_pull == NULL || s->pcpus[c].capacity == 0) {
        return false;
    }
    s->st.pulls++;
    view_fill(s, &view, c);
    s->cfg.policy->idle_pull(&view, &pull);
    cpu_spend(s, cpu, s->cost.pull_ns);
    if (pull.from < 0 || (uint32_t)pull.from >= s->n || (uint32_t)pull.from == c) {
        return false;
    }
    victim = &s->cpus[pull.from];
    at = cpu_time(s, cpu);
    if (at < victim->lock_free_at) { /* the lock is only tried */
        s->st.pull_contended++;
        return false;
    }
    victim->lock_free_at = at + s->cost.lock_hold_ns;
    t = victim->curr != NULL || (s->cfg.faults & FAULT_PULL_LAST) ? choose(s, victim, c, &pull) : NULL;
    if (t == NULL) {
        return false;
    }
    if (victim->curr == NULL) {
        s->st.pulled_last++;
    }
    cpu_migrate(s, victim, cpu, t);
    note_move(s, t, pull.from, MOVE_PULL, true);
    cpu_spend(s, cpu, s->cost.move_ns);
    s->st.pull_hits++;
    return true;
}
