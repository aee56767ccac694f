/*
 * A thread of the generator: its connections, what it counts, and how it makes and finishes
 * requests. The loops that drive it are in loop.c, the phases in phase.c.
 *
 * Latency of a request runs from its start to the moment its reply has been read:
 *   closed loop  from when it is written; after a replaced connection (--churn) from the
 *                beginning of the new connection
 *   open loop    from its intended time, whether or not a connection was free then, so that a
 *                stall of the server is charged to all requests that it delayed
 */
#ifndef LOAD_WORKER_H
#define LOAD_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "apps/load/conn.h"
#include "apps/load/hist.h"
#include "apps/load/keys.h"
#include "apps/load/options.h"

/* Times of a phase, ns of CLOCK_MONOTONIC; set before the workers start, then constant. */
struct window {
    uint64_t start;         /* requests begin */
    uint64_t begin, end;    /* the measured part */
    uint64_t give_up;       /* replies still missing are given up */
    uint64_t slice;         /* width of a slice of the time series; 0: none */
};

struct counts {
    uint64_t requests, gets, sets, hits;    /* finished inside the measured part */
    uint64_t errors;                        /* "no" from the server; all through the phase, as below */
    uint64_t bad_values;
    uint64_t disconnects;
    uint64_t replaced;                      /* connections, by --churn */
    uint64_t unfinished;                    /* requests without a reply when it was given up */
    uint64_t queue_ns;                      /* sum of what replies waited for the generator */
};

struct worker {
    /* set by phase.c before the thread starts */
    const struct options *options;
    const struct keyspace *space;
    const struct window *window;
    struct sockaddr_in server;
    pthread_barrier_t *barrier;     /* thrice: all are connected; the window is set; it is counted */
    struct conn *conns;
    uint32_t nconns;
    int cpu;                        /* to pin to; -1: none */
    uint32_t pipeline;
    bool preload;                   /* set keys from..to-1 once instead of a mix */
    uint64_t preload_from, preload_to;
    double rate;                    /* this worker's share, requests/s; 0: closed loop */
    uint64_t rng;

    /* the thread's own */
    int epoll, timer;
    uint32_t in_flight, lost;       /* requests; connections given up */
    uint64_t stamp;                 /* tells its writes apart */
    uint64_t next_due;              /* open loop: intended time of the next request */
    uint32_t next_conn;             /* open loop: where to look for a free one first */
    uint64_t wall_begin, wall_end, cpu_begin, cpu_end;

    /* results, read after the thread has ended */
    int failed;                     /* negative errno of setting up */
    struct hist latency;            /* ns */
    struct hist late;               /* ns; open loop: sent after its time though a connection was free */
    struct counts counts;
    double busy;                    /* share of the measured part on a CPU; < 0: unknown */
    uint32_t slices[LOAD_MAX_SLICES];
};

uint64_t load_now(void);            /* ns, CLOCK_MONOTONIC */

/* Fills the exponential gaps of open loops; once, before any worker. */
void worker_init_gaps(void);
/* ns to the next intended time, by a Poisson process of w->rate. */
uint64_t worker_gap(struct worker *w);

/* Closed loop: writes requests until the connection's pipeline is full. */
void worker_refill(struct worker *w, struct conn *c, uint64_t now);
/* Writes one request with the given start. False when there is none left to make. */
bool worker_send_one(struct worker *w, struct conn *c, uint64_t start);
/* Finishes all replies that are whole. 0, or a negative errno: give the connection up. */
int worker_take_replies(struct worker *w, struct conn *c, uint64_t now);
/* No more requests are to be made. */
bool worker_is_over(const struct worker *w, uint64_t now);
/* Notes the thread's CPU time when the measured part begins and ends. */
void worker_watch_cpu(struct worker *w, uint64_t now);
/* Counts what was in flight as unfinished and closes it; the caller reopens or not. */
void worker_abandon(struct worker *w, struct conn *c);

/* The thread's body (loop.c). Connections stay open until worker_close, so that the server's
 * threads are still there when the counters of the phase are taken. */
void worker_run(struct worker *w);
void worker_close(struct worker *w);

#endif
