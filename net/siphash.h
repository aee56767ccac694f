/* SipHash-2-4 (Aumasson and Bernstein, 2012) over one 64-bit word: a keyed hash that peers cannot predict.  Shared by the
 * kernel (ports, secrets) and the lwIP image (sequence numbers): freestanding, inline. */
#ifndef WEIR_NET_SIPHASH_H
#define WEIR_NET_SIPHASH_H

#include <stdint.h>

struct siphash {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t siphash_rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static inline void siphash_round(struct siphash *s)
{
    s->v0 += s->v1;
    s->v1 = siphash_rotate(s->v1, 13) ^ s->v0;
    s->v0 = siphash_rotate(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = siphash_rotate(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = siphash_rotate(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = siphash_rotate(s->v1, 17) ^ s->v2;
    s->v2 = siphash_rotate(s->v2, 32);
}

static inline struct siphash siphash_start(const uint64_t key[2])
{
    return (struct siphash){ key[0] ^ 0x736f6d6570736575ull, key[1] ^ 0x646f72616e646f6dull,
                             key[0] ^ 0x6c7967656e657261ull, key[1] ^ 0x7465646279746573ull };
}

/* One word of the message.  The last one carries the message's length in its highest byte. */
static inline void siphash_word(struct siphash *s, uint64_t word)
{
    s->v3 ^= word;
    siphash_round(s);
    siphash_round(s);
    s->v0 ^= word;
}

static inline uint64_t siphash_finish(struct siphash *s)
{
    s->v2 ^= 0xff;
    for (int i = 0; i < 4; i++) {
        siphash_round(s);
    }
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

#endif
