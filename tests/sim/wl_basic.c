/* Workloads closed, open, spinners, pipeline. */
#include <stdlib.h>

#include "tests/sim/workload.h"

#define CLOSED_SERVICE_US 100.0
#define OPEN_SERVICE_US 25.0
#define OPEN_CONNS_PER_CPU 32u
#define PIPELINE_STAGES 4u
#define PIPELINE_SERVICE_US 20.0
#define PIPELINE_WINDOW 2u /* items under way in one pipeline */
#define SPIN_CHUNK_NS 1000000u
#define SPIN_RELEASE_NS 5000000u

static void *wl_alloc(struct sim *s, size_t size)
{
    s->workload = calloc(1, size);
    if (s->workload == NULL) {
        fprintf(stderr, "weir-sim: out of memory (%zu bytes)\n", size);
        exit(1);
    }
    return s->workload;
}

/* ---- closed: run, think, again ---- */

struct closed {
    double service_ns, think_ns;
};

static struct sim_action closed_step(struct sim *s, struct sim_thread *t)
{
    struct closed *w = s->workload;
    uintptr_t phase = (uintptr_t)t->arg;

    t->arg = (void *)(phase ^ 1); /* NOLINT: the program's state is one bit */
    if (phase == 0) {
        return (struct sim_action){ACT_RUN, rng_exp(&t->rng, w->service_ns)};
    }
    sim_op(s, t, 0);
    return (struct sim_action){ACT_SLEEP, rng_exp(&t->rng, w->think_ns)};
}

static void closed_setup(struct sim *s, const struct point *p)
{
    struct closed *w = wl_alloc(s, sizeof(*w));
    uint32_t conns = p->conns != 0 ? p->conns : 2 * s->n;
    double critical = (double)conns / s->n - 1.0; /* demand equals capacity: where placement matters most */
    double think = p->think >= 0.0 ? p->think : critical > 1.0 ? critical : 1.0;

    w->service_ns = (p->service_us > 0.0 ? p->service_us : CLOSED_SERVICE_US) * 1000.0;
    w->think_ns = think * w->service_ns;
    for (uint32_t i = 0; i < conns; i++) {
        sim_spawn(s, sim_thread_new(s, "closed", closed_step, NULL, NULL), 0);
    }
}

const struct workload wl_closed = {
    .name = "closed",
    .summary = "c threads that run 100 us and think (exponential, demand equal to capacity)",
    .setup = closed_setup,
    .warmup_ns = 150000000,
    .measure_ns = 350000000,
};

/* ---- open: Poisson arrivals to connections, each with a thread ---- */

struct open_conn {
    struct sim_thread *thread;
    uint32_t queue;
    uint32_t head, count, size; /* arrival times of requests not yet served */
    uint64_t *arrived;
    bool running;
};

struct open {
    double service_ns, gap_ns;
    struct rng rng, service_rng;
    uint32_t num_conns;
    struct open_conn *conns;
};

static struct sim_action open_step(struct sim *s, struct sim_thread *t)
{
    struct open *w = s->workload;
    struct open_conn *c = t->arg;

    if (c->running) {
        sim_op(s, t, s->now - c->arrived[c->head]);
        c->head = (c->head + 1) % c->size;
        c->count--;
        c->running = false;
    }
    if (c->count == 0) {
        return (struct sim_action){ACT_PARK, 0};
    }
    c->running = true;
    return (struct sim_action){ACT_RUN, rng_exp(&t->rng, w->service_ns)};
}

static void open_deliver(struct sim *s, void *arg)
{
    struct open_conn *c = arg;

    sim_wake(s, c->thread, 0);
}

static void open_arrival(struct sim *s, void *arg)
{
    struct open *w = arg;
    struct open_conn *c = &w->conns[rng_below(&w->rng, w->num_conns)];

    if (c->count == c->size) {
        uint64_t *more = malloc(2ull * c->size * sizeof(*more));

        if (more == NULL) {
            fprintf(stderr, "weir-sim: out of memory (queued requests)\n");
            exit(1);
        }
        for (uint32_t i = 0; i < c->count; i++) {
            more[i] = c->arrived[(c->head + i) % c->size];
        }
        free(c->arrived);
        c->arrived = more;
        c->head = 0;
        c->size *= 2;
    }
    c->arrived[(c->head + c->count++) % c->size] = s->now;
    sim_packet(s, c->queue, open_deliver, c);
    sim_at(s, s->now + rng_exp(&w->rng, w->gap_ns), open_arrival, w);
}

