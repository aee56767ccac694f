/* Threads and waiting, for the other rooms.
 *
 * The one blocking primitive is park/unpark with a token: thread_unpark(t) leaves a token with t; thread_park() returns at
 * once if there is a token (and takes it), else blocks until there is one, a deadline passes, or a signal interrupts.  So a
 * wakeup that comes between "look at the condition" and "park" is never lost, and a superfluous one only makes the waiter
 * look again.  Every wait is therefore a loop:
 *
 *     while (!condition) {                  // looked at under the object's lock
 *         register current thread; unlock;
 *         thread_park(deadline);
 *         lock;
 *     }
 *
 * Wait queues (struct waitq) are built on it. */
#ifndef WEIR_SCHED_SCHED_H
#define WEIR_SCHED_SCHED_H

#include "arch/arch.h"
#include "core/base/heap.h"
#include "core/base/list.h"
#include "core/base/spinlock.h"
#include "core/base/types.h"

#define THREAD_NAME_MAX 16
#define NO_DEADLINE UINT64_MAX

struct thread;

/* Head of every struct thread: what other rooms may read. */
struct thread_head {
    void *app;          /* core/kern's part of an application thread, NULL for kernel threads; never changes after start */
    u32 id;             /* 1..; the Linux tid that applications see; not reused within 2^22 creations */
    u32 domain;         /* which set of CPUs balances it */
    char name[THREAD_NAME_MAX]; /* NUL-terminated; written by the thread itself or before start */
    bool interrupt;     /* a signal wants it out of a wait: set by thread_interrupt() */
    u8 wait_kind;       /* enum wait_kind while it is blocked: for dumps and off-CPU profiles */
    u64 wait_object;    /* address of what it waits for (futex word, socket, ...) */
    i32 receive_cpu;    /* CPU whose receive queue carries its connection, -1 if none: a hint for placement */
};

enum wait_kind {
    WAIT_NONE, WAIT_FUTEX, WAIT_SOCKET, WAIT_SLEEP, WAIT_POLL, WAIT_JOIN, WAIT_PIPE, WAIT_LOCK, WAIT_THROTTLE, WAIT_SIGNAL,
    WAIT_WORK,  /* a thread of the kernel that has nothing to do */
    WAIT_OTHER,
};
const char *wait_kind_name(enum wait_kind kind);

static inline struct thread_head *thread_head(struct thread *t)
{
    return (struct thread_head *)(void *)t;
}

/* ---- life ---- */

struct thread_attr {
    const char *name;    /* cut to 15 characters */
    void *app;           /* see thread_head */
    cpumask_t affinity;  /* 0: every CPU of the domain; else must meet the domain in at least one CPU */
    u32 domain;          /* 0 or 1 */
    i32 nice;            /* -20..19 */
    struct quota *quota; /* group whose CPU time it uses; NULL: none */
    bool has_fpu;        /* keeps FPU state (applications) */
    bool copy_fpu;       /* starts with a copy of the creator's FPU state */
};

/* Makes a thread that does not run yet and holds one reference for the caller.  Thread context; may allocate.
 * -ENOMEM, -EAGAIN (MAX_THREADS reached, counted), -EINVAL. */
int thread_create(const struct thread_attr *attr, void (*entry)(void *arg), void *arg, struct thread **out);
/* Places it (policy place_new) and lets it run; or drops a thread that was never started. */
void thread_start(struct thread *t);
void thread_discard(struct thread *t);
/* Ends the current thread.  Thread context, no locks held.  Its stacks are freed by whoever switches away from it. */
void thread_exit(void) __noreturn;
/* Waits until t has ended.  The caller holds a reference. */
void thread_join(struct thread *t);
void thread_get(struct thread *t);
void thread_put(struct thread *t);
/* Adds a reference; NULL if there is no such thread. */
struct thread *thread_find(u32 id);
/* Calls fn for every living thread, with the thread-table lock held: fn must not block. */
void thread_for_each(void (*fn)(struct thread *t, void *arg), void *arg);
u32 thread_count(void);
struct thread_limits {
    u32 peak;    /* most threads alive at once */
    u64 refused; /* creations refused: MAX_THREADS or no memory */
};
extern struct thread_limits thread_limits;
/* Called in thread_exit() on the dying thread, before it leaves the table (core/kern: clear_child_tid, robust list). */
extern void (*thread_exit_hook)(struct thread *t);
/* Called when the last reference is gone: core/kern frees its part.  Any context, interrupts possibly off, no lock held. */
extern void (*thread_free_hook)(struct thread *t);

