/* Wakeups, new threads, wake lists, IPIs, timers. */
#include "tests/sim/internal.h"

#define PINGPONG_NS 10000000ull /* a thread back where it came from within 10 ms */

/* ---- views ---- */

/* pcpus[] is kept up to date as things happen, like the kernel's board. */
void view_fill(struct sim *s, struct policy_view *view, uint32_t self)
{
    *view = (struct policy_view){
        .now_ns = s->now,
        .seed = rng_next(&s->rng),
        .num_cpus = s->n,
        .self = self,
        .cpus = s->pcpus,
        .idle = s->idle_bits,
        .receive_cpus = s->num_rxqs,
    };
}

void view_thread(const struct sim *s, const struct sim_thread *t, struct policy_thread *out)
{
    (void)s;
    *out = (struct policy_thread){
        .id = t->id,
        .affinity = t->affinity,
        .last_cpu = t->last_cpu,
        .receive_cpu = t->receive_cpu,
        .last_ran_ns = t->last_ran,
        .queued_ns = t->state == T_QUEUED ? t->queued_at : 0,
        .avg_run_ns = t->avg_run,
        .migrations = t->migrations,
        .weight = t->entity.weight,
    };
}

int32_t idle_for(const struct sim *s, const struct sim_thread *t)
{
    for (uint32_t w = 0; w < s->words; w++) {
        uint64_t bits = s->idle_bits[w] & t->affinity[w];

        if (bits != 0) {
            return (int32_t)(w * 64 + (uint32_t)__builtin_ctzll(bits));
        }
    }
    return -1;
}

/* Ping-pong: a move back to the CPU that the last move left, soon after, for nothing: work conservation did not demand it (the
 * thread could have run at once where it was, or has to wait where it goes), nor did it save an interrupt to another CPU (the
 * thread goes to the CPU whose receive path wakes it). */
void note_move(struct sim *s, struct sim_thread *t, int32_t from, enum sim_reason reason, bool needed)
{
    s->st.migrations[reason]++;
    t->migrations++;
    if (!needed && t->moved_from == t->cpu && s->now - t->moved_at < PINGPONG_NS) {
        s->st.pingpong++;
    }
    t->moved_from = from;
    t->moved_at = s->now;
}

/* ---- kicks and wake lists ---- */

static void send_ipi(struct sim *s, struct sim_cpu *cpu, struct sim_cpu *from)
{
    uint64_t at = s->now;

    if (from != NULL) {
        cpu_spend(s, from, s->cost.ipi_send_ns);
        at = cpu_time(s, from);
    }
    s->st.ipis++;
    if ((s->cfg.faults & FAULT_DROP_IPI) && s->st.ipis % 1000 == 999) {
        return;
    }
    sim_event_add(s, at + s->cost.ipi_latency_ns, EV_IPI, 0, cpu, NULL);
}

void cpu_kick(struct sim *s, struct sim_cpu *cpu, struct sim_cpu *from)
{
    uint64_t at = from != NULL ? cpu_time(s, from) : s->now;
    uint32_t c = cpu_index(s, cpu);

    if (cpu->ipi_pending) {
        return;
    }
    cpu->ipi_pending = true;
    if (cpu->idle && at < cpu->poll_until) {
        sim_event_add(s, at + s->cost.poll_notice_ns, EV_NOTICE, 0, cpu, NULL);
    } else if (s->batching) {
        s->ipi_batch[c / 64] |= 1ull << (c % 64);
    } else {
        send_ipi(s, cpu, from);
    }
}

void sim_batch_begin(struct sim *s)
{
    s->batching = true;
}

void sim_batch_flush(struct sim *s)
{
    struct sim_cpu *from = s->ctx_cpu >= 0 ? &s->cpus[s->ctx_cpu] : NULL;

    s->batching = false;
    for (uint32_t w = 0; w < s->words; w++) {
        uint64_t bits = s->ipi_batch[w];

        s->ipi_batch[w] = 0;
        for (; bits != 0; bits &= bits - 1) {
            send_ipi(s, &s->cpus[w * 64 + (uint32_t)__builtin_ctzll(bits)], from);
        }
    }
}

