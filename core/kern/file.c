/* Files: life, observers, waiting. Descriptors: fd_table.c. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/kern/epoll.h"
#include "core/kern/file.h"
#include "core/kern/signal.h"
#include "core/kern/syscall.h"
#include "core/mm/mm.h"

static struct lock_class pos_class = { .name = "file_pos", .rank = RANK_FILE };
static struct lock_class poll_class = { .name = "file_poll", .rank = RANK_POLL, .irq = true };
static struct lock_class free_class = { .name = "file_free", .rank = RANK_SLAB - 1 };
static struct spinlock free_lock = SPINLOCK_INIT(&free_class);
static struct file *free_files; /* never given back to the heap: see file.h */

static struct file *file_alloc(void)
{
    spin_lock(&free_lock);
    struct file *f = free_files;
    if (f) {
        free_files = f->next_free;
    }
    spin_unlock(&free_lock);
    if (!f) {
        f = kzalloc(sizeof(*f));
        if (!f) {
            return NULL;
        }
        spin_init(&f->pos_lock, &pos_class);
        spin_init(&f->poll_lock, &poll_class);
        list_init(&f->observers);
    }
    return f;
}

static void file_free(struct file *f)
{
    spin_lock(&free_lock);
    f->next_free = free_files;
    free_files = f;
    spin_unlock(&free_lock);
}

struct file *file_create(const struct file_ops *ops, void *priv, u32 flags)
{
    struct file *f = file_alloc();
    if (!f) {
        return NULL;
    }
    f->flags = flags & (O_ACCMODE | O_NONBLOCK | O_APPEND);
    f->ops = ops;
    f->priv = priv;
    f->priv2 = 0;
    f->pos = 0;
    f->epoll_items = 0;
    /* From here on a lock-free lookup may take it. */
    STORE_RELEASE(f->refs, 1);
    return f;
}

void file_put(struct file *f)
{
    if (likely(__atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) != 0)) {
        return;
    }
    if (READ_ONCE(f->epoll_items) != 0) {
        epoll_forget_file(f);
    }
    if (f->ops->release) {
        f->ops->release(f);
    }
    DEBUG_ASSERT(list_empty(&f->observers));
    file_free(f);
}

void file_observe(struct file *f, struct observer *o)
{
    struct epoll *ep = file_epoll(f);
    if (unlikely(ep)) {
        epoll_watch(ep, o);
        return;
    }
    irqflags_t flags = spin_lock_irq(&f->poll_lock);
    list_push_back(&f->observers, &o->node);
    spin_unlock_irq(&f->poll_lock, flags);
}

void file_unobserve(struct file *f, struct observer *o)
{
    struct epoll *ep = file_epoll(f);
    if (unlikely(ep)) {
        epoll_unwatch(ep, o);
        return;
    }
    irqflags_t flags = spin_lock_irq(&f->poll_lock);
    list_remove(&o->node);
    spin_unlock_irq(&f->poll_lock, flags);
}

void file_notify(struct file *f, u32 events, struct wake_batch *batch)
{
    struct wake_batch own;
    /* Registering takes the lock before it looks at readiness; the caller made the file ready before it came here. The
     * fence makes one of the two see the other, so that a file without observers costs no lock. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (READ_ONCE(f->observers.next) == &f->observers) {
        return;
    }
    if (!batch) {
        wake_batch_begin(&own);
    }
    irqflags_t flags = spin_lock_irq(&f->poll_lock);
    list_for_each_safe(node, next, &f->observers) {
        struct observer *o = list_entry(node, struct observer, node);
        if (events & (o->events | POLL_ALWAYS)) {
            o->fn(o, events, batch ? batch : &own);
        }
    }
    spin_unlock_irq(&f->poll_lock, flags);
    if (!batch) {
        wake_batch_flush(&own);
    }
}

struct wait_observer {
    struct observer observer;
    struct thread *thread;
};

static void wait_event(struct observer *o, u32 events, struct wake_batch *batch)
{
    struct wait_observer *w = container_of(o, struct wait_observer, observer);
    (void)events;
    thread_unpark_batch(w->thread, batch);
}

int file_wait(struct file *f, u32 events, u64 deadline_ns, enum wait_kind kind)
{
    struct wait_observer w = { .observer = { .fn = wait_event, .events = events },
                               .thread = current_thread() };
    int result = 0;
    list_init(&w.observer.node);
    file_observe(f, &w.observer);
    /* file_observe() releases a lock; the fence orders its list change before our look at readiness. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    while (!(file_poll(f) & (events | POLL_ALWAYS))) {
        enum park_result r = thread_park(deadline_ns, kind, (u64)(uintptr_t)f);
        if (r == PARK_TIMEOUT) {
            result = -EAGAIN;
            break;
        }
        if (r == PARK_INTERRUPTED && signal_wait_ends()) {
            result = -ERESTART;
            break;
        }
    }
    file_unobserve(f, &w.observer);
    return result;
}

void file_init(void)
{
    ASSERT(free_files == NULL);
}
