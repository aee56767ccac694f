#include "core/kern/obs/thread_list.h"

#include "core/mm/mm.h"

#define SLACK 64 /* threads that may come between counting and collecting */

struct collected {
    struct thread **threads;
    u32 n, max;
};

static void collect(struct thread *t, void *arg)
{
    struct collected *c = arg;
    if (c->n < c->max) {
        thread_get(t);
        c->threads[c->n++] = t;
    }
}

bool thread_list_each(void (*fn)(struct thread *t, void *arg), void *arg)
{
    struct collected c = { .max = thread_count() + SLACK };
    c.threads = kmalloc(sizeof(*c.threads) * c.max);
    if (!c.threads) {
        return false;
    }
    thread_for_each(collect, &c);
    for (u32 i = 0; i < c.n; i++) {
        fn(c.threads[i], arg);
        thread_put(c.threads[i]);
    }
    kfree(c.threads);
    return true;
}
