/* Parser of the Redis protocol: works in place, keeps its state between reads, and never trusts a
 * length before the bytes are there. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "apps/kv/num.h"
#include "apps/kv/reply.h"
#include "apps/kv/server.h"

/* Longest header line ("*<n>", "$<n>") without its end; what Redis calls the inline limit. */
#define HEADER_MAX 65536u

static int bad(struct conn *c, const char *text)
{
    reply_error(c, "ERR Protocol error: %s", text);
    atomic_fetch_add_explicit(&c->srv->count.proto_errors, 1, memory_order_relaxed);
    c->closing = true;
    return -1;
}

static bool arg_room(struct conn *c)
{
    struct resp_state *r = &c->resp;
    unsigned cap = r->argcap * 2;
    struct arg *v;

    if (r->argc < r->argcap) {
        return true;
    }
    if (!mem_grow(&c->srv->store.mem, r->argcap * sizeof(*v), cap * sizeof(*v))) {
        return false;
    }
    v = realloc(r->argv == r->few ? NULL : r->argv, cap * sizeof(*v));
    if (!v) {
        mem_release(&c->srv->store.mem, (cap - r->argcap) * sizeof(*v));
        return false;
    }
    if (r->argv == r->few) {
        memcpy(v, r->few, sizeof(r->few));
    }
    r->argv = v;
    r->argcap = cap;
    return true;
}

/* The number of a header line that starts at r->scan + 1. 1 read, 0 incomplete, -1 too long, -2 no
 * number. r->scan moves behind the line only on 1. */
static int header(struct conn *c, int64_t *v)
{
    struct resp_state *r = &c->resp;
    const char *from = c->in.p + c->in.pos + r->scan;
    size_t have = c->in.len - c->in.pos - r->scan;
    const char *end;

    /* The usual one: one or two digits. */
    if (have >= 4 && from[2] == '\r' && isdigit((unsigned char)from[1])) {
        *v = from[1] - '0';
        r->scan += 4;
        return 1;
    }
    end = memchr(from, '\r', have);
    if (!end) {
        return have > HEADER_MAX ? -1 : 0;
    }
    if ((size_t)(end - from) + 2 > have) {
        return 0;
    }
    if (!num_get_i64(from + 1, (size_t)(end - from) - 1, v)) {
        return -2;
    }
    r->scan += (size_t)(end - from) + 2;
    return 1;
}

static int complete(struct conn *c)
{
    struct resp_state *r = &c->resp;
    const char *base = c->in.p + c->in.pos;

    for (unsigned i = 0; i < r->argc; i++) {
        r->argv[i].p = base + r->argv[i].off;
    }
    return 1;
}

static int bulk_header(struct conn *c)
{
    struct resp_state *r = &c->resp;
    const char *from = c->in.p + c->in.pos + r->scan;
    int64_t n;

    if (c->in.len - c->in.pos == r->scan) {
        return 0;
    }
    if (*from != '$') {
        char text[32] = "expected '$', got '?'";

        text[19] = *from;
        return bad(c, text);
    }
    switch (header(c, &n)) {
    case 0:
        return 0;
    case -1:
        return bad(c, "too big bulk count string");
    case 1:
        if (n >= 0 && (uint64_t)n <= KV_BULK_MAX) {
            r->bulk_len = n;
            return 1;
        }
    }
    return bad(c, "invalid bulk length");
}

static int multibulk(struct conn *c)
{
    struct resp_state *r = &c->resp;
    int rc;

    while (r->args_left > 0) {
        if (r->bulk_len < 0) {
            rc = bulk_header(c);
            if (rc <= 0) {
                return rc;
            }
        }
        if (c->in.len - c->in.pos - r->scan < (size_t)r->bulk_len + 2) {
            return 0;
        }
        if (!arg_room(c)) {
            return bad(c, "out of memory");
        }
        r->argv[r->argc].off = r->scan;
        r->argv[r->argc++].len = (size_t)r->bulk_len;
        r->scan += (size_t)r->bulk_len + 2;
        r->bulk_len = -1;
        r->args_left--;
    }
    return complete(c);
}

/* ---- inline commands ---- */

