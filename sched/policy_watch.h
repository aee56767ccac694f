/* Protection against bad policies: budget, faults, replacement.  Private to sched/. */
#ifndef WEIR_SCHED_POLICY_WATCH_H
#define WEIR_SCHED_POLICY_WATCH_H

#include "sched/thread.h"

/* Longest time (ns) of one call.  A pass over 64 CPUs takes a few us; 2 ms is far beyond any honest one and far below what
 * users would notice. */
#define POLICY_BUDGET_NS 2000000ull
/* A host that takes CPUs away makes honest calls overrun, many of them where it is overcommitted.  So a call that overran is made
 * again on the same view, at most this often: policies are pure, the answer is the same, and one that is slow itself is slow
 * again, while a host hardly takes the CPU away in the middle of each.  Only the last counts. */
#define POLICY_RETRIES 3u
/* Overruns within POLICY_HICCUP_NS count as one, and only POLICY_MAX_OVERRUNS of those within POLICY_OVERRUN_WINDOW_NS replace a
 * policy.  One that is slow itself reaches that in half a second. */
#define POLICY_MAX_OVERRUNS 8u
#define POLICY_HICCUP_NS 50000000ull
#define POLICY_OVERRUN_WINDOW_NS 2000000000ull
/* A call that has not come back after this long (ns) is looked at: 25 budgets.  It has run away, and is cut off, if the CPU has
 * run and is still in it at so many looks, at least half a period apart: one that the host took away and has just given back
 * is out of it by the next. */
#define POLICY_HANG_NS 50000000ull
#define POLICY_HANG_LOOKS 3u
/* How often (ns) somebody looks for such calls, while a policy other than the default is in use. */
#define POLICY_WATCH_PERIOD_NS 100000000ull
/* CPUs that look: two, so that one of them is not the one that hangs. */
#define POLICY_WATCHERS 2u
/* Impossible answers before a policy is replaced. */
#define POLICY_MAX_FAULTS 64u

struct policy_watch_stats {
    u64 faults, overruns, hangs, replaced;
};
extern struct policy_watch_stats policy_watch_stats;

void policy_overrun(struct domain *d);

/* Around every call of a policy function, interrupts off:
 *     u32 tries = 0;
 *     policy_enter(c, now);
 *     do {
 *         call it
 *     } while (policy_again(c, d, &tries)); */
static inline void policy_enter(struct cpu_sched *c, u64 now_ns)
{
    WRITE_ONCE(c->policy_started_ns, now_ns | 1);
}

static inline bool policy_again(struct cpu_sched *c, struct domain *d, u32 *tries)
{
    u64 now = arch_clock_ns(), started = c->policy_started_ns;
    /* Signed: where the clock moves in steps, `started` with its mark may be a nanosecond ahead of it. */
    if (likely((i64)(now - started) <= (i64)POLICY_BUDGET_NS)) {
        WRITE_ONCE(c->policy_started_ns, 0);
        return false;
    }
    if (++*tries <= POLICY_RETRIES) {
        policy_enter(c, now);
        return true;
    }
    WRITE_ONCE(c->policy_started_ns, 0);
    policy_overrun(d);
    return false;
}

/* Counts a look, by the CPU itself, at its call that takes too long; true if it is to be cut off. */
static inline bool policy_look(struct policy_suspect *s, u64 started_ns, u64 now_ns)
{
    if (s->started_ns != started_ns) {
        *s = (struct policy_suspect){ .started_ns = started_ns };
    } else if (now_ns - s->seen_ns < POLICY_WATCH_PERIOD_NS / 2) {
        return false; /* sent while the host had taken the CPU away, as the one before */
    }
    s->seen_ns = now_ns;
    return ++s->looks >= POLICY_HANG_LOOKS;
}

void policy_fault(struct domain *d, const char *what);
/* A call was cut off: the policy is replaced at once. */
void policy_hung(struct cpu_sched *c, struct domain *d);
/* From the reschedule IPI: starts this CPU's watch if it is a watcher and one is wanted. */
void policy_watch_follow(struct cpu_sched *c);
void policy_watch_init_cpu(struct cpu_sched *c);
/* After a change of policy. */
void policy_watch_update(void);

#endif