/* ---- waiting ---- */

enum park_result { PARK_WOKEN, PARK_TIMEOUT, PARK_INTERRUPTED };

/* See the top.  deadline_ns: on arch_clock_ns(), NO_DEADLINE for none.  Thread context, interrupts on, no lock held.
 * kind and object are what dumps and profiles show. */
enum park_result thread_park(u64 deadline_ns, enum wait_kind kind, u64 object);
/* Same, but a signal does not end it (waits that must complete). */
enum park_result thread_park_uninterruptible(u64 deadline_ns, enum wait_kind kind, u64 object);
/* Leaves a token and wakes t if it is parked.  Any context; takes RANK_RUNQ locks. */
void thread_unpark(struct thread *t);
/* Makes the current or next interruptible park of t return PARK_INTERRUPTED until thread_interrupt_clear(). */
void thread_interrupt(struct thread *t);
void thread_interrupt_clear(void);
bool thread_interrupt_pending(void);

/* Sleeps; PARK_TIMEOUT when it ran its time, PARK_INTERRUPTED if a signal came. */
enum park_result thread_sleep_until(u64 deadline_ns);
void thread_yield(void);

/* Wakeups collected so that a target CPU gets at most one IPI for all of them.  Lives on the stack; preemption must stay
 * off (a spin lock held, or interrupt context) from begin to flush.  Flush after unlocking. */
struct wake_batch {
    cpumask_t ipi;      /* CPUs that need one */
    u32 wakes;
};
static inline void wake_batch_begin(struct wake_batch *b)
{
    b->ipi = 0;
    b->wakes = 0;
    preempt_disable();
}
void thread_unpark_batch(struct thread *t, struct wake_batch *b);
void wake_batch_flush(struct wake_batch *b);

struct waitq {
    struct spinlock lock;
    struct list waiters;
};

struct waiter {
    struct list node;
    struct thread *thread;
    bool woken; /* set under the queue's lock by the waker that removed it */
};

#define WAITQ_INIT(name) { SPINLOCK_INIT(&waitq_lock_class), LIST_INIT((name).waiters) }
extern struct lock_class waitq_lock_class;
void waitq_init(struct waitq *q);
/* Enters the current thread; then look at the condition; then waitq_park(); then waitq_leave() in every case. */
void waitq_enter(struct waitq *q, struct waiter *w);
enum park_result waitq_park(struct waiter *w, u64 deadline_ns, enum wait_kind kind, u64 object);
void waitq_leave(struct waitq *q, struct waiter *w);
/* Wakes up to n waiters in order of arrival; returns how many.  batch may be NULL. */
u32 waitq_wake(struct waitq *q, u32 n, struct wake_batch *batch);

/* Sleeping mutex for kernel code that blocks while it holds it.  Thread context. */
struct mutex {
    struct thread *owner;
    struct waitq waiters;
};
#define MUTEX_INIT(name) { NULL, WAITQ_INIT((name).waiters) }
void mutex_init(struct mutex *m);
void mutex_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);

/* ---- timers: callbacks in interrupt context on the CPU that armed them ---- */

struct timer {
    struct heap_node node;       /* key: deadline in ns */
    void (*fn)(struct timer *t); /* interrupts off; may re-arm its timer */
    u32 cpu;                     /* whose queue holds it */
    bool armed;
};
void timer_init(struct timer *t, void (*fn)(struct timer *t));
/* (Re-)arms on this CPU; any context.  timer_cancel: true if it was armed and will not fire; false if it has fired or is
 * firing right now on another CPU (timer_cancel_sync waits for that; thread context only). */
void timer_arm(struct timer *t, u64 deadline_ns);
bool timer_cancel(struct timer *t);
bool timer_cancel_sync(struct timer *t);

/* ---- deferred interrupt work ---- */

/* Work that interrupt handlers leave for the end of the interrupt or, when it exceeds its budget, for the CPU's worker
 * thread: the network receive path.  One instance may be queued on one CPU at a time. */
struct softwork {
    struct softwork *next;
    bool (*fn)(struct softwork *w, bool in_irq); /* true: more to do, run me again from the worker thread */
    u32 cpu;
    bool queued;
};
void softwork_init(struct softwork *w, u32 cpu, bool (*fn)(struct softwork *w, bool in_irq));
/* From interrupt context on w->cpu, or from any context with preemption off on that CPU. */
void softwork_raise(struct softwork *w);
/* This CPU carries a receive path: policies learn of it.  At start, before threads that it wakes; once or more. */
void sched_add_receive_path(u32 cpu);

