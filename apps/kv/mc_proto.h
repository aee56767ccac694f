/* Internals shared by the memcached command files. */
#ifndef KV_MC_PROTO_H
#define KV_MC_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/kv/conn.h"
#include "apps/kv/server.h"

/* Words of a command line other than the get family's; as many as memcached takes. */
#define MC_TOKENS 24

struct mc_line {
    const char *p; /* first byte of the request */
    size_t len;    /* of the line, without its end */
    size_t total;  /* with its end: a data block begins here */
    unsigned n;    /* words found; the rest of the line is ignored beyond MC_TOKENS */
    struct arg tok[MC_TOKENS];
};

/* A handler consumes nothing itself: it returns the bytes that the request took, or MC_MORE after
 * setting c->mc.need. */
#define MC_MORE 0
typedef size_t (*mc_fn)(struct conn *c, struct mc_line *l);

/* Replies; `quiet` suppresses. */
void mc_reply(struct conn *c, bool quiet, const char *text, size_t n);
#define MC_REPLY(c, quiet, literal) mc_reply((c), (quiet), literal "\r\n", sizeof(literal) + 1)
#define MC_ERROR(c, literal)        (mc_count_error(c), MC_REPLY((c), false, literal))
void mc_count_error(struct conn *c);

bool mc_tok_is(const struct arg *t, const char *word);
/* The last word is "noreply". */
bool mc_noreply(const struct mc_line *l);
/* 1..250 bytes. Replies CLIENT_ERROR when false. */
bool mc_key_ok(struct conn *c, const struct arg *t);

/* exptime of the protocol -> Unix ms: 0 never; negative: already over (1); up to 30 days relative;
 * else a point in time. */
uint64_t mc_expire_ms(int64_t exptime, uint64_t now_ms);
/* A signed 32-bit number as memcached reads it. */
bool mc_get_i32(const struct arg *t, int64_t *v);

/* The data block of a storage request of vlen bytes: MC_MORE until it is there; otherwise the bytes
 * of the whole request, *data set (NULL: the block does not end in CR LF; replied). */
size_t mc_data(struct conn *c, const struct mc_line *l, size_t vlen, bool quiet, const char **data);
/* Skips the data block of a refused request; returns what the handler returns. */
size_t mc_swallow(struct conn *c, const struct mc_line *l, size_t vlen);

/* A value that was to replace whatever the key has is too large to be taken: the old one goes, as in memcached, so that nobody
 * takes it for the new one. */
void mc_drop_stale(struct conn *c, const struct key *k);

/* mc_text.c */
mc_fn mc_text_find(const struct arg *name);
/* mc_text_change.c */
size_t mc_delete(struct conn *c, struct mc_line *l);
size_t mc_touch(struct conn *c, struct mc_line *l);
size_t mc_incr(struct conn *c, struct mc_line *l);
size_t mc_decr(struct conn *c, struct mc_line *l);
/* mc_meta.c */
mc_fn mc_meta_find(const struct arg *name);
/* mc_stats.c */
size_t mc_stats(struct conn *c, struct mc_line *l);

/* Adds or subtracts on a decimal value in place of the item: MC_DELTA_*. */
enum mc_delta { MC_DELTA_OK, MC_DELTA_NAN, MC_DELTA_OOM };
enum mc_delta mc_delta_item(struct conn *c, struct shard *s, const struct key *k, struct item **it,
                            bool incr, uint64_t by, uint64_t *result);

#endif
