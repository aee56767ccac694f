/* Classic memcached commands. Error texts follow memcached 1.6. */
#include <stdlib.h>
#include <string.h>

#include "apps/kv/mc_proto.h"
#include "apps/kv/num.h"

#define BAD_LINE "CLIENT_ERROR bad command line format"

static struct key make_key(struct conn *c, const struct arg *t)
{
    return key_make(&c->srv->store, t->p, t->len);
}

/* ---- get, gets, gat, gats ---- */

static void reply_value(struct conn *c, struct item *it, bool with_cas)
{
    char *o = conn_out(c, 6 + it->klen + 3 * (NUM_MAX + 1) + it->vlen + 4);
    char *at = o;

    if (!o) {
        return;
    }
    memcpy(at, "VALUE ", 6);
    at += 6;
    memcpy(at, item_key(it), it->klen);
    at += it->klen;
    *at++ = ' ';
    at += num_put_u64(at, it->flags);
    *at++ = ' ';
    at += num_put_u64(at, it->vlen);
    if (with_cas) {
        *at++ = ' ';
        at += num_put_u64(at, it->cas);
    }
    *at++ = '\r';
    *at++ = '\n';
    memcpy(at, item_value(it), it->vlen);
    at += it->vlen;
    *at++ = '\r';
    *at++ = '\n';
    c->out.len += (size_t)(at - o);
}

struct fetch {
    bool with_cas;
    bool touch;
    uint64_t expire_ms;
};

static void get_one(struct conn *c, const struct arg *t, const struct fetch *f)
{
    struct key k = make_key(c, t);
    struct shard *s = op_lock(&c->op, &k);
    struct item *it = shard_find(s, &k, c->op.now_ms);

    if (f->touch) {
        s->stat[it ? ST_TOUCH_HITS : ST_TOUCH_MISSES]++;
    }
    s->stat[it ? ST_GET_HITS : ST_GET_MISSES]++;
    if (it) {
        if (f->touch) {
            shard_set_expire(s, it, f->expire_ms);
        }
        shard_touch(s, it, c->op.now_ms);
        it->bits |= ITEM_FETCHED;
        reply_value(c, it, f->with_cas);
    }
    op_unlock(&c->op, &k);
}

/* The keys of the line, from the given word on; they may be more than MC_TOKENS. */
static size_t fetch(struct conn *c, struct mc_line *l, unsigned first, const struct fetch *f)
{
    const char *p, *end = l->p + l->len;
    struct arg t;

    if (l->n <= first) {
        MC_ERROR(c, "ERROR");
        return l->total;
    }
    for (p = l->tok[first].p; p < end;) {
        t.p = p;
        while (p < end && *p != ' ') {
            p++;
        }
        t.len = (size_t)(p - t.p);
        if (!mc_key_ok(c, &t)) {
            return l->total;
        }
        get_one(c, &t, f);
        if (c->out.len >= KV_OUT_FLUSH && !c->op.locked) {
            conn_flush(c);
        }
        while (p < end && *p == ' ') {
            p++;
        }
    }
    MC_REPLY(c, false, "END");
    return l->total;
}

static size_t get(struct conn *c, struct mc_line *l)
{
    struct fetch f = {l->tok[0].len == 4, false, 0};

    return fetch(c, l, 1, &f);
}

static size_t gat(struct conn *c, struct mc_line *l)
{
    struct fetch f = {l->tok[0].len == 4, true, 0};
    int64_t exptime;

    if (l->n < 2) {
        MC_ERROR(c, "ERROR");
        return l->total;
    }
    if (!mc_get_i32(&l->tok[1], &exptime)) {
        MC_ERROR(c, "CLIENT_ERROR invalid exptime argument");
        return l->total;
    }
    if (l->n == 2) {
        MC_REPLY(c, false, "END");
        return l->total;
    }
    f.expire_ms = mc_expire_ms(exptime, c->op.now_ms);
    return fetch(c, l, 2, &f);
}

