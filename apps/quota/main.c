/*
 * quota: the same work by one thread or by many, and how evenly they end. Prints one JSON line, times in microseconds since the
 * release, with the counters of the control group (cpu.stat, v2 or v1) over the run and the CPUs that the program is told of.
 *
 * usage: quota [--threads N] [--work-ms N]        N threads (0: as many as sysconf says) share N ms of work
 *        quota --show                            what an unmodified program sees: CPUs, cgroup files
 *        quota --for-ms N [--threads N]          spin and tell the CPUs' worth of work done in that time: enforcement
 * Work is counted in rounds of arithmetic whose number for one millisecond is measured first, alone, unless given by
 * --rounds-per-ms; so it is the same for every number of threads.
 * Exit status: 0 measured, 1 out of memory or threads, 2 bad options.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 1024u
#define MAX_MS 100000u
#define MAX_ROUNDS 1000000000u
#define CALIBRATE_NS 5000000ull
#define LINE 256
#define CHUNK_ROUNDS 10000u       /* between two looks at the clock: 50 us, looks cost 0.1% */
#define GAP_NS 20000000ull        /* a worker that did not run for as long was held back */
#define MAX_GAPS 4096u            /* a period of 100 ms has one */
#define RATE_SLACK_MS 300u        /* run longer than for_ms by this: the first gap must be found, the last one must end */

/* A worker was held back from begin to end, with so many rounds done. */
struct gap {
    uint64_t begin_ns, end_ns, rounds;
};

struct worker {
    uint64_t rounds, end_ns, cpu_ns;
    struct gap *gaps;
    unsigned num_gaps;
} __attribute__((aligned(128)));

static unsigned threads = 1, work_ms = 100, for_ms, rounds_per_ms;
static pthread_barrier_t barrier;
static uint64_t start_ns;
static int stop;
static volatile uint64_t sink;

static uint64_t clock_of(clockid_t which)
{
    struct timespec t;

    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* Never inlined: a round is five instructions for every caller. */
static __attribute__((noinline)) void compute(uint64_t rounds)
{
    uint64_t x = rounds;

    for (uint64_t i = 0; i < rounds; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        __asm__ volatile("" : "+r"(x));
    }
    sink = x;
}

/* Rounds of one millisecond of CPU time. */
static uint64_t calibrate(void)
{
    uint64_t rounds = 1000, begin, took;

    do {
        rounds *= 4;
        begin = clock_of(CLOCK_THREAD_CPUTIME_ID);
        compute(rounds);
        took = clock_of(CLOCK_THREAD_CPUTIME_ID) - begin;
    } while (took < CALIBRATE_NS);
    return rounds * 1000000ull / took;
}

static void spin_until_stopped(struct worker *w)
{
    uint64_t last = clock_of(CLOCK_MONOTONIC), now, rounds = 0;

    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        compute(CHUNK_ROUNDS);
        now = clock_of(CLOCK_MONOTONIC);
        if (now - last >= GAP_NS && w->num_gaps < MAX_GAPS) {
            w->gaps[w->num_gaps++] = (struct gap){ last, now, rounds };
        }
        rounds += CHUNK_ROUNDS;
        last = now;
    }
}

