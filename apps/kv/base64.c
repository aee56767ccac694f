#include "apps/kv/base64.h"

#include <stdint.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_encode(const void *data, size_t n, char *to)
{
    const unsigned char *p = data;
    size_t len = 0;

    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16;

        v |= i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0;
        v |= i + 2 < n ? p[i + 2] : 0;
        to[len++] = digits[v >> 18];
        to[len++] = digits[(v >> 12) & 63];
        to[len++] = i + 1 < n ? digits[(v >> 6) & 63] : '=';
        to[len++] = i + 2 < n ? digits[v & 63] : '=';
    }
    return len;
}

static int value_of(char ch)
{
    if (ch >= 'A' && ch <= 'Z') {
        return ch - 'A';
    }
    if (ch >= 'a' && ch <= 'z') {
        return ch - 'a' + 26;
    }
    if (ch >= '0' && ch <= '9') {
        return ch - '0' + 52;
    }
    return ch == '+' ? 62 : (ch == '/' ? 63 : -1);
}

long base64_decode(const char *text, size_t n, void *to)
{
    unsigned char *o = to;
    long len = 0;

    if (n % 4) {
        return -1;
    }
    for (size_t i = 0; i < n; i += 4) {
        int pad =
            i + 4 == n ? (text[n - 1] == '=') + (text[n - 1] == '=' && text[n - 2] == '=') : 0;
        uint32_t v = 0;

        for (int j = 0; j < 4; j++) {
            int d = j >= 4 - pad ? 0 : value_of(text[i + (size_t)j]);

            if (d < 0) {
                return -1;
            }
            v = v << 6 | (uint32_t)d;
        }
        /* Bits that the padding cuts off must be zero, so that a key has one encoding only. */
        if ((pad == 1 && (v & 0xff)) || (pad == 2 && (v & 0xffff))) {
            return -1;
        }
        for (int j = 0; j < 3 - pad; j++) {
            o[len++] = (unsigned char)(v >> (16 - 8 * j));
        }
    }
    return len;
}
