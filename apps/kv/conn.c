#include "apps/kv/conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/kv/clock.h"
#include "apps/kv/server.h"

#define COUNT(srv, field) atomic_fetch_add_explicit(&(srv)->count.field, 1, memory_order_relaxed)

static void refuse(int fd, const struct proto *proto)
{
    /* The socket is new: its buffer takes the line, or the client is gone. */
    (void)!send(fd, proto->refusal, strlen(proto->refusal), MSG_NOSIGNAL | MSG_DONTWAIT);
    close(fd);
}

static void name_peer(struct conn *c)
{
    struct sockaddr_in sa;
    socklen_t len = sizeof(sa);
    uint32_t ip = 0;
    unsigned port = 0;

    memset(&sa, 0, sizeof(sa));
    if (getpeername(c->fd, (struct sockaddr *)&sa, &len) == 0 && sa.sin_family == AF_INET) {
        ip = ntohl(sa.sin_addr.s_addr);
        port = ntohs(sa.sin_port);
    }
    snprintf(c->addr, sizeof(c->addr), "%u.%u.%u.%u:%u", ip >> 24, (ip >> 16) & 255,
             (ip >> 8) & 255, ip & 255, port);
}

static bool enlist(struct server *srv, struct conn *c)
{
    bool ok;

    pthread_mutex_lock(&srv->conns_lock);
    ok = srv->nconns < atomic_load(&srv->max_conns);
    if (ok) {
        c->id = ++srv->next_id;
        c->next = srv->conns;
        if (c->next) {
            c->next->prev = c;
        }
        srv->conns = c;
        if (++srv->nconns > srv->peak_conns) {
            srv->peak_conns = srv->nconns;
        }
    }
    pthread_mutex_unlock(&srv->conns_lock);
    return ok;
}

static void delist(struct server *srv, struct conn *c)
{
    pthread_mutex_lock(&srv->conns_lock);
    if (c->next) {
        c->next->prev = c->prev;
    }
    if (c->prev) {
        c->prev->next = c->next;
    } else {
        srv->conns = c->next;
    }
    srv->nconns--;
    srv->count.commands += c->commands;
    srv->count.bytes_in += c->bytes_in;
    srv->count.bytes_out += c->bytes_out;
    srv->count.batches += c->batches;
    pthread_mutex_unlock(&srv->conns_lock);
}

struct conn *conn_open(struct server *srv, int fd, const struct proto *proto)
{
    struct conn *c = calloc(1, sizeof(*c));
    int one = 1;

    if (!c) {
        COUNT(srv, refused_system);
        refuse(fd, proto);
        return NULL;
    }
    c->fd = fd;
    c->proto = proto;
    c->srv = srv;
    c->opened_ms = clock_wall_ms();
    c->active_ms = c->opened_ms;
    name_peer(c);
    op_begin(&c->op, &srv->store, c->opened_ms);
    if (!enlist(srv, c)) {
        COUNT(srv, refused_limit);
        refuse(fd, proto);
        free(c);
        return NULL;
    }
    COUNT(srv, accepted);
    mem_force(&srv->store.mem, sizeof(*c) + KV_CONN_CHARGE);
    if (proto->open(c) != 0) {
        COUNT(srv, refused_system);
        conn_close(c);
        return NULL;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return c;
}

void conn_close(struct conn *c)
{
    struct mem *m = &c->srv->store.mem;

    c->proto->close(c);
    delist(c->srv, c);
    buf_free(&c->in, m);
    buf_free(&c->out, m);
    mem_release(m, sizeof(*c) + KV_CONN_CHARGE);
    close(c->fd);
    free(c);
}

char *conn_out_grow(struct conn *c, size_t n)
{
    if (c->dropping) {
        return NULL;
    }
    if (!buf_reserve(&c->out, n, c->srv->cfg.max_output, &c->srv->store.mem)) {
        COUNT(c->srv, over_output);
        c->dropping = true;
        return NULL;
    }
    return c->out.p + c->out.len;
}

/* ---- waiting ---- */

int conn_patience(struct conn *c, uint64_t now_ms)
{
    uint64_t since = atomic_load_explicit(&c->mid_since_ms, memory_order_relaxed);
    uint64_t limit = c->srv->cfg.partial_timeout_s * 1000;
    bool mid = since && limit;

    if (!mid) {
        since = atomic_load_explicit(&c->active_ms, memory_order_relaxed);
        limit = atomic_load_explicit(&c->srv->idle_timeout_s, memory_order_relaxed) * 1000;
    }
    if (limit == 0) {
        return -1;
    }
    if (now_ms >= since + limit) {
        if (mid) {
            COUNT(c->srv, timed_out_partial);
        } else {
            COUNT(c->srv, timed_out_idle);
        }
        return 0;
    }
    limit = since + limit - now_ms;
    return limit < KV_POLL_MAX_MS ? (int)limit : KV_POLL_MAX_MS;
}

/* Waits for input within the time-outs; false when one has passed. */
static bool wait_input(struct conn *c)
{
    struct pollfd pf = {.fd = c->fd, .events = POLLIN};
    int ms, n;

    if (!atomic_load_explicit(&c->mid_since_ms, memory_order_relaxed) &&
        !atomic_load_explicit(&c->srv->idle_timeout_s, memory_order_relaxed)) {
        return true; /* the read itself waits */
    }
    for (;;) {
        ms = conn_patience(c, clock_wall_ms());
        if (ms <= 0) {
            return ms < 0;
        }
        n = poll(&pf, 1, ms);
        if (n > 0) {
            return true;
        }
        if (n < 0 && errno != EINTR) {
            return false;
        }
    }
}

void conn_flush(struct conn *c)
{
    struct pollfd pf = {.fd = c->fd, .events = POLLOUT};
    ssize_t n;

    while (c->out.pos < c->out.len && !c->dropping) {
        n = send(c->fd, c->out.p + c->out.pos, c->out.len - c->out.pos,
                 MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            c->out.pos += (size_t)n;
            count_add(&c->bytes_out, (uint64_t)n);
        } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            int ready = poll(&pf, 1, KV_WRITE_TIMEOUT_MS);

            if (ready == 0) {
                COUNT(c->srv, timed_out_write);
            }
            if (ready == 0 || (ready < 0 && errno != EINTR)) {
                c->dropping = true;
            }
        } else if (n == 0 || errno != EINTR) {
            c->dropping = true;
        }
    }
    c->out.pos = 0;
    c->out.len = 0;
}

