/* Classic memcached commands that change what is there: delete, touch, incr, decr. */
#include <string.h>

#include "apps/kv/mc_proto.h"
#include "apps/kv/num.h"

static struct key make_key(struct conn *c, const struct arg *t)
{
    return key_make(&c->srv->store, t->p, t->len);
}

size_t mc_delete(struct conn *c, struct mc_line *l)
{
    bool quiet = mc_noreply(l);
    struct key k;
    struct shard *s;
    struct item *it;

    if (l->n < 2) {
        MC_ERROR(c, "ERROR");
        return l->total;
    }
    /* Old clients send a time of 0. */
    if (l->n > 2 && !((l->n == 3 && (quiet || mc_tok_is(&l->tok[2], "0"))) ||
                      (l->n == 4 && quiet && mc_tok_is(&l->tok[2], "0")))) {
        mc_count_error(c);
        MC_REPLY(c, quiet, "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]");
        return l->total;
    }
    if (!mc_key_ok(c, &l->tok[1])) {
        return l->total;
    }
    k = make_key(c, &l->tok[1]);
    s = op_lock(&c->op, &k);
    it = shard_find(s, &k, c->op.now_ms);
    s->stat[it ? ST_DELETE_HITS : ST_DELETE_MISSES]++;
    if (it) {
        shard_delete(s, it);
        MC_REPLY(c, quiet, "DELETED");
    } else {
        MC_REPLY(c, quiet, "NOT_FOUND");
    }
    op_unlock(&c->op, &k);
    return l->total;
}

size_t mc_touch(struct conn *c, struct mc_line *l)
{
    bool quiet = mc_noreply(l);
    struct key k;
    struct shard *s;
    struct item *it;
    int64_t exptime;

    if (l->n != 3 && l->n != 4) {
        MC_ERROR(c, "ERROR");
        return l->total;
    }
    if (!mc_key_ok(c, &l->tok[1])) {
        return l->total;
    }
    if (!mc_get_i32(&l->tok[2], &exptime)) {
        MC_ERROR(c, "CLIENT_ERROR invalid exptime argument");
        return l->total;
    }
    k = make_key(c, &l->tok[1]);
    s = op_lock(&c->op, &k);
    it = shard_find(s, &k, c->op.now_ms);
    s->stat[it ? ST_TOUCH_HITS : ST_TOUCH_MISSES]++;
    if (it) {
        shard_set_expire(s, it, mc_expire_ms(exptime, c->op.now_ms));
        shard_touch(s, it, c->op.now_ms);
        MC_REPLY(c, quiet, "TOUCHED");
    } else {
        MC_REPLY(c, quiet, "NOT_FOUND");
    }
    op_unlock(&c->op, &k);
    return l->total;
}

enum mc_delta mc_delta_item(struct conn *c, struct shard *s, const struct key *k, struct item **it,
                            bool incr, uint64_t by, uint64_t *result)
{
    uint64_t v;
    char text[NUM_MAX];
    size_t len;
    struct item *now;

    if ((*it)->vlen > NUM_MAX || !num_get_u64(item_value(*it), (*it)->vlen, &v)) {
        return MC_DELTA_NAN;
    }
    v = incr ? v + by : (v > by ? v - by : 0);
    len = num_put_u64(text, v);
    now = shard_put(s, k, *it, len, false, c->op.now_ms);
    if (!now) {
        return MC_DELTA_OOM;
    }
    memcpy(item_value(now), text, len);
    *it = now;
    *result = v;
    return MC_DELTA_OK;
}

static void reply_delta(struct conn *c, bool quiet, enum mc_delta d, uint64_t v)
{
    char text[NUM_MAX + 2];
    size_t n;

    switch (d) {
    case MC_DELTA_NAN:
        mc_count_error(c);
        MC_REPLY(c, quiet, "CLIENT_ERROR cannot increment or decrement non-numeric value");
        break;
    case MC_DELTA_OOM:
        mc_count_error(c);
        MC_REPLY(c, quiet, "SERVER_ERROR out of memory in incr");
        break;
    case MC_DELTA_OK:
        n = num_put_u64(text, v);
        memcpy(text + n, "\r\n", 2);
        mc_reply(c, quiet, text, n + 2);
        break;
    }
}

static size_t arithmetic(struct conn *c, struct mc_line *l, bool incr)
{
    bool quiet = mc_noreply(l);
    enum shard_stat hits = incr ? ST_INCR_HITS : ST_DECR_HITS;
    struct key k;
    struct shard *s;
    struct item *it;
    uint64_t by, v = 0;

    if (l->n != 3 && l->n != 4) {
        MC_ERROR(c, "ERROR");
        return l->total;
    }
    if (!mc_key_ok(c, &l->tok[1])) {
        return l->total;
    }
    if (!num_get_u64(l->tok[2].p, l->tok[2].len, &by)) {
        MC_ERROR(c, "CLIENT_ERROR invalid numeric delta argument");
        return l->total;
    }
    k = make_key(c, &l->tok[1]);
    s = op_lock(&c->op, &k);
    it = shard_find(s, &k, c->op.now_ms);
    s->stat[it ? hits : hits + 1]++;
    if (it) {
        enum mc_delta d = mc_delta_item(c, s, &k, &it, incr, by, &v);

        reply_delta(c, quiet, d, v);
    } else {
        MC_REPLY(c, quiet, "NOT_FOUND");
    }
    op_unlock(&c->op, &k);
    return l->total;
}

size_t mc_incr(struct conn *c, struct mc_line *l)
{
    return arithmetic(c, l, true);
}

size_t mc_decr(struct conn *c, struct mc_line *l)
{
    return arithmetic(c, l, false);
}
