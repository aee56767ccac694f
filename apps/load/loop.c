/*
 * The loops of a worker: blocking for a single connection in a closed loop (two system calls a
 * request), epoll for everything else.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "apps/load/worker.h"

#define EVENTS 256                  /* taken from one epoll_wait */
#define FAILURES_ALLOWED 3          /* of a connection, in a row, before it is given up */
#define NS_PER_MS 1000000ull

static int watch(struct worker *w, struct conn *c, bool write, int operation)
{
    struct epoll_event e;

    memset(&e, 0, sizeof(e));
    e.events = EPOLLIN | (write ? EPOLLOUT : 0);
    e.data.ptr = c;
    c->want_write = write;
    return epoll_ctl(w->epoll, operation, c->fd, &e) < 0 ? -errno : 0;
}

/* Opens a connection, retrying while the server does not listen yet. */
static int open_first(struct worker *w, struct conn *c)
{
    uint64_t until = load_now() + w->options->connect_wait_ms * NS_PER_MS;
    int error;

    while ((error = conn_open(c, &w->server, true)) != 0) {
        struct timespec pause = {0, LOAD_CONNECT_RETRY_US * 1000};

        if (load_now() >= until || (error != -ECONNREFUSED && error != -ENETUNREACH &&
                                    error != -EHOSTUNREACH && error != -ETIMEDOUT)) {
            return error;
        }
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* ---- one connection, blocking ---------------------------------------------------------- */

/* Replaces the connection (churn) or opens it again after a failure. False: given up. */
static bool reopen_blocking(struct worker *w, struct conn *c, bool failed, uint64_t now)
{
    worker_abandon(w, c);
    if (failed) {
        w->counts.disconnects += !worker_is_over(w, now);
        c->failures++;
    } else {
        w->counts.replaced++;
    }
    while (c->failures < FAILURES_ALLOWED && !worker_is_over(w, now)) {
        if (conn_open(c, &w->server, true) == 0) {
            c->replaced_ns = failed ? 0 : now;
            return true;
        }
        c->failures++;
        now = load_now();
    }
    return false;
}

static void run_blocking(struct worker *w)
{
    struct conn *c = &w->conns[0];
    uint64_t now = load_now();

    for (;;) {
        int error;

        worker_refill(w, c, now);
        if (!c->in_flight) {
            if (worker_is_over(w, now) || !reopen_blocking(w, c, false, now)) {
                return;
            }
            continue;
        }
        error = conn_flush(c);
        if (!error) {
            long n = conn_fill(c);

            error = n < 0 ? (int)n : 0;
        }
        now = load_now();
        worker_watch_cpu(w, now);
        if (!error) {
            error = worker_take_replies(w, c, now);
        }
        if (error && !reopen_blocking(w, c, true, now)) {
            w->lost++;
            return;
        }
    }
}

/* ---- many connections, epoll ------------------------------------------------------------ */

static void send_pending(struct worker *w, struct conn *c);

static void reopen(struct worker *w, struct conn *c, bool failed, uint64_t now)
{
    worker_abandon(w, c);
    if (failed) {
        w->counts.disconnects += !worker_is_over(w, now);
        c->failures++;
    } else {
        w->counts.replaced++;
        c->replaced_ns = now;
    }
    while (c->failures < FAILURES_ALLOWED && !worker_is_over(w, now)) {
        if (conn_open(c, &w->server, false) == 0 &&
            watch(w, c, c->state == CONN_CONNECTING, EPOLL_CTL_ADD) == 0) {
            if (c->state == CONN_OPEN && w->rate == 0) {
                worker_refill(w, c, now);
                send_pending(w, c);
            }
            return;
        }
        conn_close(c);
        c->failures++;
    }
    w->lost += c->failures >= FAILURES_ALLOWED;
}

static void send_pending(struct worker *w, struct conn *c)
{
    int left = conn_flush(c);

    if (left < 0) {
        reopen(w, c, true, load_now());
    } else if ((left == 1) != c->want_write) {
        watch(w, c, left == 1, EPOLL_CTL_MOD);
    }
}

/* Open loop: sends what is due as far as connections are free; the rest stays due. */
static void send_due(struct worker *w, uint64_t now)
{
    uint32_t tried = 0;

    while (w->next_due <= now && tried < w->nconns && !worker_is_over(w, now)) {
        struct conn *c = &w->conns[w->next_conn];

        w->next_conn = w->next_conn + 1 < w->nconns ? w->next_conn + 1 : 0;
        if (c->state != CONN_OPEN || c->in_flight >= w->pipeline) {
            tried++;
            continue;
        }
        tried = 0;
        if (c->idle_since_ns <= w->next_due && w->next_due >= w->window->begin) {
            hist_add(&w->late, now - w->next_due);
        }
        worker_send_one(w, c, w->next_due);
        w->next_due += worker_gap(w);
        send_pending(w, c);
    }
}

static bool has_free(const struct worker *w)
{
    for (uint32_t i = 0; i < w->nconns; i++) {
        if (w->conns[i].state == CONN_OPEN && w->conns[i].in_flight < w->pipeline) {
            return true;
        }
    }
    return false;
}

/* Makes epoll_wait return at the next intended time, if a connection could take it. Setting the
 * timer also forgets an expiry that was not read. */
static void arm_timer(struct worker *w, uint64_t now)
{
    struct itimerspec t;

    memset(&t, 0, sizeof(t));
    if (has_free(w) && !worker_is_over(w, now)) {
        uint64_t gap = w->next_due > now ? w->next_due - now : 1;

        t.it_value.tv_sec = (time_t)(gap / 1000000000ull);
        t.it_value.tv_nsec = (long)(gap % 1000000000ull);
    }
    timerfd_settime(w->timer, 0, &t, NULL);
}

static void on_event(struct worker *w, struct conn *c, uint32_t events, uint64_t now)
{
    int error = 0;

    if (c->state == CONN_CONNECTING) {
        error = conn_finish_open(c);
        if (!error) {
            error = watch(w, c, false, EPOLL_CTL_MOD);
        }
    } else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        long n = conn_fill(c);

        error = n < 0 ? (int)n : worker_take_replies(w, c, now);
    }
    if (error) {
        reopen(w, c, true, now);
        return;
    }
    if (w->rate == 0) {
        worker_refill(w, c, now);
        if (!c->in_flight && !worker_is_over(w, now)) {
            reopen(w, c, false, now);       /* --churn: it has served its number */
            return;
        }
    }
    if (c->out_start < c->out_end || c->want_write) {
        send_pending(w, c);
    }
}

/* Milliseconds until there is something to do without an event: the end, then giving up. */
static int patience(const struct worker *w, uint64_t now)
{
    uint64_t until = worker_is_over(w, now) ? w->window->give_up : w->window->end;
    uint64_t ms = until > now ? (until - now + NS_PER_MS - 1) / NS_PER_MS : 0;

    return ms > 1000 ? 1000 : (int)ms;
}

static void run_epoll(struct worker *w)
{
    struct epoll_event events[EVENTS];
    uint64_t now = load_now();

    for (uint32_t i = 0; w->rate == 0 && i < w->nconns; i++) {
        worker_refill(w, &w->conns[i], now);
        send_pending(w, &w->conns[i]);
    }
    while (w->lost < w->nconns && !(worker_is_over(w, now) && !w->in_flight) &&
           now < w->window->give_up) {
        uint64_t woken;
        int n;

        if (w->rate > 0) {
            send_due(w, now);
            arm_timer(w, now);
        }
        n = epoll_wait(w->epoll, events, EVENTS, patience(w, now));
        woken = now = load_now();
        worker_watch_cpu(w, now);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr) {
                now = i ? load_now() : woken;
                w->counts.queue_ns += now - woken;
                on_event(w, events[i].data.ptr, events[i].events, now);
            }
        }
    }
}