static void *body(void *argument)
{
    struct worker *w = argument;

    pthread_barrier_wait(&barrier);
    if (for_ms) {
        spin_until_stopped(w);
    } else {
        compute(w->rounds);
    }
    w->end_ns = clock_of(CLOCK_MONOTONIC);
    w->cpu_ns = clock_of(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

/* The number behind a word at the begin of a line of a file, 0 if there is none. */
static unsigned long long stat_value(const char *path, const char *word)
{
    char line[LINE];
    unsigned long long value = 0;
    FILE *f = fopen(path, "re");

    while (f && fgets(line, sizeof(line), f)) {
        size_t n = strlen(word);

        if (strncmp(line, word, n) == 0 && line[n] == ' ') {
            value = strtoull(line + n, NULL, 10);
        }
    }
    if (f) {
        fclose(f);
    }
    return value;
}

static unsigned long long cpu_stat(const char *word)
{
    return stat_value("/sys/fs/cgroup/cpu.stat", word);
}

static void show_file(const char *path)
{
    char line[LINE];
    bool begin = true;
    FILE *f = fopen(path, "re");

    if (!f) {
        printf("%s: -\n", path);
        return;
    }
    while (fgets(line, sizeof(line), f)) {
        printf("%s%s%s", begin ? path : "", begin ? ": " : "", line);
        begin = strchr(line, '\n') != NULL;
    }
    fclose(f);
}

static int show(void)
{
    static const char *const files[] = { "/sys/devices/system/cpu/online", "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu.stat",
                                         "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.high",
                                         "/sys/fs/cgroup/memory.low", "/sys/fs/cgroup/memory.current",
                                         "/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory.stat" };
    char line[LINE];
    unsigned in_cpuinfo = 0;
    cpu_set_t set;
    FILE *f = fopen("/proc/cpuinfo", "re");

    while (f && fgets(line, sizeof(line), f)) {
        in_cpuinfo += strncmp(line, "processor", 9) == 0;
    }
    if (f) {
        fclose(f);
    }
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    printf("nproc: %ld\naffinity: %d\ncpuinfo: %u\n", sysconf(_SC_NPROCESSORS_ONLN), CPU_COUNT(&set), in_cpuinfo);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        show_file(files[i]);
    }
    return 0;
}

/* Rounds that w had done when it was held back at that time; UINT64_MAX: it ran then. */
static uint64_t rounds_at(const struct worker *w, uint64_t time_ns)
{
    for (unsigned i = 0; i < w->num_gaps; i++) {
        if (w->gaps[i].begin_ns <= time_ns && time_ns <= w->gaps[i].end_ns) {
            return w->gaps[i].rounds;
        }
    }
    return UINT64_MAX;
}

/* CPUs' worth of work done by all in for_ms, which begins and ends while everybody is held back (for_ms is a multiple of the
 * quota's period): what a period that is not over has used cannot falsify it, and no counter of the kernel is believed.
 * Negative if there is no such time, as without a quota. */
static double rate(const struct worker *workers, uint64_t per_ms)
{
    uint64_t done = 0;

    for (unsigned g = 0; g < workers[0].num_gaps; g++) {
        const struct gap *gap = &workers[0].gaps[g];
        uint64_t from = gap->begin_ns + (gap->end_ns - gap->begin_ns) / 2, to = from + for_ms * 1000000ull;
        unsigned i;

        done = 0;
        for (i = 0; i < threads; i++) {
            uint64_t before = rounds_at(&workers[i], from), after = rounds_at(&workers[i], to);

            if (before == UINT64_MAX || after == UINT64_MAX) {
                break;
            }
            done += after - before;
        }
        if (i == threads) {
            return (double)done / (double)per_ms / for_ms;
        }
    }
    return -1;
}

static int run(void)
{
    double group_rate = 0;
    struct worker *workers = aligned_alloc(128, threads * sizeof(*workers));
    pthread_t *ids = calloc(threads, sizeof(*ids));
    uint64_t per_ms = rounds_per_ms ? rounds_per_ms : calibrate();
    uint64_t first = UINT64_MAX, last = 0, cpu = 0;
    unsigned long long periods = cpu_stat("nr_periods"), throttled = cpu_stat("nr_throttled"),
                       waited = cpu_stat("throttled_usec"), used = cpu_stat("usage_usec");

    if (!workers || !ids || pthread_barrier_init(&barrier, NULL, threads + 1)) {
        fprintf(stderr, "quota: out of memory for %u threads\n", threads);
        return 1;
    }
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (struct worker){ .rounds = per_ms * work_ms / threads };
        workers[i].gaps = for_ms ? calloc(MAX_GAPS, sizeof(struct gap)) : NULL;
        if (for_ms && !workers[i].gaps) {
            fprintf(stderr, "quota: out of memory for %u threads\n", threads);
            return 1;
        }
        if (pthread_create(&ids[i], NULL, body, &workers[i])) {
            fprintf(stderr, "quota: cannot make thread %u of %u\n", i + 1, threads);
            return 1;
        }
    }
    start_ns = clock_of(CLOCK_MONOTONIC);
    pthread_barrier_wait(&barrier);
    if (for_ms) {
        usleep((for_ms + RATE_SLACK_MS) * 1000);
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        first = workers[i].end_ns < first ? workers[i].end_ns : first;
        last = workers[i].end_ns > last ? workers[i].end_ns : last;
        cpu += workers[i].cpu_ns;
    }
    if (for_ms) {
        group_rate = rate(workers, per_ms);
    }
    printf("{\"quota\": 1, \"threads\": %u, \"work_ms\": %u, \"for_ms\": %u, \"nproc\": %ld, \"rounds_per_ms\": %llu, "
           "\"elapsed_us\": %.3f, \"fastest_us\": %.3f, \"slowest_us\": %.3f, \"cpu_us\": %.3f, \"nr_periods\": %llu, "
           "\"nr_throttled\": %llu, \"throttled_us\": %llu, \"usage_us\": %llu, \"rate\": %.4f}\n",
           threads, work_ms, for_ms, sysconf(_SC_NPROCESSORS_ONLN), (unsigned long long)per_ms,
           (double)(last - start_ns) / 1000, (double)(first - start_ns) / 1000, (double)(last - start_ns) / 1000,
           (double)cpu / 1000, cpu_stat("nr_periods") - periods, cpu_stat("nr_throttled") - throttled,
           cpu_stat("throttled_usec") - waited, cpu_stat("usage_usec") - used, group_rate);
    if (access("/proc/weir/grant", R_OK) == 0) {
        show_file("/proc/weir/grant");
    }
    return 0;
}

static int number(const char *name, const char *text, unsigned least, unsigned most, unsigned *out)
{
    char *end;
    unsigned long value = text ? strtoul(text, &end, 10) : 0;

    if (!text || *text < '0' || *text > '9' || *end || value < least || value > most) {
        fprintf(stderr, "quota: %s %s: a number from %u to %u is wanted\n", name, text ? text : "", least, most);
        return 0;
    }
    *out = (unsigned)value;
    return 1;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        int good = 0;

        if (strcmp(argv[i], "--show") == 0) {
            return show();
        } else if (strcmp(argv[i], "--threads") == 0) {
            good = number(argv[i], value, 0, MAX_THREADS, &threads);
        } else if (strcmp(argv[i], "--work-ms") == 0) {
            good = number(argv[i], value, 1, MAX_MS, &work_ms);
        } else if (strcmp(argv[i], "--for-ms") == 0) {
            good = number(argv[i], value, 1, MAX_MS, &for_ms);
        } else if (strcmp(argv[i], "--rounds-per-ms") == 0) {
            good = number(argv[i], value, 1, MAX_ROUNDS, &rounds_per_ms);
        } else {
            fprintf(stderr, "quota: unknown option %s (known: --threads --work-ms --for-ms --rounds-per-ms --show)\n", argv[i]);
        }
        if (!good) {
            return 2;
        }
    }
    if (threads == 0) {
        threads = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    }
    return run();
}
