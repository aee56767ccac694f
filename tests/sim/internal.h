/* What the files of the simulated machine ask of each other. */
#ifndef WEIR_TESTS_SIM_INTERNAL_H
#define WEIR_TESTS_SIM_INTERNAL_H

#include "tests/sim/sim.h"

/* Zeroed memory or the end of the program. */
void *sim_alloc(size_t count, size_t size);

enum sim_event_type {
    EV_DONE,    /* what: CPU; the running thread's action is done */
    EV_SLICE,   /* what: CPU */
    EV_IPI,     /* what: CPU */
    EV_NOTICE,  /* what: CPU; a polling one sees its wake list or queue */
    EV_BALANCE, /* what: CPU */
    EV_RX,      /* what: receive queue; a pass is done */
    EV_TIMER,   /* what: thread; its sleep is over */
    EV_CALL,    /* what: function, arg */
};

static inline uint32_t cpu_index(const struct sim *s, const struct sim_cpu *cpu)
{
    return (uint32_t)(cpu - s->cpus);
}

static inline struct sim_thread *entity_thread(struct runq_entity *e)
{
    return container_of(e, struct sim_thread, entity);
}

/* The clock as code on this CPU sees it: behind the kernel work that it has committed to. */
static inline uint64_t cpu_time(const struct sim *s, const struct sim_cpu *cpu)
{
    return cpu->busy_until > s->now ? cpu->busy_until : s->now;
}

static inline void cpu_spend(struct sim *s, struct sim_cpu *cpu, uint64_t ns)
{
    cpu->busy_until = cpu_time(s, cpu) + ns;
}

static inline bool cpu_is_idle(const struct sim *s, const struct sim_cpu *cpu)
{
    return cpu->curr == NULL && cpu->in_rx == 0 && sim_load(s, cpu_index(s, cpu)) == 0;
}

/* ---- cpu.c: one CPU ---- */
void cpu_pause(struct sim *s, struct sim_cpu *cpu);
void cpu_settle(struct sim *s, struct sim_cpu *cpu);
void cpu_irq_begin(struct sim *s, struct sim_cpu *cpu);
void cpu_enqueue(struct sim *s, struct sim_cpu *cpu, struct sim_thread *t, enum runq_how how);
/* A queued thread goes from one queue to another. */
void cpu_migrate(struct sim *s, struct sim_cpu *from, struct sim_cpu *to, struct sim_thread *t);
void cpu_idle_end(struct sim *s, struct sim_cpu *cpu);
void cpu_event(struct sim *s, const struct sim_event *ev);

/* ---- wake.c: placement, wake lists, IPIs ---- */
void view_fill(struct sim *s, struct policy_view *view, uint32_t self);
void view_thread(const struct sim *s, const struct sim_thread *t, struct policy_thread *out);
void wake_drain(struct sim *s, struct sim_cpu *cpu);
/* Makes a CPU look at its queue: a notice if it polls, else an IPI from `from` (NULL: from nowhere, no cost). */
void cpu_kick(struct sim *s, struct sim_cpu *cpu, struct sim_cpu *from);
void wake_event(struct sim *s, const struct sim_event *ev);
void note_move(struct sim *s, struct sim_thread *t, int32_t from, enum sim_reason reason, bool needed);
bool thread_allowed(const struct sim_thread *t, uint32_t cpu);
/* An idle CPU that the thread may use, -1 if none. */
int32_t idle_for(const struct sim *s, const struct sim_thread *t);

/* ---- balance.c: passes and pulls ---- */
void balance_arm(struct sim *s, struct sim_cpu *cpu);
void balance_event(struct sim *s, struct sim_cpu *cpu);
/* True if it queued a thread on this CPU. */
bool balance_pull(struct sim *s, struct sim_cpu *cpu);

/* ---- rx.c: the receive path ---- */
void rx_event(struct sim *s, struct sim_rxq *q);

/* ---- ideal.c: the central queue ---- */
void ideal_wake(struct sim *s, struct sim_thread *t, int32_t prefer);
struct sim_thread *ideal_take(struct sim *s, uint32_t cpu);
void ideal_put(struct sim *s, struct sim_thread *t);

/* ---- track.c: what is measured ---- */
void track_advance(struct sim *s);
void track_close_stretch(struct sim *s); /* counts a violation that still lasts */
void track_cpu(struct sim *s, uint32_t cpu); /* a load of this CPU changed */
void track_wait_begin(struct sim *s, struct sim_thread *t);
void track_wait_end(struct sim *s, struct sim_thread *t);

/* ---- trace.c ---- */
void trace_segment(struct sim *s, uint32_t cpu, const struct sim_thread *t, uint64_t from, uint64_t to);

/* The thread left the CPU: still runnable, or blocked. */
void trace_end(struct sim *s, uint32_t cpu, const struct sim_thread *t, bool runnable);
void trace_wake(struct sim *s, uint32_t cpu, const struct sim_thread *t);

#endif
