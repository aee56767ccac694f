/* What the whole server shares. */
#ifndef KV_SERVER_H
#define KV_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "apps/kv/config.h"
#include "apps/kv/conn.h"
#include "apps/kv/store.h"

/* Slots of the per-command counters: connections are spread over them, so that no line is
 * contended. */
#define CMD_SLOTS 64
#define CMD_MAX   128

struct cmd_slot {
    _Atomic uint64_t calls[CMD_MAX];
} __attribute__((aligned(128)));

struct counters {
    _Atomic uint64_t accepted;
    _Atomic uint64_t refused_limit;  /* over KV_MAX_CONNS */
    _Atomic uint64_t refused_system; /* no descriptor, thread or memory */
    _Atomic uint64_t timed_out_partial, timed_out_idle, timed_out_write;
    _Atomic uint64_t over_query, over_output; /* closed at a buffer limit */
    _Atomic uint64_t over_line, over_key, over_value, over_args, over_watch;
    _Atomic uint64_t proto_errors, cmd_errors;
    /* of connections that are gone */
    _Atomic uint64_t commands, bytes_in, bytes_out, batches;
};

struct server {
    struct config cfg;
    struct store store;
    struct counters count;
    uint64_t start_ms; /* wall clock */
    unsigned cpus;     /* granted at start */
    struct width width;
    _Atomic uint64_t max_conns;      /* CONFIG SET maxclients */
    _Atomic uint64_t idle_timeout_s; /* CONFIG SET timeout */
    _Atomic bool no_active_expire;   /* DEBUG SET-ACTIVE-EXPIRE 0: expired keys stay until they are met */
    _Atomic bool stopping;
    int stop_fd; /* eventfd: written to stop the server */
    struct cmd_slot *cmd_slots;
    pthread_mutex_t conns_lock;
    /* under conns_lock */
    struct conn *conns;
    uint64_t nconns, peak_conns, next_id;
    struct pool *pool; /* pool dispatch only; constant */
};

/* 0, or -1 with one line on stderr. */
int server_init(struct server *srv, const struct config *cfg);

/* Listens on the configured ports; fills fds (RESP, memcached; -1 when off). 0 or -1 + line. */
int server_listen(struct server *srv, int fds[2]);

/* Dispatch: start serving the listeners. 0 or -1 + line. */
int dispatch_start(struct server *srv, const int fds[2]);

/* Numbers for INFO and stats. */
struct pool_stats {
    unsigned width, min, max, busy;
    uint64_t queued, queue_peak, dequeued, queue_ns, queue_ns_max;
};
void dispatch_pool_stats(struct server *srv, struct pool_stats *s);
/* 0, or -1 + line. */
int dispatch_pool_init(struct server *srv);
/* Hands a new connection to the pool. 0 or an errno value (the caller closes it). */
int dispatch_pool_add(struct server *srv, struct conn *c);
/* A detached thread with the small stack. 0 or an errno value. */
int thread_start(void *(*fn)(void *), void *arg);
/* Names the calling thread (at most 15 characters). */
void thread_name(const char *name);

/* maint.c */
int maint_start(struct server *srv);
/* Flushes the store at this Unix time, ms; 0 cancels. */
void maint_flush_at(struct server *srv, uint64_t when_ms);

/* cpus.c: CPUs granted: min(affinity, quota), at least 1. */
unsigned cpus_granted(void);

/* memlevel.c: bytes of its own that the store may use below memory.high of the control group at `dir`, at least 1; 0 if there
 * is no such level. used: what the store counts now. Reads files. */
size_t memlevel_soft(const char *dir, size_t used);
/* Looks the level up if the store has grown by a step since the last look. The maintenance thread only. */
void memlevel_look(struct store *st);

/* Sums over live and past connections. */
struct conn_totals {
    uint64_t commands, bytes_in, bytes_out, batches;
    uint64_t connected, peak, in_flight;
    size_t held;
};
void server_conn_totals(struct server *srv, struct conn_totals *t);

#endif
