/* SipHash of a counter under a boot-time key: unpredictable without the key, cheap enough for interrupt context. */
#include "net/random.h"

#include "arch/arch.h"
#include "net/siphash.h"

static u64 key[2];
static u64 counter;
static bool ready;

/* Hardware first, then what the firmware left, then the cycle counter: whatever there is goes into the key. */
static void make_key(void)
{
    const struct boot_info *boot = arch_boot_info();
    u64 seed[2] = { arch_tsc(), boot != NULL ? boot->boot_start_tsc : 0 };
    struct siphash s = siphash_start(seed);
    for (u32 i = 0; boot != NULL && i < ARRAY_SIZE(boot->entropy); i++) {
        siphash_word(&s, boot->entropy[i]);
    }
    for (u32 i = 0; i < 8; i++) {
        u64 word;
        siphash_word(&s, arch_random(&word) ? word : arch_tsc());
    }
    key[0] = siphash_finish(&s);
    siphash_word(&s, arch_tsc());
    key[1] = siphash_finish(&s);
    STORE_RELEASE(ready, true);
}

u64 net_random(void)
{
    if (!LOAD_ACQUIRE(ready)) {
        make_key(); /* the first call is net_init's, on one CPU */
    }
    struct siphash s = siphash_start(key);
    siphash_word(&s, __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED));
    siphash_word(&s, 8ull << 56);
    return siphash_finish(&s);
}
