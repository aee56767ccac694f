/*
 * One connection of the generator: socket, buffers and the requests in flight.
 * Used by one thread; the socket alone may be shut down by another (phase.c, to end a phase).
 */
#ifndef LOAD_CONN_H
#define LOAD_CONN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/load/proto.h"

struct request {
    uint64_t start_ns;      /* intended start (open loop), or when it was put into the buffer */
    uint64_t key;
    bool is_get;
};

enum conn_state { CONN_CLOSED, CONN_CONNECTING, CONN_OPEN };

struct conn {
    int fd;
    uint16_t local_port;        /* to bind first, host order; 0: any. Used once. */
    enum conn_state state;
    bool want_write;            /* its poller waits for room to write, too */
    uint32_t served;            /* replies since it was opened; for churn */
    uint32_t failures;          /* in a row, without a reply between them */
    uint64_t replaced_ns;       /* churn: the next request starts here; 0: when it is written */
    uint64_t idle_since_ns;     /* open loop: when its last reply came */
    struct request *flight;     /* ring of `ring` entries, oldest at `flight_head` */
    uint32_t ring, flight_head, in_flight;
    char *in;                   /* [in_start, in_end) is received and not yet parsed */
    size_t in_size, in_start, in_end;
    char *out;                  /* [out_start, out_end) is to be sent */
    size_t out_size, out_start, out_end;
};

/* Room for `pipeline` requests with values of at most value_max bytes. False: no memory. */
bool conn_init(struct conn *c, uint32_t pipeline, uint32_t value_max);
void conn_free(struct conn *c);

/* 0, or a negative errno. Blocking: returns when connected. Else it may still be connecting. */
int conn_open(struct conn *c, const struct sockaddr_in *to, bool blocking);
int conn_set_nonblocking(struct conn *c);
/* After a connecting socket became writable: 0 when it is connected, or a negative errno. */
int conn_finish_open(struct conn *c);
void conn_close(struct conn *c);

static inline struct request *conn_oldest(struct conn *c)
{
    return &c->flight[c->flight_head];
}

/* Where to write a request of at most `bytes`; the caller adds its length to out_end. The buffer
 * holds as many as may be in flight. */
char *conn_room(struct conn *c, size_t bytes);
/* The slot of a request just written; in_flight < ring before the call. */
struct request *conn_note(struct conn *c);
void conn_drop_oldest(struct conn *c);

/* Sends what is pending. 0 all sent, 1 some left (socket full), or a negative errno. */
int conn_flush(struct conn *c);
/* Reads once. Bytes read (> 0), 0 nothing there, or a negative errno; -EPIPE at the end. */
long conn_fill(struct conn *c);

#endif