void wake_drain(struct sim *s, struct sim_cpu *cpu)
{
    struct sim_thread *t = cpu->waking;

    cpu->waking = NULL;
    cpu->waking_tail = &cpu->waking;
    while (t != NULL) {
        struct sim_thread *next = t->next_waking;

        s->pcpus[cpu_index(s, cpu)].in_flight--;
        track_wait_end(s, t);
        cpu_enqueue(s, cpu, t, RUNQ_MIGRATE);
        t = next;
    }
}

/* Sends a thread on its way to a CPU: into its queue if the code runs there, else onto its wake list. */
static void send_thread(struct sim *s, struct sim_thread *t, uint32_t to, struct sim_cpu *from)
{
    struct sim_cpu *cpu = &s->cpus[to];
    enum runq_how how = RUNQ_MIGRATE;

    if (cpu != from || t->last_cpu != (int32_t)to) { /* its vruntime becomes a lag against the queue it left */
        if (!t->fresh) {
            runq_rebase(&s->cpus[t->last_cpu].queue, &t->entity);
        }
    } else {
        how = RUNQ_WAKE;
    }
    t->cpu = (int32_t)to;
    t->queued_at = from != NULL ? cpu_time(s, from) : s->now;
    if (cpu == from) {
        s->st.wakes_local++;
        cpu_enqueue(s, cpu, t, how);
        return;
    }
    s->st.wakes_remote++;
    t->state = T_WAKING;
    t->next_waking = NULL;
    *cpu->waking_tail = t;
    cpu->waking_tail = &t->next_waking;
    s->pcpus[to].in_flight++;
    track_wait_begin(s, t);
    track_cpu(s, to);
    cpu_kick(s, cpu, from);
}

/* ---- placement ---- */

/* Asks the policy; the default where it does not answer or answers nonsense. */
static uint32_t place(struct sim *s, struct sim_thread *t, uint32_t self, uint32_t home, uint32_t flags,
                      int32_t (*ask)(const struct policy_view *view))
{
    struct policy_view view;
    struct policy_thread thread;
    int32_t to = POLICY_NO_CPU;

    if (ask != NULL) {
        view_fill(s, &view, self);
        view_thread(s, t, &thread);
        view.num_threads = 1;
        view.threads = &thread;
        view.wake_flags = flags;
        to = ask(&view);
        cpu_spend(s, &s->cpus[self], s->cost.place_ns);
    }
    if (to != POLICY_NO_CPU && (to < 0 || (uint32_t)to >= s->n || s->pcpus[to].capacity == 0)) {
        s->st.moves_rejected[SIM_REJECT_CPU]++;
        to = POLICY_NO_CPU;
    } else if (to != POLICY_NO_CPU && !thread_allowed(t, (uint32_t)to) && !(s->cfg.faults & FAULT_IGNORE_AFFINITY)) {
        s->st.moves_rejected[SIM_REJECT_AFFINITY]++;
        to = POLICY_NO_CPU;
    }
    if (to != POLICY_NO_CPU) {
        return (uint32_t)to;
    }
    if (thread_allowed(t, home)) {
        return home;
    }
    for (uint32_t c = 0; c < s->n; c++) {
        if (thread_allowed(t, c)) {
            return c;
        }
    }
    return home;
}

/* Does work conservation demand that this thread go elsewhere than to a busy home? */
static bool move_demanded(const struct sim *s, const struct sim_thread *t, uint32_t home)
{
    return sim_load(s, home) != 0 && idle_for(s, t) >= 0;
}

static void place_and_send(struct sim *s, struct sim_thread *t, struct sim_cpu *from, uint32_t home, uint32_t flags,
                           bool is_new)
{
    bool needed = move_demanded(s, t, home);
    uint32_t to;

    s->st.needed += needed;
    if (s->ideal) {
        ideal_wake(s, t, (int32_t)home);
        return;
    }
    cpu_spend(s, from, s->cost.wake_ns);
    to = place(s, t, cpu_index(s, from), home, flags, is_new ? s->cfg.policy->place_new : s->cfg.policy->place_wake);
    if (to != home) {
        t->cpu = (int32_t)to;
        note_move(s, t, (int32_t)home, is_new ? MOVE_NEW : MOVE_WAKE, needed || (s->ctx_irq && to == cpu_index(s, from)));
    }
    send_thread(s, t, to, from);
}

