/* epoll: a set of files with the events that are wanted of each, and the list of those that may be ready.
 *
 * Locks, in order:
 *   registry_lock (below RANK_FILE)  which items a file and a set have: taken to add and remove items, never to wait
 *   epoll.lock    (RANK_FILE)        the set's table and its items' settings; held while a waiter looks at files
 *   file.poll_lock (RANK_POLL)       an item hangs in its file's observers
 *   epoll.ready_lock (RANK_POLL + 1, irq) ready list and waiters
 *
 * An event (item_event, from any context) puts the item on the ready list unless it is there, and wakes one waiter. A waiter
 * takes items off the list one by one under epoll.lock and asks each file what is ready now; level-triggered items that
 * are ready go to the end of the list again. So an event is lost only if the file is no longer ready, and one event
 * wakes one waiter; a waiter that leaves items behind wakes the next.
 *
 * A file that loses its last reference removes its items (epoll_forget_file) before its type's release. A set that is
 * released removes all of its own. Sets inside sets are refused. */
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/epoll.h"
#include "core/kern/signal.h"
#include "core/mm/mm.h"

static struct lock_class registry_class = { .name = "epoll_registry", .rank = RANK_PROC + 5 };
static struct lock_class epoll_class = { .name = "epoll", .rank = RANK_FILE };
static struct lock_class ready_class = { .name = "epoll_ready", .rank = RANK_POLL + 1, .irq = true };
static struct spinlock registry_lock = SPINLOCK_INIT(&registry_class);

static struct epoll_item **slot_of(struct epoll *ep, u32 fd, const struct file *f)
{
    u64 hash = mix64(fd ^ (u64)(uintptr_t)f);
    struct epoll_item **slot = &ep->table[hash & (ep->buckets - 1)];
    while (*slot && ((*slot)->fd != fd || (*slot)->file != f)) {
        slot = &(*slot)->hash_next;
    }
    return slot;
}

/* ---- events ---- */

/* On the list, and somebody hears of it. ready_lock held. */
static void make_ready_locked(struct epoll_item *item, struct wake_batch *batch)
{
    struct epoll *ep = item->epoll;
    if (item->on_ready) {
        return;
    }
    item->on_ready = true;
    list_push_back(&ep->ready, &item->ready_node);
    if (waitq_wake(&ep->waiters, 1, batch) == 0) {
        /* Nobody in epoll_wait: who polls the set itself hears of it. */
        list_for_each_safe(node, next, &ep->watchers) {
            struct observer *o = list_entry(node, struct observer, node);
            o->fn(o, POLLIN, batch);
        }
    }
}

static void item_event(struct observer *o, u32 events, struct wake_batch *batch)
{
    struct epoll_item *item = container_of(o, struct epoll_item, observer);
    (void)events;
    irqflags_t flags = spin_lock_irq(&item->epoll->ready_lock);
    make_ready_locked(item, batch);
    spin_unlock_irq(&item->epoll->ready_lock, flags);
}

/* After a change of settings: queued if the file is ready already. epoll.lock held. */
static void look_at(struct epoll_item *item)
{
    struct wake_batch batch;
    if (!(file_poll(item->file) & (item->events | POLL_ALWAYS))) {
        return;
    }
    wake_batch_begin(&batch);
    irqflags_t flags = spin_lock_irq(&item->epoll->ready_lock);
    make_ready_locked(item, &batch);
    spin_unlock_irq(&item->epoll->ready_lock, flags);
    wake_batch_flush(&batch);
}

/* ---- the set ---- */

static void grow(struct epoll *ep)
{
    struct epoll_item **old = ep->table;
    u32 old_buckets = ep->buckets;
    struct epoll_item **table = kzalloc(sizeof(*table) * old_buckets * 2);
    if (!table) {
        return; /* longer chains, nothing else */
    }
    ep->table = table;
    ep->buckets = old_buckets * 2;
    for (u32 i = 0; i < old_buckets; i++) {
        while (old[i]) {
            struct epoll_item *item = old[i];
            old[i] = item->hash_next;
            item->hash_next = NULL;
            *slot_of(ep, item->fd, item->file) = item;
        }
    }
    kfree(old);
}

