#include "apps/kv/store.h"

#include <stdlib.h>
#include <string.h>

#include "apps/kv/clock.h"

int store_init(struct store *st, const struct store_config *cfg)
{
    memset(st, 0, sizeof(*st));
    st->nshards = cfg->nshards;
    st->shift = (unsigned)__builtin_ctz(cfg->nshards);
    st->secret[0] = cfg->secret[0];
    st->secret[1] = cfg->secret[1];
    st->policy = cfg->policy;
    store_set_limit(st, cfg->max_memory);
    st->shards = aligned_alloc(_Alignof(struct shard), sizeof(struct shard) * st->nshards);
    if (!st->shards) {
        return -1;
    }
    mem_force(&st->mem, sizeof(struct shard) * st->nshards);
    for (unsigned i = 0; i < st->nshards; i++) {
        if (shard_init(&st->shards[i], st, st->shift, cfg->stop_the_world) != 0) {
            return -1;
        }
        if (cfg->lock_stats) {
            st->shards[i].ls = calloc(1, sizeof(struct lockstat));
            if (!st->shards[i].ls) {
                return -1;
            }
        }
    }
    return 0;
}

void store_destroy(struct store *st)
{
    for (unsigned i = 0; i < st->nshards; i++) {
        shard_destroy(&st->shards[i]);
    }
    store_reclaim(st);
    free(st->shards);
    st->shards = NULL;
}

void store_set_limit(struct store *st, size_t bytes)
{
    size_t step = bytes / ((size_t)st->nshards * KV_CREDIT_SHARE);

    if (bytes == 0 || step > KV_CREDIT_MAX) {
        step = KV_CREDIT_MAX;
    }
    atomic_store(&st->mem.limit, bytes);
    atomic_store(&st->credit_step, step);
}

void op_set_clear(struct op *op)
{
    if (!op->locked) {
        memset(op->set, 0, (op->st->nshards + 63) / 64 * sizeof(op->set[0]));
    }
}

void op_set_add(struct op *op, const struct key *k)
{
    size_t i = (size_t)(k->shard - op->st->shards);

    if (!op->locked) {
        op->set[i / 64] |= 1ull << (i % 64);
    }
}

void op_set_all(struct op *op)
{
    if (!op->locked) {
        for (unsigned i = 0; i < op->st->nshards; i++) {
            op->set[i / 64] |= 1ull << (i % 64);
        }
    }
}

typedef void (*shard_fn)(struct shard *s);

static void lock_one(struct shard *s)
{
    shard_lock(s);
}

static void unlock_one(struct shard *s)
{
    shard_unlock(s);
}

static void set_each(const struct op *op, shard_fn fn)
{
    unsigned words = (op->st->nshards + 63) / 64;

    for (unsigned w = 0; w < words; w++) {
        for (uint64_t bits = op->set[w]; bits; bits &= bits - 1) {
            fn(&op->st->shards[w * 64 + (unsigned)__builtin_ctzll(bits)]);
        }
    }
}

bool op_lock_set(struct op *op)
{
    if (op->locked) {
        return false;
    }
    set_each(op, lock_one);
    op->locked = true;
    return true;
}

void op_unlock_set(struct op *op)
{
    op->locked = false;
    set_each(op, unlock_one);
}

static bool evict_from_set(const struct op *op)
{
    for (unsigned i = 0; i < op->st->nshards; i++) {
        if ((op->set[i / 64] >> (i % 64) & 1) && shard_evict(&op->st->shards[i], op->now_ms)) {
            return true;
        }
    }
    return false;
}

bool op_secure(const struct op *op, size_t bytes)
{
    size_t limit = atomic_load(&op->st->mem.limit);

    if (limit == 0) {
        return true;
    }
    if (bytes > limit) {
        return false;
    }
    set_each(op, shard_release_credit);
    while (!mem_try(&op->st->mem, bytes) && !store_gather(op->st, bytes)) {
        if (!evict_from_set(op)) {
            return false;
        }
    }
    mem_release(&op->st->mem, bytes);
    return true;
}

void store_totals(const struct op *op, struct store_totals *t)
{
    memset(t, 0, sizeof(*t));
    for (unsigned i = 0; i < op->st->nshards; i++) {
        struct shard *s = op_lock_shard(op, i);

        t->items += s->table.used;
        t->nvolatile += s->nvolatile;
        t->item_bytes += s->item_bytes;
        t->table_bytes += table_bytes(&s->table);
        t->arena_used += s->arena.used;
        t->arena_reserved += s->arena.reserved;
        t->credit += s->credit;
        t->rehashing += table_rehashing(&s->table);
        t->rehashes += s->table.rehashes;
        for (int j = 0; j < ST_COUNT; j++) {
            t->stat[j] += s->stat[j];
        }
        op_unlock_shard(op, i);
    }
}

size_t store_count(const struct op *op)
{
    size_t n = 0;

    for (unsigned i = 0; i < op->st->nshards; i++) {
        n += op_lock_shard(op, i)->table.used;
        op_unlock_shard(op, i);
    }
    return n;
}

