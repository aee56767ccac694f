#include "apps/kv/siphash.h"

#include <string.h>

static inline uint64_t rotl(uint64_t x, unsigned b)
{
    return (x << b) | (x >> (64 - b));
}

#define SIP_ROUND(a, b, c, d)                                                                      \
    do {                                                                                           \
        a += b;                                                                                    \
        c += d;                                                                                    \
        b = rotl(b, 13) ^ a;                                                                       \
        d = rotl(d, 16) ^ c;                                                                       \
        a = rotl(a, 32);                                                                           \
        c += b;                                                                                    \
        a += d;                                                                                    \
        b = rotl(b, 17) ^ c;                                                                       \
        d = rotl(d, 21) ^ a;                                                                       \
        c = rotl(c, 32);                                                                           \
    } while (0)

uint64_t siphash13(const void *data, size_t len, const uint64_t key[2])
{
    const unsigned char *p = data;
    const unsigned char *end = p + (len & ~(size_t)7);
    uint64_t v0 = key[0] ^ 0x736f6d6570736575ull;
    uint64_t v1 = key[1] ^ 0x646f72616e646f6dull;
    uint64_t v2 = key[0] ^ 0x6c7967656e657261ull;
    uint64_t v3 = key[1] ^ 0x7465646279746573ull;
    uint64_t m;

    for (; p != end; p += 8) {
        memcpy(&m, p, 8);
        v3 ^= m;
        SIP_ROUND(v0, v1, v2, v3);
        v0 ^= m;
    }
    m = (uint64_t)len << 56;
    for (size_t i = 0; i < (len & 7); i++) {
        m |= (uint64_t)p[i] << (8 * i);
    }
    v3 ^= m;
    SIP_ROUND(v0, v1, v2, v3);
    v0 ^= m;
    v2 ^= 0xff;
    SIP_ROUND(v0, v1, v2, v3);
    SIP_ROUND(v0, v1, v2, v3);
    SIP_ROUND(v0, v1, v2, v3);
    return v0 ^ v1 ^ v2 ^ v3;
}
