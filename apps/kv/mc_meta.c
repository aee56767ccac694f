/* Meta commands of memcached: their flags, and the ones without a state change. */
#include "apps/kv/mc_meta.h"

#include <string.h>

#include "apps/kv/base64.h"
#include "apps/kv/num.h"
#include "apps/kv/reply.h"

static bool bad(struct conn *c, const char *text)
{
    mc_count_error(c);
    reply_printf(c, "CLIENT_ERROR %s\r\n", text);
    return false;
}

static bool parse_key(struct conn *c, const struct arg *t, struct meta *m)
{
    long n;

    if (t->len > KV_MC_KEY_MAX) {
        atomic_fetch_add_explicit(&c->srv->count.over_key, 1, memory_order_relaxed);
        return bad(c, "bad command line format");
    }
    if (!m->b64) {
        m->key = key_make(&c->srv->store, t->p, t->len);
        return true;
    }
    n = base64_decode(t->p, t->len, m->bin);
    if (n <= 0) {
        return bad(c, "error decoding key");
    }
    m->key = key_make(&c->srv->store, m->bin, (size_t)n);
    return true;
}

static bool ttl_token(struct conn *c, const struct arg *value, uint64_t *ms)
{
    int64_t v;

    if (!mc_get_i32(value, &v)) {
        return bad(c, "bad token in command line format");
    }
    *ms = mc_expire_ms(v, c->op.now_ms);
    return true;
}

static bool number_token(struct conn *c, const struct arg *value, uint64_t max, uint64_t *v)
{
    if (!num_get_u64(value->p, value->len, v) || *v > max) {
        return bad(c, "bad token in command line format");
    }
    return true;
}

/* One flag with its token (the rest of the word). */
static bool parse_flag(struct conn *c, char flag, const struct arg *value, struct meta *m)
{
    uint64_t v;

    switch (flag) {
    case 'b':
        m->b64 = true;
        return true;
    case 'q':
        m->quiet = true;
        return true;
    case 'v':
        m->value = true;
        return true;
    case 'u':
        m->no_update = true;
        return true;
    case 'I':
        m->invalidate = true;
        return true;
    case 'O':
        return value->len <= META_OPAQUE_MAX || bad(c, "opaque token too long");
    case 'M':
        if (value->len != 1) {
            return bad(c, "incorrect length for M token");
        }
        m->mode = (char)(*value->p & ~0x20); /* upper case; '+' and '-' become control codes */
        m->mode = *value->p == '+' ? 'I' : (*value->p == '-' ? 'D' : m->mode);
        return true;
    case 'C':
        m->has_cas = true;
        return number_token(c, value, UINT64_MAX, &m->cas);
    case 'D':
        return number_token(c, value, UINT64_MAX, &m->delta);
    case 'J':
        return number_token(c, value, UINT64_MAX, &m->initial);
    case 'F':
        if (!num_get_u64(value->p, value->len, &v) || v > UINT32_MAX) {
            return bad(c, "bad command line format");
        }
        m->client_flags = (uint32_t)v;
        return true;
    case 'T':
        m->has_ttl = true;
        return ttl_token(c, value, &m->expire_ms);
    case 'N':
        m->has_vivify = true;
        return ttl_token(c, value, &m->vivify_ms);
    case 'R':
        m->has_recache = true;
        return mc_get_i32(value, &m->recache_s) || bad(c, "bad token in command line format");
    default:
        return true; /* only asks for something in the reply */
    }
}

bool meta_parse(struct conn *c, const struct mc_line *l, unsigned first, const char *allowed,
                struct meta *m)
{
    uint64_t seen[2] = {0, 0};

    memset(m, 0, sizeof(*m));
    m->delta = 1;
    m->flags = l->tok + (first < l->n ? first : l->n);
    m->nflags = first < l->n ? l->n - first : 0;
    for (unsigned i = 0; i < m->nflags; i++) {
        const struct arg *t = &m->flags[i];
        unsigned char f = (unsigned char)*t->p;
        struct arg value = {.p = t->p + 1, .len = t->len - 1};

        if (f >= 128 || !strchr(allowed, (char)f)) {
            return bad(c, "invalid flag");
        }
        if (seen[f / 64] >> (f % 64) & 1) {
            return bad(c, "duplicate flag");
        }
        seen[f / 64] |= 1ull << (f % 64);
        if (!parse_flag(c, (char)f, &value, m)) {
            return false;
        }
    }
    return parse_key(c, &l->tok[1], m);
}

