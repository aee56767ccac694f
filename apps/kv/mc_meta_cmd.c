/* The meta commands that touch items: mg, ms, md, ma. */
#include <string.h>

#include "apps/kv/mc_meta.h"
#include "apps/kv/num.h"
#include "apps/kv/reply.h"

static const struct meta_seen nothing_seen = {false, 0, false};

/* "<code> <flags>\r\n" */
static void answer(struct conn *c, const struct meta *m, bool quiet, const char *code,
                   struct item *it)
{
    if (quiet) {
        return;
    }
    reply_raw(c, code, 2);
    meta_flags(c, m, it, nothing_seen);
    reply_raw(c, "\r\n", 2);
}

static void head(struct conn *c, bool value, const struct item *it)
{
    char text[NUM_MAX + 3] = "VA ";

    if (value) {
        reply_raw(c, text, 3 + num_put_u64(text + 3, it->vlen));
    } else {
        reply_raw(c, "HD", 2);
    }
}

static void tail(struct conn *c, bool value, struct item *it)
{
    reply_raw(c, "\r\n", 2);
    if (value) {
        reply_raw(c, item_value(it), it->vlen);
        reply_raw(c, "\r\n", 2);
    }
}

/* ---- mg ---- */

static bool wins(const struct conn *c, const struct meta *m, const struct item *it, bool created)
{
    bool due = m->has_recache && it->expire_ms &&
               (int64_t)it->expire_ms - (int64_t)c->op.now_ms < m->recache_s * 1000;

    return !(it->bits & ITEM_WON) && (created || (it->bits & ITEM_STALE) || due);
}

/* The item, made anew (empty) on a miss if N asks for it; NULL: a miss, or no memory (*oom). */
static struct item *find_or_vivify(struct conn *c, struct shard *s, struct meta *m, bool *created,
                                   bool *oom)
{
    struct item *it = shard_find(s, &m->key, c->op.now_ms);

    *created = false;
    *oom = false;
    s->stat[it ? ST_GET_HITS : ST_GET_MISSES]++;
    if (it || !m->has_vivify) {
        return it;
    }
    it = shard_put(s, &m->key, NULL, 0, false, c->op.now_ms);
    if (!it) {
        *oom = true;
        return NULL;
    }
    shard_set_expire(s, it, m->vivify_ms);
    *created = true;
    return it;
}

static void get_found(struct conn *c, struct shard *s, const struct meta *m, struct item *it,
                      bool created)
{
    struct meta_seen seen = {it->bits & ITEM_FETCHED, item_idle_ms(it, c->op.now_ms) / 1000, false};
    bool win;

    if (m->has_ttl) {
        shard_set_expire(s, it, m->expire_ms);
        s->stat[ST_TOUCH_HITS]++;
    }
    win = wins(c, m, it, created);
    head(c, m->value, it);
    meta_flags(c, m, it, seen);
    if (it->bits & ITEM_WON) {
        reply_raw(c, " Z", 2);
    }
    if (it->bits & ITEM_STALE) {
        reply_raw(c, " X", 2);
    }
    if (win) {
        it->bits |= ITEM_WON;
        reply_raw(c, " W", 2);
    }
    tail(c, m->value, it);
    if (!created && !m->no_update) {
        it->bits |= ITEM_FETCHED;
        shard_touch(s, it, c->op.now_ms);
    }
}

size_t meta_get(struct conn *c, struct mc_line *l)
{
    struct meta m;
    struct shard *s;
    struct item *it;
    bool created, oom;

    if (l->n < 2) {
        MC_ERROR(c, "ERROR");
        return l->total;
    }
    if (!meta_parse(c, l, 2, "bcfhklOqstuvNTR", &m)) {
        return l->total;
    }
    s = op_lock(&c->op, &m.key);
    it = find_or_vivify(c, s, &m, &created, &oom);
    if (it) {
        get_found(c, s, &m, it, created);
    } else if (oom) {
        MC_ERROR(c, "SERVER_ERROR out of memory");
    } else {
        answer(c, &m, m.quiet, "EN", NULL);
    }
    op_unlock(&c->op, &m.key);
    return l->total;
}

