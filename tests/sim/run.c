/* Runs one point and gathers its result. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/trace.h"
#include "tests/sim/workload.h"

const struct policy *policy_find(const char *name)
{
    for (const struct policy *const *p = policy_registry; *p != NULL; p++) {
        if (strcmp((*p)->name, name) == 0) {
            return *p;
        }
    }
    return NULL;
}

static double us(uint64_t ns)
{
    return (double)ns / 1000.0;
}

/* Jain's index of the threads' progress: 1 when all are equal, 1/k when one has it all. */
static double jain_index(const struct sim *s)
{
    double sum = 0.0;
    double squares = 0.0;
    uint32_t count = 0;
    bool by_ops = s->st.ops != 0;

    for (uint32_t i = 0; i < s->num_threads; i++) {
        const struct sim_thread *t = s->threads[i];
        double x = by_ops ? (double)t->ops : (double)t->runtime;

        if (t->state != T_NEW && !t->service) {
            sum += x;
            squares += x * x;
            count++;
        }
    }
    return squares > 0.0 ? sum * sum / ((double)count * squares) : 1.0;
}

static void gather_cpus(struct sim *s, struct result *r)
{
    double span = (double)(s->now - s->st.since);
    double idle = 0.0;

    for (uint32_t c = 0; c < s->n; c++) {
        struct sim_cpu *cpu = &s->cpus[c];

        idle += (double)cpu->idle_ns;
        if (cpu->idle && s->now > cpu->idle_mark) {
            idle += (double)(s->now - cpu->idle_mark);
        }
        r->cpus_used += cpu->used;
    }
    r->idle_share = span > 0.0 ? idle / (span * s->n) : 0.0;
    r->idle_overloaded_share = span > 0.0 ? (double)s->st.overloaded / (span * s->n) : 0.0;
}

static void gather(struct sim *s, const struct point *p, struct result *r)
{
    const struct sim_stats *st = &s->st;

    r->rps = s->now > st->since ? (double)st->ops * 1e9 / (double)(s->now - st->since) : 0.0;
    r->latency_p50_us = us(hist_quantile(&st->latency, 0.5));
    r->latency_p99_us = us(hist_quantile(&st->latency, 0.99));
    r->latency_p999_us = us(hist_quantile(&st->latency, 0.999));
    r->latency_max_us = us(st->latency.max);
    r->wakeup_p50_us = us(hist_quantile(&st->wakeup, 0.5));
    r->wakeup_p99_us = us(hist_quantile(&st->wakeup, 0.99));
    r->wakeup_p999_us = us(hist_quantile(&st->wakeup, 0.999));
    r->wakeup_max_us = us(st->wakeup.max);
    r->wait_p50_us = us(hist_quantile(&st->wait, 0.5));
    r->wait_p99_us = us(hist_quantile(&st->wait, 0.99));
    for (int i = 0; i < SIM_NUM_REASONS; i++) {
        r->by_reason[i] = st->migrations[i];
        r->migrations += st->migrations[i];
    }
    r->migrations_needed = st->needed;
    r->pingpong = st->pingpong;
    r->longest_violation_us = us(st->longest_gap);
    r->switches = st->switches;
    r->ipis = st->ipis;
    r->wakes_remote = st->wakes_remote;
    r->wakes_local = st->wakes_local;
    r->halts = st->halts;
    r->passes = st->passes;
    r->pulls = st->pulls;
    r->pull_hits = st->pull_hits;
    for (int i = 0; i < SIM_NUM_REJECTS; i++) {
        r->rejected += st->moves_rejected[i];
    }
    r->convergence_passes = -1;
    if (s->watch_spread && s->spread_at >= 0) {
        r->convergence_passes = (int32_t)s->spread_passes;
        r->convergence_ms = (double)((uint64_t)s->spread_at - st->since) / 1e6;
    }
    if (s->watch_spread) { /* all of them started on one CPU: the fewest moves that spread them */
        r->migrations_needed = s->num_threads - (s->num_threads + s->n - 1) / s->n;
    }
    r->jain = jain_index(s);
    r->events = s->num_events;
    r->failed = s->failed;
    memcpy(r->failure, s->failure, sizeof(r->failure));
    r->queues = s->num_rxqs;
    r->service_us = p->service_us;
    gather_cpus(s, r);
}

void run_point(const struct workload *w, const struct point *p, struct result *r, const char *trace_path,
               const char *svg_path)
{
    struct sim_config cfg = {
        .policy = p->policy,
        .num_cpus = p->cpus,
        .seed = p->seed,
        .cost = p->cost,
        .interval_ms = p->interval_ms,
        .faults = p->faults,
        .rx_batch = p->rx_batch,
    };
    struct sim *s = sim_new(&cfg);
    uint64_t warmup = p->warmup_ns != SIM_NEVER ? p->warmup_ns : w->warmup_ns;
    uint64_t measure = p->measure_ns != SIM_NEVER ? p->measure_ns : w->measure_ns;

    *r = (struct result){.policy = p->policy != NULL ? p->policy->name : "ideal",
                         .workload = w->name,
                         .cpus = p->cpus,
                         .conns = p->conns,
                         .seed = p->seed,
                         .load = p->load};
    w->setup(s, p);
    if (trace_path != NULL || svg_path != NULL) {
        s->trace = trace_new(s);
    }
    if (warmup != 0) {
        sim_run(s, warmup);
        sim_reset_stats(s);
    }
    sim_run(s, warmup + measure);
    gather(s, p, r);
    if (trace_path != NULL && trace_write_chrome(s, trace_path) != 0) {
        fprintf(stderr, "weir-sim: cannot write %s: %s\n", trace_path, strerror(errno));
    }
    if (svg_path != NULL) {
        char title[160];

        snprintf(title, sizeof(title), "%s, policy %s, %u CPUs, %u threads, seed %llu", w->name, r->policy, p->cpus,
                 s->num_threads, (unsigned long long)p->seed);
        if (trace_write_svg(s, svg_path, title) != 0) {
            fprintf(stderr, "weir-sim: cannot write %s\n", svg_path);
        }
    }
    trace_free(s->trace);
    if (w->done != NULL) {
        w->done(s);
    } else {
        free(s->workload);
    }
    sim_free(s);
}
