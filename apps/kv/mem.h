/* The memory limit: one count of everything the server holds (items, tables, buffers,
 * connections). Any thread; no lock. Shards take credit in batches (see shard_charge), so the
 * shared counter is touched once per many requests.
 * Units: bytes. limit 0 means none. */
#ifndef KV_MEM_H
#define KV_MEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct mem {
    _Atomic size_t used; /* includes the credit that shards hold */
    _Atomic size_t peak;
    _Atomic size_t limit;
    _Atomic size_t refused; /* reservations that did not fit */
    _Atomic size_t soft;    /* beyond it items are evicted, if any may be, and nothing is refused; 0: none */
    _Atomic size_t look_at; /* used bytes at which the soft level is to be looked up again */
};

/* Takes n if it fits under the limit. */
bool mem_try(struct mem *m, size_t n);
static inline bool mem_over_soft(const struct mem *m)
{
    size_t soft = atomic_load_explicit(&m->soft, memory_order_relaxed);

    return soft != 0 && atomic_load_explicit(&m->used, memory_order_relaxed) > soft;
}

static inline bool mem_look_due(const struct mem *m)
{
    return atomic_load_explicit(&m->used, memory_order_relaxed) >=
           atomic_load_explicit(&m->look_at, memory_order_relaxed);
}

/* Takes n even beyond the limit: for what cannot be refused (a connection's first buffers). */
void mem_force(struct mem *m, size_t n);
void mem_release(struct mem *m, size_t n);
/* Something a connection holds grows from `from` to `to` bytes: unconditional up to
 * KV_BUF_FREE_CHARGE, so that a full server can still be asked and told to delete. */
bool mem_grow(struct mem *m, size_t from, size_t to);

#endif
