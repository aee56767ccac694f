/* Requests and replies of RESP2 and memcached text; see proto.h. */
#include "apps/load/proto.h"

#include <string.h>

/* Longest line that is not a value: beyond it the peer does not speak the protocol. */
#define LINE_LIMIT 1024

static char *put(char *to, const char *text, size_t bytes)
{
    memcpy(to, text, bytes);
    return to + bytes;
}
#define PUT(to, literal) put(to, literal, sizeof(literal) - 1)

static char *put_number(char *to, uint32_t value)
{
    char digits[10];
    int n = 0;

    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (n) {
        *to++ = digits[--n];
    }
    return to;
}

static char *put_key(char *to, uint64_t key)
{
    key_format(to, key);
    return to + LOAD_KEY_BYTES;
}

size_t proto_get(enum proto proto, char *to, uint64_t key)
{
    char *p = to;

    p = proto == PROTO_RESP ? PUT(p, "*2\r\n$3\r\nGET\r\n$16\r\n") : PUT(p, "get ");
    p = put_key(p, key);
    p = PUT(p, "\r\n");
    return (size_t)(p - to);
}

size_t proto_set(enum proto proto, char *to, uint64_t key, uint32_t size, uint64_t stamp)
{
    char *p = to;

    if (proto == PROTO_RESP) {
        p = PUT(p, "*3\r\n$3\r\nSET\r\n$16\r\n");
        p = put_key(p, key);
        p = PUT(p, "\r\n$");
    } else {
        p = PUT(p, "set ");
        p = put_key(p, key);
        p = PUT(p, " 0 0 ");
    }
    p = put_number(p, size);
    p = PUT(p, "\r\n");
    value_fill(p, size, key, stamp);
    p += size;
    p = PUT(p, "\r\n");
    return (size_t)(p - to);
}

/* Length of the line at `from` without its end; -1 when incomplete. */
static long line_length(const char *from, size_t bytes)
{
    const char *end = memchr(from, '\n', bytes);

    return !end ? -1 : end > from && end[-1] == '\r' ? end - from - 1 : end - from;
}

/* A number of up to 9 digits that takes up all of `bytes`; -1 otherwise. */
static long number(const char *from, long bytes)
{
    long value = 0;

    if (bytes < 1 || bytes > 9) {
        return -1;
    }
    for (long i = 0; i < bytes; i++) {
        if (from[i] < '0' || from[i] > '9') {
            return -1;
        }
        value = value * 10 + (from[i] - '0');
    }
    return value;
}

static bool line_is(const char *from, long line, const char *text)
{
    return line == (long)strlen(text) && memcmp(from, text, (size_t)line) == 0;
}

static bool line_begins(const char *from, long line, const char *text)
{
    return line >= (long)strlen(text) && memcmp(from, text, strlen(text)) == 0;
}

/* The value of `size` bytes at offset `at`, its "\r\n" and `tail`; length of the whole reply. */
static long take_value(const char *from, size_t bytes, long at, long size, const char *tail,
                       struct reply *reply)
{
    size_t tail_bytes = strlen(tail);
    size_t whole = (size_t)at + (size_t)size + tail_bytes;

    if (bytes < whole) {
        return 0;
    }
    if (memcmp(from + at + size, tail, tail_bytes) != 0) {
        return -1;
    }
    reply->kind = REPLY_VALUE;
    reply->value = from + at;
    reply->value_bytes = (size_t)size;
    return (long)whole;
}

static long resp_reply(bool is_get, const char *from, size_t bytes, long line, struct reply *reply)
{
    long size;

    if (from[0] == '-') {
        reply->kind = REPLY_ERROR;
        return line + 2;
    }
    if (!is_get) {
        reply->kind = REPLY_STORED;
        return line_is(from, line, "+OK") ? line + 2 : -1;
    }
    if (line_is(from, line, "$-1") || line_is(from, line, "_")) {
        reply->kind = REPLY_MISS;
        return line + 2;
    }
    size = from[0] == '$' ? number(from + 1, line - 1) : -1;
    return size < 0 ? -1 : take_value(from, bytes, line + 2, size, "\r\n", reply);
}

/* The last field of "VALUE key flags bytes". */
static long value_line_size(const char *from, long line)
{
    long space = line;

    while (space > 0 && from[space - 1] != ' ') {
        space--;
    }
    return number(from + space, line - space);
}

static long memcache_reply(bool is_get, const char *from, size_t bytes, long line,
                           struct reply *reply)
{
    long size;

    if (line_is(from, line, "ERROR") || line_begins(from, line, "SERVER_ERROR") ||
        line_begins(from, line, "CLIENT_ERROR")) {
        reply->kind = REPLY_ERROR;
        return line + 2;
    }
    if (!is_get) {
        reply->kind = REPLY_STORED;
        return line_is(from, line, "STORED") ? line + 2 : -1;
    }
    if (line_is(from, line, "END")) {
        reply->kind = REPLY_MISS;
        return line + 2;
    }
    size = line_begins(from, line, "VALUE ") ? value_line_size(from, line) : -1;
    return size < 0 ? -1 : take_value(from, bytes, line + 2, size, "\r\nEND\r\n", reply);
}

long proto_reply(enum proto proto, bool is_get, const char *from, size_t bytes, struct reply *reply)
{
    long line = bytes ? line_length(from, bytes) : -1;

    if (line < 0) {
        return bytes > LINE_LIMIT ? -1 : 0;
    }
    if (line > LINE_LIMIT || from[line] != '\r') {
        return -1;
    }
    return proto == PROTO_RESP ? resp_reply(is_get, from, bytes, line, reply)
                               : memcache_reply(is_get, from, bytes, line, reply);
}
