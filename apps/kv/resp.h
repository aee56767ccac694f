/* State of the Redis protocol on a connection. */
#ifndef KV_RESP_H
#define KV_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/kv/tunables.h"

struct watch;
struct conn;

struct arg {
    union {
        const char *p; /* once the command is complete */
        size_t off;    /* while it is parsed: from the command's first byte */
    };
    size_t len;
};

/* A command kept for EXEC. */
struct queued {
    struct queued *next;
    const struct command *cmd;
    size_t bytes; /* of this allocation */
    unsigned argc;
    struct arg argv[];
};

struct resp_state {
    /* parser; all offsets count from in.pos, the first byte of the command */
    size_t scan;       /* parsed up to here */
    int64_t args_left; /* of the multibulk being read; 0 = none */
    int64_t bulk_len;  /* of the bulk being read; -1 = its header is to come */
    unsigned argc;
    unsigned argcap;
    struct arg *argv;
    struct arg few[KV_ARGV_INLINE];
    /* session */
    uint8_t ver;                                 /* 2 or 3 */
    bool reply_off, reply_skip, reply_skip_next; /* CLIENT REPLY */
    bool multi;
    bool multi_bad; /* EXEC must abort: a command was refused when queued */
    struct queued *queue, **queue_end;
    unsigned nqueued;
    size_t queue_bytes;
    struct watch *watches;
    unsigned nwatches;
};

/* resp_parse.c: 1 a command is complete in argv (in place), 0 more input is needed, -1 protocol
 * error (its reply has been appended; the connection closes). An empty command has argc 0. */
int resp_parse(struct conn *c);
/* Moves past the command just executed. */
void resp_next(struct conn *c);
/* Gives the argument vector back. */
void resp_argv_free(struct conn *c);

#endif
