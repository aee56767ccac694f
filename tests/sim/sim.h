/* The simulated machine: CPUs, threads, run queues, wake lists, interrupts, a receive path, and the mechanism around a
 * policy, as discrete events.  The policies are the kernel's own objects; costs are in cost.h; workloads are programs
 * (workload.h) that the threads run.  Same seed, same run. */
#ifndef WEIR_TESTS_SIM_SIM_H
#define WEIR_TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stdio.h>

#include "sched/policy.h"
#include "sched/runq.h"
#include "tests/sim/cost.h"
#include "tests/sim/hist.h"
#include "tests/sim/rng.h"

#define SIM_MAX_CPUS 1024u
#define SIM_NEVER UINT64_MAX
#define SIM_MASK_WORDS (SIM_MAX_CPUS / 64)

struct sim;
struct sim_thread;

/* ---- what a thread does next ---- */

enum sim_act { ACT_RUN, ACT_SPIN, ACT_PARK, ACT_SLEEP, ACT_YIELD, ACT_EXIT };

struct sim_action {
    enum sim_act act;
    uint64_t ns; /* ACT_RUN: of a CPU at full capacity; ACT_SLEEP: of time */
};

/* Called on the thread's CPU whenever the last action is done.  May wake, spawn, ...  ACT_SPIN runs until sim_release(). */
typedef struct sim_action (*sim_step_fn)(struct sim *s, struct sim_thread *t);
/* A packet reaches the end of the receive path: interrupt context on the queue's CPU. */
typedef void (*sim_deliver_fn)(struct sim *s, void *arg);
/* Something outside of the machine, or a timer. */
typedef void (*sim_call_fn)(struct sim *s, void *arg);

enum sim_state { T_NEW, T_RUNNING, T_QUEUED, T_WAKING, T_BLOCKED, T_DEAD };
enum sim_reason { MOVE_NEW, MOVE_WAKE, MOVE_BALANCE, MOVE_PULL, SIM_NUM_REASONS };
extern const char *const sim_reason_names[SIM_NUM_REASONS];
enum sim_reject { SIM_REJECT_GONE, SIM_REJECT_AFFINITY, SIM_REJECT_INDEX, SIM_REJECT_CPU, SIM_REJECT_LIMIT, SIM_REJECT_NO_GAIN, SIM_NUM_REJECTS };

struct sim_thread {
    struct runq_entity entity;
    uint32_t id;
    enum sim_state state;
    int32_t cpu;      /* running on, queued at, on the way to */
    int32_t last_cpu; /* ran last on */
    bool token;
    bool pinned;      /* may run on one CPU only */
    bool partial;     /* on more than one, but not on all */
    bool spinning;
    bool service;     /* of the mechanism (receive path), not of the workload: not measured */
    const uint64_t *affinity;

    sim_step_fn step;
    void *arg;
    uint64_t remaining;  /* of the current action, ns of a full CPU */
    uint64_t overhead;   /* CPU time to spend before it: cache refill */
    struct rng rng;
    const char *name;

    int32_t receive_cpu;
    uint64_t last_ran, queued_at, woken_at, burst;
    bool fresh;          /* first placement: enters its queue as new */
    uint64_t gap_mark;   /* sim.gap when it began to wait */
    uint64_t partial_gap;/* the same, summed by the slow path, for partial affinity */
    uint32_t avg_run;
    uint32_t migrations;
    int32_t moved_from;  /* CPU it left by its last move, and when, and whether that move was demanded */
    uint64_t moved_at;
    bool moved_needed;
    uint64_t runtime, ops;
    struct sim_thread *next_waking;
    struct sim_thread *central_next;
};

struct sim_packet {
    sim_deliver_fn deliver;
    void *arg;
};

struct sim_rxq {
    uint32_t cpu;
    uint32_t head, count, size;
    bool busy;             /* an interrupt or the worker is at it */
    uint32_t batch;        /* packets of the pass under way */
    uint32_t budget;       /* packets that the interrupt may still take */
    bool worker_owns;
    struct sim_thread *worker; /* goes on where the interrupt's budget ends */
    struct sim_packet *ring;
};

struct sim_cpu {
    struct runq queue;
    struct sim_thread *curr;
    struct sim_thread *last; /* ran last here: no switch cost to go on */
    struct sim_thread *waking, **waking_tail;
    uint64_t busy_until;     /* kernel work is committed up to here */
    uint64_t seg_start;      /* the current segment of curr makes progress from here */
    bool seg_active;
    bool need_resched;
    bool idle;               /* in the idle loop: polling until poll_until, then halted */
    bool ipi_pending;        /* an IPI or a notice is on its way */
    bool slice_armed;
    bool balance_armed;
    uint32_t in_rx;          /* receive passes under way on this CPU */
    uint32_t done_gen, slice_gen;
    uint64_t idle_since, poll_until, lock_free_at;
    uint32_t spin_ns;        /* how long it polls before it halts: adapts like sched/idle.c */
    bool overloaded;         /* a thread runs and another waits */
    uint64_t slice_start;
    uint32_t movable;        /* threads queued here or on their way that any CPU could take */
    uint32_t waiting;        /* threads here that an idle CPU could take, for the tracker */
    bool tracked_idle;
    uint64_t idle_ns, busy_ns, irq_busy_ns, idle_mark;
    bool used;               /* ran a worker since the last reset */
};

