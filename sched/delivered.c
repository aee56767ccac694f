/* Delivered CPU time: how much of its time the host gives to each virtual CPU, and what follows from it.
 *
 * A CPU that runs a thread has its probe timer armed, about every 12 ms.  How late it comes, and the gaps between clock reads in
 * its handler (interrupts off: nothing of ours can come between), tell whether the host had taken the CPU away.  Where the host
 * reports steal time, that is used instead: it is exact.  An idle CPU lets its probe lapse and arms it again when it next gets a
 * thread, so an idle machine takes no interrupt for it.
 *
 * The capacity follows slowly (delivered_math.h).  A CPU that gets a quarter or less is held back: parked like one beyond the
 * grant, so that its threads leave, for a rest that doubles each time it is needed again; then it gets a trial. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "sched/delivered_math.h"
#include "sched/thread.h"

/* Clock reads of a probe: about 2 us. */
#define PROBE_READS 32u
#define REST_MIN_NS (1 * NSEC_PER_SEC)
#define REST_MAX_NS (32 * NSEC_PER_SEC)

struct meter {
    u32 samples, hits;       /* of the present verdict; halved at each */
    u64 steal_ns, steal_at;  /* the host's report at the last verdict */
    u32 share;               /* smoothed */
    bool wants_rest;
    u64 rest_ns, rest_until; /* under the monitor */
    struct delivered_stats stats;
};
static struct meter meters[MAX_CPUS];
static bool measuring, acting;
static struct thread *monitor;

static u64 draw_interval(struct cpu_sched *c)
{
    return DELIVERED_PROBE_MIN_NS + board_seed(c) % DELIVERED_PROBE_JITTER_NS;
}

void delivered_resume(struct cpu_sched *c)
{
    /* A plain read: set once, before there are programs. */
    if (measuring && !c->probe_timer.armed) {
        timer_arm(&c->probe_timer, arch_clock_ns() + draw_interval(c));
    }
}

/* Longest time between two reads of the clock. */
static u64 longest_gap(void)
{
    u64 longest = 0, last = arch_clock_ns();
    for (u32 i = 0; i < PROBE_READS; i++) {
        u64 now = arch_clock_ns();
        longest = MAX(longest, now - last);
        last = now;
    }
    return longest;
}

static u32 find_loss(struct meter *m, u32 cpu, u64 now_ns)
{
    u64 steal;
    if (!arch_steal_ns(cpu, &steal)) {
        return delivered_loss(m->hits, m->samples);
    }
    u32 loss = m->steal_at ? delivered_steal(steal - m->steal_ns, now_ns - m->steal_at) : 0;
    m->steal_ns = steal;
    m->steal_at = now_ns;
    WRITE_ONCE(m->stats.steal_ns, steal);
    return loss;
}

static void give_verdict(struct cpu_sched *c, struct meter *m, u64 now_ns)
{
    m->share = delivered_smooth(m->share, find_loss(m, c->cpu, now_ns));
    WRITE_ONCE(m->stats.share, m->share);
    WRITE_ONCE(m->stats.error, delivered_error(m->samples));
    m->samples /= 2;
    m->hits /= 2;
    if (!READ_ONCE(acting)) {
        return;
    }
    u32 capacity = delivered_publish(c->delivered, m->share);
    if (capacity != c->delivered) {
        sched_set_capacity(c->cpu, capacity);
    }
    if (m->share <= DELIVERED_HOLD && !c->held) { /* not the published one: that may lie a step above */
        WRITE_ONCE(m->wants_rest, true);
        thread_unpark(monitor);
    }
}

static void probe(struct timer *timer)
{
    struct cpu_sched *c = container_of(timer, struct cpu_sched, probe_timer);
    struct meter *m = &meters[c->cpu];
    u64 now = arch_clock_ns();
    if (c->current == c->idle) {
        m->steal_at = 0; /* a rest is no part of the next stretch */
        return;
    }
    u64 due = timer->node.key, interval = draw_interval(c), late = now - due, gap = longest_gap(), taken = MAX(late, gap);
    u32 weight = 1 + delivered_missed(due, now, interval);
    m->samples += weight;
    WRITE_ONCE(m->stats.samples, m->stats.samples + weight);
    if (taken > DELIVERED_LATE_NS) {
        m->hits += weight;
        WRITE_ONCE(m->stats.hits, m->stats.hits + weight);
        WRITE_ONCE(m->stats.taken_ns, m->stats.taken_ns + taken);
        WRITE_ONCE(m->stats.longest_ns, MAX(m->stats.longest_ns, taken));
    }
    if (m->samples >= DELIVERED_SAMPLES) {
        give_verdict(c, m, now);
    }
    timer_arm(timer, delivered_next(due, now, interval));
}

/* ---- rests: the monitor's thread ---- */

static void begin_rest(u32 cpu, u64 now_ns)
{
    struct meter *m = &meters[cpu];
    if (sched_hold(cpu, true) < 0) {
        return; /* too many rest already */
    }
    bool again = m->rest_ns && now_ns < m->rest_until + m->rest_ns;
    m->rest_ns = again ? MIN(m->rest_ns * 2, (u64)REST_MAX_NS) : (u64)REST_MIN_NS;
    m->rest_until = now_ns + m->rest_ns;
    WRITE_ONCE(m->stats.rests, m->stats.rests + 1);
}

static void end_rest(u32 cpu)
{
    struct meter *m = &meters[cpu];
    m->samples = m->hits = 0;
    m->steal_at = 0;
    m->share = DELIVERED_FULL / 2; /* a trial: no CPU's first choice */
    sched_set_capacity(cpu, m->share);
    sched_hold(cpu, false);
}

static void watch(void *arg)
{
    (void)arg;
    for (;;) {
        u64 now = arch_clock_ns(), next = NO_DEADLINE;
        for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
            struct meter *m = &meters[cpu];
            bool held = sched_of(cpu)->held;
            if (!held && __atomic_exchange_n(&m->wants_rest, false, __ATOMIC_ACQ_REL)) {
                begin_rest(cpu, now);
            } else if (held && now >= m->rest_until) {
                end_rest(cpu);
            }
            if (sched_of(cpu)->held) {
                next = MIN(next, m->rest_until);
            }
        }
        thread_park_uninterruptible(next, WAIT_WORK, 0);
    }
}

int sched_delivered_start(bool act)
{
    struct thread_attr attr = { .name = "delivered" };
    int error = act ? thread_create(&attr, watch, NULL, &monitor) : 0;
    if (error) {
        return error;
    }
    if (act) {
        thread_start(monitor); /* the reference is kept: probes wake it */
    }
    for (u32 cpu = 0; cpu < MAX_CPUS; cpu++) {
        meters[cpu].share = meters[cpu].stats.share = DELIVERED_FULL;
        meters[cpu].stats.error = DELIVERED_FULL;
    }
    WRITE_ONCE(acting, act);
    WRITE_ONCE(measuring, true);
    irqflags_t flags = arch_irq_save();
    delivered_resume(sched_here()); /* the others are idle, or will be before they get a thread */
    arch_irq_restore(flags);
    return 0;
}

bool sched_delivered_acts(void)
{
    return READ_ONCE(acting);
}

void sched_delivered(u32 cpu, struct delivered_stats *out)
{
    *out = meters[cpu].stats;
    out->held = sched_of(cpu)->held;
}

void delivered_init_cpu(struct cpu_sched *c)
{
    timer_init(&c->probe_timer, probe);
}
