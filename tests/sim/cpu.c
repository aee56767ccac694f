/* One CPU: interrupts, dispatch, the running thread's progress, idling. */
#include "tests/sim/internal.h"

#define STEP_LIMIT 100000u /* actions without time between them: a program that never runs is a bug of the workload */

bool thread_allowed(const struct sim_thread *t, uint32_t cpu)
{
    return policy_bit(t->affinity, cpu);
}

/* ---- the running thread ---- */

/* Time that so much work takes here, rounded up; and the work done in so much time. */
static uint64_t work_time(const struct sim *s, uint32_t c, uint64_t work)
{
    uint64_t capacity = s->pcpus[c].capacity;

    return capacity == POLICY_CAPACITY_FULL || capacity == 0 ? work
                                                              : (work * POLICY_CAPACITY_FULL + capacity - 1) / capacity;
}

static uint64_t time_work(const struct sim *s, uint32_t c, uint64_t time)
{
    uint64_t capacity = s->pcpus[c].capacity;

    return capacity == POLICY_CAPACITY_FULL || capacity == 0 ? time : time * capacity / POLICY_CAPACITY_FULL;
}

/* Stops the running thread's clock and books what it did. */
void cpu_pause(struct sim *s, struct sim_cpu *cpu)
{
    struct sim_thread *t = cpu->curr;
    uint32_t c = cpu_index(s, cpu);
    uint64_t ran;
    uint64_t work;

    if (t == NULL || !cpu->seg_active) {
        return;
    }
    cpu->seg_active = false;
    cpu->done_gen++;
    if (s->now <= cpu->seg_start) {
        return;
    }
    ran = s->now - cpu->seg_start;
    work = time_work(s, c, ran);
    runq_charge(&cpu->queue, &t->entity, ran);
    t->runtime += ran;
    t->burst += ran;
    if (work >= t->overhead) {
        work -= t->overhead;
        t->overhead = 0;
    } else {
        t->overhead -= work;
        work = 0;
    }
    if (t->remaining != SIM_NEVER) {
        t->remaining -= work < t->remaining ? work : t->remaining;
    }
    if (s->trace != NULL) {
        trace_segment(s, c, t, cpu->seg_start, s->now);
    }
}

static void cpu_resume(struct sim *s, struct sim_cpu *cpu)
{
    struct sim_thread *t = cpu->curr;

    cpu->seg_start = cpu_time(s, cpu);
    cpu->seg_active = true;
    cpu->done_gen++;
    if (t->remaining != SIM_NEVER) {
        uint64_t work = t->overhead + t->remaining;

        sim_event_add(s, cpu->seg_start + work_time(s, cpu_index(s, cpu), work), EV_DONE, cpu->done_gen, cpu, NULL);
    }
}

/* The running thread leaves the CPU (it was paused before). */
static void cpu_put(struct sim *s, struct sim_cpu *cpu, enum sim_state state)
{
    struct sim_thread *t = cpu->curr;

    if (t->state != T_RUNNING || t->cpu != (int32_t)cpu_index(s, cpu)) {
        sim_fail(s, "thread %u (%s) ran on CPU %u while it was queued or ran elsewhere", t->id, t->name, cpu_index(s, cpu));
    }
    t->last_ran = s->now;
    t->state = state;
    if (s->trace != NULL) {
        trace_end(s, cpu_index(s, cpu), t, state == T_QUEUED);
    }
    cpu->curr = NULL;
    s->pcpus[cpu_index(s, cpu)].running = 0;
    if (state != T_QUEUED) { /* the end of a burst */
        t->avg_run = (uint32_t)((t->avg_run * 7ull + (t->burst < UINT32_MAX ? t->burst : UINT32_MAX)) / 8);
        t->burst = 0;
        t->cpu = -1;
    }
}

/* Preempted, sliced or yielding: back into the queue. */
static void cpu_requeue(struct sim *s, struct sim_cpu *cpu)
{
    struct sim_thread *t = cpu->curr;
    uint32_t c = cpu_index(s, cpu);

    cpu_put(s, cpu, T_QUEUED);
    t->queued_at = s->now;
    if (s->ideal) {
        t->cpu = -1;
        track_cpu(s, c);
        ideal_put(s, t);
        return;
    }
    track_wait_begin(s, t);
    runq_add(&cpu->queue, &t->entity, RUNQ_PREEMPT, s->now);
    s->pcpus[c].queued++;
    track_cpu(s, c);
}

/* It starts at `at`.  (A waker's own clock may be a little ahead of that: it has kernel work behind it.) */
static void book_wait(struct sim *s, struct sim_thread *t, uint64_t at)
{
    if (t->service) {
        return;
    }
    hist_add(&s->st.wait, at > t->queued_at ? at - t->queued_at : 0);
    if (t->woken_at != 0) {
        hist_add(&s->st.wakeup, at > t->woken_at ? at - t->woken_at : 0);
        t->woken_at = 0;
    }
}

