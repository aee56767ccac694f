/* libFuzzer target: the Redis protocol. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/kv/fuzz_protocol.h"

#define DEPTH 8

static void die(const char *what, const char *p, size_t n)
{
    fprintf(stderr, "fuzz_resp: %s: %.*s\n", what, (int)(n < 200 ? n : 200), p);
    abort();
}

/* Length of one reply at p, or 0 if it is cut off; dies if it is none. */
static size_t reply_length(const char *p, size_t n, int depth)
{
    const char *end = n ? memchr(p, '\n', n) : NULL;
    size_t at, one;
    long count;

    if (!end) {
        return 0;
    }
    if (end == p || end[-1] != '\r' || depth > DEPTH) {
        die("line end", p, n);
    }
    at = (size_t)(end - p) + 1;
    if (strchr("+-", *p)) {
        return at;
    }
    if (*p == '_') {
        return at == 3 ? at : (die("null", p, n), 0);
    }
    if (!strchr(":$*%~=", *p)) {
        die("type", p, n);
    }
    count = strtol(p + 1, NULL, 10);
    if (*p == ':' || count < 0) {
        return at;
    }
    if (*p == '$' || *p == '=') {
        if (n - at < (size_t)count + 2) {
            return 0;
        }
        if (memcmp(p + at + count, "\r\n", 2) != 0) {
            die("bulk end", p, n);
        }
        return at + (size_t)count + 2;
    }
    for (long i = 0; i < (*p == '%' ? 2 * count : count); i++) {
        one = reply_length(p + at, n - at, depth + 1);
        if (one == 0) {
            return 0;
        }
        at += one;
    }
    return at;
}

static void check(const char *p, size_t n, int dropped)
{
    size_t at = 0, one;

    while (at < n) {
        one = reply_length(p + at, n - at, 0);
        if (one == 0) {
            if (!dropped) {
                die("cut off", p + at, n - at);
            }
            return;
        }
        at += one;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fuzz_protocol(&proto_resp, data, n, check);
    return 0;
}
