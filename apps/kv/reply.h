/* Replies of the Redis protocol, in the version the connection has chosen.
 * A reply that does not fit the output limit drops the connection; callers need not check. */
#ifndef KV_REPLY_H
#define KV_REPLY_H

#include <stdint.h>

#include "apps/kv/conn.h"

void reply_raw(struct conn *c, const char *p, size_t n);
#define REPLY(c, literal) reply_raw((c), (literal), sizeof(literal) - 1)
#define REPLY_OK(c)       REPLY(c, "+OK\r\n")

void reply_int(struct conn *c, int64_t v);
void reply_bulk(struct conn *c, const void *p, size_t n);
void reply_bulk_str(struct conn *c, const char *s);
void reply_bulk_i64(struct conn *c, int64_t v);
void reply_status(struct conn *c, const char *s);
void reply_null(struct conn *c);
void reply_null_array(struct conn *c);
void reply_array(struct conn *c, uint64_t n);
/* A map of n pairs (RESP2: an array of 2n), a set (RESP2: an array). */
void reply_map(struct conn *c, uint64_t n);
void reply_set(struct conn *c, uint64_t n);
/* Text meant to be read by people (RESP3: verbatim string). */
void reply_verbatim(struct conn *c, const char *p, size_t n);
/* "-" is put in front; line breaks inside become spaces; counted as a command error. */
void reply_error(struct conn *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* An array whose length is known only after its members: open, count, close. Nothing may flush the
 * output between. */
struct reply_hole {
    size_t at; /* in c->out */
};
struct reply_hole reply_array_open(struct conn *c);
void reply_array_close(struct conn *c, struct reply_hole hole, uint64_t n);

/* A text whose length is known only at its end: a bulk, or (verbatim, RESP3) a verbatim string. */
struct reply_hole reply_text_open(struct conn *c);
void reply_text_close(struct conn *c, struct reply_hole hole, bool verbatim);
/* Appends plain text, at most 1,000 bytes a call. */
void reply_printf(struct conn *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Errors with fixed texts. */
void reply_syntax(struct conn *c);
void reply_not_int(struct conn *c);
void reply_oom(struct conn *c);
void reply_arity(struct conn *c, const char *name);

#endif
