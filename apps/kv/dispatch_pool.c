/* Pool dispatch: poller threads find connections with input and give each to an idle worker, or
 * queue it when there is none; workers take the queue in order, serve one batch each, and arm the
 * connection again.
 *
 * DESIGN. Every connection is in exactly one place: armed in epoll (one-shot), in the queue, or
 * with a worker; nobody else touches it then. The pool starts with `min` workers and grows by one
 * whenever something is queued while no worker is idle, up to `max`; a worker above `min` that has
 * been idle for KV_WORKER_IDLE_S ends. A worker that waits (for a client that reads slowly, for a
 * lock) keeps its slot: that is what the width is about.
 *
 * Each worker sleeps on a semaphore of its own and wakes with its connection in hand, so that waking
 * takes no lock: with a condition variable every woken worker queued up for the lock that the poller
 * held again, and 64 workers did half of what 4 did. The last to fall idle is woken first: its stack
 * is warm, and those at the bottom are idle long enough to end. */
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "apps/kv/clock.h"
#include "apps/kv/server.h"

/* A worker; lives on its thread's stack. */
struct pool_worker {
    sem_t wake;
    struct conn *conn; /* given to it; written under the pool's lock, read after `wake` */
    /* under the pool's lock */
    struct pool_worker *below, **link; /* among the idle */
    /* the worker's own: of a connection that came without the lock, to be added with the next */
    uint64_t waited_ns;
    bool handed;
};

/* Watches its share of the connections. */
struct poller {
    struct pool *pool;
    int epfd;
};

struct pool {
    struct server *srv;    /* constant */
    int wake_fd;           /* constant: ends the first poller's wait, to start sweeping */
    unsigned npollers;     /* constant */
    struct poller *pollers; /* constant */
    _Atomic unsigned next_poller; /* of a new connection */
    _Atomic bool sweeping; /* some connection may have a time-out running */
    pthread_mutex_t lock;
    /* under lock */
    struct conn *head, **tail;
    struct pool_worker *idle_top;
    unsigned width; /* workers that exist */
    unsigned idle;  /* of these, waiting for work */
    uint64_t queued, queue_peak;
    uint64_t dequeued, queue_ns, queue_ns_max;
};

static void *work_loop(void *arg);

/* Starts a worker; the lock is held. */
static int grow(struct pool *p)
{
    int err;

    p->width++;
    err = thread_start(work_loop, p);
    if (err) {
        p->width--;
    }
    return err;
}

/* ---- the idle workers; the lock is held ---- */

static void idle_push(struct pool *p, struct pool_worker *w)
{
    w->conn = NULL;
    w->below = p->idle_top;
    w->link = &p->idle_top;
    if (w->below) {
        w->below->link = &w->below;
    }
    p->idle_top = w;
    p->idle++;
}

static void idle_remove(struct pool *p, struct pool_worker *w)
{
    *w->link = w->below;
    if (w->below) {
        w->below->link = w->link;
    }
    p->idle--;
}

/* ---- the poller's side ---- */

/* Gives the connection to an idle worker, which is to be woken then; or queues it: NULL. */
static struct pool_worker *give(struct pool *p, struct conn *c, uint64_t now_ns)
{
    struct pool_worker *w = p->idle_top;

    c->queue_next = NULL;
    c->queued_ns = now_ns;
    if (w) {
        idle_remove(p, w);
        w->conn = c;
        return w;
    }
    *p->tail = c;
    p->tail = &c->queue_next;
    if (++p->queued > p->queue_peak) {
        p->queue_peak = p->queued;
    }
    if (p->width < p->srv->width.max) {
        grow(p); /* if the system refuses, the present workers go on */
    }
    return NULL;
}

/* All that one look found, under one hold of the lock; the wakes come after it. */
static void give_all(struct pool *p, struct conn *const *conns, int n)
{
    struct pool_worker *woken[KV_POLL_BATCH];
    uint64_t now_ns = clock_mono_ns();
    int wakes = 0;

    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < n; i++) {
        (void)atomic_load_explicit(&conns[i]->armed, memory_order_acquire);
        woken[wakes] = give(p, conns[i], now_ns);
        wakes += woken[wakes] != NULL;
    }
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < wakes; i++) {
        sem_post(&woken[i]->wake);
    }
}

/* ---- a worker's side ---- */

