/* The list of replays, and the table of who passes them. */
#include "tests/sim/bugs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const struct bug bugs[NUM_BUGS] = {
    {"2 spinners and a thread that runs 1 ms and sleeps 10", "OSv #396", "a CPU idle for up to 100 ms while a spinner waits", 2,
     bug_sleeper_and_spinners},
    {"one waker, bursts to 2n short run-and-block workers", "OSv #1472", "most CPUs halted while the burst queues on a few", 16,
     bug_burst},
    {"400 paired message threads after an overload", "scx #206", "CPUs idle beside a deep queue of synchronous wakees", 16,
     bug_pairs},
    {"7 threads that sleep and are woken together", "Asterinas #1890", "ties that always choose the same idle CPU", 8, bug_ties},
    {"4 threads that spin until all have started, 10,000 times", "Go #45867", "one that never starts", 4, bug_all_started},
    {"A wakes B, then computes 100 ms; others idle", "tokio #4941", "B waiting behind A", 4, bug_waker_computes},
    {"a pinned and a free thread woken together over a third", "Zephyr #69005", "the displaced thread stranded", 2,
     bug_displaced},
    {"a pinned thread on a tickless CPU, woken every ms", "Zephyr #105596", "a wakeup consumed, sleep for ever", 2,
     bug_tickless},
    {"80 CPUs idle together beside one queue", "FreeBSD ULE", "taking the last thread, endless or contended stealing", 80,
     bug_convoy},
    {"wakeups between yield and switch", "Nanos #1532", "a thread on two CPUs", 2, bug_yield_race},
    {"wakeups just as pollers halt, 32 CPUs", "Hermit #2468", "a CPU asleep with work", 32, bug_lost_ipi},
    {"512 spinners on one of 32 CPUs, released", "ULE / CFS", "imbalance that remains, or that takes many intervals", 32,
     bug_release},
};

void verdict_set(struct verdict *v, bool pass, const char *fmt, ...)
{
    va_list args;

    v->pass = pass;
    va_start(args, fmt);
    vsnprintf(v->why, sizeof(v->why), fmt, args);
    va_end(args);
}

void bug_run(uint32_t number, const struct policy *policy, const struct point *base, struct verdict *v)
{
    struct sim_config cfg = {
        .policy = policy,
        .num_cpus = bugs[number].cpus,
        .seed = base->seed,
        .cost = base->cost,
        .interval_ms = base->interval_ms,
        .faults = base->faults,
    };
    struct sim *s = sim_new(&cfg);

    memset(v, 0, sizeof(*v));
    bugs[number].run(s, v);
    if (s->failed) {
        verdict_set(v, false, "%.110s", s->failure);
    }
    free(s->workload);
    sim_free(s);
}

static int write_json(const char *path, const struct policy *const *policies, uint32_t num_policies, uint64_t seed,
                      struct verdict (*all)[NUM_BUGS])
{
    FILE *f = fopen(path, "w");
    const char *comma = "";

    if (f == NULL) {
        fprintf(stderr, "weir-sim: cannot write %s: %s\n", path, strerror(errno));
        return 1;
    }
    fprintf(f, "{\"config\": {\"tool\": \"weir-sim\", \"workload\": \"bugs\", \"seed\": %llu},\n \"points\": [",
            (unsigned long long)seed);
    for (uint32_t p = 0; p < num_policies; p++) {
        for (uint32_t b = 0; b < NUM_BUGS; b++) {
            const struct verdict *v = &all[p][b];

            if (v->why[0] == '\0') {
                continue;
            }
            fprintf(f, "%s\n  {\"policy\": \"%s\", \"workload\": \"bugs:%u\", \"title\": \"%s\", \"source\": \"%s\", \"cpus\": %u, "
                       "\"pass\": %s, \"measured\": \"%s\"}",
                    comma, policies[p]->name, b + 1, bugs[b].title, bugs[b].source, bugs[b].cpus, v->pass ? "true" : "false",
                    v->why);
            comma = ",";
        }
    }
    fprintf(f, "\n]}\n");
    if (fclose(f) != 0) {
        fprintf(stderr, "weir-sim: cannot write %s: %s\n", path, strerror(errno));
        return 1;
    }
    return 0;
}

int bugs_run(const struct policy *const *policies, uint32_t num_policies, uint32_t only, const struct point *base,
             const char *json)
{
    struct verdict(*all)[NUM_BUGS] = calloc(num_policies, sizeof(*all));
    uint32_t passed[64] = {0};
    uint32_t count = 0;
    int status = 0;

    if (all == NULL) {
        fprintf(stderr, "weir-sim: out of memory\n");
        return 1;
    }
    for (uint32_t b = 0; b < NUM_BUGS; b++) {
        if (only != 0 && b + 1 != only) {
            continue;
        }
        count++;
        printf("%2u  %s, %u CPUs (%s)\n    must not happen: %s\n", b + 1, bugs[b].title, bugs[b].cpus, bugs[b].source,
               bugs[b].must_not);
        for (uint32_t p = 0; p < num_policies; p++) {
            struct verdict *v = &all[p][b];

            bug_run(b, policies[p], base, v);
            passed[p] += v->pass;
            printf("    %-4s %-9s %s\n", v->pass ? "pass" : "FAIL", policies[p]->name, v->why);
            fflush(stdout);
        }
    }
    printf("seed %llu; passed of %u:", (unsigned long long)base->seed, count);
    for (uint32_t p = 0; p < num_policies; p++) {
        printf(" %s %u", policies[p]->name, passed[p]);
    }
    putchar('\n');
    if (json != NULL) {
        status = write_json(json, policies, num_policies, base->seed, all);
    }
    free(all);
    return status;
}
