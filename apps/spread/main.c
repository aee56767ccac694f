/*
 * spread: see spread.h. Prints one JSON line, times in microseconds since the release.
 *
 * usage: spread [--threads N] [--work-us N] [--period-us N] [--wake never|timer|burst]
 *               [--time-ms N] [--from-cpu N] [--list yes|no]      (or SPREAD_THREADS=N ...)
 * Exit status: 0 measured, 1 out of memory or threads, 2 bad options.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "apps/spread/spread.h"

static struct spread_options options = {
    .threads = 32,
    .work_us = 100,
    .period_us = 1000,
    .time_ms = 500,
    .wake = WAKE_NEVER,
    .list = true,
};

/* Futex words. A condition variable would hand its mutex from thread to thread, so that each is released only when the one
 * before it has run: here all are released by one call. */
#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE_PRIVATE 129
static _Atomic uint32_t ready;          /* threads that wait for their release */
static _Atomic uint32_t burst;          /* number of the last burst; the release is 1 */
static volatile uint64_t burst_at_ns;   /* when it was made */
static volatile uint64_t released_ns, end_ns;

uint64_t spread_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void note_cpu(struct spread_thread *t, uint64_t now)
{
    uint32_t cpu = (uint32_t)sched_getcpu();

    if (t->nmoves && (cpu == t->last_cpu || now + SPREAD_END_US * 1000ull > end_ns)) {
        return;
    }
    if (!t->nmoves) {
        t->first_cpu = cpu;
    }
    t->migrations += cpu != (t->nmoves ? t->last_cpu : options.from_cpu);
    t->last_cpu = cpu;
    if (t->nmoves < SPREAD_MAX_MOVES) {
        t->moves[t->nmoves++] = (struct move){now - released_ns, cpu};
    }
}

/* Works for work_us of its own time, as the clock tells it: it looks often, and a gap between two
 * looks that is far longer than a look takes is time it did not have the CPU. */
static void work(struct spread_thread *t)
{
    uint64_t begin = spread_now(), last = begin, next_look = begin, had = 0;

    while (had < options.work_us * 1000ull) {
        uint64_t now = spread_now();
        uint64_t gap = now - last;

        had += gap < SPREAD_LOOK_US * 1000ull ? gap : 0;
        last = now;
        if (now >= end_ns) {
            break;
        }
        if (now >= next_look) {
            note_cpu(t, now);
            next_look = now + SPREAD_LOOK_US * 1000ull;
        }
    }
    t->work_ns += last - begin;
    t->rounds++;
}

static void wait_while(_Atomic uint32_t *word, uint32_t value)
{
    while (atomic_load(word) == value) {
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL);
    }
}

static void wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX);
}

static uint32_t wait_for_burst(uint32_t seen)
{
    if (seen == 0) {
        atomic_fetch_add(&ready, 1);
        wake_all(&ready);
    }
    wait_while(&burst, seen);
    return atomic_load(&burst);
}

static void *thread_body(void *argument)
{
    struct spread_thread *t = argument;
    uint64_t due;
    uint32_t seen;

    t->tid = (int)syscall(SYS_gettid);
    seen = wait_for_burst(0);
    due = released_ns;
    while (spread_now() < end_ns) {
        uint64_t woken = spread_now();

        if (t->nsamples < SPREAD_SAMPLES) {
            t->latency[t->nsamples++] = woken > due ? woken - due : 0;
        }
        note_cpu(t, woken);
        work(t);
        if (options.wake == WAKE_TIMER) {
            struct timespec until;

            due += options.period_us * 1000ull;
            due = due < spread_now() ? spread_now() : due;
            until.tv_sec = (time_t)(due / 1000000000ull);
            until.tv_nsec = (long)(due % 1000000000ull);
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        } else if (options.wake == WAKE_BURST) {
            seen = wait_for_burst(seen);
            due = burst_at_ns;
        } else {
            due = spread_now();
        }
    }
    return NULL;
}

/* ---- options ---------------------------------------------------------------------------- */

static bool number(const char *text, uint32_t least, uint32_t most, uint32_t *value)
{
    char *end = NULL;
    unsigned long long n = 0;

    errno = 0;
    if (isdigit((unsigned char)*text)) {
        n = strtoull(text, &end, 10);
    }
    if (!end || *end || errno || n < least || n > most) {
        return false;
    }
    *value = (uint32_t)n;
    return true;
}

