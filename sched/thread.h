/* struct thread and struct cpu_sched: private to sched/.
 *
 * Who may touch what
 *   state            one table of transitions, sched/state.h; every change goes through it
 *   wake_token       anybody, atomically
 *   on_cpu           set by the CPU that switches to the thread, cleared by that CPU once its context is saved
 *   cpu              the holder of the thread's present place: the CPU that runs it, the holder of the run-queue lock while
 *                    it is queued, the waker that won BLOCKED -> WAKING
 *   entity           holder of the run-queue lock of `cpu`; the waker that won while WAKING
 *   accounting       the CPU that runs the thread
 *   affinity, nice   written under the run-queue lock of `cpu`; read anywhere
 *   refs             atomic
 * Memory is type-stable: a struct thread is only ever reused for another thread, so a late unpark of an ended thread
 * is a superfluous wakeup of another, never a stray write. */
#ifndef WEIR_SCHED_THREAD_H
#define WEIR_SCHED_THREAD_H

#include "sched/idle_clock.h"
#include "sched/policy.h"
#include "sched/runq.h"
#include "sched/sched.h"
#include "sched/state.h"

#define MAX_THREADS 32768u /* 10,000 connections with room to spare; each costs 28 KiB of kernel stacks */

struct thread {
    struct thread_head head;
    struct arch_thread arch;

    u32 state;      /* enum thread_state, atomic */
    u32 wake_token; /* 0 or 1, atomic */
    u32 on_cpu;     /* 1 while a CPU holds its live context */
    u32 cpu;
    struct thread *wake_next; /* link of a wake list */
    u32 refs;

    struct runq_entity entity;
    cpumask_t affinity; /* within the domain's CPUs */
    i32 nice;
    u32 last_cpu;       /* where it last ran */
    bool ran;           /* has it ever run? */
    bool new_place;     /* first placement pending: enters its queue as RUNQ_NEW */
    bool pinned_kernel; /* per-CPU kernel thread: never moved */

    /* accounting */
    u64 exec_start_ns;  /* since when it runs, while running */
    u64 burst_ns;       /* run time since it last blocked */
    u64 runtime_ns;
    u64 last_ran_ns;    /* when it last stopped running */
    u64 wait_since_ns;  /* when it blocked */
    u32 avg_run_ns;     /* running mean of burst_ns, weight 1/8 */
    u32 migrations;
    u64 switches;

    struct quota *quota;        /* set before start, never changed */
    struct list throttle_node;  /* under quota->lock while THROTTLED */

    struct thread *waker; /* who ended its last wait, NULL: an interrupt; kept while sched_offcpu_hook is set */
    struct timer park_timer;
    u64 kstack, irq_stack, fault_stack; /* low ends */
    void (*entry)(void *arg);
    void *arg;
    struct waitq join_waiters;
    bool ended;         /* under join_waiters.lock */
    struct list table;  /* all living threads, or the free list */
    struct thread *hash_next;
};

/* A policy's call that takes too long, as the CPU that is in it sees it (policy_watch.h). */
struct policy_suspect {
    u64 started_ns, seen_ns;
    u32 looks;
};

/* One CPU's scheduler state. */
struct cpu_sched {
    /* Under `lock` (irq class, RANK_RUNQ). */
    struct spinlock lock;
    struct runq runq;
    struct thread *current;
    struct thread *idle;
    struct thread *departing;  /* switched-out thread to be sent elsewhere once its context is saved */
    bool parked;               /* runs nothing that may run elsewhere */
    u32 delivered;             /* capacity while not parked */
    bool held;                 /* the host holds it back: parked for a while (park.c) */
    bool overloaded;           /* this CPU's bit in the domain's overloaded mask */
    bool moved_in;             /* the current thread ran elsewhere before: migration_charge_ns is due */
    u64 exec_start_ns;

    /* Anybody pushes; the CPU itself takes all. */
    struct thread *wake_list __cacheline_aligned;
    u32 polling;               /* 1 while the idle loop watches wake_list: no IPI needed */

