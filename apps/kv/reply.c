#include "apps/kv/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "apps/kv/num.h"
#include "apps/kv/server.h"

void reply_raw(struct conn *c, const char *p, size_t n)
{
    char *o = conn_out(c, n);

    if (o) {
        memcpy(o, p, n);
        c->out.len += n;
    }
}

/* "<type><number>\r\n" */
static void head(struct conn *c, char type, int64_t v)
{
    char *o = conn_out(c, NUM_MAX + 3);
    char *at = o;

    if (!o) {
        return;
    }
    *at++ = type;
    at += num_put_i64(at, v);
    *at++ = '\r';
    *at++ = '\n';
    c->out.len += (size_t)(at - o);
}

void reply_int(struct conn *c, int64_t v)
{
    head(c, ':', v);
}

void reply_bulk(struct conn *c, const void *p, size_t n)
{
    char *o = conn_out(c, n + NUM_MAX + 5);
    char *at = o;

    if (!o) {
        return;
    }
    *at++ = '$';
    at += num_put_u64(at, n);
    *at++ = '\r';
    *at++ = '\n';
    memcpy(at, p, n);
    at += n;
    *at++ = '\r';
    *at++ = '\n';
    c->out.len += (size_t)(at - o);
}

void reply_bulk_str(struct conn *c, const char *s)
{
    reply_bulk(c, s, strlen(s));
}

void reply_bulk_i64(struct conn *c, int64_t v)
{
    char tmp[NUM_MAX];

    reply_bulk(c, tmp, num_put_i64(tmp, v));
}

void reply_status(struct conn *c, const char *s)
{
    REPLY(c, "+");
    reply_raw(c, s, strlen(s));
    REPLY(c, "\r\n");
}

void reply_null(struct conn *c)
{
    if (c->resp.ver == 3) {
        REPLY(c, "_\r\n");
    } else {
        REPLY(c, "$-1\r\n");
    }
}

void reply_null_array(struct conn *c)
{
    if (c->resp.ver == 3) {
        REPLY(c, "_\r\n");
    } else {
        REPLY(c, "*-1\r\n");
    }
}

void reply_array(struct conn *c, uint64_t n)
{
    head(c, '*', (int64_t)n);
}

void reply_map(struct conn *c, uint64_t n)
{
    if (c->resp.ver == 3) {
        head(c, '%', (int64_t)n);
    } else {
        head(c, '*', (int64_t)(2 * n));
    }
}

void reply_set(struct conn *c, uint64_t n)
{
    head(c, c->resp.ver == 3 ? '~' : '*', (int64_t)n);
}

void reply_verbatim(struct conn *c, const char *p, size_t n)
{
    if (c->resp.ver != 3) {
        reply_bulk(c, p, n);
        return;
    }
    head(c, '=', (int64_t)n + 4);
    REPLY(c, "txt:");
    reply_raw(c, p, n);
    REPLY(c, "\r\n");
}

void reply_error(struct conn *c, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    int n;
    size_t len;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    len = n < 0 ? 0 : ((size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
    for (size_t i = 0; i < len; i++) {
        if (line[i] == '\r' || line[i] == '\n') {
            line[i] = ' ';
        }
    }
    REPLY(c, "-");
    reply_raw(c, line, len);
    REPLY(c, "\r\n");
    atomic_fetch_add_explicit(&c->srv->count.cmd_errors, 1, memory_order_relaxed);
}

/* Room for the longest header is left, filled in afterwards, and closed up. */
#define HOLE (NUM_MAX + 12)

static struct reply_hole hole_open(struct conn *c)
{
    struct reply_hole hole = {c->out.len};

    if (conn_out(c, HOLE)) {
        c->out.len += HOLE;
    }
    return hole;
}

static void hole_close(struct conn *c, struct reply_hole hole, const char *head_text, size_t len)
{
    char *at = c->out.p + hole.at;

    memcpy(at, head_text, len);
    memmove(at + len, at + HOLE, c->out.len - hole.at - HOLE);
    c->out.len -= HOLE - len;
}

struct reply_hole reply_array_open(struct conn *c)
{
    return hole_open(c);
}

void reply_array_close(struct conn *c, struct reply_hole hole, uint64_t n)
{
    char h[HOLE];

    if (!c->dropping) {
        hole_close(c, hole, h, (size_t)snprintf(h, sizeof(h), "*%llu\r\n", (unsigned long long)n));
    }
}

struct reply_hole reply_text_open(struct conn *c)
{
    return hole_open(c);
}

void reply_text_close(struct conn *c, struct reply_hole hole, bool verbatim)
{
    char h[HOLE];
    size_t n;

    if (c->dropping) {
        return;
    }
    n = c->out.len - hole.at - HOLE;
    if (verbatim && c->resp.ver == 3) {
        hole_close(c, hole, h, (size_t)snprintf(h, sizeof(h), "=%zu\r\ntxt:", n + 4));
    } else {
        hole_close(c, hole, h, (size_t)snprintf(h, sizeof(h), "$%zu\r\n", n));
    }
    REPLY(c, "\r\n");
}

void reply_printf(struct conn *c, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n > 0) {
        reply_raw(c, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
    }
}

void reply_syntax(struct conn *c)
{
    reply_error(c, "ERR syntax error");
}

void reply_not_int(struct conn *c)
{
    reply_error(c, "ERR value is not an integer or out of range");
}

void reply_oom(struct conn *c)
{
    reply_error(c, "OOM command not allowed when used memory > 'maxmemory'.");
}

void reply_arity(struct conn *c, const char *name)
{
    reply_error(c, "ERR wrong number of arguments for '%s' command", name);
}