static bool set_option(const char *name, const char *text)
{
    if (strcmp(name, "threads") == 0) {
        return number(text, 1, SPREAD_MAX_THREADS, &options.threads);
    }
    if (strcmp(name, "work-us") == 0) {
        return number(text, 1, 1000000, &options.work_us);
    }
    if (strcmp(name, "period-us") == 0) {
        return number(text, 1, 10000000, &options.period_us);
    }
    if (strcmp(name, "time-ms") == 0) {
        return number(text, 1, 3600000, &options.time_ms);
    }
    if (strcmp(name, "from-cpu") == 0) {
        return number(text, 0, SPREAD_MAX_CPUS - 1, &options.from_cpu);
    }
    if (strcmp(name, "list") == 0) {
        options.list = strcmp(text, "yes") == 0;
        return options.list || strcmp(text, "no") == 0;
    }
    if (strcmp(name, "wake") == 0) {
        options.wake = strcmp(text, "timer") == 0 ? WAKE_TIMER
                       : strcmp(text, "burst") == 0 ? WAKE_BURST : WAKE_NEVER;
        return options.wake != WAKE_NEVER || strcmp(text, "never") == 0;
    }
    return false;
}

static bool parse(int argc, char **argv)
{
    static const char *const names[] = {"threads", "work-us", "period-us", "time-ms", "from-cpu",
                                        "list", "wake"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char variable[32] = "SPREAD_";
        size_t n = strlen(variable);
        const char *text;

        for (const char *c = names[i]; *c; c++) {
            variable[n++] = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
        }
        variable[n] = '\0';
        text = getenv(variable);
        if (text && !set_option(names[i], text)) {
            fprintf(stderr, "spread: %s=%s: out of range\n", variable, text);
            return false;
        }
    }
    for (int i = 1; i < argc; i += 2) {
        if (strncmp(argv[i], "--", 2) != 0 || !argv[i + 1] ||
            !set_option(argv[i] + 2, argv[i + 1])) {
            fprintf(stderr, "spread: %s %s: no such option, or out of range\n", argv[i],
                    argv[i + 1] ? argv[i + 1] : "");
            return false;
        }
    }
    return true;
}

/* ---- the run ---------------------------------------------------------------------------- */

/* Starts the threads on from_cpu, lets them block there, then allows them everywhere. */
static bool start_threads(struct spread_thread *threads, pthread_t *ids, const cpu_set_t *allowed)
{
    cpu_set_t only;

    CPU_ZERO(&only);
    CPU_SET(options.from_cpu, &only);
    if (sched_setaffinity(0, sizeof(only), &only) < 0) {
        fprintf(stderr, "spread: CPU %u is not ours: %s\n", options.from_cpu, strerror(errno));
        return false;
    }
    for (uint32_t i = 0; i < options.threads; i++) {
        int error;

        threads[i].options = &options;
        threads[i].number = i;
        threads[i].moves = malloc(SPREAD_MAX_MOVES * sizeof(struct move));
        threads[i].latency = malloc(SPREAD_SAMPLES * sizeof(uint64_t));
        error = threads[i].moves && threads[i].latency
                    ? pthread_create(&ids[i], NULL, thread_body, &threads[i])
                    : ENOMEM;
        if (error) {
            fprintf(stderr, "spread: thread %u of %u: %s\n", i + 1, options.threads, strerror(error));
            return false;
        }
    }
    for (uint32_t n; (n = atomic_load(&ready)) < options.threads;) {
        wait_while(&ready, n);
    }
    for (uint32_t i = 0; i < options.threads; i++) {
        sched_setaffinity(threads[i].tid, sizeof(*allowed), allowed);
    }
    return true;
}

/* Tells an emulator that measures instructions that the measured part begins: a NOP that names
 * itself by its displacement (tests/bench/vtime/vtime.h). */
static void mark_measurement(void)
{
#ifdef __x86_64__
    __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00; .ascii \"WEIR\"");
#endif
}

static void release(void)
{
    burst_at_ns = spread_now();
    if (!released_ns) {
        released_ns = burst_at_ns;
        end_ns = burst_at_ns + options.time_ms * 1000000ull;
    }
    atomic_fetch_add(&burst, 1);
    wake_all(&burst);
}

static void sleep_until(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000ull), (long)(ns % 1000000000ull)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
    }
}

