/* What a shard's lock costs: how often it was taken, how often it was found taken, how long the
 * callers waited and held it. All fields are written under the lock they describe.
 * On with KV_LOCK_STATS=1 only: two or three clock reads per acquisition. */
#ifndef KV_LOCKSTAT_H
#define KV_LOCKSTAT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "apps/kv/hist.h"

struct lockstat {
    uint64_t acquired;
    uint64_t contended;
    uint64_t since_ns; /* start of the present hold */
    struct hist wait;  /* contended acquisitions only, ns */
    struct hist hold;  /* ns */
};

void lockstat_lock(struct lockstat *ls, pthread_mutex_t *m);
bool lockstat_trylock(struct lockstat *ls, pthread_mutex_t *m);
void lockstat_unlock(struct lockstat *ls, pthread_mutex_t *m);
/* The caller holds the lock. */
void lockstat_reset(struct lockstat *ls);
void lockstat_merge(struct lockstat *into, const struct lockstat *ls);

#endif
