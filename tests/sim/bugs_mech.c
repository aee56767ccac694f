/* Replays that the mechanism decides, whatever the policy: 5, 8, 9, 10, 11. */
#include "tests/sim/bugs.h"
#include "tests/sim/internal.h"

/* ---- 5 ---- */

#define START_ROUNDS 10000u
#define START_THREADS 4u

struct starters {
    struct sim_thread *threads[START_THREADS];
    uint32_t started, rounds;
    uint64_t round_start, worst;
};

static void start_round(struct sim *s, void *arg)
{
    struct starters *w = arg;

    w->started = 0;
    w->round_start = s->now;
    for (uint32_t i = 0; i < START_THREADS; i++) {
        w->threads[i]->ops = 1;
        sim_wake(s, w->threads[i], 0);
    }
}

static struct sim_action starter_step(struct sim *s, struct sim_thread *t)
{
    struct starters *w = s->workload;

    if (t->ops != 1) {
        t->ops = 0;
        return (struct sim_action){ACT_PARK, 0};
    }
    t->ops = 2;
    if (++w->started < START_THREADS) {
        return (struct sim_action){ACT_SPIN, 0};
    }
    for (uint32_t i = 0; i < START_THREADS; i++) {
        sim_release(s, w->threads[i]);
    }
    w->worst = s->now - w->round_start > w->worst ? s->now - w->round_start : w->worst;
    if (++w->rounds < START_ROUNDS) {
        sim_at(s, s->now + 100 * BUG_US, start_round, w);
    } else {
        s->stop = true;
    }
    return (struct sim_action){ACT_PARK, 0};
}

void bug_all_started(struct sim *s, struct verdict *v)
{
    struct starters *w = sim_alloc(1, sizeof(*w));
    /* At worst all are on one CPU and each waits out the slices of those before it. */
    uint64_t bound = START_THREADS * RUNQ_SLICE_NS + BUG_MS;

    s->workload = w;
    for (uint32_t i = 0; i < START_THREADS; i++) {
        w->threads[i] = sim_thread_new(s, "starter", starter_step, NULL, NULL);
        sim_spawn(s, w->threads[i], 0);
    }
    sim_at(s, BUG_MS, start_round, w);
    sim_run(s, START_ROUNDS * (bound + BUG_MS));
    verdict_set(v, w->rounds == START_ROUNDS && w->worst <= bound, "%u of %u rounds, the longest took %.1f ms (bound %.0f)",
                w->rounds, START_ROUNDS, (double)w->worst / 1e6, (double)bound / 1e6);
}

/* ---- 8 ---- */

#define TICKLESS_ROUNDS 2000u

struct tickless {
    uint64_t first[SIM_MASK_WORDS], second[SIM_MASK_WORDS];
    struct sim_thread *wakee;
    uint32_t sent, seen;
};

static struct sim_action tickless_waker(struct sim *s, struct sim_thread *t)
{
    struct tickless *w = t->arg;

    if (w->sent == TICKLESS_ROUNDS) {
        return (struct sim_action){ACT_EXIT, 0};
    }
    w->sent++;
    sim_wake(s, w->wakee, 0);
    return (struct sim_action){ACT_SLEEP, BUG_MS};
}

static struct sim_action tickless_wakee(struct sim *s, struct sim_thread *t)
{
    struct tickless *w = t->arg;

    (void)s;
    if (t->ops++ == 0) {
        return (struct sim_action){ACT_PARK, 0};
    }
    t->ops = 0;
    w->seen++;
    return (struct sim_action){ACT_RUN, 10 * BUG_US};
}

void bug_tickless(struct sim *s, struct verdict *v)
{
    struct tickless *w = sim_alloc(1, sizeof(*w));

    s->workload = w;
    w->first[0] = 1;
    w->second[0] = 2;
    w->wakee = sim_thread_new(s, "wakee", tickless_wakee, w, w->second);
    sim_spawn(s, w->wakee, 1);
    sim_run(s, BUG_MS);
    sim_spawn(s, sim_thread_new(s, "waker", tickless_waker, w, w->first), 0);
    sim_run(s, (TICKLESS_ROUNDS + 10) * BUG_MS);
    verdict_set(v, w->seen == TICKLESS_ROUNDS, "%u of %u wakeups seen", w->seen, TICKLESS_ROUNDS);
}

/* ---- 9 ---- */

#define CONVOY_ROUNDS 50u
#define CONVOY_QUEUE 4u

static struct sim_action convoy_worker(struct sim *s, struct sim_thread *t)
{
    uint64_t next;

    (void)t;
    if (s->now >= CONVOY_ROUNDS * 2 * BUG_MS) {
        return (struct sim_action){ACT_EXIT, 0};
    }
    if (t->arg == NULL) { /* sleeps to the next even ms, ... */
        t->arg = t;
        next = (s->now / (2 * BUG_MS) + 1) * 2 * BUG_MS;
        return (struct sim_action){ACT_SLEEP, next - s->now};
    }
    t->arg = NULL; /* ... runs to the odd one: all go idle together */
    next = (s->now / (2 * BUG_MS)) * 2 * BUG_MS + BUG_MS;
    return (struct sim_action){ACT_RUN, next > s->now ? next - s->now : 1};
}

static struct sim_action convoy_spinner(struct sim *s, struct sim_thread *t)
{
    (void)s;
    (void)t;
    return (struct sim_action){ACT_RUN, BUG_MS};
}

struct convoy {
    uint64_t own[80][SIM_MASK_WORDS];
};

