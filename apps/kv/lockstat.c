#include "apps/kv/lockstat.h"

#include <string.h>

#include "apps/kv/clock.h"

bool lockstat_trylock(struct lockstat *ls, pthread_mutex_t *m)
{
    if (pthread_mutex_trylock(m) != 0) {
        return false;
    }
    ls->acquired++;
    ls->since_ns = clock_mono_ns();
    return true;
}

void lockstat_lock(struct lockstat *ls, pthread_mutex_t *m)
{
    uint64_t from;

    if (lockstat_trylock(ls, m)) {
        return;
    }
    from = clock_mono_ns();
    pthread_mutex_lock(m);
    ls->since_ns = clock_mono_ns();
    ls->acquired++;
    ls->contended++;
    hist_add(&ls->wait, ls->since_ns - from);
}

void lockstat_unlock(struct lockstat *ls, pthread_mutex_t *m)
{
    hist_add(&ls->hold, clock_mono_ns() - ls->since_ns);
    pthread_mutex_unlock(m);
}

void lockstat_reset(struct lockstat *ls)
{
    uint64_t since = ls->since_ns;

    memset(ls, 0, sizeof(*ls));
    ls->since_ns = since;
}

void lockstat_merge(struct lockstat *into, const struct lockstat *ls)
{
    into->acquired += ls->acquired;
    into->contended += ls->contended;
    hist_merge(&into->wait, &ls->wait);
    hist_merge(&into->hold, &ls->hold);
}
