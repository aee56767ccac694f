/* A connection: its buffers, its protocol and its share of the counters.
 *
 * A connection is worked on by one thread at a time (its own, or the pool worker that holds it).
 * What others may read (CLIENT LIST, INFO) is atomic, or under the server's conns_lock. */
#ifndef KV_CONN_H
#define KV_CONN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "apps/kv/buf.h"
#include "apps/kv/mc.h"
#include "apps/kv/resp.h"
#include "apps/kv/store.h"

struct server;
struct conn;

/* One wire protocol. */
struct proto {
    const char *name;
    /* Sent to a connection that is refused. */
    const char *refusal;
    int (*open)(struct conn *c); /* 0, or -1 without memory */
    void (*close)(struct conn *c);
    /* Consumes every complete request in c->in and appends the replies to c->out. */
    void (*process)(struct conn *c);
    /* Appends the protocol's error for a request that cannot be held. */
    void (*too_big)(struct conn *c);
};

extern const struct proto proto_resp;
extern const struct proto proto_mc;

struct conn {
    int fd;
    bool closing;  /* write what there is, then close */
    bool dropping; /* close at once */
    const struct proto *proto;
    struct server *srv;
    struct buf in, out;
    size_t in_peak; /* bytes of input held at most in this batch */
    struct op op;
    uint64_t id;
    union {
        struct resp_state resp;
        struct mc_state mc;
    };
    /* written by the owner, read by anyone */
    _Atomic uint64_t commands;
    _Atomic uint64_t bytes_in, bytes_out;
    _Atomic uint64_t batches; /* reads that brought data */
    _Atomic uint64_t active_ms;
    _Atomic uint64_t mid_since_ms; /* when the unfinished request began; 0 = there is none */
    _Atomic size_t held;           /* bytes of buffers */
    _Atomic bool kill;             /* set by others, with a shutdown() of fd */
    _Atomic bool replying;         /* a batch is being processed (requests in flight) */
    /* under conns_lock */
    struct conn *next, *prev;
    char name[64];     /* CLIENT SETNAME */
    char lib_name[32]; /* CLIENT SETINFO */
    char lib_ver[32];
    char addr[24]; /* constant after open */
    uint64_t opened_ms;
    _Atomic bool armed; /* pool dispatch: has been given to epoll */
    /* pool dispatch, under the pool's lock */
    unsigned poller; /* pool dispatch: which one watches it; constant */
    struct conn *queue_next;
    uint64_t queued_ns;
};

/* Counter of the owner: no locked instruction needed. */
static inline void count_add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* Takes over an accepted socket. On failure answers with the protocol's refusal, closes the
 * descriptor, counts, and returns NULL. */
struct conn *conn_open(struct server *srv, int fd, const struct proto *proto);
/* Closes and frees. */
void conn_close(struct conn *c);

enum conn_state { CONN_OK, CONN_END };

/* One read (waiting for data if `wait`, within the time-outs), the requests in it, one write.
 * CONN_END: the caller closes the connection. */
enum conn_state conn_batch(struct conn *c, bool wait);
/* Writes all output, waiting for the client as long as KV_WRITE_TIMEOUT_MS; sets dropping on
 * failure. */
void conn_flush(struct conn *c);
/* Milliseconds this connection may stay silent from now; -1 = for ever, 0 = it is over (counted).
 * Any thread, if the connection cannot go away meanwhile. */
int conn_patience(struct conn *c, uint64_t now_ms);

/* Room for n bytes of output; NULL when the connection is over its limit (it is then dropped). */
char *conn_out_grow(struct conn *c, size_t n);

static inline char *conn_out(struct conn *c, size_t n)
{
    if (__builtin_expect(c->out.cap - c->out.len >= n, 1)) {
        return c->out.p + c->out.len;
    }
    return conn_out_grow(c, n);
}

#endif
