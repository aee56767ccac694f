/* The ChaCha20 block function (RFC 8439, section 2.3). Pure. */
#include "core/base/string.h"
#include "core/kern/random.h"

static inline u32 rotl(u32 x, u32 n)
{
    return x << n | x >> (32 - n);
}

static inline void quarter(u32 *x, u32 a, u32 b, u32 c, u32 d)
{
    x[a] += x[b];
    x[d] = rotl(x[d] ^ x[a], 16);
    x[c] += x[d];
    x[b] = rotl(x[b] ^ x[c], 12);
    x[a] += x[b];
    x[d] = rotl(x[d] ^ x[a], 8);
    x[c] += x[d];
    x[b] = rotl(x[b] ^ x[c], 7);
}

void chacha20_block(const u32 key[8], u32 counter, const u32 nonce[3], u8 out[64])
{
    u32 start[16] = { 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 };
    u32 x[16];
    memcpy(start + 4, key, 32);
    start[12] = counter;
    memcpy(start + 13, nonce, 12);
    memcpy(x, start, sizeof(x));
    for (u32 round = 0; round < 20; round += 2) {
        quarter(x, 0, 4, 8, 12);
        quarter(x, 1, 5, 9, 13);
        quarter(x, 2, 6, 10, 14);
        quarter(x, 3, 7, 11, 15);
        quarter(x, 0, 5, 10, 15);
        quarter(x, 1, 6, 11, 12);
        quarter(x, 2, 7, 8, 13);
        quarter(x, 3, 4, 9, 14);
    }
    for (u32 i = 0; i < 16; i++) {
        x[i] += start[i];
    }
    memcpy(out, x, 64);
}
