/* String commands that look into a value or change part of it. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/kv/command.h"
#include "apps/kv/num.h"

/* Longest text of a long double in plain notation ("%.17Lf") that INCRBYFLOAT may store. */
#define FLOAT_TEXT (LDBL_MAX_10_EXP + 64)

void cmd_append(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;
    struct shard *s;
    struct item *it;
    size_t from;

    (void)argc;
    if (!arg_key(c, &argv[1], &k)) {
        return;
    }
    s = op_lock(&c->op, &k);
    it = shard_find(s, &k, c->op.now_ms);
    from = it ? it->vlen : 0;
    if (value_fits(c, (uint64_t)from + argv[2].len)) {
        it = shard_put(s, &k, it, from + argv[2].len, true, c->op.now_ms);
        if (it) {
            memcpy(item_value(it) + from, argv[2].p, argv[2].len);
            s->stat[ST_SETS]++;
            reply_int(c, (int64_t)it->vlen);
        } else {
            reply_oom(c);
        }
    }
    op_unlock(&c->op, &k);
}

void cmd_strlen(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;
    struct shard *s;
    struct item *it;

    (void)argc;
    if (!arg_key(c, &argv[1], &k)) {
        return;
    }
    s = op_lock(&c->op, &k);
    it = shard_find(s, &k, c->op.now_ms);
    s->stat[it ? ST_GET_HITS : ST_GET_MISSES]++;
    reply_int(c, it ? (int64_t)it->vlen : 0);
    op_unlock(&c->op, &k);
}

static void setrange(struct conn *c, struct shard *s, const struct key *k, size_t at,
                     const struct arg *v)
{
    struct item *it = shard_find(s, k, c->op.now_ms);
    size_t old = it ? it->vlen : 0;
    size_t len = at + v->len > old ? at + v->len : old;

    if (v->len == 0) {
        reply_int(c, (int64_t)old);
        return;
    }
    it = shard_put(s, k, it, len, true, c->op.now_ms);
    if (!it) {
        reply_oom(c);
        return;
    }
    if (at > old) {
        memset(item_value(it) + old, 0, at - old);
    }
    memcpy(item_value(it) + at, v->p, v->len);
    s->stat[ST_SETS]++;
    reply_int(c, (int64_t)len);
}

void cmd_setrange(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;
    int64_t at;

    (void)argc;
    if (!arg_i64(c, &argv[2], &at) || !arg_key(c, &argv[1], &k)) {
        return;
    }
    if (at < 0) {
        reply_error(c, "ERR offset is out of range");
        return;
    }
    /* An empty value changes nothing and needs no room. */
    if (argv[3].len > 0 &&
        ((uint64_t)at > INT32_MAX ? !value_fits(c, (uint64_t)at)
                                  : !value_fits(c, (uint64_t)at + argv[3].len))) {
        return;
    }
    setrange(c, op_lock(&c->op, &k), &k, (size_t)at, &argv[3]);
    op_unlock(&c->op, &k);
}

void cmd_getrange(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;
    struct shard *s;
    struct item *it;
    int64_t from, to, len;

    (void)argc;
    if (!arg_i64(c, &argv[2], &from) || !arg_i64(c, &argv[3], &to) || !arg_key(c, &argv[1], &k)) {
        return;
    }
    s = op_lock(&c->op, &k);
    it = shard_find(s, &k, c->op.now_ms);
    s->stat[it ? ST_GET_HITS : ST_GET_MISSES]++;
    len = it ? (int64_t)it->vlen : 0;
    if (from < 0 && to < 0 && from > to) {
        len = 0;
    }
    from = from < 0 ? (from + len < 0 ? 0 : from + len) : from;
    to = to < 0 ? (to + len < 0 ? 0 : to + len) : to;
    to = to >= len ? len - 1 : to;
    if (len == 0 || from > to) {
        reply_bulk(c, "", 0);
    } else {
        shard_touch(s, it, c->op.now_ms);
        reply_bulk(c, item_value(it) + from, (size_t)(to - from + 1));
    }
    op_unlock(&c->op, &k);
}

/* ---- counters ---- */

