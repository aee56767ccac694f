/* Replays about where a wakeup goes: 2, 4, 6. */
#include "tests/sim/bugs.h"
#include "tests/sim/internal.h"

/* ---- 2 ---- */

#define BURST_SERVICE_NS 20000u
#define BURST_GAP_NS 5000000u

struct burst_worker {
    struct sim_thread *thread;
    uint64_t woken;
    bool working;
};

struct burst {
    struct burst_worker *workers;
    uint32_t count;
    struct sim_thread *waker;
};

static struct sim_action burst_worker_step(struct sim *s, struct sim_thread *t)
{
    struct burst_worker *w = t->arg;

    if (w->woken == 0) {
        return (struct sim_action){ACT_PARK, 0};
    }
    if (!w->working) {
        w->working = true;
        return (struct sim_action){ACT_RUN, BURST_SERVICE_NS};
    }
    w->working = false;
    sim_op(s, t, s->now - w->woken);
    w->woken = 0;
    return (struct sim_action){ACT_PARK, 0};
}

static struct sim_action burst_waker_step(struct sim *s, struct sim_thread *t)
{
    struct burst *b = t->arg;

    if (t->ops++ != 0) {
        for (uint32_t i = 0; i < b->count; i++) {
            if (b->workers[i].woken == 0) {
                b->workers[i].woken = s->now;
                sim_wake(s, b->workers[i].thread, 0);
            }
        }
    }
    return (struct sim_action){ACT_SLEEP, rng_exp(&t->rng, BURST_GAP_NS)};
}

void bug_burst(struct sim *s, struct verdict *v)
{
    struct burst *b;
    uint64_t serial;
    uint64_t p50;
    uint32_t count = 2 * s->n;

    b = sim_alloc(1, sizeof(*b) + count * sizeof(struct burst_worker));
    b->workers = (struct burst_worker *)(void *)(b + 1);
    s->workload = b;
    b->count = count;
    for (uint32_t i = 0; i < b->count; i++) {
        b->workers[i].thread = sim_thread_new(s, "worker", burst_worker_step, &b->workers[i], NULL);
        sim_spawn(s, b->workers[i].thread, 0);
    }
    b->waker = sim_thread_new(s, "waker", burst_waker_step, b, NULL);
    sim_spawn(s, b->waker, 0);
    sim_run(s, 500 * BUG_MS);
    sim_reset_stats(s);
    sim_run(s, 1500 * BUG_MS);
    serial = (uint64_t)b->count * BURST_SERVICE_NS;
    p50 = hist_quantile(&s->st.latency, 0.5);
    verdict_set(v, s->st.latency.count != 0 && p50 <= serial / 8, "half of a burst served in %.0f us (in series: %.0f)",
                (double)p50 / 1e3, (double)serial / 2e3);
}

/* ---- 4 ---- */

#define TIE_THREADS 7u
#define TIE_ROUNDS 20u
#define TIE_ROUND_MS 50u
#define TIE_RUN_MS 20u

struct ties {
    struct sim_thread *threads[TIE_THREADS];
    uint64_t round_start, worst, total;
    uint32_t rounds, done, late, seen_cpus;
};

static struct sim_action tie_step(struct sim *s, struct sim_thread *t)
{
    struct ties *w = s->workload;

    if (t->ops == 1) {
        uint64_t took = s->now - w->round_start;

        w->worst = took > w->worst ? took : w->worst;
        w->seen_cpus |= 1u << t->cpu;
        w->done++;
    }
    t->ops = 0;
    return (struct sim_action){ACT_PARK, 0};
}

static struct sim_action tie_entry(struct sim *s, struct sim_thread *t)
{
    if (t->ops == 0) { /* woken for a round */
        t->ops = 1;
        if (((struct ties *)s->workload)->round_start != 0) {
            return (struct sim_action){ACT_RUN, TIE_RUN_MS * BUG_MS};
        }
    }
    return tie_step(s, t);
}

static void tie_round(struct sim *s, void *arg)
{
    struct ties *w = arg;

    if (w->rounds != 0 && w->done < TIE_THREADS) {
        w->late++;
    }
    if (w->rounds++ == TIE_ROUNDS) {
        s->stop = true;
        return;
    }
    w->done = 0;
    w->round_start = s->now;
    for (uint32_t i = 0; i < TIE_THREADS; i++) {
        sim_wake(s, w->threads[i], 0);
    }
    sim_at(s, s->now + TIE_ROUND_MS * BUG_MS, tie_round, w);
}

