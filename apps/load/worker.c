/* Requests and replies of one worker; see worker.h. */
#include "apps/load/worker.h"

#include <errno.h>
#include <math.h>
#include <time.h>

#include "apps/load/rng.h"

#define NS_PER_S 1000000000ull

/* Exponential distribution with mean 1, as 2^-16 fixed point, by equal shares: no logarithm on
 * the way of a request. The mean of the table is 1 but for 0.01%. */
#define GAPS 4096
static uint32_t gaps[GAPS];

uint64_t load_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

void worker_init_gaps(void)
{
    for (int i = 0; i < GAPS; i++) {
        gaps[i] = (uint32_t)(-log(1.0 - (i + 0.5) / GAPS) * 65536.0);
    }
}

uint64_t worker_gap(struct worker *w)
{
    double mean = (double)NS_PER_S / w->rate;

    return (uint64_t)(mean * gaps[rng_next(&w->rng) % GAPS] / 65536.0);
}

bool worker_is_over(const struct worker *w, uint64_t now)
{
    return w->preload ? w->preload_from == w->preload_to : now >= w->window->end;
}

void worker_watch_cpu(struct worker *w, uint64_t now)
{
    struct timespec t;
    uint64_t cpu;

    if (now < w->window->begin || w->wall_end || (w->wall_begin && now < w->window->end)) {
        return;
    }
    cpu = clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0
              ? (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec
              : 0;
    if (!w->wall_begin) {
        w->wall_begin = now;
        w->cpu_begin = cpu;
    } else {
        w->wall_end = now;
        w->cpu_end = cpu;
    }
}

/* Chooses the next request. False when a preload has none left. */
static bool choose(struct worker *w, uint64_t *key, bool *is_get)
{
    if (w->preload) {
        *is_get = false;
        *key = w->preload_from;
        return w->preload_from < w->preload_to ? w->preload_from++, true : false;
    }
    *is_get = rng_below(&w->rng, 100) < w->options->get_percent;
    *key = keyspace_pick(w->space, &w->rng);
    return true;
}

bool worker_send_one(struct worker *w, struct conn *c, uint64_t start)
{
    enum proto proto = w->options->proto;
    struct request *r;
    uint64_t key;
    bool is_get;

    if (!choose(w, &key, &is_get)) {
        return false;
    }
    if (is_get) {
        c->out_end += proto_get(proto, conn_room(c, PROTO_REQUEST_OVERHEAD), key);
    } else {
        uint32_t size = value_size(w->space, key);
        char *to = conn_room(c, size + PROTO_REQUEST_OVERHEAD);

        c->out_end += proto_set(proto, to, key, size, w->stamp++);
    }
    r = conn_note(c);
    r->start_ns = start;
    r->key = key;
    r->is_get = is_get;
    w->in_flight++;
    return true;
}

void worker_refill(struct worker *w, struct conn *c, uint64_t now)
{
    uint32_t churn = w->preload ? 0 : w->options->churn;

    if (worker_is_over(w, now)) {
        return;
    }
    while (c->in_flight < w->pipeline && (!churn || c->served + c->in_flight < churn)) {
        uint64_t start = c->replaced_ns ? c->replaced_ns : now;

        c->replaced_ns = 0;
        if (!worker_send_one(w, c, start)) {
            return;
        }
    }
}

static void count_slice(struct worker *w, uint64_t now)
{
    uint64_t i = w->window->slice ? (now - w->window->start) / w->window->slice : LOAD_MAX_SLICES;

    if (i < LOAD_MAX_SLICES) {
        w->slices[i]++;
    }
}

static void finish(struct worker *w, const struct request *r, const struct reply *reply,
                   uint64_t now)
{
    const struct window *window = w->window;

    if (reply->kind == REPLY_ERROR) {
        w->counts.errors++;
    } else if (reply->kind == REPLY_VALUE &&
               !value_check(w->space, reply->value, reply->value_bytes, r->key)) {
        w->counts.bad_values++;
    }
    count_slice(w, now);
    if (now >= window->begin && now < window->end) {
        w->counts.requests++;
        w->counts.gets += r->is_get;
        w->counts.sets += !r->is_get;
        w->counts.hits += reply->kind == REPLY_VALUE;
    }
    if (r->start_ns >= window->begin && r->start_ns < window->end) {
        hist_add(&w->latency, now - r->start_ns);
    }
}

int worker_take_replies(struct worker *w, struct conn *c, uint64_t now)
{
    while (c->in_start < c->in_end) {
        struct request *r = conn_oldest(c);
        struct reply reply = {REPLY_ERROR, NULL, 0};
        long used;

        if (!c->in_flight) {
            return -EPROTO;             /* a reply that nobody asked for */
        }
        used = proto_reply(w->options->proto, r->is_get, c->in + c->in_start,
                           c->in_end - c->in_start, &reply);
        if (used < 0) {
            return -EPROTO;
        }
        if (used == 0) {
            break;
        }
        finish(w, r, &reply, now);
        c->in_start += (size_t)used;
        conn_drop_oldest(c);
        w->in_flight--;
        c->served++;
        c->failures = 0;
        c->idle_since_ns = now;
    }
    return 0;
}

void worker_abandon(struct worker *w, struct conn *c)
{
    w->counts.unfinished += c->in_flight;
    w->in_flight -= c->in_flight;
    c->in_flight = 0;
    conn_close(c);
}