/* ---- ms ---- */

/* The reply that refuses the store, or NULL. *stale: the store goes through, but marks the item. */
static const char *refusal(const struct meta *m, const struct item *old, bool *stale)
{
    *stale = false;
    if (m->has_cas) {
        if (!old) {
            return "NF";
        }
        if (old->cas != m->cas) {
            /* I: an older value may still be stored, as a stale one. */
            if (!m->invalidate || m->cas >= old->cas) {
                return "EX";
            }
            *stale = true;
        }
    }
    switch (m->mode) {
    case 'E':
        return old ? "NS" : NULL;
    case 'A':
    case 'P':
        return old || m->has_vivify ? NULL : "NS";
    case 'R':
        return old ? NULL : "NS";
    default:
        return NULL;
    }
}

static void set_locked(struct conn *c, struct shard *s, const struct meta *m, const char *data,
                       size_t vlen)
{
    struct item *old = shard_find(s, &m->key, c->op.now_ms);
    bool join = old && (m->mode == 'A' || m->mode == 'P');
    size_t had = join ? old->vlen : 0;
    bool stale;
    const char *no = refusal(m, old, &stale);
    struct item *it;

    s->stat[ST_SETS]++;
    if (m->has_cas) {
        s->stat[!old ? ST_CAS_MISSES : (no ? ST_CAS_BADVAL : ST_CAS_HITS)]++;
    }
    if (no) {
        reply_raw(c, no, 2);
        meta_flags(c, m, NULL, (struct meta_seen){.refused = true});
        reply_raw(c, "\r\n", 2);
        return;
    }
    if (had + vlen > c->srv->cfg.mc_max_value) {
        MC_ERROR(c, "SERVER_ERROR object too large for cache");
        return;
    }
    it = shard_put(s, &m->key, old, had + vlen, join, c->op.now_ms);
    if (!it) {
        MC_ERROR(c, "SERVER_ERROR out of memory storing object");
        return;
    }
    if (m->mode == 'P') {
        memmove(item_value(it) + vlen, item_value(it), had);
        had = 0;
    }
    memcpy(item_value(it) + had, data, vlen);
    if (!join) {
        bool vivified = (m->mode == 'A' || m->mode == 'P') && m->has_vivify;

        it->flags = m->client_flags;
        if (!stale) {
            shard_set_expire(s, it, vivified ? m->vivify_ms : m->expire_ms);
        }
    }
    /* An older value: it stays stale, lives no longer for it, and whoever was told to renew it still is. */
    it->bits |= stale ? ITEM_STALE | ITEM_WON : 0;
    answer(c, m, m->quiet, "HD", it);
}

size_t meta_set(struct conn *c, struct mc_line *l)
{
    struct meta m;
    uint64_t vlen;
    const char *data;
    size_t took;

    if (l->n < 2) {
        MC_ERROR(c, "ERROR");
        return l->total;
    }
    if (l->n < 3 || !num_get_u64(l->tok[2].p, l->tok[2].len, &vlen) || vlen > INT32_MAX - 2) {
        MC_ERROR(c, "CLIENT_ERROR bad command line format");
        return l->total;
    }
    if (c->in.len - c->in.pos < l->total + vlen + 2 && vlen <= c->srv->cfg.mc_max_value) {
        c->mc.need = l->total + vlen + 2; /* judged once, when all is there */
        return MC_MORE;
    }
    if (!meta_parse(c, l, 3, "bcCfFhIklMNOqstTv", &m)) {
        return mc_swallow(c, l, vlen);
    }
    if (m.mode && !strchr("EAPRS", m.mode)) {
        MC_ERROR(c, "CLIENT_ERROR invalid mode for ms M token");
        return mc_swallow(c, l, vlen);
    }
    if (vlen > c->srv->cfg.mc_max_value) {
        atomic_fetch_add_explicit(&c->srv->count.over_value, 1, memory_order_relaxed);
        if (!m.mode || m.mode == 'S') {
            mc_drop_stale(c, &m.key);
        }
        MC_ERROR(c, "SERVER_ERROR object too large for cache");
        return mc_swallow(c, l, vlen);
    }
    took = mc_data(c, l, vlen, false, &data);
    if (data) {
        set_locked(c, op_lock(&c->op, &m.key), &m, data, vlen);
        op_unlock(&c->op, &m.key);
    }
    return took;
}