static void incr_locked(struct conn *c, struct shard *s, const struct key *k, int64_t by)
{
    struct item *it = shard_find(s, k, c->op.now_ms);
    int64_t v = 0;
    char text[NUM_MAX];
    size_t len;

    if (it && !num_get_i64(item_value(it), it->vlen, &v)) {
        reply_not_int(c);
        return;
    }
    if (__builtin_add_overflow(v, by, &v)) {
        reply_error(c, "ERR increment or decrement would overflow");
        return;
    }
    len = num_put_i64(text, v);
    it = shard_put(s, k, it, len, false, c->op.now_ms);
    if (!it) {
        reply_oom(c);
        return;
    }
    memcpy(item_value(it), text, len);
    s->stat[ST_SETS]++;
    reply_int(c, v);
}

static void incr(struct conn *c, const struct arg *key, int64_t by)
{
    struct key k;

    if (arg_key(c, key, &k)) {
        incr_locked(c, op_lock(&c->op, &k), &k, by);
        op_unlock(&c->op, &k);
    }
}

void cmd_incr(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    incr(c, &argv[1], 1);
}

void cmd_decr(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    incr(c, &argv[1], -1);
}

void cmd_incrby(struct conn *c, unsigned argc, struct arg *argv)
{
    int64_t by;

    (void)argc;
    if (arg_i64(c, &argv[2], &by)) {
        incr(c, &argv[1], by);
    }
}

void cmd_decrby(struct conn *c, unsigned argc, struct arg *argv)
{
    int64_t by;

    (void)argc;
    if (!arg_i64(c, &argv[2], &by)) {
        return;
    }
    if (by == INT64_MIN) {
        reply_error(c, "ERR decrement would overflow");
        return;
    }
    incr(c, &argv[1], -by);
}

/* The whole text as a finite or infinite long double; no blanks, no NaN. */
static bool get_float(const char *p, size_t len, long double *v)
{
    char text[FLOAT_TEXT];
    char *end;

    if (len == 0 || len >= sizeof(text) || p[0] == ' ' || (p[0] >= '\t' && p[0] <= '\r')) {
        return false;
    }
    memcpy(text, p, len);
    text[len] = '\0';
    errno = 0;
    *v = strtold(text, &end);
    return end == text + len && !isnan(*v) &&
           !(errno == ERANGE && (*v == HUGE_VALL || *v == -HUGE_VALL || *v == 0));
}

/* Plain notation, 17 digits behind the point, without trailing zeros. */
static size_t put_float(char *text, size_t cap, long double v)
{
    int n = snprintf(text, cap, "%.17Lf", v);
    size_t len = n < 0 || (size_t)n >= cap ? 0 : (size_t)n;

    if (memchr(text, '.', len)) {
        while (text[len - 1] == '0') {
            len--;
        }
        len -= text[len - 1] == '.';
    }
    if (len == 2 && memcmp(text, "-0", 2) == 0) {
        text[0] = '0';
        len = 1;
    }
    return len;
}

static void incrfloat_locked(struct conn *c, struct shard *s, const struct key *k, long double by)
{
    struct item *it = shard_find(s, k, c->op.now_ms);
    long double v = 0;
    char text[FLOAT_TEXT];
    size_t len;

    if (it && !get_float(item_value(it), it->vlen, &v)) {
        reply_error(c, "ERR value is not a valid float");
        return;
    }
    v += by;
    if (isnan(v) || isinf(v)) {
        reply_error(c, "ERR increment would produce NaN or Infinity");
        return;
    }
    len = put_float(text, sizeof(text), v);
    it = shard_put(s, k, it, len, false, c->op.now_ms);
    if (!it) {
        reply_oom(c);
        return;
    }
    memcpy(item_value(it), text, len);
    s->stat[ST_SETS]++;
    reply_bulk(c, text, len);
}

void cmd_incrbyfloat(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;
    long double by;

    (void)argc;
    if (!get_float(argv[2].p, argv[2].len, &by)) {
        reply_error(c, "ERR value is not a valid float");
        return;
    }
    if (arg_key(c, &argv[1], &k)) {
        incrfloat_locked(c, op_lock(&c->op, &k), &k, by);
        op_unlock(&c->op, &k);
    }
}