static void settings(struct epoll_item *item, const struct epoll_event64 *event)
{
    item->wanted = event->events;
    item->data = event->data;
    WRITE_ONCE(item->events, event->events & EPOLL_EVENT_BITS);
    WRITE_ONCE(item->observer.events, item->events);
}

int epoll_add(struct epoll *ep, u32 fd, struct file *f, const struct epoll_event64 *event)
{
    struct epoll_item *item = kzalloc(sizeof(*item));
    if (!item) {
        return -ENOMEM;
    }
    item->epoll = ep;
    item->file = f;
    item->fd = fd;
    item->observer.fn = item_event;
    list_init(&item->observer.node);
    list_init(&item->ready_node);
    settings(item, event);
    spin_lock(&registry_lock);
    spin_lock(&ep->lock);
    struct epoll_item **slot = slot_of(ep, fd, f);
    bool fresh = !*slot;
    if (fresh) {
        *slot = item;
        if (++ep->items > ep->buckets) {
            grow(ep);
        }
        f->epoll_items++;
        file_observe(f, &item->observer);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        look_at(item);
    }
    spin_unlock(&ep->lock);
    spin_unlock(&registry_lock);
    if (!fresh) {
        kfree(item);
    }
    return fresh ? 0 : -EEXIST;
}

int epoll_modify(struct epoll *ep, u32 fd, struct file *f, const struct epoll_event64 *event)
{
    spin_lock(&ep->lock);
    struct epoll_item *item = *slot_of(ep, fd, f);
    if (item) {
        settings(item, event);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        look_at(item);
    }
    spin_unlock(&ep->lock);
    return item ? 0 : -ENOENT;
}

/* Takes the item in *slot out of everything and frees it. registry_lock and epoll.lock held. */
static void remove_locked(struct epoll *ep, struct epoll_item **slot)
{
    struct epoll_item *item = *slot;
    *slot = item->hash_next;
    ep->items--;
    item->file->epoll_items--;
    file_unobserve(item->file, &item->observer); /* no event comes from here on */
    irqflags_t flags = spin_lock_irq(&ep->ready_lock);
    list_remove(&item->ready_node);
    spin_unlock_irq(&ep->ready_lock, flags);
    kfree(item);
}

int epoll_remove(struct epoll *ep, u32 fd, struct file *f)
{
    spin_lock(&registry_lock);
    spin_lock(&ep->lock);
    struct epoll_item **slot = slot_of(ep, fd, f);
    bool there = *slot;
    if (there) {
        remove_locked(ep, slot);
    }
    spin_unlock(&ep->lock);
    spin_unlock(&registry_lock);
    return there ? 0 : -ENOENT;
}

/* One item of a file: the observers that are ours are recognised by their function. */
static struct epoll_item *first_item(struct file *f)
{
    struct epoll_item *found = NULL;
    irqflags_t flags = spin_lock_irq(&f->poll_lock);
    list_for_each(node, &f->observers) {
        struct observer *o = list_entry(node, struct observer, node);
        if (o->fn == item_event) {
            found = container_of(o, struct epoll_item, observer);
            break;
        }
    }
    spin_unlock_irq(&f->poll_lock, flags);
    return found;
}

void epoll_forget_file(struct file *f)
{
    struct epoll_item *item;
    spin_lock(&registry_lock); /* items of f neither come nor go */
    while ((item = first_item(f)) != NULL) {
        struct epoll *ep = item->epoll;
        spin_lock(&ep->lock);
        remove_locked(ep, slot_of(ep, item->fd, f));
        spin_unlock(&ep->lock);
    }
    spin_unlock(&registry_lock);
}

/* ---- waiting ---- */

bool epoll_is_ready(struct epoll *ep)
{
    return READ_ONCE(ep->ready.next) != &ep->ready;
}

