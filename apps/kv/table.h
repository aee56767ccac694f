/* Hash table of one shard: chains of items, power-of-two bucket arrays, growing and shrinking
 * either a few buckets per operation (incremental, the default) or all at once (stop-the-world,
 * kept to reproduce its tail).
 *
 * Context: the shard's lock. Bucket arrays are charged to the shard by the callbacks below, so the
 * table itself knows no limit. Errors: a table that cannot grow stays as it is (longer chains). */
#ifndef KV_TABLE_H
#define KV_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/kv/item.h"

/* Zeroed array of `bytes`, or NULL; and its return. */
struct table_mem {
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *p, size_t bytes);
    void *ctx;
};

struct table {
    struct item **b[2]; /* b[1] only while a rehash is under way */
    size_t size[2];     /* buckets, power of two */
    size_t used;        /* items */
    size_t moved;       /* buckets of b[0] below this are empty: moved */
    unsigned shift;     /* bits of the hash that choose the shard */
    bool stop_the_world;
    struct table_mem mem;
    uint64_t rehashes; /* completed */
};

/* 0, or -1 without memory. */
int table_init(struct table *t, unsigned shift, bool stop_the_world, struct table_mem mem);
/* Frees the arrays; the items must be gone. */
void table_destroy(struct table *t);

/* Back to the smallest array; the table must hold no item. */
void table_reset(struct table *t);

static inline bool table_rehashing(const struct table *t)
{
    return t->b[1] != NULL;
}

struct item *table_find(const struct table *t, const char *key, size_t klen, uint32_t hash);
/* The key must not be present. Pays its share of a rehash. */
void table_insert(struct table *t, struct item *it);
/* Removes `it`, which must be present; pays its share of a rehash. */
void table_remove(struct table *t, struct item *it);
/* The same without touching the arrays: the form allowed inside table_scan(). */
void table_unlink(struct table *t, struct item *it);
/* Puts `with` where `it` (same key) was. */
void table_replace(struct table *t, struct item *it, struct item *with);
/* Moves up to KV_REHASH_STEP buckets; false when no rehash is under way. */
bool table_step(struct table *t);

/* Calls fn for every item of the bucket(s) of `cursor` and returns the next cursor, 0 at the end.
 * An item present during the whole scan is seen at least once even if the table is resized
 * between the calls (reverse binary increment). fn may table_unlink() the item it is given. */
typedef void (*table_fn)(void *ctx, struct item *it);
uint64_t table_scan(struct table *t, uint64_t cursor, table_fn fn, void *ctx);

/* Bucket by running number 0..table_buckets()-1, for sampling. */
size_t table_buckets(const struct table *t);
struct item *table_bucket(const struct table *t, size_t n);

/* Bytes of the bucket arrays. */
size_t table_bytes(const struct table *t);

#endif