/* ---- storage ---- */

enum verb { SET, ADD, REPLACE, APPEND, PREPEND, CAS };

struct storage {
    enum verb verb;
    uint32_t flags;
    uint64_t expire_ms;
    uint64_t cas;
    const char *data;
    size_t vlen;
};

/* Whether the item may be stored, with the reply if not. */
static bool admit(struct conn *c, struct shard *s, const struct storage *st, const struct item *old,
                  bool quiet)
{
    if (st->verb == CAS) {
        if (!old) {
            s->stat[ST_CAS_MISSES]++;
            MC_REPLY(c, quiet, "NOT_FOUND");
            return false;
        }
        if (old->cas != st->cas) {
            s->stat[ST_CAS_BADVAL]++;
            MC_REPLY(c, quiet, "EXISTS");
            return false;
        }
        s->stat[ST_CAS_HITS]++;
        return true;
    }
    if (st->verb == SET || (st->verb == ADD) == !old) {
        return true;
    }
    MC_REPLY(c, quiet, "NOT_STORED");
    return false;
}

static void store(struct conn *c, struct shard *s, const struct key *k, const struct storage *st,
                  bool quiet)
{
    struct item *old = shard_find(s, k, c->op.now_ms);
    bool join = st->verb == APPEND || st->verb == PREPEND;
    size_t had = join && old ? old->vlen : 0;
    struct item *it;

    s->stat[ST_SETS]++;
    if (!admit(c, s, st, old, quiet)) {
        return;
    }
    if (had + st->vlen > c->srv->cfg.mc_max_value) {
        mc_count_error(c);
        MC_REPLY(c, quiet, "SERVER_ERROR object too large for cache");
        return;
    }
    it = shard_put(s, k, old, had + st->vlen, join, c->op.now_ms);
    if (!it) {
        mc_count_error(c);
        MC_REPLY(c, quiet, "SERVER_ERROR out of memory storing object");
        return;
    }
    if (st->verb == PREPEND) {
        memmove(item_value(it) + st->vlen, item_value(it), had);
        had = 0;
    }
    memcpy(item_value(it) + had, st->data, st->vlen);
    if (!join) {
        it->flags = st->flags;
        shard_set_expire(s, it, st->expire_ms);
    }
    MC_REPLY(c, quiet, "STORED");
}

/* Reads flags, exptime, length and (cas) the unique; false: replied. */
static bool storage_args(struct conn *c, const struct mc_line *l, struct storage *st)
{
    uint64_t flags;
    int64_t exptime, len;

    if (!num_get_u64(l->tok[2].p, l->tok[2].len, &flags) || flags > UINT32_MAX ||
        !mc_get_i32(&l->tok[3], &exptime) || !mc_get_i32(&l->tok[4], &len) ||
        (st->verb == CAS && !num_get_u64(l->tok[5].p, l->tok[5].len, &st->cas)) || len < 0 ||
        len > INT32_MAX - 2) {
        MC_ERROR(c, BAD_LINE);
        return false;
    }
    st->flags = (uint32_t)flags;
    st->expire_ms = mc_expire_ms(exptime, c->op.now_ms);
    st->vlen = (size_t)len;
    return true;
}

void mc_drop_stale(struct conn *c, const struct key *k)
{
    struct shard *s = op_lock(&c->op, k);
    struct item *old = shard_find(s, k, c->op.now_ms);

    if (old) {
        shard_delete(s, old);
    }
    op_unlock(&c->op, k);
}

