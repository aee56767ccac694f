/* Accepting, and the default dispatch: a detached thread per connection. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/kv/server.h"

struct listener {
    struct server *srv;
    const struct proto *proto;
    int fd;
};

static struct listener listeners[2];

void thread_name(const char *name)
{
    prctl(PR_SET_NAME, name, 0, 0, 0);
}

int thread_start(void *(*fn)(void *), void *arg)
{
    pthread_attr_t attr;
    pthread_t t;
    int err;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, KV_STACK_SIZE);
    err = pthread_create(&t, &attr, fn, arg);
    pthread_attr_destroy(&attr);
    return err;
}

static void *serve(void *arg)
{
    struct conn *c = arg;

    thread_name("kv-conn");
    while (conn_batch(c, true) == CONN_OK) {
    }
    conn_close(c);
    return NULL;
}

/* The system has no descriptor or memory for a connection: say so once per burst and let others
 * finish, instead of spinning on the same error. */
static void pause_accepting(struct server *srv, int err)
{
    static _Atomic int said;

    atomic_fetch_add_explicit(&srv->count.refused_system, 1, memory_order_relaxed);
    if (!atomic_exchange(&said, 1)) {
        fprintf(stderr, "kv: cannot accept connections: %s (further ones are only counted)\n",
                strerror(err));
    }
    poll(NULL, 0, KV_ACCEPT_PAUSE_MS);
}

static void start_conn(struct server *srv, struct conn *c)
{
    int err;

    if (srv->pool) {
        err = dispatch_pool_add(srv, c);
    } else {
        err = thread_start(serve, c);
    }
    if (err) {
        (void)!send(c->fd, c->proto->refusal, strlen(c->proto->refusal),
                    MSG_NOSIGNAL | MSG_DONTWAIT);
        conn_close(c);
        pause_accepting(srv, err);
    }
}

static void *accept_loop(void *arg)
{
    struct listener *l = arg;

    thread_name("kv-accept");
    while (!atomic_load(&l->srv->stopping)) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
        struct conn *c;

        if (fd >= 0) {
            c = conn_open(l->srv, fd, l->proto);
            if (c) {
                start_conn(l->srv, c);
            }
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            pause_accepting(l->srv, errno);
        } else if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) {
            break; /* the listener was shut down */
        }
    }
    return NULL;
}

int dispatch_start(struct server *srv, const int fds[2])
{
    static const struct proto *const protos[2] = {&proto_resp, &proto_mc};
    int err;

    if (srv->cfg.dispatch == DISPATCH_POOL && dispatch_pool_init(srv) != 0) {
        return -1;
    }
    for (int i = 0; i < 2; i++) {
        if (fds[i] < 0) {
            continue;
        }
        listeners[i] = (struct listener){srv, protos[i], fds[i]};
        err = thread_start(accept_loop, &listeners[i]);
        if (err) {
            fprintf(stderr, "kv: cannot start an acceptor: %s\n", strerror(err));
            return -1;
        }
    }
    return 0;
}