void bug_ties(struct sim *s, struct verdict *v)
{
    struct ties *w = sim_alloc(1, sizeof(*w));
    uint64_t bound = TIE_RUN_MS * BUG_MS + BUG_ONE_PASS_NS;
    uint32_t cpus;

    s->workload = w;
    for (uint32_t i = 0; i < TIE_THREADS; i++) {
        w->threads[i] = sim_thread_new(s, "sleeper", tie_entry, NULL, NULL);
        sim_spawn(s, w->threads[i], 0);
    }
    sim_at(s, 17 * BUG_MS, tie_round, w);
    sim_run(s, 10000 * BUG_MS);
    cpus = (uint32_t)__builtin_popcount(w->seen_cpus);
    verdict_set(v, w->late == 0 && w->worst <= bound && cpus >= TIE_THREADS,
                "all done after %.1f ms at worst (bound %.0f), %u of %u CPUs used, %u rounds late", (double)w->worst / 1e6,
                (double)bound / 1e6, cpus, s->n, w->late);
}

/* ---- 6 ---- */

#define WAKER_ROUNDS 10u
#define WAKER_RUN_MS 100u
#define WAKEE_RUN_MS 50u

struct wake_pair {
    struct sim_thread *waker, *wakee;
    uint64_t woken, done;
};

struct wakers {
    struct wake_pair pairs[WAKER_ROUNDS];
    uint64_t home[SIM_MASK_WORDS];
};

static struct sim_action wakee_step(struct sim *s, struct sim_thread *t)
{
    struct wake_pair *p = t->arg;

    if (p->woken == 0) {
        return (struct sim_action){ACT_PARK, 0};
    }
    if (t->ops++ == 0) {
        return (struct sim_action){ACT_RUN, WAKEE_RUN_MS * BUG_MS};
    }
    p->done = s->now;
    return (struct sim_action){ACT_EXIT, 0};
}

static struct sim_action waker_step(struct sim *s, struct sim_thread *t)
{
    struct wake_pair *p = t->arg;

    switch (t->ops++) {
    case 0:
        return (struct sim_action){ACT_PARK, 0};
    case 1: /* where the wakee slept, and then works there */
        p->woken = s->now;
        sim_wake(s, p->wakee, 0);
        return (struct sim_action){ACT_RUN, WAKER_RUN_MS * BUG_MS};
    default:
        return (struct sim_action){ACT_EXIT, 0};
    }
}

static void start_waker(struct sim *s, void *arg)
{
    sim_wake(s, arg, 0);
}

/* Both have slept on CPU 0; from now on they may run anywhere. */
static void free_pairs(struct sim *s, void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < s->num_threads; i++) {
        sim_set_affinity(s, s->threads[i], NULL);
    }
}

void bug_waker_computes(struct sim *s, struct verdict *v)
{
    struct wakers *w = sim_alloc(1, sizeof(*w));
    uint64_t worst = 0;
    uint64_t bound = WAKEE_RUN_MS * BUG_MS + BUG_ONE_PASS_NS;

    s->workload = w;
    w->home[0] = 1;
    for (uint32_t i = 0; i < WAKER_ROUNDS; i++) {
        struct wake_pair *p = &w->pairs[i];

        p->waker = sim_thread_new(s, "A", waker_step, p, w->home);
        p->wakee = sim_thread_new(s, "B", wakee_step, p, w->home);
        sim_spawn(s, p->wakee, 0);
        sim_spawn(s, p->waker, 0);
        sim_at(s, (i * 203ull + 13) * BUG_MS, start_waker, p->waker); /* 203: not in step with any interval */
    }
    sim_at(s, 5 * BUG_MS, free_pairs, NULL);
    sim_run(s, WAKER_ROUNDS * 210ull * BUG_MS);
    for (uint32_t i = 0; i < WAKER_ROUNDS; i++) {
        const struct wake_pair *p = &w->pairs[i];
        uint64_t took = p->done != 0 ? p->done - p->woken : SIM_NEVER;

        worst = took > worst ? took : worst;
    }
    verdict_set(v, worst <= bound, "B's 50 ms of work done %.1f ms after its wakeup at worst (bound %.0f)", (double)worst / 1e6,
                (double)bound / 1e6);
}
