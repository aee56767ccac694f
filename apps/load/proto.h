/*
 * The two wire protocols, as far as a client that only gets and sets needs them:
 * RESP2 (GET and SET as arrays of bulk strings) and memcached text (get and set).
 */
#ifndef LOAD_PROTO_H
#define LOAD_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/load/keys.h"

enum proto { PROTO_RESP, PROTO_MEMCACHE };

enum reply_kind {
    REPLY_VALUE,        /* a get found it: value, value_bytes */
    REPLY_MISS,
    REPLY_STORED,
    REPLY_ERROR,        /* the server said no; the connection can go on */
};

struct reply {
    enum reply_kind kind;
    const char *value;          /* inside the buffer that was parsed */
    size_t value_bytes;
};

/* Bytes that a request takes at most beside its value. */
#define PROTO_REQUEST_OVERHEAD 96
/* Bytes that a reply takes at most beside its value, errors excepted. */
#define PROTO_REPLY_OVERHEAD 96

/* Write a request at `to`, which has room; return its length. */
size_t proto_get(enum proto proto, char *to, uint64_t key);
size_t proto_set(enum proto proto, char *to, uint64_t key, uint32_t size, uint64_t stamp);

/*
 * Parses one reply at the start of `from`.
 * Returns its length, 0 when more bytes are needed, -1 when it is none (give up the connection).
 */
long proto_reply(enum proto proto, bool is_get, const char *from, size_t bytes, struct reply *reply);

#endif