static void cpu_dispatch(struct sim *s, struct sim_cpu *cpu, struct sim_thread *t)
{
    uint32_t c = cpu_index(s, cpu);

    if (t->state == T_RUNNING) {
        sim_fail(s, "thread %u (%s) runs on CPU %d and CPU %u", t->id, t->name, t->cpu, c);
    }
    if (!thread_allowed(t, c)) {
        sim_fail(s, "thread %u (%s) runs on CPU %u, against its affinity", t->id, t->name, c);
    }
    if (cpu->last != t) {
        s->st.switches++;
        cpu_spend(s, cpu, s->cost.switch_ns);
    }
    if (t->last_cpu >= 0 && t->last_cpu != (int32_t)c && s->now - t->last_ran < 500000u) {
        t->overhead += s->cost.migrate_ns;
    }
    cpu->curr = cpu->last = t;
    cpu->need_resched = false;
    cpu->slice_start = s->now;
    cpu->used |= !t->service;
    t->state = T_RUNNING;
    t->cpu = t->last_cpu = (int32_t)c;
    s->pcpus[c].running = 1;
    track_cpu(s, c);
    book_wait(s, t, cpu_time(s, cpu));
}

/* Asks the thread's program what is next.  False when the thread left the CPU. */
static bool cpu_step(struct sim *s, struct sim_cpu *cpu)
{
    struct sim_thread *t = cpu->curr;
    int32_t ctx_cpu = s->ctx_cpu;
    bool ctx_irq = s->ctx_irq;
    bool stays = true;

    s->ctx_cpu = (int32_t)cpu_index(s, cpu);
    s->ctx_irq = false;
    for (uint32_t i = 0;; i++) {
        struct sim_action a = t->step(s, t);

        if (i == STEP_LIMIT) {
            sim_fail(s, "thread %u (%s) never runs", t->id, t->name);
        }
        if (a.act == ACT_PARK && t->token && !s->failed) {
            t->token = false;
            continue;
        }
        t->spinning = a.act == ACT_SPIN;
        t->remaining = a.act == ACT_RUN ? a.ns : a.act == ACT_SPIN ? SIM_NEVER : 0;
        if (a.act == ACT_SLEEP) {
            sim_event_add(s, cpu_time(s, cpu) + a.ns, EV_TIMER, 0, t, NULL);
        }
        if (a.act == ACT_PARK || a.act == ACT_SLEEP || a.act == ACT_EXIT) {
            cpu_put(s, cpu, a.act == ACT_EXIT ? T_DEAD : T_BLOCKED);
            track_cpu(s, cpu_index(s, cpu));
            stays = false;
        } else if (a.act == ACT_YIELD) {
            cpu_requeue(s, cpu);
            stays = false;
        } else if (t->remaining == 0 && !s->failed) {
            continue;
        }
        break;
    }
    s->ctx_cpu = ctx_cpu;
    s->ctx_irq = ctx_irq;
    return stays;
}

/* ---- queue ---- */

void cpu_enqueue(struct sim *s, struct sim_cpu *cpu, struct sim_thread *t, enum runq_how how)
{
    uint32_t c = cpu_index(s, cpu);

    if (t->state == T_QUEUED && !s->ideal) {
        sim_fail(s, "thread %u (%s) is queued twice", t->id, t->name);
        return;
    }
    t->state = T_QUEUED;
    t->cpu = (int32_t)c;
    runq_add(&cpu->queue, &t->entity, t->fresh ? RUNQ_NEW : how, s->now);
    t->fresh = false;
    s->pcpus[c].queued++;
    track_wait_begin(s, t);
    track_cpu(s, c);
    cpu_spend(s, cpu, s->cost.enqueue_ns);
    if (cpu->curr != NULL) {
        uint64_t ran = cpu->seg_active && s->now > cpu->seg_start ? s->now - cpu->seg_start : 0;

        cpu->need_resched |= runq_should_preempt(&cpu->curr->entity, ran, &t->entity);
    }
    balance_arm(s, cpu);
}

void cpu_migrate(struct sim *s, struct sim_cpu *from, struct sim_cpu *to, struct sim_thread *t)
{
    uint32_t c = cpu_index(s, from);

    runq_leave(&from->queue, &t->entity);
    s->pcpus[c].queued--;
    track_wait_end(s, t);
    t->state = T_WAKING;
    track_cpu(s, c);
    cpu_enqueue(s, to, t, RUNQ_MIGRATE);
}

static struct sim_thread *cpu_pick(struct sim *s, struct sim_cpu *cpu)
{
    struct runq_entity *e = runq_pick(&cpu->queue);
    struct sim_thread *t;

    if (e != NULL) {
        t = entity_thread(e);
        s->pcpus[cpu_index(s, cpu)].queued--;
        track_wait_end(s, t);
        return t;
    }
    return s->ideal ? ideal_take(s, cpu_index(s, cpu)) : NULL;
}

/* ---- idle ---- */

