/* One shard of the store: a table, an arena, the memory credit, the watches and the counters,
 * under one mutex.
 *
 * Lock order: shard locks in ascending index (op_lock_set), then the page heap's lock. Eviction
 * may try (never wait for) the lock of another shard. Nothing blocks under a shard lock except the
 * system's own mmap. */
#ifndef KV_SHARD_H
#define KV_SHARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "apps/kv/arena.h"
#include "apps/kv/item.h"
#include "apps/kv/lockstat.h"
#include "apps/kv/table.h"
#include "apps/kv/tunables.h"

struct store;

enum shard_stat {
    ST_GET_HITS,
    ST_GET_MISSES,
    ST_GET_EXPIRED, /* misses that found an expired item */
    ST_SETS,
    ST_DELETE_HITS,
    ST_DELETE_MISSES,
    ST_INCR_HITS,
    ST_INCR_MISSES,
    ST_DECR_HITS,
    ST_DECR_MISSES,
    ST_CAS_HITS,
    ST_CAS_BADVAL,
    ST_CAS_MISSES,
    ST_TOUCH_HITS,
    ST_TOUCH_MISSES,
    ST_TOTAL_ITEMS,
    ST_EXPIRED,
    ST_EVICTED,
    ST_EVICTED_SOFT, /* of those, above the soft level */
    ST_OOM, /* stores refused for want of memory */
    ST_COUNT
};

/* A key that a connection watches. Lives in the connection; linked and flagged under the lock. */
struct watch {
    struct watch *next, **link; /* in the shard */
    struct watch *next_own;     /* of the connection */
    struct shard *shard;
    char *key;
    uint32_t klen;
    uint32_t hash;
    bool dirty;
};

struct shard {
    pthread_mutex_t lock;
    struct lockstat *ls; /* NULL unless KV_LOCK_STATS; constant */
    struct store *store; /* constant */
    /* under lock */
    size_t credit; /* bytes taken from the limit and not used */
    struct table table;
    struct watch *watches;
    const struct item *pin[2]; /* not to be evicted */
    bool force;                /* charges succeed even over the limit (the room has been secured) */
    uint64_t cas;
    size_t nvolatile;       /* items with an expiry time */
    size_t item_bytes;      /* blocks of items */
    uint64_t scan_cursor;   /* of the active expiry */
    uint64_t sample_cursor; /* of eviction */
    uint64_t stat[ST_COUNT];
    struct arena arena;
} __attribute__((aligned(128)));

struct key {
    const char *p;
    uint32_t len;
    uint32_t hash;
    struct shard *shard;
};

static inline void shard_lock(struct shard *s)
{
    if (__builtin_expect(s->ls == NULL, 1)) {
        pthread_mutex_lock(&s->lock);
    } else {
        lockstat_lock(s->ls, &s->lock);
    }
}

static inline void shard_unlock(struct shard *s)
{
    if (__builtin_expect(s->ls == NULL, 1)) {
        pthread_mutex_unlock(&s->lock);
    } else {
        lockstat_unlock(s->ls, &s->lock);
    }
}

static inline bool shard_trylock(struct shard *s)
{
    return s->ls == NULL ? pthread_mutex_trylock(&s->lock) == 0 : lockstat_trylock(s->ls, &s->lock);
}

/* 0, or -1 without memory. */
int shard_init(struct shard *s, struct store *st, unsigned shift, bool stop_the_world);
void shard_destroy(struct shard *s);

/* ---- all below: the shard's lock is held; now_ms is Unix time in ms ---- */

/* The live item, or NULL; removes an expired one. */
struct item *shard_find(struct shard *s, const struct key *k, uint64_t now_ms);

/* Notes an access for LRU/LFU. */
void shard_touch(struct shard *s, struct item *it, uint64_t now_ms);

/* The key's item with room for vlen bytes of value. `old` is what shard_find returned. The new
 * item takes over flags, expiry and access data of `old` (or 0), and with `keep` the leading value
 * bytes; bits are cleared, cas is new, watchers are told. NULL: over the memory limit and nothing
 * could be evicted; `old` is untouched then. May move the item: `old` is invalid after success. */
struct item *shard_put(struct shard *s, const struct key *k, struct item *old, size_t vlen,
                       bool keep, uint64_t now_ms);

void shard_delete(struct shard *s, struct item *it);
/* For table_scan callbacks: as shard_delete, without moving buckets. */
void shard_delete_in_scan(struct shard *s, struct item *it);
void shard_set_expire(struct shard *s, struct item *it, uint64_t expire_ms);
/* A change that does not go through shard_put: new cas, watchers told. */
void shard_changed(struct shard *s, struct item *it);
/* Removes everything; `flushed` watchers of existing keys are told. */
void shard_flush(struct shard *s);

/* Memory credit. shard_charge: false when the limit refuses. */
bool shard_charge_slow(struct shard *s, size_t n);
void shard_uncharge(struct shard *s, size_t n);
/* Gives the unused credit back to the limit. */
void shard_release_credit(struct shard *s);

static inline bool shard_charge(struct shard *s, size_t n)
{
    if (s->credit >= n) {
        s->credit -= n;
        return true;
    }
    return shard_charge_slow(s, n);
}

/* evict.c: removes one item, from this shard or another; false when there is none to remove. */
bool shard_evict(struct shard *s, uint64_t now_ms);

/* watch.c */
void shard_watch(struct shard *s, struct watch *w);
void shard_unwatch(struct watch *w);
void shard_notify(struct shard *s, const struct item *it);

#endif