/* ---- attributes ---- */

cpumask_t thread_affinity(const struct thread *t);
/* -EINVAL if the mask meets the thread's domain nowhere.  Moves the thread at once if it is in the wrong place. */
int thread_set_affinity(struct thread *t, cpumask_t mask);
void thread_set_nice(struct thread *t, i32 nice);
i32 thread_nice(const struct thread *t);
u64 thread_runtime_ns(struct thread *t);
void thread_set_name(struct thread *t, const char *name);
struct arch_thread *thread_arch(struct thread *t);

/* ---- domains: disjoint sets of consecutive CPUs, each with its own balancing ---- */

#define MAX_DOMAINS 2
struct sched_domain_info {
    u32 first_cpu, num_cpus;
};
struct sched_domain_info sched_domain(u32 domain);
u32 sched_domain_of_cpu(u32 cpu);
u32 sched_num_cpus(void);

/* ---- capacity and parking ---- */

/* Runs threads on the first `count` CPUs of the domain only (1..its size); the others are parked until the count grows.  Thread
 * context, may block.  -EINVAL. */
int sched_set_active(u32 domain, u32 count);
u32 sched_active(u32 domain);
/* Share of its time that a CPU really gets, 1..1024; loads compare as load / capacity. */
void sched_set_capacity(u32 cpu, u32 capacity);
u32 sched_capacity(u32 cpu); /* 0: parked */

/* Parks a CPU beside those of sched_set_active(), or lets it run again.  Thread context, may block.  -EBUSY: half of the domain's
 * active CPUs are held already. */
int sched_hold(u32 cpu, bool hold);

/* ---- delivered CPU time ---- */

struct delivered_stats {
    u32 share, error;      /* of 1024: smoothed share of its time that the CPU gets while it runs threads; error of a verdict */
    bool held;             /* left alone for a while, because the host gives it too little */
    u64 samples, hits;     /* probes; those that found time taken away */
    u64 taken_ns, longest_ns; /* time seen to be taken away: a lower bound */
    u64 steal_ns;          /* the host's own report, 0 without */
    u64 rests;             /* how often it was held */
};
/* Starts to measure; act: capacities follow, and CPUs that get next to nothing lose their threads.  Once, thread context.
 * -ENOMEM. */
int sched_delivered_start(bool act);
bool sched_delivered_acts(void);
void sched_delivered(u32 cpu, struct delivered_stats *out);

/* ---- quotas: cpu.max for a group of threads ---- */

#define QUOTA_PERIOD_MIN_NS 1000000ull    /* limits as on Linux: 1 ms .. 1 s, quota at least 1 ms */
#define QUOTA_PERIOD_MAX_NS 1000000000ull
#define QUOTA_MIN_NS 1000000ull

struct quota_stats {
    u64 periods;      /* nr_periods */
    u64 throttled;    /* nr_throttled: how often the group ran out */
    u64 throttled_ns; /* time during which a thread of it had to wait for the next period */
    u64 usage_ns;     /* run time of its threads */
};

struct quota {
    struct spinlock lock; /* RANK_QUOTA; protects what follows but the atomic ones */
    u64 quota_ns, period_ns, period_end_ns;
    struct list throttled;
    u64 throttled_since_ns;
    struct timer refill_timer;
    bool ticking, used_in_period;
    struct quota_stats stats;
    i64 left_ns;  /* atomic: of this period; negative: debt */
    u64 usage_ns; /* atomic */
};

void quota_init(struct quota *q); /* no limit */
/* quota_ns 0: no limit.  Takes effect at once.  -EINVAL: outside the limits above. */
int quota_set(struct quota *q, u64 quota_ns, u64 period_ns);
void quota_stats(struct quota *q, struct quota_stats *out);

/* ---- policy and counters ---- */

/* Switches the policy of domain 0 at run time.  -ENOENT: no such name.  interval_ms 0: the policy's own. */
int sched_set_policy(const char *name, u32 interval_ms);
const char *sched_policy_name(void);

/* Records every call of a policy, its view and its answer, into `bytes` (of `size`, aligned to 64) until policy_record_stop(); the
 * format is in sched/policy_record_format.h.  -EBUSY: a recording is under way; -EINVAL: too small, not aligned. */
int policy_record_start(void *bytes, u64 size);
/* No further call is recorded.  How many bytes there are; *lost: calls that found no space.  0: a call is still under way, stop
 * again. */
