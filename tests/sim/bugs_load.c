/* Replays about queues that stay uneven: 1, 3, 7, 12. */
#include "tests/sim/bugs.h"
#include "tests/sim/internal.h"

static struct sim_action spin(struct sim *s, struct sim_thread *t)
{
    (void)s;
    (void)t;
    return (struct sim_action){ACT_RUN, BUG_MS};
}

/* ---- 1 ---- */

static struct sim_action sleeper(struct sim *s, struct sim_thread *t)
{
    (void)s;
    if (t->arg == NULL) {
        t->arg = t;
        return (struct sim_action){ACT_RUN, 1 * BUG_MS};
    }
    t->arg = NULL;
    return (struct sim_action){ACT_SLEEP, 10 * BUG_MS};
}

void bug_sleeper_and_spinners(struct sim *s, struct verdict *v)
{
    sim_spawn(s, sim_thread_new(s, "spinner", spin, NULL, NULL), 0);
    sim_spawn(s, sim_thread_new(s, "spinner", spin, NULL, NULL), 0);
    sim_spawn(s, sim_thread_new(s, "sleeper", sleeper, NULL, NULL), 0);
    sim_run(s, 2000 * BUG_MS);
    track_close_stretch(s);
    verdict_set(v, s->st.longest_stretch <= BUG_ONE_PASS_NS, "a CPU idle beside a waiting thread for %.1f ms at most",
                (double)s->st.longest_stretch / 1e6);
}

/* ---- 3 ---- */

#define PAIRS 200u
#define OVERLOAD_THREADS 64u
#define OVERLOAD_MS 100u
#define MESSAGE_NS 5000u
#define MESSAGE_GAP_NS 400000u /* so that some CPUs are idle once the overload is over */
#define MESSAGE_WAIT_NS 200000u /* 40 messages: a deep queue */

struct pair_end {
    struct pair_end *peer;
    struct sim_thread *thread;
    uint32_t messages;
    bool working, gap;
};

struct pairs {
    struct pair_end ends[2 * PAIRS];
};

static struct sim_action pair_step(struct sim *s, struct sim_thread *t)
{
    struct pair_end *e = t->arg;

    if (e->working) {
        e->working = false;
        if (e < e->peer && !e->gap) { /* one side pauses between two messages */
            e->gap = true;
            return (struct sim_action){ACT_SLEEP, rng_exp(&t->rng, MESSAGE_GAP_NS)};
        }
    }
    if (e->messages != 0 || e->gap) {
        if (e->gap) { /* the pause is over: send */
            e->gap = false;
            e->peer->messages++;
            sim_wake(s, e->peer->thread, POLICY_WAKE_SYNC);
            sim_op(s, t, 0);
        } else {
            e->messages--;
            e->working = true;
            if (e > e->peer) { /* answer at once, about to block */
                e->peer->messages++;
                sim_wake(s, e->peer->thread, POLICY_WAKE_SYNC);
                sim_op(s, t, 0);
            }
            return (struct sim_action){ACT_RUN, MESSAGE_NS};
        }
    }
    return (struct sim_action){ACT_PARK, 0};
}

static struct sim_action overload_step(struct sim *s, struct sim_thread *t)
{
    (void)t;
    if (s->now >= OVERLOAD_MS * BUG_MS) {
        return (struct sim_action){ACT_EXIT, 0};
    }
    return (struct sim_action){ACT_RUN, BUG_MS};
}

void bug_pairs(struct sim *s, struct verdict *v)
{
    struct pairs *w = sim_alloc(1, sizeof(*w));
    uint64_t p99;

    s->workload = w;
    for (uint32_t i = 0; i < 2 * PAIRS; i++) {
        struct pair_end *e = &w->ends[i];

        e->peer = &w->ends[i ^ 1];
        e->messages = i % 2 == 0; /* the first message */
        e->thread = sim_thread_new(s, "pair", pair_step, e, NULL);
    }
    for (uint32_t i = 0; i < OVERLOAD_THREADS; i++) {
        sim_spawn(s, sim_thread_new(s, "overload", overload_step, NULL, NULL), 0);
    }
    for (uint32_t i = 0; i < 2 * PAIRS; i++) {
        sim_spawn(s, w->ends[i].thread, 0);
    }
    sim_run(s, 2 * OVERLOAD_MS * BUG_MS);
    sim_reset_stats(s);
    sim_run(s, 4 * OVERLOAD_MS * BUG_MS);
    p99 = hist_quantile(&s->st.wakeup, 0.99);
    verdict_set(v, p99 <= MESSAGE_WAIT_NS, "wakeup to run p99 %.0f us (bound %.0f), %.0f k messages/s", (double)p99 / 1e3,
                MESSAGE_WAIT_NS / 1e3, (double)s->st.ops * 1e6 / (double)(s->now - s->st.since));
}