static void cpu_idle_begin(struct sim *s, struct sim_cpu *cpu)
{
    uint64_t from = cpu_time(s, cpu);

    cpu->idle = true;
    cpu->idle_mark = from;
    cpu->idle_since = from;
    cpu->poll_until = from + cpu->spin_ns;
    s->pcpus[cpu_index(s, cpu)].idle_since_ns = from;
}

/* sched/idle.c: a short idle time says that polling pays, a long one that it was wasted. */
static void adapt_spin(struct sim_cpu *cpu, bool hit, uint64_t idle_ns)
{
    if (hit || idle_ns < SIM_IDLE_SPIN_NS) {
        uint32_t twice = cpu->spin_ns * 2 > SIM_IDLE_SPIN_MIN_NS ? cpu->spin_ns * 2 : SIM_IDLE_SPIN_MIN_NS;

        cpu->spin_ns = twice < SIM_IDLE_SPIN_NS ? twice : SIM_IDLE_SPIN_NS;
    } else {
        cpu->spin_ns = cpu->spin_ns / 2 < SIM_IDLE_SPIN_MIN_NS ? 0 : cpu->spin_ns / 2;
    }
}

void cpu_idle_end(struct sim *s, struct sim_cpu *cpu)
{
    if (!cpu->idle) {
        return;
    }
    cpu->idle = false;
    adapt_spin(cpu, s->now < cpu->poll_until, s->now - (s->now < cpu->idle_since ? s->now : cpu->idle_since));
    if (s->now > cpu->idle_mark) {
        cpu->idle_ns += s->now - cpu->idle_mark;
    }
}

/* ---- interrupts and the way out of them ---- */

void cpu_irq_begin(struct sim *s, struct sim_cpu *cpu)
{
    uint64_t cost = s->cost.irq_ns;

    if (cpu->idle && s->now >= cpu->poll_until) {
        cost += s->cost.halt_exit_ns;
        s->st.halts++;
    }
    cpu_pause(s, cpu);
    cpu_idle_end(s, cpu);
    cpu_spend(s, cpu, cost);
}

static void arm_slice(struct sim *s, struct sim_cpu *cpu)
{
    bool others = s->ideal ? s->central_len != 0 : s->pcpus[cpu_index(s, cpu)].queued != 0;

    if (others && !cpu->slice_armed && !(s->cfg.faults & FAULT_NO_SLICE)) {
        uint64_t at = cpu->slice_start + RUNQ_SLICE_NS;

        cpu->slice_armed = true;
        sim_event_add(s, at > s->now ? at : s->now, EV_SLICE, 0, cpu, NULL);
    }
}

/* Whatever happened on this CPU: run what should run now. */
void cpu_settle(struct sim *s, struct sim_cpu *cpu)
{
    if (cpu->in_rx != 0) {
        return; /* the end of the receive pass settles */
    }
    for (uint32_t i = 0; !s->failed; i++) {
        struct sim_thread *t;

        if (i == STEP_LIMIT) {
            sim_fail(s, "CPU %u never settles", cpu_index(s, cpu));
        }
        if (cpu->curr != NULL && cpu->need_resched) {
            cpu->need_resched = false;
            cpu_pause(s, cpu);
            cpu_requeue(s, cpu);
        }
        if (cpu->curr == NULL) {
            t = cpu_pick(s, cpu);
            if (t == NULL && balance_pull(s, cpu)) {
                continue;
            }
            if (t == NULL) {
                if (!cpu->idle) {
                    cpu_idle_begin(s, cpu);
                }
                return;
            }
            cpu_idle_end(s, cpu);
            cpu_dispatch(s, cpu, t);
        }
        if (cpu->curr->remaining != 0 || cpu->curr->overhead != 0 || cpu_step(s, cpu)) {
            if (!cpu->need_resched) {
                break;
            }
        }
    }
    if (cpu->curr == NULL) {
        return;
    }
    if (!cpu->seg_active) {
        cpu_resume(s, cpu);
    }
    arm_slice(s, cpu);
}

static void slice_event(struct sim *s, struct sim_cpu *cpu)
{
    bool others = s->ideal ? s->central_len != 0 : s->pcpus[cpu_index(s, cpu)].queued != 0;

    cpu->slice_armed = false;
    if (cpu->curr == NULL || !others) {
        return;
    }
    if (s->now < cpu->slice_start + RUNQ_SLICE_NS) {
        arm_slice(s, cpu); /* the event of an earlier thread */
        return;
    }
    cpu_irq_begin(s, cpu);
    cpu->need_resched = true;
    cpu_settle(s, cpu);
}

void cpu_event(struct sim *s, const struct sim_event *ev)
{
    struct sim_cpu *cpu = ev->what;

    if (ev->type == EV_SLICE) {
        slice_event(s, cpu);
        return;
    }
    if (ev->gen != cpu->done_gen || !cpu->seg_active) {
        return;
    }
    cpu_pause(s, cpu);
    cpu_settle(s, cpu);
}
