/* The maintenance thread: active expiry, rehash while idle, delayed flush, return of old bucket
 * arrays. It sleeps without a time-out when there is nothing of these, so that an idle server uses
 * no CPU. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "apps/kv/clock.h"
#include "apps/kv/server.h"

static int wake_fd = -1;
static _Atomic int woken; /* a byte is in wake_fd: saves the system call */

static void wake(void *ctx)
{
    uint64_t one = 1;

    (void)ctx;
    if (!atomic_exchange(&woken, 1)) {
        (void)!write(wake_fd, &one, sizeof(one));
    }
}

void maint_flush_at(struct server *srv, uint64_t when_ms)
{
    atomic_store(&srv->store.flush_at_ms, when_ms);
    wake(NULL);
}

/* Does a delayed flush that is due; returns ms until the next one, or -1. */
static int delayed_flush(struct server *srv)
{
    uint64_t at = atomic_load(&srv->store.flush_at_ms);
    uint64_t now = clock_wall_ms();
    struct op op;

    if (at == 0) {
        return -1;
    }
    if (now < at) {
        return at - now < 60000 ? (int)(at - now) : 60000;
    }
    if (atomic_compare_exchange_strong(&srv->store.flush_at_ms, &at, 0)) {
        op_begin(&op, &srv->store, now);
        store_flush(&op);
    }
    return -1;
}

static void *run(void *arg)
{
    struct server *srv = arg;
    struct pollfd pf = {.fd = wake_fd, .events = POLLIN};
    uint64_t n;
    int wait_ms, flush_ms;

    thread_name("kv-maint");
    for (;;) {
        if (atomic_exchange(&woken, 0)) {
            (void)!read(wake_fd, &n, sizeof(n));
        }
        flush_ms = delayed_flush(srv);
        memlevel_look(&srv->store);
        store_reclaim(&srv->store);
        wait_ms = !atomic_load(&srv->no_active_expire) && store_maintain(&srv->store, clock_wall_ms()) ? KV_MAINT_MS : -1;
        if (flush_ms >= 0 && (wait_ms < 0 || flush_ms < wait_ms)) {
            wait_ms = flush_ms;
        }
        if (wait_ms == KV_MAINT_MS) {
            /* Busy anyway: a wake brings nothing before the period is over. */
            poll(NULL, 0, wait_ms);
        } else {
            poll(&pf, 1, wait_ms);
        }
    }
    return NULL;
}

int maint_start(struct server *srv)
{
    int err;

    wake_fd = eventfd(0, EFD_CLOEXEC);
    if (wake_fd < 0) {
        fprintf(stderr, "kv: cannot create an eventfd: %s\n", strerror(errno));
        return -1;
    }
    srv->store.wake_maint = wake;
    err = thread_start(run, srv);
    if (err) {
        fprintf(stderr, "kv: cannot start the maintenance thread: %s\n", strerror(err));
        return -1;
    }
    return 0;
}