/* ---- input ---- */

static bool make_room(struct conn *c)
{
    struct buf *b = &c->in;

    if (b->pos == b->len) {
        b->pos = 0;
        b->len = 0;
    } else if (b->pos > 0 && b->len == b->cap) {
        memmove(b->p, b->p + b->pos, b->len - b->pos);
        b->len -= b->pos;
        b->pos = 0;
    }
    if (b->len < b->cap) {
        return true;
    }
    return buf_reserve(b, b->cap ? b->cap : KV_BUF_MIN, c->srv->cfg.max_query,
                       &c->srv->store.mem) ||
           buf_reserve(b, 1, c->srv->cfg.max_query, &c->srv->store.mem);
}

/* Bytes read, 0 at the end of the stream or on an error, -1 for "nothing now". */
static ssize_t read_some(struct conn *c, bool wait)
{
    ssize_t n;

    do {
        n = recv(c->fd, c->in.p + c->in.len, c->in.cap - c->in.len, wait ? 0 : MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return errno == EAGAIN || errno == EWOULDBLOCK ? -1 : 0;
    }
    return n;
}

/* An unfinished request keeps the time of its first byte, however many reads it takes. */
static void note_progress(struct conn *c, bool consumed)
{
    bool mid = c->in.pos < c->in.len;
    uint64_t since = atomic_load_explicit(&c->mid_since_ms, memory_order_relaxed);

    if (!mid) {
        since = 0;
    } else if (!since || consumed) {
        since = c->op.now_ms;
    }
    atomic_store_explicit(&c->mid_since_ms, since, memory_order_relaxed);
    atomic_store_explicit(&c->held, c->in.cap + c->out.cap, memory_order_relaxed);
}

enum conn_state conn_batch(struct conn *c, bool wait)
{
    size_t before, out_peak;
    ssize_t n;

    if (!make_room(c)) {
        COUNT(c->srv, over_query);
        c->proto->too_big(c);
        conn_flush(c);
        return CONN_END;
    }
    if (wait && !wait_input(c)) {
        return CONN_END;
    }
    n = read_some(c, wait);
    if (n <= 0 || atomic_load_explicit(&c->kill, memory_order_relaxed)) {
        return n < 0 ? CONN_OK : CONN_END;
    }
    c->in.len += (size_t)n;
    c->in_peak = c->in.len;
    c->op.now_ms = clock_wall_ms();
    count_add(&c->bytes_in, (uint64_t)n);
    count_add(&c->batches, 1);
    atomic_store_explicit(&c->active_ms, c->op.now_ms, memory_order_relaxed);
    atomic_store_explicit(&c->replying, true, memory_order_relaxed);
    before = c->in.pos;
    c->proto->process(c);
    out_peak = c->out.len;
    if (!c->dropping) {
        conn_flush(c);
    }
    atomic_store_explicit(&c->replying, false, memory_order_relaxed);
    note_progress(c, c->in.pos != before);
    if (c->in.pos == c->in.len) {
        buf_relax(&c->in, c->in_peak, &c->srv->store.mem);
    }
    buf_relax(&c->out, out_peak, &c->srv->store.mem);
    return c->closing || c->dropping ? CONN_END : CONN_OK;
}
