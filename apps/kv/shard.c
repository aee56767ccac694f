#include "apps/kv/shard.h"

#include <stdlib.h>
#include <string.h>

#include "apps/kv/pages.h"
#include "apps/kv/store.h"

/* LFU counter of a new item: not the first to go (the value Redis uses). */
#define LFU_INIT 5u
/* Steepness of the logarithmic counter: about 1M accesses reach 255. */
#define LFU_LOG 10u

struct dead_map {
    struct dead_map *next;
    size_t bytes;
};

static void wake_maint(const struct store *st)
{
    if (st->wake_maint) {
        st->wake_maint(st->wake_ctx);
    }
}

/* ---- bucket arrays ---- */

static void *array_alloc(void *ctx, size_t bytes)
{
    struct shard *s = ctx;
    void *p;

    if (bytes >= KV_TABLE_MMAP) {
        if (!shard_charge(s, bytes)) {
            return NULL;
        }
        p = pages_map(bytes);
        if (!p) {
            shard_uncharge(s, bytes);
        }
        return p;
    }
    if (!shard_charge(s, arena_round(bytes))) {
        return NULL;
    }
    p = arena_alloc(&s->arena, bytes);
    if (!p) {
        shard_uncharge(s, arena_round(bytes));
        return NULL;
    }
    return memset(p, 0, bytes);
}

/* A large array is unmapped by the maintenance thread: the system takes long for it, and this runs
 * under the shard's lock. */
static void array_free(void *ctx, void *p, size_t bytes)
{
    struct shard *s = ctx;
    struct store *st = s->store;
    struct dead_map *d = p;

    if (bytes < KV_TABLE_MMAP) {
        arena_free(&s->arena, p, bytes);
        shard_uncharge(s, arena_round(bytes));
        return;
    }
    shard_uncharge(s, bytes);
    d->bytes = bytes;
    d->next = atomic_load_explicit(&st->dead, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&st->dead, &d->next, d, memory_order_release,
                                                  memory_order_relaxed)) {
    }
    wake_maint(st);
}

void store_reclaim(struct store *st)
{
    struct dead_map *d = atomic_exchange_explicit(&st->dead, NULL, memory_order_acquire);
    struct dead_map *next;

    for (; d; d = next) {
        next = d->next;
        pages_unmap(d, d->bytes);
    }
}

/* ---- credit ---- */

void shard_release_credit(struct shard *s)
{
    mem_release(&s->store->mem, s->credit);
    s->credit = 0;
}

bool store_gather(struct store *st, size_t n)
{
    for (unsigned i = 0; i < st->nshards; i++) {
        struct shard *o = &st->shards[i];

        if (!shard_trylock(o)) {
            continue;
        }
        shard_release_credit(o);
        shard_unlock(o);
        if (mem_try(&st->mem, n)) {
            return true;
        }
    }
    return false;
}

bool shard_charge_slow(struct shard *s, size_t n)
{
    struct store *st = s->store;
    size_t step = atomic_load_explicit(&st->credit_step, memory_order_relaxed);
    size_t lack = n - s->credit;

    if (lack < step && mem_try(&st->mem, step)) {
        s->credit += step;
    } else if (mem_try(&st->mem, lack)) {
        s->credit += lack;
    } else if (atomic_load_explicit(&st->policy, memory_order_relaxed) == EVICT_NONE &&
               store_gather(st, lack)) {
        /* Nothing will be evicted, so what others hold in advance is the last resort. */
        s->credit += lack;
    } else if (s->force) {
        mem_force(&st->mem, lack);
        s->credit += lack;
    } else {
        atomic_fetch_add_explicit(&st->mem.refused, 1, memory_order_relaxed);
        return false;
    }
    s->credit -= n;
    if (mem_look_due(&st->mem)) {
        wake_maint(st);
    }
    return true;
}

void shard_uncharge(struct shard *s, size_t n)
{
    size_t step = atomic_load_explicit(&s->store->credit_step, memory_order_relaxed);

    s->credit += n;
    if (s->credit > 2 * step) {
        mem_release(&s->store->mem, s->credit - step);
        s->credit = step;
    }
}

/* ---- life ---- */

int shard_init(struct shard *s, struct store *st, unsigned shift, bool stop_the_world)
{
    struct table_mem mem = {array_alloc, array_free, s};

    memset(s, 0, sizeof(*s));
    pthread_mutex_init(&s->lock, NULL);
    s->store = st;
    /* Each shard counts in steps of their number from a start of its own: no two items of the store ever have the same
     * cas, which clients may rely on. */
    s->cas = st->shards ? (uint64_t)(s - st->shards) : 0;
    arena_init(&s->arena);
    return table_init(&s->table, shift, stop_the_world, mem);
}

void shard_destroy(struct shard *s)
{
    shard_flush(s);
    table_destroy(&s->table);
    mem_release(&s->store->mem, s->credit);
    s->credit = 0;
    for (int i = 0; i < ARENA_CLASSES; i++) {
        while (s->arena.room[i]) {
            struct span *sp = s->arena.room[i];

            s->arena.room[i] = sp->next;
            pages_free(sp);
        }
    }
    free(s->ls);
    pthread_mutex_destroy(&s->lock);
}

/* ---- items ---- */

static struct item *item_alloc(struct shard *s, size_t size, uint64_t now_ms)
{
    size_t bytes = arena_round(size);
    struct item *it;

