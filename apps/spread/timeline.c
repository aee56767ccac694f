/* From what the threads noted to when they had spread and how fast they woke; see spread.h. */
#include <stdlib.h>
#include <string.h>

#include "apps/spread/spread.h"

struct step {
    uint64_t at_ns;
    uint32_t thread;
    uint32_t cpu;
};

static int by_time(const void *a, const void *b)
{
    const struct step *x = a, *y = b;

    if (x->at_ns != y->at_ns) {
        return x->at_ns < y->at_ns ? -1 : 1;
    }
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

struct counts {
    uint32_t on[SPREAD_MAX_CPUS];
    bool ever[SPREAD_MAX_CPUS];
    const bool *allowed;
};

static void measure(const struct counts *c, uint32_t *used, uint32_t *most, uint32_t *least)
{
    *used = *most = 0;
    *least = UINT32_MAX;
    for (uint32_t cpu = 0; cpu < SPREAD_MAX_CPUS; cpu++) {
        if (!c->allowed[cpu] && !c->on[cpu]) {
            continue;
        }
        *used += c->on[cpu] > 0;
        *most = c->on[cpu] > *most ? c->on[cpu] : *most;
        *least = c->on[cpu] < *least ? c->on[cpu] : *least;
    }
    *least = *least == UINT32_MAX ? 0 : *least;
}

static size_t gather(struct step *steps, const struct spread_thread *threads, uint32_t nthreads)
{
    size_t n = 0;

    for (uint32_t i = 0; i < nthreads; i++) {
        for (uint32_t m = 0; m < threads[i].nmoves; m++) {
            steps[n++] = (struct step){threads[i].moves[m].at_ns, i, threads[i].moves[m].cpu};
        }
    }
    qsort(steps, n, sizeof(*steps), by_time);
    return n;
}

static void note(struct timeline *t, const struct counts *c, uint64_t at_ns)
{
    measure(c, &t->cpus_at_end, &t->most_at_end, &t->least_at_end);
    if (t->cpus_at_end >= t->cpus_reachable && t->all_used_ns == UINT64_MAX) {
        t->all_used_ns = at_ns;
    }
    if (t->most_at_end - t->least_at_end > 1) {
        t->balanced_ns = UINT64_MAX;
    } else if (t->balanced_ns == UINT64_MAX) {
        t->balanced_ns = at_ns;
    }
}

static void replay(struct timeline *t, const struct step *steps, size_t n, uint32_t *where,
                   struct counts *c)
{
    note(t, c, 0);
    for (size_t i = 0; i < n; i++) {
        uint32_t from = where[steps[i].thread];

        c->ever[steps[i].cpu] = true;
        if (from != steps[i].cpu) {
            c->on[from]--;
            c->on[steps[i].cpu]++;
            where[steps[i].thread] = steps[i].cpu;
            note(t, c, steps[i].at_ns);
        }
    }
    for (uint32_t cpu = 0; cpu < SPREAD_MAX_CPUS; cpu++) {
        t->cpus_used += c->ever[cpu];
    }
}

bool timeline_build(struct timeline *t, const struct spread_thread *threads, uint32_t nthreads,
                    uint32_t from_cpu, const bool *allowed)
{
    size_t total = 0;
    uint32_t ncpus = 0;
    struct counts *c = calloc(1, sizeof(*c));
    uint32_t *where = malloc(nthreads * sizeof(*where));
    struct step *steps;
    bool good;

    for (uint32_t i = 0; i < nthreads; i++) {
        total += threads[i].nmoves;
    }
    steps = malloc((total + 1) * sizeof(*steps));
    good = c && where && steps;
    if (good) {
        memset(t, 0, sizeof(*t));
        t->all_used_ns = t->balanced_ns = UINT64_MAX;
        for (uint32_t cpu = 0; cpu < SPREAD_MAX_CPUS; cpu++) {
            ncpus += allowed[cpu];
        }
        t->cpus_reachable = nthreads < ncpus ? nthreads : ncpus;
        c->allowed = allowed;
        c->on[from_cpu] = nthreads;
        for (uint32_t i = 0; i < nthreads; i++) {
            where[i] = from_cpu;
        }
        replay(t, steps, gather(steps, threads, nthreads), where, c);
    }
    free(c);
    free(where);
    free(steps);
    return good;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

bool latencies_build(struct latencies *l, const struct spread_thread *threads, uint32_t nthreads)
{
    size_t n = 0, total = 0;
    uint64_t *all;

    memset(l, 0, sizeof(*l));
    for (uint32_t i = 0; i < nthreads; i++) {
        total += threads[i].nsamples;
    }
    all = malloc((total + 1) * sizeof(*all));
    if (!all) {
        return false;
    }
    for (uint32_t i = 0; i < nthreads; i++) {
        for (uint32_t k = 0; k < threads[i].nsamples; k++) {
            all[n++] = threads[i].latency[k];
        }
    }
    if (n) {
        qsort(all, n, sizeof(*all), by_value);
        l->p50 = all[(n - 1) / 2];
        l->p99 = all[(n - 1) * 99 / 100];
        l->max = all[n - 1];
    }
    free(all);
    return true;
}
