/* epoll sets: epoll.c; the calls around them: sys_epoll.c. */
#ifndef WEIR_CORE_KERN_EPOLL_H
#define WEIR_CORE_KERN_EPOLL_H

#include "core/base/errno.h"
#include "core/kern/file.h"

#define EPOLLEXCLUSIVE (1u << 28)
#define EPOLLWAKEUP (1u << 29)
#define EPOLLONESHOT (1u << 30)
#define EPOLLET (1u << 31)
#define EPOLL_EVENT_BITS (~(EPOLLEXCLUSIVE | EPOLLWAKEUP | EPOLLONESHOT | EPOLLET))

/* Linux's struct epoll_event on x86-64. */
struct epoll_event64 {
    u32 events;
    u64 data;
} __packed;

struct epoll_item {
    struct observer observer; /* in file.observers */
    struct epoll *epoll;
    struct file *file;        /* no reference: the file removes the item before it goes */
    struct epoll_item *hash_next;
    u32 fd;
    /* epoll.lock */
    u32 wanted; /* as given, with the mode bits */
    u32 events; /* what counts now: 0 once a one-shot item has fired */
    u64 data;
    struct list again_node; /* of one epoll_collect() */
    bool reported; /* on that list */
    /* epoll.ready_lock */
    struct list ready_node;
    bool on_ready;
};

struct epoll {
    struct spinlock lock;
    struct epoll_item **table; /* by descriptor and file; chained */
    u32 buckets, items;
    struct spinlock ready_lock;
    struct list ready;
    struct list watchers; /* observers of the set itself (poll on an epoll descriptor) */
    struct waitq waiters;
};

/* All in thread context, no locks held. */
struct epoll *epoll_create(void);
void epoll_destroy(struct epoll *ep);
int epoll_add(struct epoll *ep, u32 fd, struct file *f, const struct epoll_event64 *event);
int epoll_modify(struct epoll *ep, u32 fd, struct file *f, const struct epoll_event64 *event);
int epoll_remove(struct epoll *ep, u32 fd, struct file *f);
/* Copies up to max ready events to application memory: how many, -EFAULT. */
i64 epoll_collect(struct epoll *ep, u64 events_addr, u32 max);
/* Something may be ready. */
bool epoll_is_ready(struct epoll *ep);
/* Wakes a waiter if something is left: called by one who took some. */
void epoll_wake_next(struct epoll *ep);
void epoll_watch(struct epoll *ep, struct observer *o);
void epoll_unwatch(struct epoll *ep, struct observer *o);

#endif