static struct epoll_item *take_ready(struct epoll *ep)
{
    irqflags_t flags = spin_lock_irq(&ep->ready_lock);
    struct list *node = list_pop_front(&ep->ready);
    struct epoll_item *item = node ? list_entry(node, struct epoll_item, ready_node) : NULL;
    if (item) {
        item->on_ready = false;
    }
    spin_unlock_irq(&ep->ready_lock, flags);
    return item;
}

static void put_back(struct epoll *ep, struct list *items)
{
    struct list *node;
    irqflags_t flags = spin_lock_irq(&ep->ready_lock);
    while ((node = list_pop_front(items)) != NULL) {
        struct epoll_item *item = list_entry(node, struct epoll_item, again_node);
        item->reported = false;
        if (!item->on_ready) {
            item->on_ready = true;
            list_push_back(&ep->ready, &item->ready_node);
        }
    }
    spin_unlock_irq(&ep->ready_lock, flags);
}

/* What the file shows of what the item wants; disarms one-shot items. */
static u32 claim(struct epoll_item *item)
{
    /* An event that comes after the look finds the item off the list and queues it again. */
    u32 events = file_poll(item->file) & (item->events | (item->events ? POLL_ALWAYS : 0));
    if (events && (item->wanted & EPOLLONESHOT)) {
        WRITE_ONCE(item->events, 0);
        WRITE_ONCE(item->observer.events, 0);
    }
    return events;
}

i64 epoll_collect(struct epoll *ep, u64 events_addr, u32 max)
{
    struct list again = LIST_INIT(again);
    u32 n = 0;
    i64 error = 0;
    spin_lock(&ep->lock);
    while (n < max && !error) {
        struct epoll_item *item = take_ready(ep);
        if (!item) {
            break;
        }
        if (item->reported) {
            continue; /* an event came after it was reported: it goes back to the list anyway */
        }
        struct epoll_event64 event = { claim(item), item->data };
        if (event.events == 0) {
            continue;
        }
        bool level = !(item->wanted & (EPOLLET | EPOLLONESHOT));
        if (!arch_copy_to_app(events_addr + n * sizeof(event), &event, sizeof(event))) {
            error = -EFAULT;
            level = true; /* nobody got it */
        } else {
            n++;
        }
        if (level) {
            item->reported = true;
            list_push_back(&again, &item->again_node);
        }
    }
    put_back(ep, &again);
    spin_unlock(&ep->lock);
    return n > 0 ? (i64)n : error;
}

void epoll_wake_next(struct epoll *ep)
{
    if (epoll_is_ready(ep)) {
        waitq_wake(&ep->waiters, 1, NULL);
    }
}

/* ---- life ---- */

void epoll_watch(struct epoll *ep, struct observer *o)
{
    irqflags_t flags = spin_lock_irq(&ep->ready_lock);
    list_push_back(&ep->watchers, &o->node);
    spin_unlock_irq(&ep->ready_lock, flags);
}

void epoll_unwatch(struct epoll *ep, struct observer *o)
{
    irqflags_t flags = spin_lock_irq(&ep->ready_lock);
    list_remove(&o->node);
    spin_unlock_irq(&ep->ready_lock, flags);
}

struct epoll *epoll_create(void)
{
    struct epoll *ep = kzalloc(sizeof(*ep));
    struct epoll_item **table = kzalloc(sizeof(*table) * EPOLL_BUCKETS_MIN);
    if (!ep || !table) {
        kfree(ep);
        kfree(table);
        return NULL;
    }
    spin_init(&ep->lock, &epoll_class);
    spin_init(&ep->ready_lock, &ready_class);
    list_init(&ep->ready);
    list_init(&ep->watchers);
    waitq_init(&ep->waiters);
    ep->table = table;
    ep->buckets = EPOLL_BUCKETS_MIN;
    return ep;
}

void epoll_destroy(struct epoll *ep)
{
    spin_lock(&registry_lock);
    spin_lock(&ep->lock);
    for (u32 i = 0; i < ep->buckets; i++) {
        while (ep->table[i]) {
            remove_locked(ep, &ep->table[i]);
        }
    }
    spin_unlock(&ep->lock);
    spin_unlock(&registry_lock);
    kfree(ep->table);
    kfree(ep);
}