u64 policy_record_stop(u64 *lost);
u32 sched_policy_interval_ms(void);
/* While set: called by each thread right after a blocking wait, on its own stack, interrupts on; for WAIT_THROTTLE by
 * whoever ends it, preemption off, no lock held (off-CPU profile). */
extern void (*sched_offcpu_hook)(struct thread *t, enum wait_kind kind, u64 object, u64 blocked_ns);
/* Who ended the thread's last wait since sched_offcpu_hook was set: NULL for an interrupt (a packet, a timer).  The memory of
 * threads is type-stable, so its head can be read even if that thread is gone: at worst it is another one's. */
struct thread *thread_waker(const struct thread *t);
/* While set: called at each tick of the sampling timer, interrupt context (on-CPU profile).  regs: what was interrupted. */
extern void (*sched_sample_hook)(struct thread *t, struct arch_regs *regs);
/* Samples every CPU each period_ns; 0 stops.  Thread context. */
void sched_set_sampling(u64 period_ns);

/* What ARCH_IPI_CALL does on the target: interrupt context.  The wire's receive interrupt uses it. */
extern void (*sched_ipi_call_hook)(void);
/* Called at the end of an interrupt that goes back to application code of a thread whose `interrupt` is set. */
extern void (*sched_signal_hook)(struct arch_regs *regs);

/* One line of Prometheus text or report per counter is made from this table-like snapshot. */
struct sched_cpu_stats {
    u64 switches, wakes_local, wakes_remote, ipis_sent, ipis_received;
    u64 migrations[8];      /* by enum migrate_reason */
    u64 balance_passes, balance_moves_accepted, balance_moves_rejected[8]; /* by enum move_reject */
    u64 idle_ns, busy_ns, irq_ns;
    u64 idle_enters, idle_polls_hit, halts;
    u64 pull_tries, pull_hits, pull_contended, pull_calls;
    u64 timer_irqs;
    u32 running, queued, in_flight;
};
enum migrate_reason { MIGRATE_NEW, MIGRATE_WAKE, MIGRATE_BALANCE, MIGRATE_PULL, MIGRATE_AFFINITY, MIGRATE_PARK, NUM_MIGRATE_REASONS };
enum move_reject { REJECT_GONE, REJECT_AFFINITY, REJECT_RUNNING, REJECT_NO_GAIN, REJECT_BAD_INDEX, REJECT_LIMIT, NUM_MOVE_REJECTS };
extern const char *const migrate_reason_names[NUM_MIGRATE_REASONS];
extern const char *const move_reject_names[NUM_MOVE_REJECTS];
void sched_cpu_stats(u32 cpu, struct sched_cpu_stats *out);
/* What a CPU does right now, for placement maps: cheap, any context, no lock. */
struct sched_cpu_now {
    u32 thread; /* id, 0: idle */
    u32 queued, in_flight;
    u32 capacity; /* 0: parked */
};
void sched_cpu_now(u32 cpu, struct sched_cpu_now *out);

/* Everything a thread dump shows; taken without stopping other CPUs. */
struct thread_info {
    u32 id, cpu, last_cpu, domain;
    const char *state;      /* "running", "runnable", "waking", "blocked", "dead" */
    enum wait_kind wait_kind;
    u64 wait_object, wait_since_ns, runtime_ns;
    cpumask_t affinity;
    i32 nice;
    u64 migrations, switches;
    char name[THREAD_NAME_MAX];
    size_t num_pcs;
    u64 pcs[24];            /* back trace; only of threads that are not running */
};
void thread_info(struct thread *t, struct thread_info *out);

/* ---- start-up, called by core/kern/main.c ---- */

struct sched_config {
    u32 num_cpus;
    u32 server_cpus;          /* size of domain 0; the rest is domain 1.  0: all in domain 0 */
    const char *policy;       /* NULL: drain */
    u32 interval_ms;          /* 0: the policy's own */
    u32 idle_spin_ns;         /* most that an idle CPU polls before it halts */
    u32 migration_ns;         /* charged to a thread before it goes on on another CPU, for the caches that a measurement
                                 in virtual time does not have; 0 otherwise */
};
/* Boot CPU: makes kernel_main's context a thread.  -EINVAL: bad policy name or domain size (logged). */
int sched_init(const struct sched_config *config);
/* Every other CPU's entry: never returns (becomes the idle loop). */
void sched_cpu_entry(void);
/* After arch_start_cpus() has started all CPUs of the configuration: their worker threads.  -ENOMEM. */
int sched_start_workers(void);

#endif
