/*
 * spread: balancer work without a network. Threads that wake, work, block (or only work), all
 * released at once from one CPU; tells where they ran and how long it took them to spread.
 */
#ifndef SPREAD_H
#define SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#define SPREAD_MAX_THREADS 2048
#define SPREAD_MAX_CPUS 1024
#define SPREAD_MAX_MOVES 4096       /* changes of CPU remembered per thread; more are only counted */
#define SPREAD_SAMPLES 8192         /* latencies kept per thread: the first ones */
#define SPREAD_END_US 500           /* before the end nobody looks any more: as the first threads end, idle CPUs fetch others */
#define SPREAD_LOOK_US 20           /* a working thread looks at its CPU this often */

enum spread_wake {
    WAKE_NEVER,     /* threads work until the end */
    WAKE_TIMER,     /* each sleeps by itself between works */
    WAKE_BURST,     /* the main thread wakes all at once, every period */
};

struct spread_options {
    uint32_t threads;
    uint32_t work_us;       /* of one wake-up */
    uint32_t period_us;     /* from one wake-up to the next, intended */
    uint32_t time_ms;
    uint32_t from_cpu;      /* where they are released */
    enum spread_wake wake;
    bool list;              /* a record per thread */
};

struct move {
    uint64_t at_ns;         /* since the release */
    uint32_t cpu;
};

struct spread_thread {
    const struct spread_options *options;
    uint32_t number;
    int tid;
    uint32_t first_cpu, last_cpu;
    uint64_t rounds;            /* works done */
    uint64_t work_ns;           /* time from the begin to the end of its works */
    uint64_t migrations;
    uint32_t nmoves;
    struct move *moves;
    uint32_t nsamples;
    uint64_t *latency;          /* ns from the intended wake-up to the first instruction */
} __attribute__((aligned(128)));

/* What the moves of all threads add up to (timeline.c). UINT64_MAX: never. */
struct timeline {
    uint32_t cpus_reachable;    /* min(threads, allowed CPUs) */
    uint32_t cpus_used;         /* distinct CPUs that any thread ran on */
    uint32_t cpus_at_end;
    uint32_t most_at_end, least_at_end;     /* threads per CPU */
    uint64_t all_used_ns;       /* all reachable CPUs have a thread */
    uint64_t balanced_ns;       /* threads per CPU differ by at most one, from then to the end */
};

/* Puts all moves in order of time, from "all on from_cpu", and reads the figures off. False: no
 * memory. `allowed` has one flag per CPU number. */
bool timeline_build(struct timeline *t, const struct spread_thread *threads, uint32_t nthreads,
                    uint32_t from_cpu, const bool *allowed);

/* Quantiles of all threads' latencies, ns. False: no memory. */
struct latencies {
    uint64_t p50, p99, max;
};
bool latencies_build(struct latencies *l, const struct spread_thread *threads, uint32_t nthreads);

uint64_t spread_now(void);      /* ns, CLOCK_MONOTONIC */

#endif
