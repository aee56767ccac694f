/* Memory primitives that the compiler also calls on its own.
 *
 * Small sizes go through overlapping word accesses (two loads and two stores cover any length of
 * 8..16, say), because most copies of the network path are headers and short values; large ones
 * through the string instructions, which every CPU of the last ten years moves by cache lines. The
 * empty asm statements keep compilers from turning the loops back into calls of the very function
 * that they implement. */
#include "core/base/string.h"
#include "core/base/types.h"

/* From this size on, in bytes, string instructions win over the word loop (their start-up costs
 * about 30 cycles). */
#define STRING_INSN_MIN 256

#define KEEP_LOOP() __asm__ volatile("")

typedef u64 __attribute__((may_alias, aligned(1))) word64;
typedef u32 __attribute__((may_alias, aligned(1))) word32;

static inline u64 get64(const u8 *p)
{
    return *(const word64 *)p;
}

static inline void put64(u8 *p, u64 v)
{
    *(word64 *)p = v;
}

static inline u32 get32(const u8 *p)
{
    return *(const word32 *)p;
}

static inline void put32(u8 *p, u32 v)
{
    *(word32 *)p = v;
}

/* Up to 16 bytes; reads everything before it writes, so overlap does not matter. */
static inline void copy_small(u8 *d, const u8 *s, size_t n)
{
    if (n >= 8) {
        u64 head = get64(s), tail = get64(s + n - 8);
        put64(d, head);
        put64(d + n - 8, tail);
    } else if (n >= 4) {
        u32 head = get32(s), tail = get32(s + n - 4);
        put32(d, head);
        put32(d + n - 4, tail);
    } else if (n > 0) {
        u8 first = s[0], middle = s[n / 2], last = s[n - 1];
        d[0] = first;
        d[n / 2] = middle;
        d[n - 1] = last;
    }
}

static inline void copy_string_insn(u8 *d, const u8 *s, size_t n)
{
#if defined(__x86_64__)
    u64 tail = get64(s + n - 8);
    u8 *end = d + n;
    size_t words = n / 8;
    __asm__ volatile("rep movsq" : "+D"(d), "+S"(s), "+c"(words) : : "memory");
    put64(end - 8, tail);
#else
    for (size_t i = 0; i < n; i++) {
        KEEP_LOOP();
        d[i] = s[i];
    }
#endif
}

void *memcpy(void *restrict dst, const void *restrict src, size_t n)
{
    u8 *d = dst;
    const u8 *s = src;
    if (n <= 16) {
        copy_small(d, s, n);
        return dst;
    }
    if (n >= STRING_INSN_MIN) {
        copy_string_insn(d, s, n);
        return dst;
    }
    u64 tail0 = get64(s + n - 16), tail1 = get64(s + n - 8);
    u8 *end = d + n;
    for (; n > 16; n -= 16, d += 16, s += 16) {
        KEEP_LOOP();
        u64 a = get64(s), b = get64(s + 8);
        put64(d, a);
        put64(d + 8, b);
    }
    put64(end - 16, tail0);
    put64(end - 8, tail1);
    return dst;
}

void *memmove(void *dst, const void *src, size_t n)
{
    u8 *d = dst;
    const u8 *s = src;
    if (n <= 16) {
        copy_small(d, s, n);
    } else if ((u64)(uintptr_t)d - (u64)(uintptr_t)s >= n) {
        /* No overlap, or the destination lies below the source: forwards is safe word by word. */
        size_t i = 0;
        for (; i + 8 <= n; i += 8) {
            KEEP_LOOP();
            put64(d + i, get64(s + i));
        }
        for (; i < n; i++) {
            KEEP_LOOP();
            d[i] = s[i];
        }
    } else {
        for (; n >= 8; n -= 8) {
            KEEP_LOOP();
            put64(d + n - 8, get64(s + n - 8));
        }
        for (; n > 0; n--) {
            KEEP_LOOP();
            d[n - 1] = s[n - 1];
        }
    }
    return dst;
}

void *memset(void *dst, int c, size_t n)
{
    u8 *d = dst;
    u64 pattern = (u8)c * 0x0101010101010101ull;
    if (n < 8) {
        for (size_t i = 0; i < n; i++) {
            KEEP_LOOP();
            d[i] = (u8)c;
        }
        return dst;
    }
    u8 *end = d + n;
#if defined(__x86_64__)
    if (n >= STRING_INSN_MIN) {
        size_t words = n / 8;
        __asm__ volatile("rep stosq" : "+D"(d), "+c"(words) : "a"(pattern) : "memory");
        put64(end - 8, pattern);
        return dst;
    }
#endif
    for (; n > 8; n -= 8, d += 8) {
        KEEP_LOOP();
        put64(d, pattern);
    }
    put64(end - 8, pattern);
    return dst;
}

int memcmp(const void *a, const void *b, size_t n)
{
    const u8 *x = a, *y = b;
    for (; n >= 8; n -= 8, x += 8, y += 8) {
        KEEP_LOOP();
        if (get64(x) != get64(y)) {
            break;
        }
    }
    if (n > 8) {
        n = 8; /* the difference lies in the next word */
    }
    for (size_t i = 0; i < n; i++) {
        KEEP_LOOP();
        if (x[i] != y[i]) {
            return x[i] - y[i];
        }
    }
    return 0;
}

void *memchr(const void *s, int c, size_t n)
{
    const u8 *p = s;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == (u8)c) {
            return (void *)(uintptr_t)(p + i);
        }
    }
    return NULL;
}

size_t strlen(const char *s)
{
    size_t n = 0;
    while (s[n] != '\0') {
        KEEP_LOOP();
        n++;
    }
    return n;
}

size_t strnlen(const char *s, size_t max)
{
    size_t n = 0;
    while (n < max && s[n] != '\0') {
        n++;
    }
    return n;
}

int strcmp(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return (u8)*a - (u8)*b;
}

int strncmp(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (a[i] != b[i] || a[i] == '\0') {
            return (u8)a[i] - (u8)b[i];
        }
    }
    return 0;
}

char *strchr(const char *s, int c)
{
    for (;; s++) {
        if (*s == (char)c) {
            return (char *)(uintptr_t)s;
        }
        if (*s == '\0') {
            return NULL;
        }
    }
}