    for (unsigned i = 0; i < KV_SOFT_EVICTIONS && mem_over_soft(&s->store->mem); i++) {
        if (!shard_evict(s, now_ms)) {
            break;
        }
        s->stat[ST_EVICTED_SOFT]++;
    }
    for (unsigned tries = 0; tries < KV_EVICT_MAX; tries++) {
        if (shard_charge(s, bytes)) {
            it = arena_alloc(&s->arena, size);
            if (it) {
                s->item_bytes += bytes;
                return it;
            }
            shard_uncharge(s, bytes);
        }
        if (!shard_evict(s, now_ms)) {
            break;
        }
    }
    s->stat[ST_OOM]++;
    return NULL;
}

static void item_free(struct shard *s, struct item *it)
{
    size_t size = item_size(it->klen, it->vlen);
    size_t bytes = arena_round(size);

    s->item_bytes -= bytes;
    arena_free(&s->arena, it, size);
    shard_uncharge(s, bytes);
}

static void item_gone(struct shard *s, struct item *it)
{
    if (it->expire_ms) {
        s->nvolatile--;
    }
    if (s->watches) {
        shard_notify(s, it);
    }
    item_free(s, it);
}

void shard_delete(struct shard *s, struct item *it)
{
    table_remove(&s->table, it);
    item_gone(s, it);
}

void shard_delete_in_scan(struct shard *s, struct item *it)
{
    table_unlink(&s->table, it);
    item_gone(s, it);
}

struct item *shard_find(struct shard *s, const struct key *k, uint64_t now_ms)
{
    struct item *it = table_find(&s->table, k->p, k->len, k->hash);

    if (it && it->expire_ms && it->expire_ms <= now_ms) {
        s->stat[ST_EXPIRED]++;
        s->stat[ST_GET_EXPIRED]++;
        shard_delete(s, it);
        return NULL;
    }
    return it;
}

static void lfu_touch(struct item *it, uint64_t now_ms)
{
    uint16_t minute = (uint16_t)(now_ms / 60000u);
    uint16_t idle = (uint16_t)(minute - it->freq_min);
    uint32_t above;

    it->freq = it->freq > idle ? (uint8_t)(it->freq - idle) : 0;
    it->freq_min = minute;
    if (it->freq == UINT8_MAX) {
        return;
    }
    above = it->freq > LFU_INIT ? it->freq - LFU_INIT : 0;
    /* One access in (above * LFU_LOG + 1) counts; the hash and the clocks serve as the dice. */
    if ((it->hash ^ (uint32_t)(now_ms * 2654435761u) ^ it->access_ms * 40503u) %
            (above * LFU_LOG + 1) ==
        0) {
        it->freq++;
    }
}

void shard_touch(struct shard *s, struct item *it, uint64_t now_ms)
{
    int policy = atomic_load_explicit(&s->store->policy, memory_order_relaxed);

    if (policy == EVICT_ALL_LFU || policy == EVICT_VOLATILE_LFU) {
        lfu_touch(it, now_ms);
    }
    it->access_ms = (uint32_t)now_ms;
}

void shard_changed(struct shard *s, struct item *it)
{
    s->cas += s->store->nshards;
    it->cas = s->cas;
    if (s->watches) {
        shard_notify(s, it);
    }
}

static struct item *put_new(struct shard *s, const struct key *k, size_t vlen, uint64_t now_ms)
{
    struct item *it = item_alloc(s, item_size(k->len, vlen), now_ms);

    if (!it) {
        return NULL;
    }
    it->hash = k->hash;
    it->klen = k->len;
    it->flags = 0;
    it->expire_ms = 0;
    it->freq = LFU_INIT;
    it->freq_min = (uint16_t)(now_ms / 60000u);
    memcpy(it->data, k->p, k->len);
    /* Before the insertion: a refused bucket array evicts nothing, so `it` is safe. */
    table_insert(&s->table, it);
    return it;
}

static struct item *put_moved(struct shard *s, struct item *old, size_t vlen, bool keep,
                              uint64_t now_ms)
{
    struct item *it;
    size_t copy = keep ? (old->vlen < vlen ? old->vlen : vlen) : 0;

    s->pin[0] = old;
    it = item_alloc(s, item_size(old->klen, vlen), now_ms);
    s->pin[0] = NULL;
    if (!it) {
        return NULL;
    }
    memcpy(it, old, item_size(old->klen, copy));
    table_replace(&s->table, old, it);
    item_free(s, old);
    return it;
}

struct item *shard_put(struct shard *s, const struct key *k, struct item *old, size_t vlen,
                       bool keep, uint64_t now_ms)
{
    struct item *it = old;

    if (!old) {
        it = put_new(s, k, vlen, now_ms);
    } else if (arena_round(item_size(k->len, vlen)) != arena_round(item_size(k->len, old->vlen))) {
        it = put_moved(s, old, vlen, keep, now_ms);
    }
    if (!it) {
        return NULL;
    }
    it->vlen = (uint32_t)vlen;
    it->bits = 0;
    it->access_ms = (uint32_t)now_ms;
    s->stat[ST_TOTAL_ITEMS]++;
    shard_changed(s, it);
    return it;
}

void shard_set_expire(struct shard *s, struct item *it, uint64_t expire_ms)
{
    if (expire_ms && !it->expire_ms) {
        if (s->nvolatile++ == 0) {
            wake_maint(s->store);
        }
    } else if (!expire_ms && it->expire_ms) {
        s->nvolatile--;
    }
    it->expire_ms = expire_ms;
}

static void flush_one(void *ctx, struct item *it)
{
    shard_delete_in_scan(ctx, it);
}

void shard_flush(struct shard *s)
{
    uint64_t cursor = 0;

    do {
        cursor = table_scan(&s->table, cursor, flush_one, s);
    } while (cursor != 0);
    table_reset(&s->table);
}
