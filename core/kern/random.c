/* Generator: ChaCha20 with fast key erasure: each request first replaces the key by a part of the stream, so that what was
 * given out cannot be worked out later. */
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/spinlock.h"
#include "core/base/string.h"
#include "core/kern/random.h"

#define BLOCK 64u
#define KEY_BYTES 32u

static struct lock_class random_class = { .name = "random", .rank = RANK_STATS };
static struct spinlock random_lock = SPINLOCK_INIT(&random_class);
static u32 key[8];

void random_bytes(void *out, size_t n)
{
    static const u32 nonce[3];
    u32 stream_key[8];
    u8 block[BLOCK];
    spin_lock(&random_lock);
    chacha20_block(key, 0, nonce, block);
    memcpy(key, block, KEY_BYTES);
    spin_unlock(&random_lock);
    memcpy(stream_key, block + KEY_BYTES, KEY_BYTES);
    for (u32 counter = 1; n > 0; counter++) {
        size_t part = MIN(n, (size_t)BLOCK);
        chacha20_block(stream_key, counter, nonce, block);
        memcpy(out, block, part);
        out = (u8 *)out + part;
        n -= part;
    }
}

void random_init(void)
{
    const struct boot_info *boot = arch_boot_info();
    u64 words[4] = { 0 };
    bool good = false;
    for (u32 i = 0; i < ARRAY_SIZE(boot->entropy); i++) {
        words[i % 4] ^= mix64(boot->entropy[i] + i);
        good |= boot->entropy[i] != 0;
    }
    for (u32 i = 0; i < 8; i++) {
        u64 r;
        if (arch_random(&r)) {
            words[i % 4] ^= r;
            good = true;
        }
        words[i % 4] ^= mix64(arch_tsc() + ((u64)i << 56));
    }
    words[0] ^= mix64(arch_wall_base_ns());
    memcpy(key, words, sizeof(key));
    if (!good) {
        log_warn("random: neither the CPU nor the firmware gives entropy: numbers are guessable");
    }
}
