#include "apps/kv/mem.h"

#include "apps/kv/tunables.h"

static void note_peak(struct mem *m, size_t now)
{
    size_t peak = atomic_load_explicit(&m->peak, memory_order_relaxed);

    while (now > peak && !atomic_compare_exchange_weak_explicit(
                             &m->peak, &peak, now, memory_order_relaxed, memory_order_relaxed)) {
    }
}

bool mem_try(struct mem *m, size_t n)
{
    size_t limit = atomic_load_explicit(&m->limit, memory_order_relaxed);
    size_t used = atomic_fetch_add_explicit(&m->used, n, memory_order_relaxed) + n;

    if (limit != 0 && used > limit) {
        atomic_fetch_sub_explicit(&m->used, n, memory_order_relaxed);
        return false;
    }
    note_peak(m, used);
    return true;
}

void mem_force(struct mem *m, size_t n)
{
    note_peak(m, atomic_fetch_add_explicit(&m->used, n, memory_order_relaxed) + n);
}

void mem_release(struct mem *m, size_t n)
{
    atomic_fetch_sub_explicit(&m->used, n, memory_order_relaxed);
}

bool mem_grow(struct mem *m, size_t from, size_t to)
{
    if (to > KV_BUF_FREE_CHARGE) {
        return mem_try(m, to - from);
    }
    mem_force(m, to - from);
    return true;
}
