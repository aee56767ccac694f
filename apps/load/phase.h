/* A phase of the generator: workers started together, measured over one window, then merged. */
#ifndef LOAD_PHASE_H
#define LOAD_PHASE_H

#include <netinet/in.h>

#include "apps/load/worker.h"

struct phase_spec {
    char name[LOAD_NAME_BYTES];
    uint32_t conns;
    uint32_t rate;          /* 0: closed loop */
    uint32_t rep;
    uint32_t pipeline;
    uint32_t warmup_ms, time_ms;
    bool preload;
};

struct phase_result {
    uint32_t threads;
    double seconds;         /* of the measured part; of all, for a preload */
    struct counts counts;
    struct hist latency, late;
    double busy_mean, busy_max;     /* < 0: unknown */
    double queue_share;     /* of the mean latency that replies waited for the generator */
    bool client_bound;
    uint32_t slice_ms, slices_used;
    uint64_t slices[LOAD_MAX_SLICES];
};

/* Runs a phase; false after one line on standard error. `result` is filled in when true. */
bool phase_run(const struct options *options, const struct keyspace *space,
               const struct sockaddr_in *server, const struct phase_spec *spec,
               struct phase_result *result);

/* mark.c: tells the machine where a phase begins and ends, if `file` exists (it then prints its
 * counters on the console). `what` is "begin" or "end". */
void mark_phase(const char *file, const char *name, const char *what);

/* report.c: prints one JSON line. */
void report_phase(const struct options *options, const struct phase_spec *spec,
                  const struct phase_result *result);

/* info.c: prints {"info": PHASE, "section": SECTION, members of INFO SECTION ...} as one line.
 * False after one line on standard error. */
bool info_report(const struct sockaddr_in *server, const char *section, const char *phase);

#endif
