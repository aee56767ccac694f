/* Load generator: what it is asked to do. Command line first, then environment, then default. */
#ifndef LOAD_OPTIONS_H
#define LOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/load/proto.h"
#include "apps/load/tunables.h"

struct options {
    const char *host;
    uint32_t port;                      /* 0: the protocol's own */
    enum proto proto;
    uint32_t conns[LOAD_MAX_STEPS];     /* one phase each */
    uint32_t conns_count;
    uint32_t rates[LOAD_MAX_STEPS];     /* requests/s of an open loop; none: closed loop */
    uint32_t rates_count;
    uint32_t threads;                   /* 0: one per allowed CPU, at most one per connection */
    uint32_t pipeline;
    uint32_t keys;
    double theta;                       /* Zipf exponent; 0 uniform */
    uint32_t get_percent;
    uint32_t value_min, value_max;      /* bytes */
    uint32_t warmup_ms, time_ms;
    uint32_t reps;
    uint32_t churn;                     /* requests after which a connection is replaced; 0 never */
    uint32_t slice_ms;                  /* of the time series; 0: none */
    uint32_t ticks;                     /* parts that each phase is counted in; 0: as a whole */
    uint32_t seed;
    uint32_t connect_wait_ms;
    uint32_t local_port;                /* of the first connection, then counting up; 0: any */
    bool pin;                           /* thread i on the i-th allowed CPU */
    bool preload;
    const char *mark;                   /* file that phase marks are written to, if it exists */
    const char *info;                   /* section of INFO told after each phase; NULL: none */
    const char *name;                   /* prefix of the phases' names */
};

/*
 * False after one line on standard error that says what is wrong; also after --help, with
 * *help set.
 */
bool options_parse(struct options *o, int argc, char **argv, bool *help);

#endif
