#include "core/base/string.h"

#include "core/base/errno.h"

bool str_copy(char *dst, const char *src, size_t n)
{
    size_t len = strlen(src);
    if (n == 0) {
        return false;
    }
    size_t fits = MIN(len, n - 1);
    memcpy(dst, src, fits);
    dst[fits] = '\0';
    return fits == len;
}

bool str_starts_with(const char *s, const char *prefix)
{
    for (; *prefix != '\0'; s++, prefix++) {
        if (*s != *prefix) {
            return false;
        }
    }
    return true;
}

/* Value of a digit in bases up to 16; 255 if it is none. */
static u32 digit_value(char c)
{
    if (c >= '0' && c <= '9') {
        return (u32)(c - '0');
    }
    if (c >= 'a' && c <= 'f') {
        return (u32)(c - 'a') + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return (u32)(c - 'A') + 10;
    }
    return 255;
}

int str_parse_u64(const char *s, size_t n, u64 *value)
{
    u32 base = 10;
    if (n > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
        base = 16;
        s += 2;
        n -= 2;
    }
    if (n == 0) {
        return -EINVAL;
    }
    u64 v = 0;
    bool overflow = false;
    for (size_t i = 0; i < n; i++) {
        u32 digit = digit_value(s[i]);
        if (digit >= base) {
            return -EINVAL;
        }
        overflow |= __builtin_mul_overflow(v, (u64)base, &v);
        overflow |= __builtin_add_overflow(v, (u64)digit, &v);
    }
    if (overflow) {
        return -ERANGE;
    }
    *value = v;
    return 0;
}