/* ---- 7 ---- */

#define LONG_RUN_MS 300u
#define WOKEN_AT_MS 53u

static struct sim_action park_then_run(struct sim *s, struct sim_thread *t)
{
    uint64_t *ns = t->arg;

    (void)s;
    if (t->ops++ == 0) {
        return (struct sim_action){ACT_PARK, 0};
    }
    if (t->ops == 2) {
        return (struct sim_action){ACT_RUN, *ns};
    }
    return (struct sim_action){ACT_EXIT, 0};
}

struct displaced {
    uint64_t first[SIM_MASK_WORDS];
    uint64_t long_ns, short_ns;
    struct sim_thread *pinned, *free;
};

static void wake_both(struct sim *s, void *arg)
{
    struct displaced *w = arg;

    sim_wake(s, w->pinned, 0);
    sim_wake(s, w->free, 0);
}

void bug_displaced(struct sim *s, struct verdict *v)
{
    struct displaced *w = sim_alloc(1, sizeof(*w));
    uint32_t heavy = runq_weight_of_nice(-15);
    struct sim_thread *victim;

    s->workload = w;
    w->first[0] = 1;
    w->long_ns = LONG_RUN_MS * BUG_MS;
    w->short_ns = 1 * BUG_MS;
    w->pinned = sim_thread_new(s, "pinned", park_then_run, &w->long_ns, w->first);
    w->free = sim_thread_new(s, "free", park_then_run, &w->short_ns, NULL);
    victim = sim_thread_new(s, "victim", spin, NULL, NULL);
    runq_entity_init(&w->pinned->entity, heavy);
    runq_entity_init(&w->free->entity, heavy);
    sim_spawn(s, w->pinned, 0);
    sim_spawn(s, w->free, 0);
    sim_run(s, 1 * BUG_MS); /* both have parked */
    sim_spawn(s, victim, 0);
    sim_at(s, WOKEN_AT_MS * BUG_MS, wake_both, w);
    sim_run(s, (WOKEN_AT_MS + LONG_RUN_MS) * BUG_MS);
    track_close_stretch(s);
    verdict_set(v, s->st.longest_stretch <= BUG_ONE_PASS_NS, "a CPU idle beside the displaced thread for %.1f ms at most",
                (double)s->st.longest_stretch / 1e6);
}

/* ---- 12 ---- */

#define RELEASED 512u
#define RELEASE_AT_MS 50u

struct release {
    uint64_t first[SIM_MASK_WORDS];
};

static void release_all(struct sim *s, void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < s->num_threads; i++) {
        sim_set_affinity(s, s->threads[i], NULL);
    }
    sim_reset_stats(s);
    s->watch_spread = true;
}

void bug_release(struct sim *s, struct verdict *v)
{
    struct release *w = sim_alloc(1, sizeof(*w));
    /* ANCHORS: ceil((k - ceil(k/n)) / n) passes of one interval; one more until the first. */
    uint32_t passes = (RELEASED - (RELEASED + s->n - 1) / s->n + s->n - 1) / s->n;
    uint64_t bound = (passes + 1) * 10 * BUG_MS;
    uint32_t least = UINT32_MAX;
    uint32_t most = 0;

    s->workload = w;
    w->first[0] = 1;
    for (uint32_t i = 0; i < RELEASED; i++) {
        sim_spawn(s, sim_thread_new(s, "spinner", spin, NULL, w->first), 0);
    }
    sim_at(s, RELEASE_AT_MS * BUG_MS, release_all, NULL);
    sim_run(s, 1000 * BUG_MS);
    for (uint32_t c = 0; c < s->n; c++) {
        least = sim_load(s, c) < least ? sim_load(s, c) : least;
        most = sim_load(s, c) > most ? sim_load(s, c) : most;
    }
    if (s->spread_at < 0) {
        verdict_set(v, false, "not even after 950 ms: %u to %u threads a CPU", least, most);
        return;
    }
    verdict_set(v, (uint64_t)s->spread_at - s->st.since <= bound && most - least <= 1,
                "even after %.0f ms (bound %.0f), then %u to %u threads a CPU", (double)((uint64_t)s->spread_at - s->st.since) / 1e6,
                (double)bound / 1e6, least, most);
}
