#include "sched/policy_watch.h"
#include "sched/policy_record.h"
#include "core/base/log.h"

struct policy_watch_stats policy_watch_stats;

static const struct policy *default_policy(void)
{
    return policy_find("drain");
}

static void replace(struct domain *d, const char *why)
{
    const struct policy *bad = READ_ONCE(d->policy);
    const struct policy *good = default_policy();
    if (bad == good || !__atomic_compare_exchange_n(&d->policy, &bad, good, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
        return;
    }
    WRITE_ONCE(d->interval_ms, good->interval_ms);
    __atomic_fetch_add(&policy_watch_stats.replaced, 1, __ATOMIC_RELAXED);
    log_warn("sched: policy %s %s: replaced by %s", bad->name, why, good->name);
}

void policy_overrun(struct domain *d)
{
    static u64 first_ns, last_ns; /* of the hiccups counted; races between CPUs only miscount by one */
    static u32 hiccups;
    __atomic_fetch_add(&policy_watch_stats.overruns, 1, __ATOMIC_RELAXED);
    u64 now = arch_clock_ns(), last = READ_ONCE(last_ns);
    if (last && now - last < POLICY_HICCUP_NS) {
        return;
    }
    WRITE_ONCE(last_ns, now);
    if (!hiccups || now - first_ns > POLICY_OVERRUN_WINDOW_NS) {
        WRITE_ONCE(first_ns, now);
        WRITE_ONCE(hiccups, 0);
    }
    if (++hiccups >= POLICY_MAX_OVERRUNS) {
        WRITE_ONCE(hiccups, 0);
        replace(d, "overran its budget");
    }
}

void policy_fault(struct domain *d, const char *what)
{
    u64 n = __atomic_add_fetch(&policy_watch_stats.faults, 1, __ATOMIC_RELAXED);
    if (n % POLICY_MAX_FAULTS == 0) {
        replace(d, what);
    }
}

void policy_hung(struct cpu_sched *c, struct domain *d)
{
    WRITE_ONCE(c->policy_started_ns, 0);
    policy_record_cut_off(c->cpu);
    __atomic_fetch_add(&policy_watch_stats.hangs, 1, __ATOMIC_RELAXED);
    replace(d, "did not come back");
}

/* ---- watching for calls that do not come back: interrupts are off around them, so another CPU has to look, and an NMI
 * has to cut them off ---- */

static bool watch_wanted(void)
{
    return sched_num_cpus() >= POLICY_WATCHERS && READ_ONCE(domains[0].policy) != default_policy();
}

static bool runs_away(const struct cpu_sched *c, u64 now_ns)
{
    u64 started = READ_ONCE(c->policy_started_ns);
    return started && now_ns > started && now_ns - started > POLICY_HANG_NS;
}

static void watch(struct timer *timer)
{
    u64 now = arch_clock_ns();
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        if (runs_away(sched_of(cpu), now)) {
            arch_send_ipi(cpu, ARCH_IPI_WATCH);
        }
    }
    if (watch_wanted()) {
        timer_arm(timer, now + POLICY_WATCH_PERIOD_NS);
    }
}

void policy_watch_init_cpu(struct cpu_sched *c)
{
    timer_init(&c->watch_timer, watch);
}

void policy_watch_follow(struct cpu_sched *c)
{
    if (unlikely(c->cpu < POLICY_WATCHERS && !c->watch_timer.armed && watch_wanted())) {
        timer_arm(&c->watch_timer, arch_clock_ns() + POLICY_WATCH_PERIOD_NS);
    }
}

void policy_watch_update(void)
{
    for (u32 cpu = 0; cpu < POLICY_WATCHERS && watch_wanted(); cpu++) {
        if (sched_of(cpu)->online) {
            arch_send_ipi(cpu, ARCH_IPI_RESCHED);
        }
    }
}

void upcall_nmi(struct arch_regs *regs)
{
    struct cpu_sched *c = sched_here();
    u64 now = arch_clock_ns();
    if (runs_away(c, now) && policy_look(&c->policy_suspect, c->policy_started_ns, now)) {
        arch_recover(regs, &c->policy_recovery);
    }
}
