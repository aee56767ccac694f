/* libFuzzer target: the memcached protocol, text and meta. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/kv/fuzz_protocol.h"

static void die(const char *what, const char *p, size_t n)
{
    fprintf(stderr, "fuzz_mc: %s: %.*s\n", what, (int)(n < 200 ? n : 200), p);
    abort();
}

/* The value announced by "VALUE key flags bytes" or "VA bytes": its bytes and line end. */
static size_t value_length(const char *p, const char *end)
{
    const char *number = p + 3;

    if (strncmp(p, "VALUE ", 6) == 0) {
        number = memchr(p + 6, ' ', (size_t)(end - p - 6));
        number = number ? memchr(number + 1, ' ', (size_t)(end - number - 1)) : NULL;
        if (!number) {
            die("VALUE", p, (size_t)(end - p));
        }
    }
    return strtoul(number, NULL, 10) + 2;
}

static void check(const char *p, size_t n, int dropped)
{
    size_t at = 0, more;

    while (at < n) {
        const char *end = memchr(p + at, '\n', n - at);

        if (!end) {
            if (!dropped) {
                die("cut off", p + at, n - at);
            }
            return;
        }
        if (end == p + at || end[-1] != '\r') {
            die("line end", p + at, n - at);
        }
        more = 0;
        if (strncmp(p + at, "VALUE ", 6) == 0 || strncmp(p + at, "VA ", 3) == 0) {
            more = value_length(p + at, end);
        }
        at = (size_t)(end + 1 - p);
        if (n - at < more) {
            if (!dropped) {
                die("value cut off", p, n);
            }
            return;
        }
        if (more && memcmp(p + at + more - 2, "\r\n", 2) != 0) {
            die("value end", p + at, n - at);
        }
        at += more;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    fuzz_protocol(&proto_mc, data, n, check);
    return 0;
}