static void print_time(const char *name, uint64_t ns)
{
    if (ns == UINT64_MAX) {
        printf(", \"%s\": null", name);
    } else {
        printf(", \"%s\": %.1f", name, (double)ns / 1000.0);
    }
}

static void print_threads(const struct spread_thread *threads)
{
    printf(", \"list\": [");
    for (uint32_t i = 0; i < options.threads; i++) {
        const struct spread_thread *t = &threads[i];

        printf("%s{\"thread\": %u, \"first_cpu\": %u, \"last_cpu\": %u, \"migrations\": %llu, "
               "\"rounds\": %llu}", i ? ", " : "", t->number, t->first_cpu, t->last_cpu,
               (unsigned long long)t->migrations, (unsigned long long)t->rounds);
    }
    printf("]");
}

static void report(const struct spread_thread *threads, const struct timeline *line,
                   const struct latencies *latency)
{
    static const char *const wakes[] = {"never", "timer", "burst"};
    double sum = 0, squares = 0;
    uint64_t migrations = 0, rounds = 0;

    for (uint32_t i = 0; i < options.threads; i++) {
        double done = (double)threads[i].rounds;

        sum += done;
        squares += done * done;
        migrations += threads[i].migrations;
        rounds += threads[i].rounds;
    }
    printf("{\"spread\": 1, \"threads\": %u, \"wake\": \"%s\", \"work_us\": %u, \"period_us\": %u, "
           "\"time_ms\": %u", options.threads, wakes[options.wake], options.work_us,
           options.period_us, options.time_ms);
    printf(", \"cpus_reachable\": %u, \"cpus_used\": %u, \"cpus_at_end\": %u, \"most_per_cpu\": %u, "
           "\"least_per_cpu\": %u", line->cpus_reachable, line->cpus_used, line->cpus_at_end,
           line->most_at_end, line->least_at_end);
    print_time("all_cpus_used_us", line->all_used_ns);
    print_time("balanced_us", line->balanced_ns);
    printf(", \"rounds\": %llu, \"migrations\": %llu, \"jain\": %.4f, \"wake_p50_us\": %.3f, "
           "\"wake_p99_us\": %.3f, \"wake_max_us\": %.3f", (unsigned long long)rounds,
           (unsigned long long)migrations,
           squares > 0 ? sum * sum / (options.threads * squares) : 0.0,
           (double)latency->p50 / 1000, (double)latency->p99 / 1000, (double)latency->max / 1000);
    if (options.list) {
        print_threads(threads);
    }
    printf("}\n");
}

int main(int argc, char **argv)
{
    static bool allowed_flags[SPREAD_MAX_CPUS];
    struct timeline line;
    struct latencies latency;
    struct spread_thread *threads;
    pthread_t *ids;
    cpu_set_t allowed;

    if (!parse(argc, argv)) {
        return 2;
    }
    threads = aligned_alloc(128, options.threads * sizeof(*threads));
    ids = calloc(options.threads, sizeof(*ids));
    if (!threads || !ids) {
        fprintf(stderr, "spread: out of memory for %u threads\n", options.threads);
        return 1;
    }
    memset(threads, 0, options.threads * sizeof(*threads));
    sched_getaffinity(0, sizeof(allowed), &allowed);
    for (int cpu = 0; cpu < SPREAD_MAX_CPUS && cpu < CPU_SETSIZE; cpu++) {
        allowed_flags[cpu] = CPU_ISSET(cpu, &allowed);
    }
    if (!start_threads(threads, ids, &allowed)) {
        return 1;
    }
    mark_measurement();
    release();
    while (options.wake == WAKE_BURST && spread_now() + options.period_us * 1000ull < end_ns) {
        sleep_until(burst_at_ns + options.period_us * 1000ull);
        release();
    }
    sleep_until(end_ns);
    release();                          /* threads that wait for a burst see the end */
    for (uint32_t i = 0; i < options.threads; i++) {
        pthread_join(ids[i], NULL);
    }
    if (!timeline_build(&line, threads, options.threads, options.from_cpu, allowed_flags) ||
        !latencies_build(&latency, threads, options.threads)) {
        fprintf(stderr, "spread: out of memory for the timeline\n");
        return 1;
    }
    report(threads, &line, &latency);
    for (uint32_t i = 0; i < options.threads; i++) {
        free(threads[i].moves);
        free(threads[i].latency);
    }
    free(threads);
    free(ids);
    return 0;
}
