/* The few C library functions that lwIP and the compiler call: the image imports nothing.
 *
 * Copies go by 8 bytes: packets are short, and `rep movsb` costs an emulated CPU one step per byte. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t __attribute__((may_alias, aligned(1))) word;

void *memcpy(void *restrict dst, const void *restrict src, size_t n)
{
    uint8_t *d = dst;
    const uint8_t *s = src;
    for (; n >= sizeof(word); n -= sizeof(word), d += sizeof(word), s += sizeof(word)) {
        *(word *)d = *(const word *)s;
    }
    for (; n > 0; n--) {
        *d++ = *s++;
    }
    return dst;
}

void *memmove(void *dst, const void *src, size_t n)
{
    uint8_t *d = dst;
    const uint8_t *s = src;
    if (d <= s || d >= s + n) {
        for (; n >= sizeof(word); n -= sizeof(word), d += sizeof(word), s += sizeof(word)) {
            *(word *)d = *(const word *)s;
        }
        for (; n > 0; n--) {
            *d++ = *s++;
        }
    } else {
        while (n > 0) {
            n--;
            d[n] = s[n];
        }
    }
    return dst;
}

void *memset(void *dst, int c, size_t n)
{
    uint8_t *d = dst;
    uint64_t all = (uint8_t)c * 0x0101010101010101ull;
    for (; n >= sizeof(word); n -= sizeof(word), d += sizeof(word)) {
        *(word *)d = all;
    }
    for (; n > 0; n--) {
        *d++ = (uint8_t)c;
    }
    return dst;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const uint8_t *x = a, *y = b;
    for (size_t i = 0; i < n; i++) {
        if (x[i] != y[i]) {
            return x[i] < y[i] ? -1 : 1;
        }
    }
    return 0;
}

size_t strlen(const char *s)
{
    size_t n = 0;
    while (s[n] != '\0') {
        n++;
    }
    return n;
}

int strncmp(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (a[i] != b[i] || a[i] == '\0') {
            return (unsigned char)a[i] - (unsigned char)b[i];
        }
    }
    return 0;
}

int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, SIZE_MAX);
}

char *strncpy(char *restrict dst, const char *restrict src, size_t n)
{
    size_t i = 0;
    for (; i < n && src[i] != '\0'; i++) {
        dst[i] = src[i];
    }
    for (; i < n; i++) {
        dst[i] = '\0';
    }
    return dst;
}

int atoi(const char *s)
{
    int value = 0;
    while (*s >= '0' && *s <= '9') {
        value = value * 10 + (*s++ - '0');
    }
    return value;
}
