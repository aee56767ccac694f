/* The memcached protocol: lines, words, data blocks. */
#include <string.h>

#include "apps/kv/mc_proto.h"
#include "apps/kv/num.h"

void mc_reply(struct conn *c, bool quiet, const char *text, size_t n)
{
    char *o = quiet ? NULL : conn_out(c, n);

    if (o) {
        memcpy(o, text, n);
        c->out.len += n;
    }
}

void mc_count_error(struct conn *c)
{
    atomic_fetch_add_explicit(&c->srv->count.cmd_errors, 1, memory_order_relaxed);
}

bool mc_tok_is(const struct arg *t, const char *word)
{
    return t->len == strlen(word) && memcmp(t->p, word, t->len) == 0;
}

bool mc_noreply(const struct mc_line *l)
{
    return l->n > 1 && mc_tok_is(&l->tok[l->n - 1], "noreply");
}

bool mc_key_ok(struct conn *c, const struct arg *t)
{
    if (t->len >= 1 && t->len <= KV_MC_KEY_MAX) {
        return true;
    }
    atomic_fetch_add_explicit(&c->srv->count.over_key, 1, memory_order_relaxed);
    MC_ERROR(c, "CLIENT_ERROR bad command line format");
    return false;
}

bool mc_get_i32(const struct arg *t, int64_t *v)
{
    const char *p = t->p;
    size_t n = t->len;
    bool neg = n > 0 && *p == '-';
    uint64_t u;

    p += neg;
    n -= neg;
    if (!num_get_u64(p, n, &u) || u > (uint64_t)INT32_MAX + neg) {
        return false;
    }
    *v = neg ? -(int64_t)u : (int64_t)u;
    return true;
}

uint64_t mc_expire_ms(int64_t exptime, uint64_t now_ms)
{
    if (exptime == 0) {
        return 0;
    }
    if (exptime < 0) {
        return 1;
    }
    if (exptime > KV_MC_REALTIME_MAXDELTA) {
        return (uint64_t)exptime * 1000;
    }
    return now_ms + (uint64_t)exptime * 1000;
}

size_t mc_data(struct conn *c, const struct mc_line *l, size_t vlen, bool quiet, const char **data)
{
    size_t need = l->total + vlen + 2;
    const char *d = l->p + l->total;

    if (c->in.len - c->in.pos < need) {
        c->mc.need = need;
        return MC_MORE;
    }
    if (d[vlen] == '\r' && d[vlen + 1] == '\n') {
        *data = d;
        return need;
    }
    *data = NULL;
    mc_count_error(c);
    MC_REPLY(c, quiet, "CLIENT_ERROR bad data chunk");
    return need;
}

size_t mc_swallow(struct conn *c, const struct mc_line *l, size_t vlen)
{
    c->mc.swallow = (uint64_t)vlen + 2;
    return l->total;
}

static void split(struct mc_line *l)
{
    const char *p = l->p;
    const char *end = l->p + l->len;
    const char *from;

    l->n = 0;
    while (l->n < MC_TOKENS) {
        while (p < end && *p == ' ') {
            p++;
        }
        if (p == end) {
            break;
        }
        from = p;
        while (p < end && *p != ' ') {
            p++;
        }
        l->tok[l->n].p = from;
        l->tok[l->n++].len = (size_t)(p - from);
    }
}

/* Whether an unfinished line may still grow: lists of keys may be long, nothing else. */
static bool line_may_grow(const struct conn *c, const char *p, size_t have)
{
    size_t i = 0;

    if (have <= KV_MC_LINE_MAX) {
        return true;
    }
    while (i < have && p[i] == ' ') {
        i++;
    }
    return (memcmp(p + i, "get", 3) == 0 || memcmp(p + i, "gat", 3) == 0) &&
           have <= c->srv->cfg.max_line && have - i > 3;
}

/* The next line, or false: incomplete, or too long (then the connection closes). */
static bool next_line(struct conn *c, struct mc_line *l)
{
    const char *p = c->in.p + c->in.pos;
    size_t have = c->in.len - c->in.pos;
    const char *end = memchr(p + c->mc.scanned, '\n', have - c->mc.scanned);

    if (!line_may_grow(c, p, end ? (size_t)(end - p) : have)) {
        atomic_fetch_add_explicit(&c->srv->count.over_line, 1, memory_order_relaxed);
        MC_ERROR(c, "CLIENT_ERROR line too long");
        c->closing = true;
        return false;
    }
    if (!end) {
        c->mc.scanned = have;
        return false;
    }
    l->p = p;
    l->len = (size_t)(end - p);
    l->total = l->len + 1;
    if (l->len > 0 && end[-1] == '\r') {
        l->len--;
    }
    return true;
}

static bool is_http(const struct mc_line *l)
{
    const struct arg *last = &l->tok[l->n ? l->n - 1 : 0];

    return l->n > 1 && last->len >= 5 && memcmp(last->p, "HTTP/", 5) == 0;
}

/* One request; false when it is incomplete. */
static bool request(struct conn *c)
{
    struct mc_line l;
    mc_fn fn;
    size_t took;

    if (c->in.len - c->in.pos < c->mc.need || !next_line(c, &l)) {
        return false;
    }
    split(&l);
    fn = l.n ? mc_text_find(&l.tok[0]) : NULL;
    if (!fn && l.n) {
        fn = mc_meta_find(&l.tok[0]);
    }
    if (fn) {
        took = fn(c, &l);
        if (took == MC_MORE) {
            return false;
        }
    } else {
        if (is_http(&l)) {
            c->dropping = true; /* a browser, or something worse: not a client */
        } else {
            MC_ERROR(c, "ERROR");
        }
        took = l.total;
    }
    c->in.pos += took;
    c->mc.need = 0;
    c->mc.scanned = 0;
    return true;
}

static void process(struct conn *c)
{
    uint64_t done = 0;

    while (c->in.pos < c->in.len && !c->closing && !c->dropping) {
        if (c->mc.swallow) {
            size_t n = c->in.len - c->in.pos;

            n = n < c->mc.swallow ? n : (size_t)c->mc.swallow;
            c->in.pos += n;
            c->mc.swallow -= n;
            continue;
        }
        if (!request(c)) {
            break;
        }
        done++;
        if (c->out.len >= KV_OUT_FLUSH) {
            conn_flush(c);
        }
    }
    count_add(&c->commands, done);
}

static int mc_open(struct conn *c)
{
    (void)c;
    return 0;
}

static void mc_close(struct conn *c)
{
    (void)c;
}

static void too_big(struct conn *c)
{
    MC_ERROR(c, "SERVER_ERROR out of memory reading request");
}

const struct proto proto_mc = {
    .name = "memcached",
    .refusal = "ERROR Too many open connections\r\n",
    .open = mc_open,
    .close = mc_close,
    .process = process,
    .too_big = too_big,
};