/* From outside of the machine an interrupt on some CPU carries the request. */
static struct sim_cpu *enter(struct sim *s, uint32_t fallback, int32_t *saved_cpu, bool *saved_irq)
{
    struct sim_cpu *cpu;

    *saved_cpu = s->ctx_cpu;
    *saved_irq = s->ctx_irq;
    if (s->ctx_cpu >= 0) {
        return &s->cpus[s->ctx_cpu];
    }
    cpu = &s->cpus[fallback];
    cpu_irq_begin(s, cpu);
    s->ctx_cpu = (int32_t)fallback;
    s->ctx_irq = true;
    return cpu;
}

static void leave(struct sim *s, struct sim_cpu *cpu, int32_t saved_cpu, bool saved_irq)
{
    s->ctx_cpu = saved_cpu;
    s->ctx_irq = saved_irq;
    if (saved_cpu < 0) {
        cpu_settle(s, cpu);
    }
}

void sim_spawn(struct sim *s, struct sim_thread *t, uint32_t creator)
{
    int32_t saved_cpu;
    bool saved_irq;
    struct sim_cpu *from = enter(s, creator, &saved_cpu, &saved_irq);

    place_and_send(s, t, from, cpu_index(s, from), 0, true);
    leave(s, from, saved_cpu, saved_irq);
}

void sim_wake(struct sim *s, struct sim_thread *t, uint32_t flags)
{
    int32_t saved_cpu;
    bool saved_irq;
    struct sim_cpu *from;

    if (t->state == T_DEAD) {
        return;
    }
    if (t->state == T_RUNNING && (s->cfg.faults & FAULT_EARLY_RUN)) {
        t->token = false; /* the waker believes that it has blocked */
    } else if (t->state != T_BLOCKED) {
        t->token = true;
        return;
    }
    from = enter(s, t->last_cpu >= 0 ? (uint32_t)t->last_cpu : 0, &saved_cpu, &saved_irq);
    t->woken_at = cpu_time(s, from);
    if (s->trace != NULL) {
        trace_wake(s, cpu_index(s, from), t);
    }
    place_and_send(s, t, from, (uint32_t)t->last_cpu, flags | (s->ctx_irq ? POLICY_WAKE_FROM_IRQ : 0), false);
    leave(s, from, saved_cpu, saved_irq);
}

void sim_release(struct sim *s, struct sim_thread *t)
{
    struct sim_cpu *cpu;

    if (!t->spinning) {
        return;
    }
    t->spinning = false;
    if (t->state == T_RUNNING) {
        cpu = &s->cpus[t->cpu];
        cpu_pause(s, cpu);
        t->remaining = 1; /* sees it at its next look */
        if (s->ctx_cpu != t->cpu) {
            cpu_settle(s, cpu);
        }
        return;
    }
    t->remaining = 1;
}

void sim_op(struct sim *s, struct sim_thread *t, uint64_t latency)
{
    s->st.ops++;
    if (t != NULL) {
        t->ops++;
    }
    if (latency != 0) {
        hist_add(&s->st.latency, latency);
    }
}

void wake_event(struct sim *s, const struct sim_event *ev)
{
    struct sim_cpu *cpu = ev->what;

    switch (ev->type) {
    case EV_RX:
        rx_event(s, ev->what);
        break;
    case EV_TIMER:
        s->ctx_cpu = -1;
        sim_wake(s, ev->what, 0);
        break;
    case EV_IPI:
        cpu->ipi_pending = false;
        cpu_irq_begin(s, cpu);
        wake_drain(s, cpu);
        cpu_settle(s, cpu);
        break;
    default: /* EV_NOTICE */
        cpu->ipi_pending = false;
        cpu_pause(s, cpu);
        cpu_idle_end(s, cpu);
        wake_drain(s, cpu);
        cpu_settle(s, cpu);
        break;
    }
}