static void count_wait(struct pool *p, uint64_t waited_ns)
{
    p->dequeued++;
    p->queue_ns += waited_ns;
    if (waited_ns > p->queue_ns_max) {
        p->queue_ns_max = waited_ns;
    }
}

static struct conn *queue_pop(struct pool *p)
{
    struct conn *c = p->head;

    if (c) {
        p->head = c->queue_next;
        if (!p->head) {
            p->tail = &p->head;
        }
        p->queued--;
        count_wait(p, clock_mono_ns() - c->queued_ns);
    }
    return c;
}

/* Waits to be given a connection. False after KV_WORKER_IDLE_S, with `timed`. */
static bool wait_for_wake(struct pool_worker *w, bool timed)
{
    struct timespec until;
    int rc;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += KV_WORKER_IDLE_S;
    do {
        rc = timed ? sem_timedwait(&w->wake, &until) : sem_wait(&w->wake);
    } while (rc != 0 && errno == EINTR);
    return rc == 0;
}

/* The next connection, or NULL: this worker is to end. */
static struct conn *next_conn(struct pool *p, struct pool_worker *w)
{
    struct conn *c;
    bool timed;

    pthread_mutex_lock(&p->lock);
    if (w->handed) {
        count_wait(p, w->waited_ns);
        w->handed = false;
    }
    c = queue_pop(p);
    if (c) {
        pthread_mutex_unlock(&p->lock);
        return c;
    }
    idle_push(p, w);
    timed = p->width > p->srv->width.min;
    pthread_mutex_unlock(&p->lock);
    while (!wait_for_wake(w, timed)) {
        pthread_mutex_lock(&p->lock);
        timed = p->width > p->srv->width.min;
        if (!w->conn && timed) {
            idle_remove(p, w);
            p->width--;
            pthread_mutex_unlock(&p->lock);
            return NULL;
        }
        timed = timed && !w->conn; /* given one just now: its wake is under way */
        pthread_mutex_unlock(&p->lock);
    }
    w->handed = true;
    w->waited_ns = clock_mono_ns() - w->conn->queued_ns;
    return w->conn;
}

static int arm(struct pool *p, struct conn *c, int how)
{
    struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data.ptr = c};

    /* Whoever takes the connection next sees all that was done to it: the system orders epoll_ctl
     * before the event, this pair (see give_all) tells the compiler. */
    atomic_store_explicit(&c->armed, true, memory_order_release);
    return epoll_ctl(p->pollers[c->poller].epfd, how, c->fd, &ev);
}

static void start_sweep(struct pool *p)
{
    uint64_t one = 1;

    if (!atomic_exchange(&p->sweeping, true)) {
        (void)!write(p->wake_fd, &one, sizeof(one));
    }
}

static void *work_loop(void *arg)
{
    struct pool *p = arg;
    struct pool_worker self = {.conn = NULL};
    struct conn *c;

    thread_name("kv-worker");
    sem_init(&self.wake, 0, 0);
    while ((c = next_conn(p, &self)) != NULL) {
        bool mid;

        if (conn_batch(c, false) != CONN_OK) {
            conn_close(c);
            continue;
        }
        mid = atomic_load_explicit(&c->mid_since_ms, memory_order_relaxed) != 0;
        if (arm(p, c, EPOLL_CTL_MOD) != 0) { /* from here on it may be another worker's */
            conn_close(c);
        } else if (mid) {
            start_sweep(p);
        }
    }
    sem_destroy(&self.wake);
    return NULL;
}

/* Ends connections whose time-out has passed: their worker-to-be finds the stream closed. */
static void sweep(struct pool *p)
{
    uint64_t now = clock_wall_ms();
    bool more = false;

    atomic_store(&p->sweeping, false);
    pthread_mutex_lock(&p->srv->conns_lock);
    for (struct conn *c = p->srv->conns; c; c = c->next) {
        int ms = atomic_load(&c->kill) || atomic_load(&c->replying) ? -1 : conn_patience(c, now);

        if (ms == 0) {
            atomic_store(&c->kill, true);
            shutdown(c->fd, SHUT_RDWR);
        }
        more |= ms > 0;
    }
    pthread_mutex_unlock(&p->srv->conns_lock);
    if (more) {
        atomic_store(&p->sweeping, true);
    }
}

