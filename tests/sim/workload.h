/* Workloads: programs for the threads of a simulated machine, by name. */
#ifndef WEIR_TESTS_SIM_WORKLOAD_H
#define WEIR_TESTS_SIM_WORKLOAD_H

#include "tests/sim/sim.h"

/* One point to run. */
struct point {
    const struct policy *policy; /* NULL: the ideal central queue */
    uint32_t cpus;
    uint32_t conns;              /* threads or connections; 0: the workload's own choice */
    uint32_t queues;             /* receive paths; 0: the workload's own choice */
    uint64_t seed;
    double service_us;           /* mean service time; 0: the workload's own */
    double think;                /* mean think time / service time; negative: the workload's own */
    double load;                 /* open loop: offered load as a share of all CPUs */
    uint64_t warmup_ns, measure_ns;
    uint32_t interval_ms;
    uint32_t rx_batch;
    uint32_t faults;
    struct sim_cost cost;
    const struct scenario *scenario; /* file:, trace: */
};

struct workload {
    const char *name;
    const char *summary;
    /* Makes the threads and starts what drives them. */
    void (*setup)(struct sim *s, const struct point *p);
    /* Frees what setup made; NULL: nothing but s->workload, by free(). */
    void (*done)(struct sim *s);
    uint64_t warmup_ns, measure_ns; /* defaults */
};

extern const struct workload wl_server, wl_closed, wl_open, wl_spinners, wl_pipeline, wl_scenario;

/* What came of a point.  Times in microseconds of simulated time. */
struct result {
    const char *policy, *workload;
    uint32_t cpus, conns, queues;
    uint64_t seed;
    double service_us, load;
    double rps;
    double fraction_of_ideal;  /* rps / rps of the central queue; 0 when not compared */
    double latency_p50_us, latency_p99_us, latency_p999_us, latency_max_us;
    double wakeup_p50_us, wakeup_p99_us, wakeup_p999_us, wakeup_max_us;
    double wait_p50_us, wait_p99_us;
    uint64_t migrations, by_reason[SIM_NUM_REASONS], migrations_needed, pingpong;
    double idle_share;
    uint32_t cpus_used;
    double idle_overloaded_share; /* of all CPU time: idle while a thread waits that could run there */
    double longest_violation_us;
    int32_t convergence_passes; /* passes that moved something until max - min load <= 1; -1: not reached or not asked */
    double convergence_ms;
    double jain;               /* of the threads' progress */
    uint64_t switches, ipis, wakes_remote, wakes_local, halts, passes, pulls, pull_hits, rejected;
    uint64_t events;
    bool failed;
    char failure[160];
};

/* Runs one point.  trace_path and svg_path may be NULL. */
void run_point(const struct workload *w, const struct point *p, struct result *r, const char *trace_path,
               const char *svg_path);
const struct policy *policy_find(const char *name);

#endif
