#include "apps/kv/num.h"

#include <string.h>

size_t num_put_u64(char *to, uint64_t v)
{
    char tmp[NUM_MAX];
    size_t n = 0;
    unsigned small = (unsigned)v;

    /* Lengths and counts are short as a rule. */
    if (v < 10) {
        to[0] = (char)('0' + small);
        return 1;
    }
    if (v < 100) {
        to[0] = (char)('0' + small / 10);
        to[1] = (char)('0' + small % 10);
        return 2;
    }
    if (v < 1000) {
        to[0] = (char)('0' + small / 100);
        to[1] = (char)('0' + small / 10 % 10);
        to[2] = (char)('0' + small % 10);
        return 3;
    }
    do {
        tmp[NUM_MAX - ++n] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    memcpy(to, tmp + NUM_MAX - n, n);
    return n;
}

size_t num_put_i64(char *to, int64_t v)
{
    if (v >= 0) {
        return num_put_u64(to, (uint64_t)v);
    }
    *to = '-';
    return 1 + num_put_u64(to + 1, 0 - (uint64_t)v);
}

bool num_get_u64(const char *p, size_t len, uint64_t *v)
{
    uint64_t n = 0;

    if (len == 0) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        unsigned d = (unsigned char)p[i] - (unsigned)'0';

        if (d > 9 || n > (UINT64_MAX - d) / 10) {
            return false;
        }
        n = n * 10 + d;
    }
    *v = n;
    return true;
}

bool num_get_i64(const char *p, size_t len, int64_t *v)
{
    bool neg = len > 0 && *p == '-';
    uint64_t n;

    p += neg;
    len -= neg;
    if (len == 0 || len > NUM_MAX - 1 || (*p == '0' && (len > 1 || neg))) {
        return false;
    }
    if (!num_get_u64(p, len, &n) || n > (uint64_t)INT64_MAX + neg) {
        return false;
    }
    *v = neg ? (int64_t)(0 - n) : (int64_t)n;
    return true;
}