    /* This CPU only. */
    u32 cpu __cacheline_aligned;
    u32 domain;
    bool online;
    struct timer slice_timer;
    struct timer balance_timer;
    struct timer sample_timer;
    struct timer quota_timer;
    struct timer probe_timer; /* delivered.c */
    struct arch_regs *interrupted;    /* while the timer interrupt runs */
    struct softwork *softwork;        /* raised, not yet run */
    struct softwork *softwork_late;   /* for the worker thread */
    struct thread *worker;
    u32 spin_ns;               /* adaptive idle spin */
    u64 idle_since_ns;         /* begin of the present idle stretch, for the policies */
    u64 idle_clock;            /* idle_clock.h: read anywhere */
    u64 seed;                  /* ties of the policies */
    u64 policy_started_ns;     /* nonzero while a policy function runs here; read by the watching CPU */
    struct policy_suspect policy_suspect; /* such a call that takes too long */
    struct arch_recovery policy_recovery; /* where to go on if it has to be stopped */
    struct timer watch_timer;
    struct sched_cpu_stats stats; /* relaxed: written here, read anywhere */
} __cacheline_aligned;

extern struct cpu_sched cpu_scheds[MAX_CPUS];
extern struct lock_class runq_lock_class;
/* What a thread pays for having been moved (sched_config); set once at start. */
extern u32 migration_charge_ns;

static inline struct cpu_sched *sched_of(u32 cpu)
{
    return &cpu_scheds[cpu];
}

static inline struct cpu_sched *sched_here(void)
{
    return &cpu_scheds[this_cpu()->cpu];
}

/* What other CPUs may see of a CPU's load; a cache line each, indexed by machine CPU number. */
extern struct policy_cpu board[MAX_CPUS];

struct domain {
    u32 first_cpu, num_cpus;
    cpumask_t cpus;
    cpumask_t active; /* those that are not parked; machine CPU numbers */
    const struct policy *policy;
    u32 interval_ms;
    u32 receive_cpus; /* CPUs with a receive path: sched_add_receive_path() */
    u64 idle __cacheline_aligned;       /* domain-relative bit set: CPUs without load (board.c) */
    u64 overloaded __cacheline_aligned; /* domain-relative: CPUs with a thread running and another waiting */
};
extern struct domain domains[MAX_DOMAINS];
extern u32 num_domains;

static inline struct domain *domain_of(u32 cpu)
{
    return &domains[cpu_scheds[cpu].domain];
}

/* ---- switch.c ---- */
/* Gives the CPU to the thread that should have it.  Interrupts off, no locks.  The caller has set the current thread's state. */
void schedule(void);
/* First thing on a new thread's stack. */
void schedule_finish_first(void);
/* Holds c->lock, on that CPU. */
void sched_arm_timers(struct cpu_sched *c, u64 now_ns);
void slice_timer_fired(struct timer *timer);
/* Sends the reschedule IPI, counted and traced.  Preemption off. */
void sched_kick(u32 cpu);
void sched_request(struct cpu_sched *c); /* reschedule this CPU at its next preemption point */

/* ---- wake.c ---- */
/* Moves everything on this CPU's wake list to its run queue.  Holds c->lock. */
void wake_list_drain(struct cpu_sched *c);
/* Sends a thread that is in state WAKING to `cpu`; batch may be NULL. */
void wake_send(struct thread *t, u32 cpu, enum runq_how how, struct wake_batch *batch);
/* Places a thread in state WAKING that is the caller's: asks the policy, queues or sends it.  Preemption off. */
void wake_place(struct thread *t, struct wake_batch *batch);
/* A started thread's first placement. */
void wake_new(struct thread *t);
/* Queues a thread on this CPU.  Holds c->lock.  how as in runq.h. */
void enqueue_here(struct cpu_sched *c, struct thread *t, enum runq_how how, u64 now_ns);

void thread_park_init(struct thread *t);
/* Tells the off-CPU profile, if there is one, of a wait that is over. */
void offcpu_ended(struct thread *t, enum wait_kind kind, u64 object, u64 waited_ns);