/* ---- replies ---- */

static void flag_u64(struct conn *c, char flag, uint64_t v)
{
    char text[NUM_MAX + 2] = {' ', flag};

    reply_raw(c, text, 2 + num_put_u64(text + 2, v));
}

static void flag_key(struct conn *c, const struct meta *m)
{
    char text[BASE64_LEN(KV_MC_KEY_MAX)];

    reply_raw(c, " k", 2);
    if (m->b64) {
        reply_raw(c, text, base64_encode(m->key.p, m->key.len, text));
    } else {
        reply_raw(c, m->key.p, m->key.len);
    }
}

static void flag_ttl(struct conn *c, const struct item *it)
{
    if (it->expire_ms == 0) {
        reply_raw(c, " t-1", 4);
    } else {
        flag_u64(c, 't',
                 it->expire_ms > c->op.now_ms ? (it->expire_ms - c->op.now_ms + 999) / 1000 : 0);
    }
}

void meta_flags(struct conn *c, const struct meta *m, struct item *it, struct meta_seen seen)
{
    for (unsigned i = 0; i < m->nflags; i++) {
        const struct arg *t = &m->flags[i];

        switch (*t->p) {
        case 'O':
            reply_raw(c, " ", 1);
            reply_raw(c, t->p, t->len);
            continue;
        case 'k':
            flag_key(c, m);
            continue;
        case 'b':
            reply_raw(c, " b", 2);
            continue;
        default:
            break;
        }
        if (!it) {
            if (seen.refused && *t->p == 'c') {
                flag_u64(c, 'c', 0);
            }
            continue;
        }
        switch (*t->p) {
        case 'c':
            flag_u64(c, 'c', it->cas);
            break;
        case 'f':
            flag_u64(c, 'f', it->flags);
            break;
        case 'h':
            flag_u64(c, 'h', seen.hit);
            break;
        case 'l':
            flag_u64(c, 'l', seen.idle_s);
            break;
        case 's':
            flag_u64(c, 's', it->vlen);
            break;
        case 't':
            flag_ttl(c, it);
            break;
        default:
            break;
        }
    }
}

/* ---- mn, me ---- */

static size_t meta_noop(struct conn *c, struct mc_line *l)
{
    MC_REPLY(c, false, "MN");
    return l->total;
}

static void debug_line(struct conn *c, const struct mc_line *l, const struct meta *m,
                       struct item *it)
{
    reply_raw(c, "ME ", 3);
    reply_raw(c, l->tok[1].p, l->tok[1].len);
    if (it->expire_ms) {
        reply_printf(c, " exp=%lld", ((long long)it->expire_ms - (long long)c->op.now_ms) / 1000);
    } else {
        reply_printf(c, " exp=-1");
    }
    reply_printf(c, " la=%u cas=%llu fetch=%s cls=0 size=%zu%s\r\n",
                 item_idle_ms(it, c->op.now_ms) / 1000, (unsigned long long)it->cas,
                 it->bits & ITEM_FETCHED ? "yes" : "no", arena_round(item_size(it->klen, it->vlen)),
                 m->b64 ? " b" : "");
}

static size_t meta_debug(struct conn *c, struct mc_line *l)
{
    struct meta m;
    struct item *it;

    if (l->n < 2) {
        bad(c, "bad command line format");
        return l->total;
    }
    if (!meta_parse(c, l, 2, "b", &m)) {
        return l->total;
    }
    it = shard_find(op_lock(&c->op, &m.key), &m.key, c->op.now_ms);
    if (it) {
        debug_line(c, l, &m, it);
    } else {
        MC_REPLY(c, false, "EN");
    }
    op_unlock(&c->op, &m.key);
    return l->total;
}

mc_fn mc_meta_find(const struct arg *name)
{
    if (name->len != 2 || name->p[0] != 'm') {
        return NULL;
    }
    switch (name->p[1]) {
    case 'g':
        return meta_get;
    case 's':
        return meta_set;
    case 'd':
        return meta_delete;
    case 'a':
        return meta_arithmetic;
    case 'n':
        return meta_noop;
    case 'e':
        return meta_debug;
    default:
        return NULL;
    }
}