/* ---- the thread ------------------------------------------------------------------------- */

static int set_up(struct worker *w, bool blocking)
{
    struct epoll_event e;
    int error = 0;

    for (uint32_t i = 0; i < w->nconns && !error; i++) {
        error = open_first(w, &w->conns[i]);
    }
    if (error || blocking) {
        return error;
    }
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (w->epoll < 0 || w->timer < 0) {
        return -errno;
    }
    memset(&e, 0, sizeof(e));
    e.events = EPOLLIN;             /* data.ptr NULL: the timer */
    if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->timer, &e) < 0) {
        return -errno;
    }
    for (uint32_t i = 0; i < w->nconns && !error; i++) {
        error = conn_set_nonblocking(&w->conns[i]);
        error = error ? error : watch(w, &w->conns[i], false, EPOLL_CTL_ADD);
    }
    return error;
}

static void pin(int cpu)
{
    cpu_set_t set;

    if (cpu >= 0) {
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        sched_setaffinity(0, sizeof(set), &set);
    }
}

void worker_run(struct worker *w)
{
    bool blocking = w->nconns == 1 && w->rate == 0;

    pin(w->cpu);
    w->epoll = w->timer = -1;
    hist_reset(&w->latency);
    hist_reset(&w->late);
    w->failed = set_up(w, blocking);
    pthread_barrier_wait(w->barrier);
    pthread_barrier_wait(w->barrier);
    if (!w->failed && w->window->end) {
        w->next_due = w->window->start + (w->rate > 0 ? worker_gap(w) : 0);
        if (blocking) {
            run_blocking(w);
        } else {
            run_epoll(w);
        }
    }
    worker_watch_cpu(w, load_now());
    w->busy = w->wall_end > w->wall_begin && w->cpu_end > w->cpu_begin
                  ? (double)(w->cpu_end - w->cpu_begin) / (double)(w->wall_end - w->wall_begin)
                  : -1.0;
    for (uint32_t i = 0; i < w->nconns; i++) {
        w->counts.unfinished += w->conns[i].in_flight;
    }
}

void worker_close(struct worker *w)
{
    for (uint32_t i = 0; i < w->nconns; i++) {
        conn_close(&w->conns[i]);
    }
    if (w->epoll >= 0) {
        close(w->epoll);
    }
    if (w->timer >= 0) {
        close(w->timer);
    }
}
