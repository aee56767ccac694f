/* The store: shards by hash of the key, one memory limit, one eviction policy.
 *
 * Any thread. A caller makes a `struct op` per batch (it carries the time), a `struct key` per key,
 * locks the key's shard by op_lock, works on it by the functions of shard.h, and unlocks. Several
 * keys that must change together are locked by op_lock_set; op_lock then does nothing. */
#ifndef KV_STORE_H
#define KV_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "apps/kv/mem.h"
#include "apps/kv/shard.h"
#include "apps/kv/siphash.h"

enum evict_policy {
    EVICT_NONE,
    EVICT_ALL_LRU,
    EVICT_VOLATILE_LRU,
    EVICT_ALL_LFU,
    EVICT_VOLATILE_LFU,
    EVICT_POLICIES
};

struct store {
    struct shard *shards;
    unsigned nshards;
    unsigned shift; /* log2 of nshards */
    uint64_t secret[2];
    struct mem mem;
    _Atomic int policy;         /* enum evict_policy */
    _Atomic size_t credit_step; /* bytes a shard takes from the limit at once */
    /* Told when a shard gets its first item with an expiry time, and when memory waits for
     * reclaim. May be NULL. Called under a shard lock: must not block. */
    void (*wake_maint)(void *ctx);
    void *wake_ctx;
    struct dead_map *_Atomic dead; /* bucket arrays to unmap outside the locks */
    _Atomic uint64_t flush_at_ms;  /* delayed flush_all; 0 = none */
};

struct store_config {
    unsigned nshards; /* power of two, 1..KV_SHARDS_MAX */
    size_t max_memory;
    enum evict_policy policy;
    bool stop_the_world;
    bool lock_stats;
    uint64_t secret[2]; /* key of the hash */
};

/* 0, or -1 without memory. */
int store_init(struct store *st, const struct store_config *cfg);
/* No other thread may use the store. */
void store_destroy(struct store *st);

void store_set_limit(struct store *st, size_t bytes);
/* Takes n from the limit after taking back the credit of shards whose lock is free. Only tries
 * locks: may be called with some held (theirs is left alone). */
bool store_gather(struct store *st, size_t n);

#define SET_WORDS (KV_SHARDS_MAX / 64)

struct op {
    struct store *st;
    uint64_t now_ms;
    bool locked; /* the shards of the set below are held */
    uint64_t set[SET_WORDS];
};

static inline void op_begin(struct op *op, struct store *st, uint64_t now_ms)
{
    op->st = st;
    op->now_ms = now_ms;
    op->locked = false;
}

static inline struct key key_make(const struct store *st, const void *p, size_t len)
{
    struct key k;

    k.p = p;
    k.len = (uint32_t)len;
    k.hash = (uint32_t)siphash13(p, len, st->secret);
    k.shard = &st->shards[k.hash & (st->nshards - 1)];
    return k;
}

static inline struct shard *op_lock(const struct op *op, const struct key *k)
{
    if (!op->locked) {
        shard_lock(k->shard);
    }
    return k->shard;
}

static inline void op_unlock(const struct op *op, const struct key *k)
{
    if (!op->locked) {
        shard_unlock(k->shard);
    }
}

/* The same for a shard by index, for commands over the whole store. */
static inline struct shard *op_lock_shard(const struct op *op, unsigned i)
{
    if (!op->locked) {
        shard_lock(&op->st->shards[i]);
    }
    return &op->st->shards[i];
}

static inline void op_unlock_shard(const struct op *op, unsigned i)
{
    if (!op->locked) {
        shard_unlock(&op->st->shards[i]);
    }
}

/* Lock sets: clear, add, lock in ascending order, unlock. Nested use (locked already) is a no-op,
 * reported by op_lock_set returning false. */
void op_set_clear(struct op *op);
void op_set_add(struct op *op, const struct key *k);
void op_set_all(struct op *op);
bool op_lock_set(struct op *op);
void op_unlock_set(struct op *op);
/* The set is locked: evicts until `bytes` would fit under the limit; false if they cannot. */
bool op_secure(const struct op *op, size_t bytes);

/* Sums over the shards; each shard is locked in turn, so the result is no snapshot. */
struct store_totals {
    size_t items, nvolatile, item_bytes, table_bytes, arena_used, arena_reserved, credit;
    size_t rehashing; /* shards with a rehash under way */
    uint64_t rehashes;
    uint64_t stat[ST_COUNT];
};
void store_totals(const struct op *op, struct store_totals *t);
size_t store_count(const struct op *op);
void store_flush(const struct op *op);
void store_reset_stats(const struct op *op);

/* One scan step over the whole store; next cursor, 0 at the end. fn is called under the lock of
 * the item's shard; it gets live items only. */
typedef void (*store_fn)(void *ctx, struct shard *s, struct item *it);
uint64_t store_scan(const struct op *op, uint64_t cursor, store_fn fn, void *ctx);
/* Every live item, shard after shard. */
void store_each(const struct op *op, store_fn fn, void *ctx);
/* Calls fn for one live item chosen at random; false when the store is empty. */
bool store_random(const struct op *op, store_fn fn, void *ctx);

/* Memory accounted: what is really used, credits excluded. */
size_t store_used_memory(const struct op *op);

/* expire.c: one period of active expiry and idle rehash over all shards. Returns true while there
 * is reason to come again (items with an expiry time, or a rehash under way). */
bool store_maintain(struct store *st, uint64_t now_ms);
/* Unmaps bucket arrays that rehashes left behind. */
void store_reclaim(struct store *st);

#endif