/* ---- board.c ---- */
void board_publish(struct cpu_sched *c);              /* running and queued, from the run queue; holds c->lock */
void board_in_flight(u32 cpu, i32 delta);
void board_idle(struct cpu_sched *c, bool idle);
u64 board_seed(struct cpu_sched *c);

/* ---- balance.c, pull.c ---- */
void balance_timer_fired(struct timer *t);
void balance_arm(struct cpu_sched *c, u64 now_ns);
/* c is about to go idle: fetches a waiting thread from elsewhere if the policy says where.  Holds c->lock. */
enum pull_result {
    PULL_NOTHING,   /* nothing to be had */
    PULL_GOT_ONE,   /* it is in c's queue */
    PULL_CONTENDED, /* there may be: the queue was being changed */
};
enum pull_result idle_pull(struct cpu_sched *c, u64 now_ns);
/* t was queued on c behind a running thread: calls an idle CPU that may fetch it.  Holds c->lock. */
void pull_offer(struct cpu_sched *c, const struct thread *t);
/* c was idle and has found a thread to run.  It may have been called for another one, which then still waits: calls the next
 * idle CPU.  Holds c->lock. */
void pull_pass_on(struct cpu_sched *c);
/* Is there a queue that an idle CPU of this domain could fetch from?  Any context. */
bool pull_worth_a_look(const struct cpu_sched *c);
/* Moves a queued thread between two locked CPUs. */
void migrate_locked(struct cpu_sched *from, struct cpu_sched *to, struct thread *t, enum migrate_reason why, u64 now_ns);

/* ---- policy_call.c: the only place where policies are called ---- */
/* Each falls back to the default answer if the policy has no such function, answers rubbish, or overruns. */
u32 policy_place_new(struct thread *t, u32 self);
u32 policy_place_wake(struct thread *t, u32 self, u32 flags);
void policy_balance(const struct policy_view *view, struct policy_plan *plan, struct domain *d, struct cpu_sched *c);
void policy_pull_from(struct cpu_sched *c, struct policy_pull *pull, u64 now_ns);
void policy_describe(const struct thread *t, struct policy_thread *out, const struct domain *d, u64 *affinity_word);

/* ---- thread.c ---- */
/* Turns the running boot context of a CPU into thread t. */
void thread_adopt(struct thread *t, const char *name, u32 cpu, bool idle);
/* The switched-away CPU drops a dead thread's last own reference. */
void thread_reap(struct thread *t);

/* ---- park.c ---- */
/* May t go from the parked CPU c to another one? */
bool park_may_leave(const struct cpu_sched *c, const struct thread *t);

/* ---- quota.c ---- */
void quota_charge(struct quota *q, u64 ran_ns, u64 now_ns);
/* Sets t aside if its group has nothing left.  t is RUNNABLE, out of its run queue; run-queue lock held. */
bool quota_throttle(struct thread *t, u64 now_ns);
/* How long a CPU may run a thread of the group before it looks again, ns. */
u64 quota_check_after(const struct quota *q, u32 cpus);
void quota_timer_fired(struct timer *timer);

/* ---- delivered.c ---- */
void delivered_init_cpu(struct cpu_sched *c);
/* The CPU gets a thread: arms its probe if it is to be measured.  Interrupts off. */
void delivered_resume(struct cpu_sched *c);

/* ---- sample.c ---- */
void sample_init_cpu(struct cpu_sched *c);
/* From the reschedule IPI: starts or stops this CPU's sampling timer as asked for. */
void sample_follow(struct cpu_sched *c);

/* ---- timer.c ---- */
void timers_init_cpu(u32 cpu);
void timers_run(u32 cpu); /* from upcall_timer */

/* ---- softwork.c ---- */
void softwork_run_pending(struct cpu_sched *c);
int softwork_start_worker(u32 cpu);

/* ---- idle.c ---- */
void idle_loop(void) __noreturn;
extern u32 idle_spin_limit_ns;

/* ---- init.c ---- */
const struct policy *policy_find(const char *name);

#define STAT_INC(c, field) WRITE_ONCE((c)->stats.field, (c)->stats.field + 1)
#define STAT_ADD(c, field, n) WRITE_ONCE((c)->stats.field, (c)->stats.field + (n))

#endif
