/* Construction, event heap and main loop of the simulated machine. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/internal.h"

#define HEAP_ARITY 4u

const char *const sim_reason_names[SIM_NUM_REASONS] = {"new", "wake", "balance", "pull"};

void *sim_alloc(size_t count, size_t size)
{
    void *p = calloc(count == 0 ? 1 : count, size);

    if (p == NULL) {
        fprintf(stderr, "weir-sim: out of memory (%zu x %zu bytes)\n", count, size);
        exit(1);
    }
    return p;
}

/* ---- event heap: earliest first, ties in the order they were made ---- */

static bool earlier(const struct sim_event *a, const struct sim_event *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

void sim_event_add(struct sim *s, uint64_t time, uint32_t type, uint32_t gen, void *what, void *arg)
{
    struct sim_event ev = {.time = time, .order = s->order++, .type = type, .gen = gen, .what = what, .arg = arg};
    size_t i;

    if (s->heap_len == s->heap_cap) {
        s->heap_cap *= 2;
        s->heap = realloc(s->heap, s->heap_cap * sizeof(*s->heap));
        if (s->heap == NULL) {
            fprintf(stderr, "weir-sim: out of memory (%zu events)\n", s->heap_cap);
            exit(1);
        }
    }
    i = s->heap_len++;
    while (i > 0) {
        size_t parent = (i - 1) / HEAP_ARITY;

        if (!earlier(&ev, &s->heap[parent])) {
            break;
        }
        s->heap[i] = s->heap[parent];
        i = parent;
    }
    s->heap[i] = ev;
}

static struct sim_event event_take(struct sim *s)
{
    struct sim_event first = s->heap[0];
    struct sim_event last = s->heap[--s->heap_len];
    size_t i = 0;

    for (;;) {
        size_t child = i * HEAP_ARITY + 1;
        size_t end = child + HEAP_ARITY < s->heap_len ? child + HEAP_ARITY : s->heap_len;
        size_t best = child;

        if (child >= s->heap_len) {
            break;
        }
        for (size_t c = child + 1; c < end; c++) {
            if (earlier(&s->heap[c], &s->heap[best])) {
                best = c;
            }
        }
        if (!earlier(&s->heap[best], &last)) {
            break;
        }
        s->heap[i] = s->heap[best];
        i = best;
    }
    s->heap[i] = last;
    return first;
}

void sim_at(struct sim *s, uint64_t time, sim_call_fn fn, void *arg)
{
    union {
        sim_call_fn fn;
        void *p;
    } as = {.fn = fn};

    sim_event_add(s, time < s->now ? s->now : time, EV_CALL, 0, as.p, arg);
}

static void call_event(struct sim *s, const struct sim_event *ev)
{
    union {
        void *p;
        sim_call_fn fn;
    } as = {.p = ev->what};

    s->ctx_cpu = -1;
    s->ctx_irq = false;
    as.fn(s, ev->arg);
}

void sim_run(struct sim *s, uint64_t until)
{
    while (s->heap_len != 0 && !s->stop && !s->failed) {
        struct sim_event ev;

        if (s->heap[0].time > until) {
            break;
        }
        ev = event_take(s);
        s->now = ev.time;
        s->num_events++;
        switch (ev.type) {
        case EV_CALL:
            call_event(s, &ev);
            break;
        case EV_BALANCE:
            balance_event(s, ev.what);
            break;
        case EV_DONE:
        case EV_SLICE:
            cpu_event(s, &ev);
            break;
        default:
            wake_event(s, &ev);
            break;
        }
    }
    if (!s->stop && !s->failed && until != SIM_NEVER && s->now < until) {
        s->now = until;
    }
    track_advance(s);
}

void sim_fail(struct sim *s, const char *fmt, ...)
{
    va_list args;

    if (s->failed) {
        return;
    }
    s->failed = true;
    va_start(args, fmt);
    vsnprintf(s->failure, sizeof(s->failure), fmt, args);
    va_end(args);
}

/* ---- construction ---- */

static void init_cpus(struct sim *s)
{
    for (uint32_t c = 0; c < s->n; c++) {
        struct sim_cpu *cpu = &s->cpus[c];

        runq_init(&cpu->queue);
        cpu->waking_tail = &cpu->waking;
        s->pcpus[c].capacity = s->cfg.capacity != NULL ? s->cfg.capacity[c] : POLICY_CAPACITY_FULL;
        s->pcpus[c].group = c / SIM_GROUP_CPUS;
        s->all_cpus[c / 64] |= 1ull << (c % 64);
    }
    for (uint32_t c = 0; c < s->n; c++) {
        track_cpu(s, c);
    }
}

struct sim *sim_new(const struct sim_config *cfg)
{
    struct sim *s = sim_alloc(1, sizeof(*s));

    s->cfg = *cfg;
    s->cost = cfg->cost;
    s->ideal = cfg->policy == NULL;
    if (s->ideal) {
        struct sim_cost work = {.rx_packet_ns = cfg->cost.rx_packet_ns,
                                .handler_ns = cfg->cost.handler_ns,
                                .wire_ns = cfg->cost.wire_ns,
                                .client_ns = cfg->cost.client_ns};
        s->cost = work; /* what the workload asks for stays, what scheduling costs is free */
    }
    s->n = cfg->num_cpus;
    s->words = (s->n + 63) / 64;
    s->cpus = sim_alloc(s->n, sizeof(*s->cpus));
    s->pcpus = aligned_alloc(_Alignof(struct policy_cpu), s->n * sizeof(*s->pcpus));
    if (s->pcpus == NULL) {
        fprintf(stderr, "weir-sim: out of memory (%u CPUs)\n", s->n);
        exit(1);
    }
    memset(s->pcpus, 0, s->n * sizeof(*s->pcpus));
    s->idle_bits = sim_alloc(s->words, sizeof(uint64_t));
    s->all_cpus = sim_alloc(s->words, sizeof(uint64_t));
    s->ipi_batch = sim_alloc(s->words, sizeof(uint64_t));
    s->moves = sim_alloc(s->n, sizeof(*s->moves));
    s->max_candidates = 2 * s->n > SIM_MIN_CANDIDATES ? 2 * s->n : SIM_MIN_CANDIDATES;
    s->candidates = sim_alloc(s->max_candidates, sizeof(*s->candidates));
    s->candidate_threads = sim_alloc(s->max_candidates, sizeof(struct sim_thread *));
    s->heap_cap = 1024;
    s->heap = sim_alloc(s->heap_cap, sizeof(*s->heap));
    s->cap_threads = 64;
    s->threads = sim_alloc(s->cap_threads, sizeof(struct sim_thread *));
    s->rng = rng_stream(cfg->seed, 0x7765697273696dull);
    s->ctx_cpu = -1;
    s->spread_at = -1;
    s->stretch_from = SIM_NEVER;
    if (!s->ideal && cfg->policy->balance != NULL) {
        s->interval = (uint64_t)(cfg->interval_ms != 0 ? cfg->interval_ms : cfg->policy->interval_ms) * 1000000ull;
    }
    init_cpus(s);
    return s;
}

void sim_free(struct sim *s)
{
    for (uint32_t i = 0; i < s->num_threads; i++) {
        free(s->threads[i]);
    }
    for (uint32_t q = 0; q < s->num_rxqs; q++) {
        free(s->rxqs[q].ring);
    }
    free(s->rx_affinity);
    free(s->rxqs);
    free(s->threads);
    free(s->heap);
    free(s->candidate_threads);
    free(s->candidates);
    free(s->moves);
    free(s->ipi_batch);
    free(s->all_cpus);
    free(s->idle_bits);
    free(s->pcpus);
    free(s->cpus);
    free(s);
}

static uint32_t count_cpus(const struct sim *s, const uint64_t *set)
{
    uint32_t count = 0;

    for (uint32_t w = 0; w < s->words; w++) {
        count += (uint32_t)__builtin_popcountll(set[w] & s->all_cpus[w]);
    }
    return count;
}

static void classify_affinity(struct sim *s, struct sim_thread *t)
{
    uint32_t allowed = count_cpus(s, t->affinity);

    t->pinned = allowed == 1 && s->n > 1;
    t->partial = allowed > 1 && allowed < s->n;
    s->have_partial |= t->partial;
    if (allowed == 0) {
        sim_fail(s, "thread %u (%s) may run nowhere", t->id, t->name);
    }
}

struct sim_thread *sim_thread_new(struct sim *s, const char *name, sim_step_fn step, void *arg, const uint64_t *affinity)
{
    struct sim_thread *t = sim_alloc(1, sizeof(*t));

    if (s->num_threads == s->cap_threads) {
        s->cap_threads *= 2;
        s->threads = realloc(s->threads, s->cap_threads * sizeof(struct sim_thread *));
        if (s->threads == NULL) {
            fprintf(stderr, "weir-sim: out of memory (%u threads)\n", s->cap_threads);
            exit(1);
        }
    }
    s->threads[s->num_threads++] = t;
    t->id = s->num_threads;
    t->state = T_NEW;
    t->name = name;
    t->step = step;
    t->arg = arg;
    t->cpu = t->last_cpu = t->receive_cpu = t->moved_from = -1;
    t->fresh = true;
    runq_entity_init(&t->entity, RUNQ_WEIGHT_NICE0);
    t->affinity = affinity != NULL ? affinity : s->all_cpus;
    t->rng = rng_stream(s->cfg.seed, t->id);
    classify_affinity(s, t);
    return t;
}

void sim_set_affinity(struct sim *s, struct sim_thread *t, const uint64_t *affinity)
{
    struct sim_cpu *cpu = t->cpu >= 0 ? &s->cpus[t->cpu] : NULL;
    bool waiting = cpu != NULL && (t->state == T_QUEUED || t->state == T_WAKING);

    track_advance(s);
    if (waiting) {
        track_wait_end(s, t);
    }
    t->affinity = affinity != NULL ? affinity : s->all_cpus;
    classify_affinity(s, t);
    if (waiting) {
        track_wait_begin(s, t);
        track_cpu(s, cpu_index(s, cpu));
    }
    for (uint32_t c = 0; s->ideal && c < s->n; c++) { /* the ideal knows at once */
        if (cpu_is_idle(s, &s->cpus[c])) {
            sim_event_add(s, s->now, EV_NOTICE, 0, &s->cpus[c], NULL);
        }
    }
}
