/* The whole contract between the scheduler and a placement policy.
 *
 * A policy decides WHERE threads go; the mechanism (sched/wake.c, sched/balance.c) decides nothing, but checks every
 * answer and carries it out.  A policy is a set of pure functions from a view to a plan: no globals, no clock, no locks, no
 * allocation, no floating point, no library but memcpy/memset.  The same view always gives the same plan, which is what
 * makes a recorded guest replay on the host and what lets the simulator run this very source.
 *
 * To write one: copy policies/template.c, register it in policies/policies.h, and read nothing but this header.
 *
 * Context: every function runs with interrupts off and, except where noted, no run-queue lock held.  The view is a snapshot: it
 * may be stale by the time the plan is carried out, so the mechanism re-checks each move under the run-queue locks and
 * counts the ones it refuses: the thread must still wait there, be allowed where it goes, and its move must still make the
 * larger of the two relative loads smaller.  A policy need not care.
 *
 * CPUs are numbered 0..num_cpus-1 WITHIN the domain that is balanced; the mechanism maps to machine numbers.
 * Times are nanoseconds of the scheduler's clock.  Loads count threads. */
#ifndef WEIR_SCHED_POLICY_H
#define WEIR_SCHED_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The capacity of a CPU that gets all of its time.  A CPU that the host holds back to half has 512, a parked one 0. */
#define POLICY_CAPACITY_FULL 1024u
/* "No CPU": as an answer, leave the thread where the default puts it. */
#define POLICY_NO_CPU (-1)

/* What is known of one CPU.  A cache line each: the kernel publishes these and, for place_wake and idle_pull, hands out the
 * published ones themselves: read a field once, it may change between two reads.  balance() gets a copy. */
struct policy_cpu {
    uint32_t running;       /* 1 if a thread (not the idle loop) is on it, else 0 */
    uint32_t queued;        /* threads waiting in its run queue */
    uint32_t in_flight;     /* threads on their way to it: woken or placed, not yet queued */
    uint32_t capacity;      /* 0..POLICY_CAPACITY_FULL, share of its time that it really gets; 0 = take nothing */
    uint32_t receive_queue; /* nonzero: a network receive path runs on this CPU */
    uint32_t group;         /* CPUs of one group share a cache: a move within it is cheaper */
    uint64_t idle_since_ns; /* when it last went idle; meaningless unless load is 0 */
} __attribute__((aligned(64)));

/* What is known of one thread that may be moved or placed. */
struct policy_thread {
    uint64_t id;              /* unique for the life of the guest */
    const uint64_t *affinity; /* bit set of allowed CPUs, domain-relative, (num_cpus + 63) / 64 words */
    int32_t last_cpu;         /* where it last ran, POLICY_NO_CPU if never */
    int32_t receive_cpu;      /* CPU whose receive queue carries its connection, POLICY_NO_CPU if none */
    uint64_t last_ran_ns;     /* when it last stopped running: the smaller its age, the hotter its cache */
    uint64_t queued_ns;       /* when it entered the run queue (0 when being placed) */
    uint32_t avg_run_ns;      /* running mean of its run bursts */
    uint32_t migrations;      /* how often it has been moved */
    uint32_t weight;          /* 1024 at nice 0 */
    uint32_t pad;
};

enum policy_wake_flags {
    POLICY_WAKE_FROM_IRQ = 1, /* the waker is an interrupt (receive path, timer), not a thread */
    POLICY_WAKE_SYNC = 2,     /* the waker says that it is about to block */
};

struct policy_view {
    uint64_t now_ns;
    uint64_t seed;           /* differs from call to call: use it to break ties without bias */
    uint32_t num_cpus;       /* 1.. */
    uint32_t self;           /* the CPU that asks: the one balancing, pulling, or making/waking the thread */
    const struct policy_cpu *cpus;       /* num_cpus of them */
    const uint64_t *idle;                /* bit set, (num_cpus + 63) / 64 words: CPUs whose load is 0 and capacity is not */
    uint32_t num_threads;                /* candidates below */
    uint32_t wake_flags;                 /* enum policy_wake_flags, place_wake only */
    uint32_t receive_cpus;               /* how many of cpus[] have a receive_queue */
    const struct policy_thread *threads; /* balance: the queued threads of self, queue order; place_*: the one thread */
};

/* One move of a plan: thread `thread` (an index into view->threads) to CPU `to`. */
struct policy_move {
    uint32_t thread;
    uint32_t to;
};

/* Filled by balance().  The mechanism gives `capacity` = num_cpus slots: a pass never moves more than that, so that a load
 * spike cannot turn into a migration storm. */
struct policy_plan {
    uint32_t capacity;
    uint32_t num_moves;
    struct policy_move *moves;
};

/* What idle_pull() answers. */
struct policy_pull {
    int32_t from;          /* CPU to take a queued thread from, or POLICY_NO_CPU */
    uint64_t min_wait_ns;  /* take only threads that have waited this long or longer */
    uint64_t min_cold_ns;  /* take only threads that ran this long ago or longer (cache heat) */
};

struct policy {
    const char *name;     /* a-z, 0-9, '-', at most 15 characters; unique */
    const char *summary;  /* one line for `help` and /sched */
    uint32_t interval_ms; /* between two balance() passes of one CPU; 0 with balance == NULL */

    /* Any of these may be NULL: the thread then stays with the default named beside it. */

    /* CPU for a new thread.  Default: the creator's CPU. */
    int32_t (*place_new)(const struct policy_view *view);
    /* CPU for a thread that wakes.  Default: the CPU that it last ran on.  Called for every wakeup: keep it short. */
    int32_t (*place_wake)(const struct policy_view *view);
    /* A pass of the balancer on view->self, which has at least one queued thread.  Default: no moves. */
    void (*balance)(const struct policy_view *view, struct policy_plan *plan);
    /* view->self is about to go idle: where to look for work.  Default: nowhere.  The mechanism takes the
     * thread that has waited longest there of those that are allowed here and meet the answer's minima, never a running
     * one, after looking again under both locks; a lock that is taken makes it ask again. */
    void (*idle_pull)(const struct policy_view *view, struct policy_pull *pull);
};

/* All policies of this build, in the order of policies/policies.h, ended by NULL. */
extern const struct policy *const policy_registry[];

/* ---- helpers for policies: pure, inline ---- */

/* Threads on, queued for, and on their way to a CPU.  In-flight ones must count, or every decision made before the first
 * arrival picks the same CPU. */
static inline uint32_t policy_load(const struct policy_cpu *cpu)
{
    return cpu->running + cpu->queued + cpu->in_flight;
}

/* Is load_a / capacity_a < load_b / capacity_b?  Without division; a CPU of capacity 0 is never the lesser. */
static inline bool policy_less_loaded(uint32_t load_a, uint32_t cap_a, uint32_t load_b, uint32_t cap_b)
{
    if (cap_a == 0) {
        return false;
    }
    if (cap_b == 0) {
        return true;
    }
    return (uint64_t)load_a * cap_b < (uint64_t)load_b * cap_a;
}

static inline bool policy_bit(const uint64_t *bits, uint32_t cpu)
{
    return (bits[cpu / 64] >> (cpu % 64)) & 1;
}

static inline bool policy_allowed(const struct policy_thread *thread, uint32_t cpu)
{
    return policy_bit(thread->affinity, cpu);
}

#endif
