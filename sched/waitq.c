/* Wait queues and the sleeping mutex, on park/unpark. */
#include "sched/sched.h"
#include "core/base/log.h"

struct lock_class waitq_lock_class = { .name = "waitq", .rank = RANK_WAITQ, .irq = true };

void waitq_init(struct waitq *q)
{
    spin_init(&q->lock, &waitq_lock_class);
    list_init(&q->waiters);
}

void waitq_enter(struct waitq *q, struct waiter *w)
{
    w->thread = current_thread();
    w->woken = false;
    irqflags_t flags = spin_lock_irq(&q->lock);
    list_push_back(&q->waiters, &w->node);
    spin_unlock_irq(&q->lock, flags);
}

enum park_result waitq_park(struct waiter *w, u64 deadline_ns, enum wait_kind kind, u64 object)
{
    enum park_result r = PARK_WOKEN;
    while (!LOAD_ACQUIRE(w->woken) && r == PARK_WOKEN) {
        r = thread_park(deadline_ns, kind, object);
    }
    return LOAD_ACQUIRE(w->woken) ? PARK_WOKEN : r;
}

void waitq_leave(struct waitq *q, struct waiter *w)
{
    irqflags_t flags = spin_lock_irq(&q->lock);
    if (!w->woken) {
        list_remove(&w->node);
    }
    spin_unlock_irq(&q->lock, flags);
}

u32 waitq_wake(struct waitq *q, u32 n, struct wake_batch *batch)
{
    struct wake_batch own;
    if (!batch) {
        wake_batch_begin(&own);
    }
    u32 woken = 0;
    irqflags_t flags = spin_lock_irq(&q->lock);
    while (woken < n && !list_empty(&q->waiters)) {
        struct waiter *w = list_entry(list_pop_front(&q->waiters), struct waiter, node);
        struct thread *t = w->thread;
        STORE_RELEASE(w->woken, true); /* from here on w may be gone: it lives on the waiter's stack */
        thread_unpark_batch(t, batch ? batch : &own);
        woken++;
    }
    spin_unlock_irq(&q->lock, flags);
    if (!batch) {
        wake_batch_flush(&own);
    }
    return woken;
}

void mutex_init(struct mutex *m)
{
    m->owner = NULL;
    waitq_init(&m->waiters);
}

static bool mutex_try(struct mutex *m, struct thread *self)
{
    struct thread *nobody = NULL;
    return __atomic_compare_exchange_n(&m->owner, &nobody, self, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

void mutex_lock(struct mutex *m)
{
    struct thread *self = current_thread();
    DEBUG_ASSERT(READ_ONCE(m->owner) != self);
    while (!mutex_try(m, self)) {
        struct waiter w;
        waitq_enter(&m->waiters, &w);
        if (mutex_try(m, self)) {
            waitq_leave(&m->waiters, &w);
            return;
        }
        while (!LOAD_ACQUIRE(w.woken)) {
            (void)thread_park_uninterruptible(NO_DEADLINE, WAIT_LOCK, (u64)(uintptr_t)m);
        }
        waitq_leave(&m->waiters, &w);
    }
}

void mutex_unlock(struct mutex *m)
{
    DEBUG_ASSERT(m->owner == current_thread());
    __atomic_store_n(&m->owner, NULL, __ATOMIC_SEQ_CST);
    (void)waitq_wake(&m->waiters, 1, NULL);
}
