/* Workload server: the thread-per-connection key-value server of the report.
 *
 * c clients, each with one request under way.  A request comes over the wire to a receive queue, whose CPU carries it through
 * the receive path in interrupt context and wakes the connection's handler; the handler works and replies; the client reads
 * the reply and sends the next request.  The generator has CPUs of its own, five for four of the server's as in the harness, and
 * a connection is always served by the same: where two share one, a reply waits for the other.  Connections come to receive
 * queues by a hash of their addresses, which leaves some queues with more than others.  All handlers are made on CPU 0, like
 * those of an accept loop. */
#include <stdlib.h>

#include "tests/sim/workload.h"

struct conn {
    struct sim_thread *thread;
    uint32_t queue;
    uint64_t *client_rx, *client; /* when the CPUs that its replies arrive on, and that it is served on, are done with what they have */
    bool pending, serving, shares_client;
    uint64_t sent_at;
    struct rng rng;
};

struct server {
    double handler_ns;
    struct conn *conns;
    uint64_t *client_free_at;
};

static void client_send(struct sim *s, void *arg);

/* One more piece of work for a CPU of the generator's, first come first served; when it is done. */
static uint64_t client_work(const struct sim *s, uint64_t *free_at, uint64_t ns, struct conn *c)
{
    if (*free_at < s->now) {
        *free_at = s->now;
    }
    *free_at += (uint64_t)((double)ns * (0.75 + 0.5 * rng_unit(&c->rng)));
    return *free_at;
}

static void client_read(struct sim *s, void *arg)
{
    struct conn *c = arg;

    sim_at(s, client_work(s, c->client, s->cost.client_ns + (c->shares_client ? s->cost.client_more_ns : 0), c), client_send, c);
}

static void client_receive(struct sim *s, void *arg)
{
    struct conn *c = arg;

    sim_at(s, client_work(s, c->client_rx, s->cost.rx_packet_ns, c), client_read, c);
}

static void reply(struct sim *s, struct conn *c)
{
    uint64_t arrives = s->now + s->cost.wire_ns;

    sim_op(s, c->thread, arrives - c->sent_at);
    sim_at(s, arrives, client_receive, c);
}

static struct sim_action handler_step(struct sim *s, struct sim_thread *t)
{
    struct server *w = s->workload;
    struct conn *c = t->arg;

    if (c->serving) {
        c->serving = false;
        reply(s, c);
    }
    if (!c->pending) {
        return (struct sim_action){ACT_PARK, 0};
    }
    c->pending = false;
    c->serving = true;
    return (struct sim_action){ACT_RUN, (uint64_t)(w->handler_ns * (0.75 + 0.5 * rng_unit(&t->rng)))};
}

static void deliver(struct sim *s, void *arg)
{
    struct conn *c = arg;

    c->pending = true;
    sim_wake(s, c->thread, 0);
}

static void arrive(struct sim *s, void *arg)
{
    struct conn *c = arg;

    sim_packet(s, c->queue, deliver, c);
}

static void client_send(struct sim *s, void *arg)
{
    struct conn *c = arg;

    c->sent_at = s->now;
    sim_at(s, s->now + s->cost.wire_ns, arrive, c);
}

static void server_setup(struct sim *s, const struct point *p)
{
    struct server *w = calloc(1, sizeof(*w));
    uint32_t count = p->conns != 0 ? p->conns : 32;

    w->handler_ns = p->service_us > 0.0 ? p->service_us * 1000.0 : (double)s->cost.handler_ns;
    w->conns = calloc(count, sizeof(*w->conns));
    uint32_t clients = (s->n * 5 + 3) / 4;
    w->client_free_at = calloc(clients, sizeof(*w->client_free_at));
    s->workload = w;
    sim_rxqs(s, p->queues != 0 ? p->queues : 1);
    for (uint32_t i = 0; i < count; i++) {
        struct conn *c = &w->conns[i];

        c->rng = rng_stream(p->seed, 0x10000 + i);
        c->queue = (uint32_t)(rng_next(&c->rng) % s->num_rxqs);
        c->client_rx = &w->client_free_at[rng_next(&c->rng) % clients];
        c->client = &w->client_free_at[i % clients];
        c->shares_client = i >= clients || i + clients < count;
        c->thread = sim_thread_new(s, "handler", handler_step, c, NULL);
        c->thread->receive_cpu = (int32_t)s->rxqs[c->queue].cpu;
        sim_spawn(s, c->thread, 0);
        sim_at(s, 100000 + rng_exp(&c->rng, 20000.0), client_send, c);
    }
}

static void server_done(struct sim *s)
{
    struct server *w = s->workload;

    free(w->conns);
    free(w->client_free_at);
    free(w);
}

const struct workload wl_server = {
    .name = "server",
    .summary = "thread-per-connection server behind one receive path (--queues N: several), closed loop over a wire",
    .setup = server_setup,
    .done = server_done,
    .warmup_ns = 300000000,
    .measure_ns = 200000000,
};
