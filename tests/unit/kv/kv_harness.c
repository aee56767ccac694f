#include "tests/unit/kv/kv_harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/kv/command.h"
#include "apps/kv/pages.h"

/* Any time later than 2001, so that Unix seconds look like those of today. */
_Atomic uint64_t harness_now_ms = 1700000000000ull;

struct collected {
    struct conn *c;
    char *p;
    size_t len, cap;
    struct collected *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct collected *all; /* under lock */

void __wrap_conn_flush(struct conn *c);

static void die(const char *what)
{
    fprintf(stderr, "kv_harness: %s\n", what);
    abort();
}

static struct collected *of(struct conn *c)
{
    struct collected *k;

    pthread_mutex_lock(&lock);
    for (k = all; k && k->c != c; k = k->next) {
    }
    pthread_mutex_unlock(&lock);
    if (!k) {
        die("no such connection");
    }
    return k;
}

void __wrap_conn_flush(struct conn *c)
{
    struct collected *k = of(c);

    if (c->dropping) {
        c->out.len = 0;
    }
    if (k->cap < k->len + c->out.len + 1) {
        k->cap = (k->len + c->out.len + 1) * 2;
        k->p = realloc(k->p, k->cap);
        if (!k->p) {
            die("no memory");
        }
    }
    if (c->out.len) {
        memcpy(k->p + k->len, c->out.p, c->out.len);
        k->len += c->out.len;
    }
    c->out.len = 0;
    c->out.pos = 0;
}

void harness_start(struct harness *h, const struct config *cfg)
{
    if (server_init(&h->srv, cfg) != 0) {
        die("server_init failed");
    }
    h->srv.store.secret[0] = 0x0706050403020100ull;
    h->srv.store.secret[1] = 0x0f0e0d0c0b0a0908ull;
}

void harness_stop(struct harness *h)
{
    while (h->srv.conns) {
        harness_close(h->srv.conns);
    }
    store_destroy(&h->srv.store);
    free(h->srv.cmd_slots);
    close(h->srv.stop_fd);
    pthread_mutex_destroy(&h->srv.conns_lock);
}

struct conn *harness_conn(struct harness *h, const struct proto *proto)
{
    struct conn *c = conn_open(&h->srv, -1, proto);
    struct collected *k;

    if (!c) {
        return NULL;
    }
    k = calloc(1, sizeof(*k));
    if (!k) {
        die("no memory");
    }
    k->c = c;
    pthread_mutex_lock(&lock);
    k->next = all;
    all = k;
    pthread_mutex_unlock(&lock);
    return c;
}

void harness_close(struct conn *c)
{
    struct collected **l, *k;

    pthread_mutex_lock(&lock);
    for (l = &all; (*l)->c != c; l = &(*l)->next) {
    }
    k = *l;
    *l = k->next;
    pthread_mutex_unlock(&lock);
    free(k->p);
    free(k);
    conn_close(c);
}

bool harness_feed(struct conn *c, const void *data, size_t n)
{
    if (c->closing || c->dropping) {
        return false;
    }
    /* As conn.c does it: what is consumed goes, the rest moves to the front when room is needed. */
    if (c->in.pos > 0) {
        memmove(c->in.p, c->in.p + c->in.pos, c->in.len - c->in.pos);
        c->in.len -= c->in.pos;
        c->in.pos = 0;
    }
    if (!buf_reserve(&c->in, n + 1, c->srv->cfg.max_query, &c->srv->store.mem)) {
        c->proto->too_big(c);
        __wrap_conn_flush(c);
        c->closing = true;
        return false;
    }
    if (n) {
        memcpy(c->in.p + c->in.len, data, n);
    }
    c->in.len += n;
    c->op.now_ms = atomic_load(&harness_now_ms);
    atomic_store(&c->active_ms, c->op.now_ms);
    if (c->in.len > c->in.pos) {
        c->proto->process(c);
    }
    if (!c->dropping) {
        __wrap_conn_flush(c);
    }
    return !c->closing && !c->dropping;
}

char *harness_take(struct conn *c, size_t *n)
{
    struct collected *k = of(c);
    char *p = malloc(k->len + 1);

    if (!p) {
        die("no memory");
    }
    if (k->len) {
        memcpy(p, k->p, k->len);
    }
    p[k->len] = '\0';
    *n = k->len;
    k->len = 0;
    return p;
}

char *harness_ask(struct conn *c, const char *request)
{
    size_t n;

    harness_feed(c, request, strlen(request));
    return harness_take(c, &n);
}