static void sweep_if_due(struct pool *p, uint64_t *next_ns)
{
    if (atomic_load(&p->sweeping) && clock_mono_ns() >= *next_ns) {
        sweep(p);
        *next_ns = clock_mono_ns() + KV_SWEEP_MS * 1000000ull;
    }
}

static void *poll_loop(void *arg)
{
    struct poller *own = arg;
    struct pool *p = own->pool;
    bool sweeps = own == p->pollers; /* the first one */
    struct epoll_event ev[KV_POLL_BATCH];
    struct conn *ready[KV_POLL_BATCH];
    uint64_t woken, next_ns = 0;
    int n, found;

    thread_name("kv-poll");
    for (;;) {
        n = epoll_wait(own->epfd, ev, KV_POLL_BATCH, sweeps && atomic_load(&p->sweeping) ? KV_SWEEP_MS : -1);
        found = 0;
        for (int i = 0; i < n; i++) {
            if (ev[i].data.ptr) {
                ready[found++] = ev[i].data.ptr;
            } else {
                (void)!read(p->wake_fd, &woken, sizeof(woken));
            }
        }
        if (found) {
            give_all(p, ready, found);
        }
        if (n < 0 && errno != EINTR) {
            fprintf(stderr, "kv: epoll_wait: %s\n", strerror(errno));
            return NULL;
        }
        if (sweeps) {
            sweep_if_due(p, &next_ns);
        }
    }
}

int dispatch_pool_add(struct server *srv, struct conn *c)
{
    struct pool *p = srv->pool;
    int err;

    c->poller = atomic_fetch_add_explicit(&p->next_poller, 1, memory_order_relaxed) % p->npollers;
    err = arm(p, c, EPOLL_CTL_ADD) == 0 ? 0 : errno;
    if (!err && atomic_load_explicit(&srv->idle_timeout_s, memory_order_relaxed)) {
        start_sweep(srv->pool);
    }
    return err;
}

static int start_threads(struct pool *p)
{
    int err = 0;

    for (unsigned i = 0; !err && i < p->npollers; i++) {
        err = thread_start(poll_loop, &p->pollers[i]);
    }
    pthread_mutex_lock(&p->lock);
    while (!err && p->width < p->srv->width.min) {
        err = grow(p);
    }
    pthread_mutex_unlock(&p->lock);
    return err;
}

/* 0 or an errno value. */
static int open_descriptors(struct pool *p)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};

    p->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (p->wake_fd < 0) {
        return errno;
    }
    for (unsigned i = 0; i < p->npollers; i++) {
        p->pollers[i] = (struct poller){.pool = p, .epfd = epoll_create1(EPOLL_CLOEXEC)};
        if (p->pollers[i].epfd < 0) {
            return errno;
        }
    }
    return epoll_ctl(p->pollers[0].epfd, EPOLL_CTL_ADD, p->wake_fd, &ev) == 0 ? 0 : errno;
}

int dispatch_pool_init(struct server *srv)
{
    struct pool *p = calloc(1, sizeof(*p));
    int err;

    if (p) {
        p->npollers = (srv->cpus + KV_CPUS_PER_POLLER - 1) / KV_CPUS_PER_POLLER;
        p->pollers = calloc(p->npollers, sizeof(*p->pollers));
    }
    if (!p || !p->pollers) {
        fprintf(stderr, "kv: no memory for the pool\n");
        return -1;
    }
    p->srv = srv;
    p->tail = &p->head;
    pthread_mutex_init(&p->lock, NULL);
    srv->pool = p;
    err = open_descriptors(p);
    if (!err) {
        err = start_threads(p);
    }
    if (err) {
        fprintf(stderr, "kv: cannot start the pool (%u..%u workers): %s\n", srv->width.min,
                srv->width.max, strerror(err));
        return -1;
    }
    return 0;
}

void dispatch_pool_stats(struct server *srv, struct pool_stats *s)
{
    struct pool *p = srv->pool;

    *s = (struct pool_stats){.min = srv->width.min, .max = srv->width.max};
    if (!p) {
        return;
    }
    pthread_mutex_lock(&p->lock);
    s->width = p->width;
    s->busy = p->width - p->idle;
    s->queued = p->queued;
    s->queue_peak = p->queue_peak;
    s->dequeued = p->dequeued;
    s->queue_ns = p->queue_ns;
    s->queue_ns_max = p->queue_ns_max;
    pthread_mutex_unlock(&p->lock);
}
