/* One key with its value, as stored. Fields are protected by the lock of the item's shard. */
#ifndef KV_ITEM_H
#define KV_ITEM_H

#include <stddef.h>
#include <stdint.h>

#define ITEM_FETCHED 1u /* read since it was stored (memcached meta h flag) */
#define ITEM_STALE   2u /* invalidated by meta delete I; kept for readers */
#define ITEM_WON     4u /* a client has been told to recache it */

struct item {
    struct item *next;  /* chain of the bucket */
    uint32_t hash;      /* low 32 bits of the key's hash: shard and bucket come from it */
    uint32_t klen;      /* bytes */
    uint32_t vlen;      /* bytes */
    uint32_t flags;     /* client flags of memcached */
    uint64_t expire_ms; /* Unix time in ms; 0 = never */
    uint64_t cas;       /* unique per change within the shard, never 0 */
    uint32_t access_ms; /* low 32 bits of the time of the last access */
    uint8_t bits;       /* ITEM_* */
    uint8_t freq;       /* logarithmic access counter (LFU) */
    uint16_t freq_min;  /* minute of its last decay */
    char data[];        /* key, then value */
};

static inline char *item_key(struct item *it)
{
    return it->data;
}

static inline char *item_value(struct item *it)
{
    return it->data + it->klen;
}

/* Milliseconds since the last access. Batches carry slightly different times, so an access may lie
 * a little ahead of now_ms: the top of the 32-bit range (2^16 ms of 49 days) means "just now". */
static inline uint32_t item_idle_ms(const struct item *it, uint64_t now_ms)
{
    uint32_t idle = (uint32_t)now_ms - it->access_ms;

    return idle >= 0xffff0000u ? 0 : idle;
}

static inline size_t item_size(size_t klen, size_t vlen)
{
    return offsetof(struct item, data) + klen + vlen;
}

#endif