/* ---- md ---- */

static void delete_locked(struct conn *c, struct shard *s, const struct meta *m)
{
    struct item *it = shard_find(s, &m->key, c->op.now_ms);

    if (!it) {
        s->stat[ST_DELETE_MISSES]++;
        answer(c, m, false, "NF", NULL);
        return;
    }
    if (m->has_cas && it->cas != m->cas) {
        answer(c, m, false, "EX", NULL);
        return;
    }
    s->stat[ST_DELETE_HITS]++;
    answer(c, m, m->quiet, "HD", it);
    if (!m->invalidate) {
        shard_delete(s, it);
        return;
    }
    it->bits = (uint8_t)((it->bits | ITEM_STALE) & ~ITEM_WON);
    if (m->has_ttl) {
        shard_set_expire(s, it, m->expire_ms);
    }
    shard_changed(s, it);
}

size_t meta_delete(struct conn *c, struct mc_line *l)
{
    struct meta m;

    if (l->n < 2) {
        MC_ERROR(c, "ERROR");
        return l->total;
    }
    if (meta_parse(c, l, 2, "bCIkOqT", &m)) {
        delete_locked(c, op_lock(&c->op, &m.key), &m);
        op_unlock(&c->op, &m.key);
    }
    return l->total;
}

/* ---- ma ---- */

static struct item *create_counter(struct conn *c, struct shard *s, const struct meta *m)
{
    char text[NUM_MAX];
    size_t n = num_put_u64(text, m->initial);
    struct item *it = shard_put(s, &m->key, NULL, n, false, c->op.now_ms);

    if (it) {
        memcpy(item_value(it), text, n);
        shard_set_expire(s, it, m->vivify_ms);
    }
    return it;
}

static void reply_counter(struct conn *c, struct shard *s, const struct meta *m, struct item *it)
{
    if (m->has_ttl) {
        shard_set_expire(s, it, m->expire_ms);
    }
    if (m->quiet) {
        return;
    }
    head(c, m->value, it);
    meta_flags(c, m, it, nothing_seen);
    tail(c, m->value, it);
}

static void arithmetic_locked(struct conn *c, struct shard *s, const struct meta *m)
{
    struct item *it = shard_find(s, &m->key, c->op.now_ms);
    bool incr = m->mode != 'D';
    enum shard_stat hits = incr ? ST_INCR_HITS : ST_DECR_HITS;
    enum mc_delta d = MC_DELTA_OK;
    uint64_t v;

    s->stat[it ? hits : hits + 1]++;
    if (!it && !m->has_vivify) {
        answer(c, m, false, "NF", NULL);
        return;
    }
    if (!it) {
        it = create_counter(c, s, m);
        d = it ? MC_DELTA_OK : MC_DELTA_OOM;
    } else if (m->has_cas && it->cas != m->cas) {
        answer(c, m, false, "EX", NULL);
        return;
    } else {
        d = mc_delta_item(c, s, &m->key, &it, incr, m->delta, &v);
    }
    if (d == MC_DELTA_NAN) {
        MC_ERROR(c, "CLIENT_ERROR cannot increment or decrement non-numeric value");
    } else if (d == MC_DELTA_OOM) {
        MC_ERROR(c, "SERVER_ERROR out of memory");
    } else {
        reply_counter(c, s, m, it);
    }
}

size_t meta_arithmetic(struct conn *c, struct mc_line *l)
{
    struct meta m;

    if (l->n < 2) {
        MC_ERROR(c, "ERROR");
        return l->total;
    }
    if (!meta_parse(c, l, 2, "bcCDJkMNOqtTv", &m)) {
        return l->total;
    }
    if (m.mode && m.mode != 'I' && m.mode != 'D') {
        MC_ERROR(c, "CLIENT_ERROR invalid mode for ma M token");
        return l->total;
    }
    arithmetic_locked(c, op_lock(&c->op, &m.key), &m);
    op_unlock(&c->op, &m.key);
    return l->total;
}
