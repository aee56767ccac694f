/* Runs a phase: places connections on threads, opens the window, collects. See phase.h. */
#include "apps/load/phase.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "apps/load/rng.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull

/* How often a phase looks whether its workers have ended early. */
#define WATCH_MS 5

struct phase {
    const struct phase_spec *spec;
    const char *mark;
    uint32_t ticks;
    struct window window;
    pthread_barrier_t barrier;
    struct worker *workers;
    pthread_t *threads;
    struct conn *conns;
    uint32_t nthreads;
    pthread_mutex_t lock;
    pthread_cond_t ended;       /* signalled with each increment of ended_count */
    uint32_t ended_count;       /* under `lock` */
};

struct start {                  /* argument of a thread */
    struct phase *phase;
    struct worker *worker;
};

static uint32_t allowed_cpus(int *cpus, uint32_t most)
{
    cpu_set_t set;
    uint32_t n = 0;

    if (sched_getaffinity(0, sizeof(set), &set) < 0) {
        return 0;
    }
    for (int cpu = 0; cpu < CPU_SETSIZE && n < most; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            cpus[n++] = cpu;
        }
    }
    return n;
}

/* Waits until `until` (ns) or until all workers have ended; true in the latter case. */
static bool wait_workers(struct phase *p, uint64_t until)
{
    struct timespec t = {(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};
    bool all;

    pthread_mutex_lock(&p->lock);
    while (p->ended_count < p->nthreads) {
        if (pthread_cond_timedwait(&p->ended, &p->lock, &t) == ETIMEDOUT) {
            break;
        }
    }
    all = p->ended_count == p->nthreads;
    pthread_mutex_unlock(&p->lock);
    return all;
}

static void *thread_body(void *argument)
{
    struct start *start = argument;
    struct phase *p = start->phase;

    worker_run(start->worker);
    pthread_mutex_lock(&p->lock);
    p->ended_count++;
    pthread_cond_signal(&p->ended);
    pthread_mutex_unlock(&p->lock);
    pthread_barrier_wait(&p->barrier);
    worker_close(start->worker);
    return NULL;
}

/* Ports count up over all phases, so that none is reused while an old connection lingers. */
static uint16_t next_local_port(const struct options *o)
{
    static uint32_t used;

    return o->local_port && o->local_port + used <= UINT16_MAX
               ? (uint16_t)(o->local_port + used++)
               : 0;
}

/* Divides connections, rate and preloaded keys among the workers. */
static bool set_up_workers(struct phase *p, const struct options *o, const struct keyspace *space,
                           const struct sockaddr_in *server)
{
    const struct phase_spec *spec = p->spec;
    int cpus[LOAD_MAX_THREADS];
    uint32_t ncpus = allowed_cpus(cpus, LOAD_MAX_THREADS);
    uint32_t n = o->threads ? o->threads : ncpus ? ncpus : 1;
    uint32_t next = 0;

    p->nthreads = n = n < spec->conns ? n : spec->conns;
    p->workers = calloc(n, sizeof(*p->workers));
    p->threads = calloc(n, sizeof(*p->threads));
    p->conns = calloc(spec->conns, sizeof(*p->conns));
    if (!p->workers || !p->threads || !p->conns) {
        return false;
    }
    for (uint32_t i = 0; i < spec->conns; i++) {
        if (!conn_init(&p->conns[i], spec->pipeline, space->value_max)) {
            return false;
        }
        p->conns[i].local_port = next_local_port(o);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct worker *w = &p->workers[i];

        w->options = o;
        w->space = space;
        w->window = &p->window;
        w->server = *server;
        w->barrier = &p->barrier;
        w->nconns = spec->conns / n + (i < spec->conns % n);
        w->conns = &p->conns[next];
        next += w->nconns;
        w->cpu = o->pin && ncpus > 1 ? cpus[i % ncpus] : -1;
        w->pipeline = spec->pipeline;
        w->preload = spec->preload;
        w->preload_from = space->keys * i / n;
        w->preload_to = space->keys * (i + 1) / n;
        w->rate = (double)spec->rate * w->nconns / spec->conns;
        w->rng = rng_mix(((uint64_t)o->seed << 32) + spec->rep * LOAD_MAX_THREADS + i + 1);
        w->stamp = w->rng;
    }
    return true;
}

static void open_window(struct phase *p, uint32_t slice_ms)
{
    struct window *w = &p->window;

    w->start = load_now();
    w->begin = w->start + p->spec->warmup_ms * NS_PER_MS;
    w->end = w->begin + p->spec->time_ms * NS_PER_MS;
    w->give_up = w->end + LOAD_DRAIN_MS * NS_PER_MS;
    w->slice = slice_ms * NS_PER_MS;
}

/* Waits until `until`, having the machine count in `parts` equal parts, named NAME#<letter><i>. */
static void wait_in_parts(struct phase *p, uint64_t from, uint64_t until, uint32_t parts, char letter)
{
    for (uint32_t i = 0; i < parts; i++) {
        char name[LOAD_NAME_BYTES + 16];

        snprintf(name, sizeof(name), "%s#%c%u", p->spec->name, letter, i);
        mark_phase(p->mark, name, "begin");
        wait_workers(p, from + (until - from) * (i + 1) / parts);
        mark_phase(p->mark, name, "end");
    }
}

/* Waits for the phase, marking the measured part. Workers that wait in a blocking read when the
 * replies are given up get their sockets shut down. */
static void see_through(struct phase *p)
{
    const struct window *w = &p->window;

    if (p->ticks && !p->spec->preload) {
        uint32_t before = (uint32_t)(p->ticks * (w->begin - w->start) / (w->end - w->start));

        wait_in_parts(p, w->start, w->begin, before, 'w');
        wait_in_parts(p, w->begin, w->end, p->ticks - before, 'm');
    } else {
        wait_workers(p, w->begin);
        mark_phase(p->mark, p->spec->name, "begin");
        wait_workers(p, w->end);
        mark_phase(p->mark, p->spec->name, "end");
    }
    if (!wait_workers(p, w->give_up)) {
        while (!wait_workers(p, load_now() + WATCH_MS * NS_PER_MS)) {
            for (uint32_t i = 0; i < p->spec->conns; i++) {
                int fd = __atomic_load_n(&p->conns[i].fd, __ATOMIC_ACQUIRE);

                if (fd >= 0) {
                    shutdown(fd, SHUT_RDWR);
                }
            }
        }
    }
}

static void collect(const struct phase *p, struct phase_result *r)
{
    double busy_sum = 0, busy_max = -1;
    bool known = true;

    r->threads = p->nthreads;
    hist_reset(&r->latency);
    hist_reset(&r->late);
    for (uint32_t i = 0; i < p->nthreads; i++) {
        const struct worker *w = &p->workers[i];
        uint64_t *into = (uint64_t *)&r->counts;
        const uint64_t *from = (const uint64_t *)&w->counts;

        for (size_t k = 0; k < sizeof(r->counts) / sizeof(*into); k++) {
            into[k] += from[k];
        }
        hist_merge(&r->latency, &w->latency);
        hist_merge(&r->late, &w->late);
        for (int k = 0; k < LOAD_MAX_SLICES; k++) {
            r->slices[k] += w->slices[k];
            r->slices_used = w->slices[k] && k >= (int)r->slices_used ? (uint32_t)k + 1
                                                                       : r->slices_used;
        }
        known = known && w->busy >= 0;
        busy_sum += w->busy;
        busy_max = w->busy > busy_max ? w->busy : busy_max;
    }
    r->busy_mean = known ? busy_sum / p->nthreads : -1;
    r->busy_max = known ? busy_max : -1;
    r->queue_share = r->latency.sum ? (double)r->counts.queue_ns / (double)r->latency.sum : 0;
    r->client_bound = r->busy_mean >= LOAD_BOUND_BUSY || r->queue_share >= LOAD_BOUND_QUEUE;
    r->seconds = (double)(p->window.end - p->window.begin) / (double)NS_PER_S;
}

static int first_failure(const struct phase *p)
{
    for (uint32_t i = 0; i < p->nthreads; i++) {
        if (p->workers[i].failed) {
            return -p->workers[i].failed;
        }
    }
    return 0;
}

/* Starts the threads and sees them through. False: could not start, or could not connect. */
static bool run_threads(struct phase *p, uint32_t slice_ms)
{
    struct start *starts = calloc(p->nthreads, sizeof(*starts));
    uint32_t started = 0;
    int error = starts ? 0 : ENOMEM;

    for (; !error && started < p->nthreads; started++) {
        starts[started] = (struct start){p, &p->workers[started]};
        error = pthread_create(&p->threads[started], NULL, thread_body, &starts[started]);
        if (error) {
            break;
        }
    }
    if (error) {
        /* Those that run wait at a barrier that can never fill: nothing to save, so end here. */
        fprintf(stderr, "load: cannot start thread %u of %u: %s\n", started + 1, p->nthreads,
                strerror(error));
        exit(1);
    }
    pthread_barrier_wait(&p->barrier);
    error = first_failure(p);
    if (!error) {
        open_window(p, slice_ms);
    }
    pthread_barrier_wait(&p->barrier);      /* a window without an end sends them home */
    if (!error) {
        see_through(p);
    }
    pthread_barrier_wait(&p->barrier);
    for (uint32_t i = 0; i < p->nthreads; i++) {
        pthread_join(p->threads[i], NULL);
    }
    free(starts);
    if (error) {
        fprintf(stderr, "load: phase %s: cannot connect: %s\n", p->spec->name, strerror(error));
    }
    return !error;
}

bool phase_run(const struct options *options, const struct keyspace *space,
               const struct sockaddr_in *server, const struct phase_spec *spec,
               struct phase_result *result)
{
    struct phase p = {.spec = spec, .mark = options->mark, .ticks = options->ticks};
    pthread_condattr_t monotonic;
    bool good;

    memset(result, 0, sizeof(*result));
    result->slice_ms = options->slice_ms;
    pthread_mutex_init(&p.lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p.ended, &monotonic);
    good = set_up_workers(&p, options, space, server);
    if (!good) {
        fprintf(stderr, "load: phase %s: out of memory for %u connections\n", spec->name,
                spec->conns);
    } else {
        pthread_barrier_init(&p.barrier, NULL, p.nthreads + 1);
        good = run_threads(&p, options->slice_ms);
        pthread_barrier_destroy(&p.barrier);
    }
    if (good) {
        collect(&p, result);
    }
    for (uint32_t i = 0; p.conns && i < spec->conns; i++) {
        conn_free(&p.conns[i]);
    }
    free(p.conns);
    free(p.threads);
    free(p.workers);
    pthread_cond_destroy(&p.ended);
    pthread_mutex_destroy(&p.lock);
    return good;
}