size_t store_used_memory(const struct op *op)
{
    size_t credit = 0, used;

    for (unsigned i = 0; i < op->st->nshards; i++) {
        credit += op_lock_shard(op, i)->credit;
        op_unlock_shard(op, i);
    }
    used = atomic_load(&op->st->mem.used);
    return used > credit ? used - credit : 0;
}

void store_flush(const struct op *op)
{
    for (unsigned i = 0; i < op->st->nshards; i++) {
        shard_flush(op_lock_shard(op, i));
        op_unlock_shard(op, i);
    }
}

void store_reset_stats(const struct op *op)
{
    for (unsigned i = 0; i < op->st->nshards; i++) {
        struct shard *s = op_lock_shard(op, i);

        memset(s->stat, 0, sizeof(s->stat));
        if (s->ls) {
            lockstat_reset(s->ls);
        }
        op_unlock_shard(op, i);
    }
}

/* ---- scans ---- */

struct walk {
    struct shard *s;
    uint64_t now_ms;
    store_fn fn;
    void *ctx;
};

static void walk_item(void *ctx, struct item *it)
{
    struct walk *w = ctx;

    if (it->expire_ms && it->expire_ms <= w->now_ms) {
        w->s->stat[ST_EXPIRED]++;
        shard_delete_in_scan(w->s, it);
        return;
    }
    w->fn(w->ctx, w->s, it);
}

/* The shard is in the low bits of the cursor, the shard's own cursor above. */
uint64_t store_scan(const struct op *op, uint64_t cursor, store_fn fn, void *ctx)
{
    unsigned i = (unsigned)(cursor & (op->st->nshards - 1));
    struct walk w = {op_lock_shard(op, i), op->now_ms, fn, ctx};
    uint64_t next = 0;

    if (w.s->table.used) {
        next = table_scan(&w.s->table, cursor >> op->st->shift, walk_item, &w);
    }
    op_unlock_shard(op, i);
    if (next != 0) {
        return next << op->st->shift | i;
    }
    return i + 1 < op->st->nshards ? i + 1 : 0;
}

void store_each(const struct op *op, store_fn fn, void *ctx)
{
    for (unsigned i = 0; i < op->st->nshards; i++) {
        struct walk w = {op_lock_shard(op, i), op->now_ms, fn, ctx};
        uint64_t cursor = 0;

        do {
            cursor = table_scan(&w.s->table, cursor, walk_item, &w);
        } while (cursor != 0);
        op_unlock_shard(op, i);
    }
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static bool live(const struct item *it, const struct op *op)
{
    return !it->expire_ms || it->expire_ms > op->now_ms;
}

/* One of the live items of a bucket, each as likely; NULL if there are none. */
static struct item *random_of(struct item *head, uint64_t dice, const struct op *op)
{
    unsigned len = 0;

    for (struct item *it = head; it; it = it->next) {
        len += live(it, op);
    }
    len = len ? (unsigned)(dice % len) + 1 : 0;
    for (struct item *it = head; it; it = it->next) {
        if (live(it, op) && --len == 0) {
            return it;
        }
    }
    return NULL;
}

/* A random live item of a shard. Buckets are drawn until one has something, so that an item behind empty buckets is no
 * likelier than others; only where they are that sparse does the search go on from bucket to bucket. */
static struct item *random_in(struct shard *s, uint64_t dice, const struct op *op)
{
    size_t n = table_buckets(&s->table), at = 0;
    struct item *it = NULL;

    for (unsigned i = 0; i < KV_RANDOM_DRAWS && !it; i++) {
        dice = mix(dice + 1);
        at = dice % n;
        it = random_of(table_bucket(&s->table, at), dice >> 32, op);
    }
    for (size_t i = 0; i < n && !it; i++) {
        it = random_of(table_bucket(&s->table, (at + i) % n), dice >> 32, op);
    }
    return it;
}

/* A shard by lot, each as likely as it has items; the next ones in turn should it be empty by then. */
static unsigned random_shard(const struct op *op, uint64_t dice)
{
    size_t seen = 0;
    unsigned chosen = 0;

    for (unsigned i = 0; i < op->st->nshards; i++) {
        size_t used = op_lock_shard(op, i)->table.used;

        op_unlock_shard(op, i);
        seen += used;
        dice = mix(dice + 1);
        if (used && dice % seen < used) {
            chosen = i;
        }
    }
    return chosen;
}

bool store_random(const struct op *op, store_fn fn, void *ctx)
{
    static _Atomic uint64_t draws;
    uint64_t dice = mix(clock_mono_ns() + atomic_fetch_add(&draws, 0x9e3779b97f4a7c15ull));
    unsigned first = random_shard(op, dice);
    struct item *it = NULL;

    for (unsigned i = 0; i < op->st->nshards && !it; i++) {
        unsigned at = (first + i) & (op->st->nshards - 1);
        struct shard *s = op_lock_shard(op, at);

        it = s->table.used ? random_in(s, dice, op) : NULL;
        if (it) {
            fn(ctx, s, it);
        }
        op_unlock_shard(op, at);
    }
    return it != NULL;
}