static void open_setup(struct sim *s, const struct point *p)
{
    struct open *w = wl_alloc(s, sizeof(*w));

    w->service_ns = (p->service_us > 0.0 ? p->service_us : OPEN_SERVICE_US) * 1000.0;
    w->gap_ns = w->service_ns / ((p->load > 0.0 ? p->load : 0.75) * s->n);
    w->rng = rng_stream(p->seed, 0x6f70656eull);
    w->num_conns = p->conns != 0 ? p->conns : OPEN_CONNS_PER_CPU * s->n;
    w->conns = calloc(w->num_conns, sizeof(*w->conns));
    s->cost.rx_packet_ns = 0; /* the receive work is part of the service time here */
    sim_rxqs(s, p->queues != 0 ? p->queues : s->n);
    for (uint32_t i = 0; i < w->num_conns; i++) {
        struct open_conn *c = &w->conns[i];

        c->size = 4;
        c->arrived = malloc(c->size * sizeof(*c->arrived));
        c->queue = i % s->num_rxqs;
        c->thread = sim_thread_new(s, "open", open_step, c, NULL);
        c->thread->receive_cpu = (int32_t)s->rxqs[c->queue].cpu;
        sim_spawn(s, c->thread, s->rxqs[c->queue].cpu);
    }
    sim_at(s, 1000000, open_arrival, w);
}

static void open_done(struct sim *s)
{
    struct open *w = s->workload;

    for (uint32_t i = 0; i < w->num_conns; i++) {
        free(w->conns[i].arrived);
    }
    free(w->conns);
    free(w);
}

const struct workload wl_open = {
    .name = "open",
    .summary = "Poisson requests to 32 connections a CPU; the highest load with p99 <= 10 services, 10 and 25 us",
    .setup = open_setup,
    .done = open_done,
    .warmup_ns = 20000000,
    .measure_ns = 150000000,
};

/* ---- spinners: k threads that never block, released from CPU 0 ---- */

struct spinners {
    uint64_t first[SIM_MASK_WORDS];
};

static struct sim_action spinner_step(struct sim *s, struct sim_thread *t)
{
    sim_op(s, t, 0);
    return (struct sim_action){ACT_RUN, SPIN_CHUNK_NS};
}

static void spinners_release(struct sim *s, void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < s->num_threads; i++) {
        sim_set_affinity(s, s->threads[i], NULL);
    }
    sim_reset_stats(s);
    s->watch_spread = !s->ideal; /* the central queue has no loads to compare */
}

static void spinners_setup(struct sim *s, const struct point *p)
{
    struct spinners *w = wl_alloc(s, sizeof(*w));
    uint32_t count = p->conns != 0 ? p->conns : 2 * s->n;

    w->first[0] = 1;
    for (uint32_t i = 0; i < count; i++) {
        sim_spawn(s, sim_thread_new(s, "spinner", spinner_step, NULL, w->first), 0);
    }
    sim_at(s, SPIN_RELEASE_NS, spinners_release, NULL);
}

const struct workload wl_spinners = {
    .name = "spinners",
    .summary = "k threads that never block, all on CPU 0 until they are released",
    .setup = spinners_setup,
    .warmup_ns = 0,
    .measure_ns = 1000000000,
};

/* ---- pipeline: items pass through stages, a thread each ---- */

struct stage {
    struct sim_thread *thread;
    struct stage *next;
    uint32_t items;
    bool running;
};

struct pipeline {
    double service_ns;
    struct stage *stages;
};

static struct sim_action stage_step(struct sim *s, struct sim_thread *t)
{
    struct pipeline *w = s->workload;
    struct stage *st = t->arg;

    if (st->running) {
        st->running = false;
        sim_op(s, t, 0);
        st->next->items++;
        sim_wake(s, st->next->thread, st->items == 0 ? POLICY_WAKE_SYNC : 0);
    }
    if (st->items == 0) {
        return (struct sim_action){ACT_PARK, 0};
    }
    st->items--;
    st->running = true;
    return (struct sim_action){ACT_RUN, rng_exp(&t->rng, w->service_ns)};
}

static void pipeline_setup(struct sim *s, const struct point *p)
{
    struct pipeline *w = wl_alloc(s, sizeof(*w));
    uint32_t count = ((p->conns != 0 ? p->conns : 4 * s->n) + PIPELINE_STAGES - 1) / PIPELINE_STAGES * PIPELINE_STAGES;

    w->service_ns = (p->service_us > 0.0 ? p->service_us : PIPELINE_SERVICE_US) * 1000.0;
    w->stages = calloc(count, sizeof(*w->stages));
    for (uint32_t i = 0; i < count; i++) {
        struct stage *st = &w->stages[i];
        uint32_t in_line = i % PIPELINE_STAGES;

        st->next = &w->stages[i - in_line + (in_line + 1) % PIPELINE_STAGES];
        st->items = in_line == 0 ? PIPELINE_WINDOW : 0;
        st->thread = sim_thread_new(s, "stage", stage_step, st, NULL);
    }
    for (uint32_t i = 0; i < count; i++) {
        sim_spawn(s, w->stages[i].thread, 0);
    }
}

static void pipeline_done(struct sim *s)
{
    struct pipeline *w = s->workload;

    free(w->stages);
    free(w);
}

const struct workload wl_pipeline = {
    .name = "pipeline",
    .summary = "items through 4 stages, a thread each, 2 items under way per pipeline, 20 us a stage",
    .setup = pipeline_setup,
    .done = pipeline_done,
    .warmup_ns = 100000000,
    .measure_ns = 200000000,
};
