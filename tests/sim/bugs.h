/* Replays of balancer bugs that were reported elsewhere: a workload each, and what must not happen. */
#ifndef WEIR_TESTS_SIM_BUGS_H
#define WEIR_TESTS_SIM_BUGS_H

#include "tests/sim/workload.h"

#define NUM_BUGS 12u
#define BUG_MS 1000000ull
#define BUG_US 1000ull
/* What a CPU may idle while a thread waits: one interval of the default policy and the time to act on it. */
#define BUG_ONE_PASS_NS (11 * BUG_MS)

struct verdict {
    bool pass;
    char why[120]; /* what was measured */
};

struct bug {
    const char *title;
    const char *source;
    const char *must_not; /* happen */
    uint32_t cpus;
    void (*run)(struct sim *s, struct verdict *v);
};

extern const struct bug bugs[NUM_BUGS];

/* Runs one replay. */
void bug_run(uint32_t number, const struct policy *policy, const struct point *base, struct verdict *v);
/* Runs all of them, or only number `only`, prints the table, writes JSON if asked.  The exit code: 0, 1 if a file could not be
 * written.  That a policy fails a replay is a result, not an error. */
int bugs_run(const struct policy *const *policies, uint32_t num_policies, uint32_t only, const struct point *base,
             const char *json);

void verdict_set(struct verdict *v, bool pass, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* One per bug: bugs_wake.c, bugs_load.c, bugs_mech.c. */
void bug_sleeper_and_spinners(struct sim *s, struct verdict *v);
void bug_burst(struct sim *s, struct verdict *v);
void bug_pairs(struct sim *s, struct verdict *v);
void bug_ties(struct sim *s, struct verdict *v);
void bug_all_started(struct sim *s, struct verdict *v);
void bug_waker_computes(struct sim *s, struct verdict *v);
void bug_displaced(struct sim *s, struct verdict *v);
void bug_tickless(struct sim *s, struct verdict *v);
void bug_convoy(struct sim *s, struct verdict *v);
void bug_yield_race(struct sim *s, struct verdict *v);
void bug_lost_ipi(struct sim *s, struct verdict *v);
void bug_release(struct sim *s, struct verdict *v);

#endif