struct sim_stats {
    uint64_t since;
    uint64_t ops, switches, wakes_local, wakes_remote, ipis, halts;
    uint64_t migrations[SIM_NUM_REASONS], needed, pingpong;
    uint64_t passes, moves_accepted, moves_rejected[SIM_NUM_REJECTS];
    uint64_t idle_enters;    /* times a CPU ran out of work */
    uint64_t move_passes;    /* passes that moved something */
    uint64_t pulls, pull_hits, pull_contended, pulled_last;
    uint64_t overloaded;     /* CPU-ns idle while a thread waits that could run there */
    uint64_t longest_stretch;/* longest time in one go that some CPU was idle while some thread waited */
    uint64_t longest_gap;    /* longest that one thread waited while a CPU it may use was idle */
    uint64_t packets;
    struct hist wakeup, wait, latency;
};

/* Mechanism faults to inject, so that the checks can be seen to fail. */
enum sim_fault {
    FAULT_DROP_IPI = 1,      /* one IPI in 1,000 is lost */
    FAULT_NO_SLICE = 2,      /* the slice timer never fires */
    FAULT_EARLY_RUN = 4,     /* a wakeup of a thread that still runs queues it as well */
    FAULT_IGNORE_AFFINITY = 8,
    FAULT_PULL_LAST = 16,    /* a pull takes the only thread of a CPU that is about to run it */
};

struct sim_config {
    const struct policy *policy; /* NULL: the ideal central queue */
    uint32_t num_cpus;
    uint64_t seed;
    struct sim_cost cost;
    uint32_t interval_ms;        /* 0: the policy's own */
    uint32_t faults;
    uint32_t rx_batch;           /* packets of a receive pass; 0: SIM_RX_BUDGET */
    uint32_t rx_queues;          /* receive paths of the workload; 0: its own default */
    const uint32_t *capacity;    /* per CPU; NULL: all full */
};

struct sim_event {
    uint64_t time;
    uint64_t order; /* sequence: first made, first served */
    uint32_t type, gen;
    void *what;
    void *arg;
};

struct sim_trace;

struct sim {
    struct sim_config cfg;
    struct sim_cost cost;
    uint64_t now;
    bool ideal;
    bool failed;             /* an invariant broke: `failure` says which */
    char failure[160];
    struct sim_event *heap;
    size_t heap_len, heap_cap;
    uint64_t order;
    uint64_t num_events;

    uint32_t n;
    uint32_t words;
    struct sim_cpu *cpus;
    struct policy_cpu *pcpus;
    uint64_t *idle_bits;
    uint64_t *all_cpus;
    struct policy_thread *candidates;
    struct sim_thread **candidate_threads;
    struct policy_move *moves;
    uint32_t max_candidates;
    uint64_t interval;
    struct rng rng;

    struct sim_thread **threads;
    uint32_t num_threads, cap_threads;
    struct sim_rxq *rxqs;
    uint32_t num_rxqs;
    uint64_t (*rx_affinity)[SIM_MASK_WORDS]; /* of the workers */
    struct sim_thread *central, *central_tail; /* ideal: the one queue */
    uint32_t central_len;

    int32_t ctx_cpu;         /* CPU whose context runs, -1: outside of the machine */
    bool ctx_irq;
    uint64_t *ipi_batch;     /* CPUs to send an IPI at the end of the batch */
    bool batching;

    /* tracker */
    uint32_t idle_cpus, waiting;
    uint32_t overloaded_cpus;
    uint32_t partial_waiting;
    bool have_partial;
    uint64_t track_mark;
    uint64_t stretch_from;   /* SIM_NEVER: no violation now */
    uint64_t gap;            /* time so far in which some CPU was idle */
    int64_t spread_at;       /* when max - min load was first <= 1; -1: not yet */
    bool watch_spread;
    uint64_t spread_passes;  /* passes that had moved something by then */

    struct sim_stats st;
    struct sim_trace *trace;
    void *workload;          /* of the workload's own */
    uint64_t ran_hook_from;
    bool stop;
};

/* ---- sim.c ---- */
struct sim *sim_new(const struct sim_config *cfg);
void sim_free(struct sim *s);
/* Runs until the clock reads `until`, nothing is left to do, or the workload stops it. */
void sim_run(struct sim *s, uint64_t until);
/* Begins the measurement: forgets what was counted so far. */
void sim_reset_stats(struct sim *s);
void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_event_add(struct sim *s, uint64_t time, uint32_t type, uint32_t gen, void *what, void *arg);
/* Calls fn at that time from outside of the machine. */
void sim_at(struct sim *s, uint64_t time, sim_call_fn fn, void *arg);

/* ---- for workloads ---- */
/* A thread that does not run yet.  affinity: bit set kept by the caller for the life of the run, NULL for all CPUs. */
struct sim_thread *sim_thread_new(struct sim *s, const char *name, sim_step_fn step, void *arg, const uint64_t *affinity);
/* Lets it run, created by the current context's CPU, or by `creator` from outside. */
void sim_spawn(struct sim *s, struct sim_thread *t, uint32_t creator);
/* Unpark, from whatever context is current.  flags: enum policy_wake_flags. */
void sim_wake(struct sim *s, struct sim_thread *t, uint32_t flags);
/* Between the two, at most one IPI per CPU. */
void sim_batch_begin(struct sim *s);
void sim_batch_flush(struct sim *s);
/* Ends the ACT_SPIN of a thread, wherever it is. */
void sim_release(struct sim *s, struct sim_thread *t);
void sim_set_affinity(struct sim *s, struct sim_thread *t, const uint64_t *affinity);
/* One finished operation of the workload, and how long it took (0: not timed). */
void sim_op(struct sim *s, struct sim_thread *t, uint64_t latency);
/* A packet arrives at receive queue q. */
void sim_packet(struct sim *s, uint32_t q, sim_deliver_fn deliver, void *arg);
/* Makes q receive queues, the i-th on CPU i * n / q. */
void sim_rxqs(struct sim *s, uint32_t q);

static inline uint32_t sim_load(const struct sim *s, uint32_t cpu)
{
    return policy_load(&s->pcpus[cpu]);
}

#endif