static int hex(char ch)
{
    if (ch >= '0' && ch <= '9') {
        return ch - '0';
    }
    ch = (char)(ch | 0x20);
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* One character of a double-quoted word at *p (before end), unescaped. */
static char unescape(const char **p, const char *end)
{
    const char *s = *p;
    char ch = *s++;

    if (ch == '\\' && s < end) {
        if (*s == 'x' && end - s >= 3 && hex(s[1]) >= 0 && hex(s[2]) >= 0) {
            ch = (char)(hex(s[1]) * 16 + hex(s[2]));
            s += 3;
        } else {
            static const char from[] = "nrtba", to[] = "\n\r\t\b\a";
            const char *at = memchr(from, *s, sizeof(from) - 1);

            ch = at ? to[at - from] : *s;
            s++;
        }
    }
    *p = s;
    return ch;
}

/* Reads the quoted part at *from (behind the quote), writes it at *to. false: no closing quote, or
 * no blank behind it. */
static bool quoted(char quote, const char **from, const char *end, char **to)
{
    while (*from < end) {
        if (**from == quote) {
            ++*from;
            return *from == end || isspace((unsigned char)**from);
        }
        if (quote == '"') {
            *(*to)++ = unescape(from, end);
        } else if (end - *from >= 2 && (*from)[0] == '\\' && (*from)[1] == '\'') {
            *(*to)++ = '\'';
            *from += 2;
        } else {
            *(*to)++ = *(*from)++;
        }
    }
    return false;
}

/* Splits a line into words, unquoting in place (a word never grows). */
static int split(struct conn *c, char *line, size_t len)
{
    struct resp_state *r = &c->resp;
    const char *from = line;
    const char *end = line + len;
    char *to;

    for (;;) {
        while (from < end && isspace((unsigned char)*from)) {
            from++;
        }
        if (from == end) {
            return 1;
        }
        if (!arg_room(c)) {
            return bad(c, "out of memory");
        }
        to = line + (from - line);
        r->argv[r->argc].off = (size_t)(to - (c->in.p + c->in.pos));
        while (from < end && !isspace((unsigned char)*from)) {
            if (*from == '"' || *from == '\'') {
                char quote = *from++;

                if (!quoted(quote, &from, end, &to)) {
                    return bad(c, "unbalanced quotes in request");
                }
            } else {
                *to++ = *from++;
            }
        }
        r->argv[r->argc].len = (size_t)(to - (c->in.p + c->in.pos)) - r->argv[r->argc].off;
        r->argc++;
    }
}

static int inline_command(struct conn *c)
{
    struct resp_state *r = &c->resp;
    char *line = c->in.p + c->in.pos;
    size_t have = c->in.len - c->in.pos;
    char *end = memchr(line + r->scan, '\n', have - r->scan);
    size_t len;

    if ((end ? (size_t)(end - line) : have) > c->srv->cfg.max_line) {
        atomic_fetch_add_explicit(&c->srv->count.over_line, 1, memory_order_relaxed);
        return bad(c, "too big inline request");
    }
    if (!end) {
        r->scan = have;
        return 0;
    }
    len = (size_t)(end - line);
    r->scan = len + 1;
    if (len > 0 && line[len - 1] == '\r') {
        len--;
    }
    return split(c, line, len) < 0 ? -1 : complete(c);
}

/* A length of 1..FAST_DIGITS digits and its CR at p; NULL for anything else. At least
 * FAST_DIGITS + 2 bytes are readable. */
#define FAST_DIGITS 6

static inline const char *fast_length(const char *p, size_t *v)
{
    size_t n = 0;
    unsigned d;

    for (int i = 0; i <= FAST_DIGITS; i++) {
        d = (unsigned char)p[i] - (unsigned)'0';
        if (d > 9) {
            *v = n;
            /* The general parser refuses leading zeros; leave them to it. */
            return i > 0 && p[i] == '\r' && (p[0] != '0' || i == 1) ? p + i + 2 : NULL;
        }
        n = n * 10 + d;
    }
    return NULL;
}

/* The usual case in one pass without saved state: a whole command of few, not huge arguments.
 * False: nothing has changed, the general parser decides. */
static bool fast_command(struct conn *c)
{
    struct resp_state *r = &c->resp;
    const char *from = c->in.p + c->in.pos;
    const char *p = from, *end = c->in.p + c->in.len;
    size_t argc, len;

    if (end - p < FAST_DIGITS + 3 || !(p = fast_length(p + 1, &argc)) || argc == 0 ||
        argc > r->argcap) {
        return false;
    }
    for (size_t i = 0; i < argc; i++) {
        /* The shortest argument is "$0" + two line ends: 6 bytes; a header needs FAST_DIGITS + 3. */
        if (end - p < FAST_DIGITS + 3 || *p != '$' || !(p = fast_length(p + 1, &len)) ||
            (size_t)(end - p) < len + 2) {
            return false;
        }
        r->argv[i].p = p;
        r->argv[i].len = len;
        p += len + 2;
    }
    r->argc = (unsigned)argc;
    r->scan = (size_t)(p - from);
    return true;
}

int resp_parse(struct conn *c)
{
    struct resp_state *r = &c->resp;
    int64_t n;

    if (r->args_left > 0) {
        return multibulk(c);
    }
    if (c->in.p[c->in.pos] != '*') {
        return inline_command(c);
    }
    if (r->argcap <= c->srv->cfg.max_args && fast_command(c)) {
        return 1;
    }
    switch (header(c, &n)) {
    case 0:
        return 0;
    case -1:
        return bad(c, "too big mbulk count string");
    case 1:
        if (n > INT32_MAX) {
            return bad(c, "invalid multibulk length");
        }
        if (n > (int64_t)c->srv->cfg.max_args) {
            atomic_fetch_add_explicit(&c->srv->count.over_args, 1, memory_order_relaxed);
            return bad(c, "invalid multibulk length");
        }
        if (n <= 0) {
            return 1; /* an empty command */
        }
        r->args_left = n;
        r->bulk_len = -1;
        return multibulk(c);
    }
    return bad(c, "invalid multibulk length");
}

void resp_next(struct conn *c)
{
    struct resp_state *r = &c->resp;

    c->in.pos += r->scan;
    r->scan = 0;
    r->argc = 0;
    r->args_left = 0;
    if (r->argcap > KV_ARGV_KEEP) {
        resp_argv_free(c);
    }
}

void resp_argv_free(struct conn *c)
{
    struct resp_state *r = &c->resp;

    if (r->argv != r->few) {
        free(r->argv);
        mem_release(&c->srv->store.mem, (r->argcap - KV_ARGV_INLINE) * sizeof(struct arg));
        r->argv = r->few;
        r->argcap = KV_ARGV_INLINE;
    }
}
