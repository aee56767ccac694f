/* Eviction: the worst of a few items sampled from the own shard and from others whose lock is free.
 *
 * True LRU order would need a list touched by every read; samples need nothing from a read but its
 * time. Sampling several shards matters while shards are small: with two items in the own shard,
 * one of them is often hot. Foreign locks are only tried, so no order can be violated. */
#include "apps/kv/store.h"

struct pick {
    struct shard *shard;
    struct item *item;
    uint64_t score; /* higher goes first */
};

static bool lfu(int policy)
{
    return policy == EVICT_ALL_LFU || policy == EVICT_VOLATILE_LFU;
}

static bool volatile_only(int policy)
{
    return policy == EVICT_VOLATILE_LRU || policy == EVICT_VOLATILE_LFU;
}

static uint64_t score_of(const struct item *it, int policy, uint64_t now_ms)
{
    uint32_t idle = item_idle_ms(it, now_ms);
    uint16_t minutes = (uint16_t)((uint16_t)(now_ms / 60000u) - it->freq_min);
    unsigned freq;

    if (it->expire_ms && it->expire_ms <= now_ms) {
        return UINT64_MAX;
    }
    if (!lfu(policy)) {
        return (uint64_t)idle + 1;
    }
    freq = it->freq > minutes ? it->freq - minutes : 0;
    return ((uint64_t)(UINT8_MAX - freq) << 32) + idle + 1;
}

static void sample(struct shard *s, int policy, uint64_t now_ms, struct pick *best)
{
    size_t n = table_buckets(&s->table);
    unsigned seen = 0;
    uint64_t score;

    if (s->table.used == 0 || (volatile_only(policy) && s->nvolatile == 0)) {
        return;
    }
    /* A multiplicative step visits the buckets in scattered order. */
    s->sample_cursor = s->sample_cursor * 6364136223846793005ull + 1442695040888963407ull;
    for (size_t i = 0; i < n && seen < KV_EVICT_SAMPLES; i++) {
        struct item *it = table_bucket(&s->table, ((s->sample_cursor >> 33) + i) % n);

        if (i >= KV_EVICT_BUCKETS && seen > 0) {
            break;
        }
        for (; it; it = it->next) {
            if (it == s->pin[0] || it == s->pin[1] || (volatile_only(policy) && !it->expire_ms)) {
                continue;
            }
            seen++;
            score = score_of(it, policy, now_ms);
            if (score > best->score) {
                *best = (struct pick){s, it, score};
            }
        }
    }
}

static void evict(const struct pick *p)
{
    p->shard->stat[p->score == UINT64_MAX ? ST_EXPIRED : ST_EVICTED]++;
    shard_delete(p->shard, p->item);
    /* What a foreign shard gained must reach the one in need. */
    shard_release_credit(p->shard);
}

bool shard_evict(struct shard *s, uint64_t now_ms)
{
    struct store *st = s->store;
    int policy = atomic_load_explicit(&st->policy, memory_order_relaxed);
    struct shard *held[KV_EVICT_SHARDS];
    unsigned nheld = 0;
    size_t self = (size_t)(s - st->shards);
    struct pick best = {0};

    if (policy == EVICT_NONE) {
        return false;
    }
    sample(s, policy, now_ms, &best);
    /* Other shards: two by lot when the own one has a candidate, all of them when it has none. */
    for (unsigned i = 1; i < st->nshards && nheld < KV_EVICT_SHARDS; i++) {
        size_t at =
            (self + (best.item && i <= KV_EVICT_SHARDS ? (s->sample_cursor >> 17) * i : i)) &
            (st->nshards - 1);

        if (best.item && i > KV_EVICT_SHARDS) {
            break;
        }
        if (at == self || !shard_trylock(&st->shards[at])) {
            continue;
        }
        held[nheld++] = &st->shards[at];
        sample(&st->shards[at], policy, now_ms, &best);
        if (!best.item) {
            shard_unlock(held[--nheld]);
        }
    }
    if (best.item) {
        evict(&best);
    }
    while (nheld > 0) {
        shard_unlock(held[--nheld]);
    }
    return best.item != NULL;
}