void bug_convoy(struct sim *s, struct verdict *v)
{
    struct convoy *w = sim_alloc(1, sizeof(*w));
    uint64_t wasted;

    s->workload = w;
    for (uint32_t c = 1; c < s->n; c++) {
        w->own[c][c / 64] = 1ull << (c % 64);
        sim_spawn(s, sim_thread_new(s, "worker", convoy_worker, NULL, w->own[c]), c);
    }
    sim_run(s, 3 * BUG_MS / 2); /* the others sleep or run; now CPU 0 gets a queue */
    for (uint32_t i = 0; i <= CONVOY_QUEUE; i++) {
        sim_spawn(s, sim_thread_new(s, "spinner", convoy_spinner, NULL, NULL), 0);
    }
    sim_run(s, 2 * CONVOY_ROUNDS * BUG_MS);
    track_close_stretch(s);
    wasted = s->st.pulls - s->st.pull_hits;
    verdict_set(v, s->st.pulled_last == 0 && s->st.longest_stretch <= BUG_ONE_PASS_NS &&
                       s->st.pulls <= s->st.idle_enters,
                "queue gone after %.1f ms; went idle %llu times, %llu looks in vain, %llu at a taken lock, %llu last threads taken",
                (double)s->st.longest_stretch / 1e6, (unsigned long long)s->st.idle_enters, (unsigned long long)wasted,
                (unsigned long long)s->st.pull_contended, (unsigned long long)s->st.pulled_last);
}

/* ---- 10 ---- */

#define YIELD_THREADS 4u

struct yielders {
    struct sim_thread *threads[YIELD_THREADS];
};

static struct sim_action yield_step(struct sim *s, struct sim_thread *t)
{
    struct yielders *w = s->workload;
    uint32_t dice = rng_below(&t->rng, 4);

    sim_op(s, t, 0);
    if (dice != 0) {
        sim_wake(s, w->threads[rng_below(&t->rng, YIELD_THREADS)], 0);
    }
    switch (dice) {
    case 0:
        return (struct sim_action){ACT_YIELD, 0};
    case 1:
        return (struct sim_action){ACT_PARK, 0};
    default:
        return (struct sim_action){ACT_RUN, rng_exp(&t->rng, 2000.0)};
    }
}

static void poke(struct sim *s, void *arg)
{
    struct yielders *w = s->workload;
    struct rng *r = arg;

    sim_wake(s, w->threads[rng_below(r, YIELD_THREADS)], 0);
    sim_at(s, s->now + rng_exp(r, 3000.0), poke, r);
}

void bug_yield_race(struct sim *s, struct verdict *v)
{
    struct yielders *w = sim_alloc(1, sizeof(*w));
    struct rng dice = rng_stream(s->cfg.seed, 10);
    uint32_t starved = 0;

    s->workload = w;
    for (uint32_t i = 0; i < YIELD_THREADS; i++) {
        w->threads[i] = sim_thread_new(s, "yielder", yield_step, NULL, NULL);
    }
    for (uint32_t i = 0; i < YIELD_THREADS; i++) {
        sim_spawn(s, w->threads[i], i % s->n);
    }
    sim_at(s, 1000, poke, &dice);
    sim_run(s, 500 * BUG_MS);
    for (uint32_t i = 0; i < YIELD_THREADS; i++) {
        starved += w->threads[i]->ops < 1000;
    }
    verdict_set(v, !s->failed && starved == 0, "%llu steps, each thread in one place all the time",
                (unsigned long long)s->st.ops);
}

/* ---- 11 ---- */

#define RACE_WAKES 20000u

struct race {
    uint64_t own[32][SIM_MASK_WORDS];
    struct sim_thread *threads[32];
    struct rng dice;
    uint32_t sent;
};

static struct sim_action race_step(struct sim *s, struct sim_thread *t)
{
    if (t->ops++ % 2 == 0) {
        return (struct sim_action){ACT_PARK, 0};
    }
    (void)s;
    return (struct sim_action){ACT_RUN, 1000};
}

/* Wakes land around the moment at which a poller gives up and halts. */
static struct sim_action race_waker(struct sim *s, struct sim_thread *t)
{
    struct race *w = s->workload;

    if (w->sent == RACE_WAKES) {
        return (struct sim_action){ACT_EXIT, 0};
    }
    w->sent++;
    sim_wake(s, w->threads[1 + rng_below(&t->rng, s->n - 1)], 0);
    return (struct sim_action){ACT_RUN, 200 + rng_below(&t->rng, 2 * SIM_IDLE_SPIN_NS / s->n)};
}

void bug_lost_ipi(struct sim *s, struct verdict *v)
{
    struct race *w = sim_alloc(1, sizeof(*w));
    uint32_t asleep = 0;

    s->workload = w;
    for (uint32_t c = 0; c < s->n; c++) {
        w->own[c][0] = 1ull << c;
        w->threads[c] = sim_thread_new(s, "sleeper", race_step, NULL, w->own[c]);
        sim_spawn(s, w->threads[c], c);
    }
    sim_run(s, BUG_MS);
    sim_spawn(s, sim_thread_new(s, "waker", race_waker, NULL, w->own[0]), 0);
    sim_run(s, 100 * BUG_MS);
    for (uint32_t c = 0; c < s->n; c++) {
        asleep += s->cpus[c].curr == NULL && sim_load(s, c) != 0;
    }
    verdict_set(v, w->sent == RACE_WAKES && asleep == 0 && s->st.wakeup.max <= BUG_MS,
                "%u wakeups, the slowest %.1f us; %u CPUs asleep with work", w->sent, (double)s->st.wakeup.max / 1e3, asleep);
}
