/* Active expiry and idle rehash: a thread visits the shards periodically while any of them has
 * items with an expiry time, a few buckets per hold of a lock. */
#include "apps/kv/store.h"

struct round {
    struct shard *s;
    uint64_t now_ms;
    unsigned volatiles;
    unsigned expired;
};

static void expire_item(void *ctx, struct item *it)
{
    struct round *r = ctx;

    if (!it->expire_ms) {
        return;
    }
    r->volatiles++;
    if (it->expire_ms <= r->now_ms) {
        r->expired++;
        r->s->stat[ST_EXPIRED]++;
        shard_delete_in_scan(r->s, it);
    }
}

/* One hold of the lock. Returns whether another round is worth it: a quarter of what was seen had
 * expired, as Redis decides it. */
static bool expire_round(struct shard *s, uint64_t now_ms)
{
    struct round r = {s, now_ms, 0, 0};

    for (unsigned i = 0; i < KV_EXPIRE_BUCKETS && s->nvolatile; i++) {
        s->scan_cursor = table_scan(&s->table, s->scan_cursor, expire_item, &r);
        if (s->scan_cursor == 0) {
            break;
        }
    }
    return r.expired * 4 > r.volatiles;
}

static bool maintain_shard(struct shard *s, uint64_t now_ms)
{
    bool more = true, busy = false;

    for (unsigned i = 0; i < KV_EXPIRE_ROUNDS_MAX && (more || i < KV_EXPIRE_ROUNDS); i++) {
        shard_lock(s);
        for (unsigned j = 0; j < KV_EXPIRE_BUCKETS && table_step(&s->table); j++) {
        }
        more = s->nvolatile && expire_round(s, now_ms);
        busy = s->nvolatile || table_rehashing(&s->table);
        shard_unlock(s);
        if (!busy) {
            break;
        }
    }
    return busy;
}

bool store_maintain(struct store *st, uint64_t now_ms)
{
    bool busy = false;

    for (unsigned i = 0; i < st->nshards; i++) {
        busy |= maintain_shard(&st->shards[i], now_ms);
    }
    return busy;
}