static size_t storage(struct conn *c, struct mc_line *l, enum verb verb)
{
    struct storage st = {.verb = verb};
    unsigned words = verb == CAS ? 6 : 5;
    bool quiet = mc_noreply(l);
    struct key k;
    size_t took;

    if (l->n != words && !(l->n == words + 1)) {
        MC_ERROR(c, "ERROR");
        return l->total;
    }
    if (!storage_args(c, l, &st)) {
        return l->total;
    }
    if (!mc_key_ok(c, &l->tok[1])) {
        return mc_swallow(c, l, st.vlen);
    }
    if (st.vlen > c->srv->cfg.mc_max_value) {
        atomic_fetch_add_explicit(&c->srv->count.over_value, 1, memory_order_relaxed);
        mc_count_error(c);
        k = make_key(c, &l->tok[1]);
        if (verb == SET) {
            mc_drop_stale(c, &k);
        }
        MC_REPLY(c, quiet, "SERVER_ERROR object too large for cache");
        return mc_swallow(c, l, st.vlen);
    }
    took = mc_data(c, l, st.vlen, quiet, &st.data);
    if (took == MC_MORE || !st.data) {
        return took;
    }
    k = make_key(c, &l->tok[1]);
    store(c, op_lock(&c->op, &k), &k, &st, quiet);
    op_unlock(&c->op, &k);
    return took;
}

static size_t set(struct conn *c, struct mc_line *l)
{
    return storage(c, l, SET);
}

static size_t add(struct conn *c, struct mc_line *l)
{
    return storage(c, l, ADD);
}

static size_t replace(struct conn *c, struct mc_line *l)
{
    return storage(c, l, REPLACE);
}

static size_t append(struct conn *c, struct mc_line *l)
{
    return storage(c, l, APPEND);
}

static size_t prepend(struct conn *c, struct mc_line *l)
{
    return storage(c, l, PREPEND);
}

static size_t cas(struct conn *c, struct mc_line *l)
{
    return storage(c, l, CAS);
}

/* ---- the rest ---- */

static size_t flush_all(struct conn *c, struct mc_line *l)
{
    bool quiet = mc_noreply(l);
    unsigned words = l->n - quiet;
    int64_t delay = 0;

    if (words > 2) {
        MC_ERROR(c, "ERROR");
        return l->total;
    }
    if (words == 2 && !mc_get_i32(&l->tok[1], &delay)) {
        MC_ERROR(c, "CLIENT_ERROR invalid exptime argument");
        return l->total;
    }
    if (delay > 0) {
        maint_flush_at(c->srv, mc_expire_ms(delay, c->op.now_ms));
    } else {
        maint_flush_at(c->srv, 0);
        store_flush(&c->op);
    }
    MC_REPLY(c, quiet, "OK");
    return l->total;
}

static size_t version(struct conn *c, struct mc_line *l)
{
    MC_REPLY(c, false, "VERSION " KV_MC_VERSION);
    return l->total;
}

static size_t verbosity(struct conn *c, struct mc_line *l)
{
    bool quiet = mc_noreply(l);
    uint64_t level;

    if (l->n < 2 || l->n > 3) {
        MC_ERROR(c, "ERROR");
    } else if (!quiet && !num_get_u64(l->tok[1].p, l->tok[1].len, &level)) {
        MC_ERROR(c, BAD_LINE);
    } else {
        MC_REPLY(c, quiet, "OK"); /* there is no log to make more verbose */
    }
    return l->total;
}

static size_t quit(struct conn *c, struct mc_line *l)
{
    c->closing = true;
    return l->total;
}

static const struct {
    const char *name;
    mc_fn fn;
} commands[] = {{"get", get},         {"gets", get},         {"gat", gat},
                {"gats", gat},        {"set", set},          {"add", add},
                {"replace", replace}, {"append", append},    {"prepend", prepend},
                {"cas", cas},         {"delete", mc_delete}, {"touch", mc_touch},
                {"incr", mc_incr},    {"decr", mc_decr},     {"flush_all", flush_all},
                {"stats", mc_stats},  {"version", version},  {"verbosity", verbosity},
                {"quit", quit}};

mc_fn mc_text_find(const struct arg *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (mc_tok_is(name, commands[i].name)) {
            return commands[i].fn;
        }
    }
    return NULL;
}
