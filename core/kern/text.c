/* Growing text. */
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/text.h"
#include "core/kern/tunables.h"
#include "core/mm/mm.h"

#define TEXT_FIRST 1024u

static bool text_reserve(struct text *t, size_t extra)
{
    size_t want = t->len + extra + 1;
    if (want <= t->cap) {
        return true;
    }
    size_t cap = t->cap ? t->cap : TEXT_FIRST;
    while (cap < want) {
        cap *= 2;
    }
    char *data = t->failed || cap > TEXT_MAX ? NULL : kmalloc(cap);
    if (!data) {
        t->failed = true;
        return false;
    }
    if (t->len > 0) {
        memcpy(data, t->data, t->len);
    }
    data[t->len] = '\0';
    kfree(t->data);
    t->data = data;
    t->cap = cap;
    return true;
}

void text_append(struct text *t, const char *s, size_t n)
{
    if (text_reserve(t, n)) {
        memcpy(t->data + t->len, s, n);
        t->len += n;
        t->data[t->len] = '\0';
    }
}

void text_add(struct text *t, const char *fmt, ...)
{
    va_list args;
    if (!text_reserve(t, 0)) {
        return;
    }
    va_start(args, fmt);
    int n = str_vformat(t->data + t->len, t->cap - t->len, fmt, args);
    va_end(args);
    if ((size_t)n >= t->cap - t->len) {
        if (!text_reserve(t, (size_t)n)) {
            t->data[t->len] = '\0';
            return;
        }
        va_start(args, fmt);
        n = str_vformat(t->data + t->len, t->cap - t->len, fmt, args);
        va_end(args);
    }
    t->len += (size_t)n;
}

void text_json(struct text *t, const char *s)
{
    text_append(t, "\"", 1);
    for (; *s; s++) {
        u8 c = (u8)*s;
        if (c == '"' || c == '\\') {
            text_add(t, "\\%c", c);
        } else if (c < 0x20 || c >= 0x7f) {
            text_add(t, "\\u%04x", c);
        } else {
            text_append(t, s, 1);
        }
    }
    text_append(t, "\"", 1);
}

void text_free(struct text *t)
{
    kfree(t->data);
    text_init(t);
}
