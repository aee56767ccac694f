/* The key-value server without sockets and threads: connections are fed bytes and their replies are
 * collected. Time is what the test says. Used by the unit tests, the stress test and the fuzzers.
 *
 * Link with -Wl,--wrap=conn_flush: output is collected instead of being sent. */
#ifndef KV_HARNESS_H
#define KV_HARNESS_H

#include <stddef.h>

#include "apps/kv/server.h"

struct harness {
    struct server srv;
};

/* A server with these settings (see config_defaults) and a fixed hash key. Aborts on failure. */
void harness_start(struct harness *h, const struct config *cfg);
void harness_stop(struct harness *h);

/* A connection; NULL if the server refuses it. */
struct conn *harness_conn(struct harness *h, const struct proto *proto);
void harness_close(struct conn *c);

/* Unix ms that requests run at. */
extern _Atomic uint64_t harness_now_ms;

/* Feeds bytes as if one read had brought them; false once the connection would be closed. */
bool harness_feed(struct conn *c, const void *data, size_t n);
/* What has been replied since the last call: a string that the caller frees; *n its length. */
char *harness_take(struct conn *c, size_t *n);
/* Feeds a text and returns the reply (caller frees). */
char *harness_ask(struct conn *c, const char *request);

#endif
