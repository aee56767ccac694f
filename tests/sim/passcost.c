#include "tests/sim/passcost.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_BASE 50u /* DESIGN.md: a balanced pass takes at most 50 + 6n instructions */
#define LIMIT_CPU 6u
#define MAX_STEPS 10000000l
#define MAX_CPUS_HERE 1024u

struct setting {
    struct policy_view view;
    struct policy_plan plan;
    struct policy_cpu cpus[MAX_CPUS_HERE];
    uint64_t idle[MAX_CPUS_HERE / 64], all[MAX_CPUS_HERE / 64];
    struct policy_thread threads[1];
    struct policy_move moves[MAX_CPUS_HERE];
};

static void nothing(const struct policy_view *view, struct policy_plan *plan)
{
    (void)view;
    (void)plan;
}

static void prepare(struct setting *s, uint32_t n, uint32_t queued)
{
    memset(s, 0, sizeof(*s));
    for (uint32_t c = 0; c < n; c++) {
        s->cpus[c] = (struct policy_cpu){.running = 1, .queued = queued, .capacity = POLICY_CAPACITY_FULL};
        s->all[c / 64] |= 1ull << (c % 64);
    }
    s->threads[0] = (struct policy_thread){.id = 1, .affinity = s->all, .last_cpu = 0, .weight = 1024};
    s->view = (struct policy_view){.now_ns = 1000000000, .seed = 1, .num_cpus = n, .cpus = s->cpus, .idle = s->idle,
                                   .num_threads = 1, .threads = s->threads};
    s->plan = (struct policy_plan){.capacity = n, .moves = s->moves};
}

/* The child stops itself before and after the call; the parent steps in between. */
static long count_steps(void (*fn)(const struct policy_view *view, struct policy_plan *plan), struct setting *s)
{
    pid_t pid = fork();
    long steps = 0;
    int status;

    if (pid < 0) {
        return -1;
    }
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
            _exit(1);
        }
        raise(SIGSTOP);
        fn(&s->view, &s->plan);
        raise(SIGUSR1);
        _exit(0);
    }
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) {
        return -1;
    }
    while (steps < MAX_STEPS && ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0 && waitpid(pid, &status, 0) == pid &&
           WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP) {
        steps++;
    }
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGUSR1) {
        steps = -1;
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return steps;
}

long passcost_balanced(const struct policy *policy, uint32_t n, uint32_t queued)
{
    struct setting *s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);
    long with;
    long without;

    if (s == NULL) {
        return -1;
    }
    prepare(s, n, queued);
    without = count_steps(nothing, s);
    with = count_steps(policy->balance, s);
    free(s);
    return with < 0 || without < 0 ? -1 : with - without;
}

int passcost_report(void)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 8, 16, 64, 256, 1024};
    int status = 0;

    for (const struct policy *const *p = policy_registry; *p != NULL; p++) {
        for (size_t i = 0; (*p)->balance != NULL && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            long limit = LIMIT_BASE + LIMIT_CPU * (long)sizes[i];
            long cost = passcost_balanced(*p, sizes[i], 1);

            if (cost < 0) {
                fprintf(stderr, "weir-sim: this host does not allow single-stepping a child\n");
                return 2;
            }
            printf("%-9s %4u CPUs: %5ld instructions, limit %5ld%s\n", (*p)->name, sizes[i], cost, limit,
                   cost > limit ? "  ABOVE" : "");
            status |= cost > limit;
        }
    }
    return status;
}
