#include "core/kern/obs/out.h"

#include "core/base/string.h"

#define LINE_BYTES 512

void out_init(struct out *o, bool (*send)(void *arg, const char *data, size_t n), void *arg)
{
    o->send = send;
    o->arg = arg;
    o->failed = false;
    o->sent = 0;
    o->len = 0;
}

bool out_flush(struct out *o)
{
    if (o->len > 0 && !o->failed) {
        o->failed = !o->send(o->arg, o->buf, o->len);
        o->sent += o->failed ? 0 : o->len;
    }
    o->len = 0;
    return !o->failed;
}

void out_append(struct out *o, const char *s, size_t n)
{
    while (n > 0) {
        size_t part = MIN(n, sizeof(o->buf) - o->len);
        memcpy(o->buf + o->len, s, part);
        o->len += part;
        s += part;
        n -= part;
        if (o->len == sizeof(o->buf)) {
            out_flush(o);
        }
    }
}

void out_add(struct out *o, const char *fmt, ...)
{
    va_list args;
    if (sizeof(o->buf) - o->len < LINE_BYTES) {
        out_flush(o);
    }
    va_start(args, fmt);
    int n = str_vformat(o->buf + o->len, LINE_BYTES, fmt, args);
    va_end(args);
    o->len += MIN((size_t)n, (size_t)LINE_BYTES - 1);
}

void out_json(struct out *o, const char *s, size_t n)
{
    out_append(o, "\"", 1);
    for (size_t i = 0; i < n && s[i]; i++) {
        u8 c = (u8)s[i];
        if (c == '"' || c == '\\') {
            out_add(o, "\\%c", c);
        } else if (c < 0x20 || c >= 0x7f) {
            out_add(o, "\\u%04x", c);
        } else {
            out_append(o, s + i, 1);
        }
    }
    out_append(o, "\"", 1);
}
