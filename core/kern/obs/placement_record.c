#include "core/kern/obs/placement.h"

#include "core/mm/mm.h"

static struct {
    struct placement *p;
    struct timer timer;
    struct thread *recorder;
    u64 run_since_ns; /* since when every sample saw a CPU idle while another was overloaded; 0: the last one did not */
    bool done;
} now;

struct placement *placement_create(u32 num_samples, u64 period_ns)
{
    struct placement *p = kzalloc(sizeof(*p));
    u64 cells = (u64)num_samples * sched_num_cpus();
    if (!p) {
        return NULL;
    }
    p->period_ns = period_ns;
    p->num_samples = num_samples;
    p->cpus = sched_num_cpus();
    p->times = kmalloc(num_samples * sizeof(*p->times));
    p->threads = kmalloc(cells * sizeof(*p->threads));
    p->queued = kmalloc(cells * sizeof(*p->queued));
    if (!p->times || !p->threads || !p->queued) {
        placement_free(p);
        return NULL;
    }
    return p;
}

void placement_free(struct placement *p)
{
    kfree(p->times);
    kfree(p->threads);
    kfree(p->queued);
    kfree(p);
}

/* How many CPUs of the domain have nothing to do although a thread of it waits: at most as many as wait. */
static u32 idle_while_overloaded(const struct placement *p, u32 sample, u32 domain, const u32 *usable)
{
    struct sched_domain_info d = sched_domain(domain);
    u32 idle = 0, waiting = 0;
    for (u32 cpu = d.first_cpu; cpu < d.first_cpu + d.num_cpus; cpu++) {
        idle += usable[cpu] && placement_thread(p, sample, cpu) == 0 && placement_queued(p, sample, cpu) == 0;
        waiting += placement_thread(p, sample, cpu) != 0 ? placement_queued(p, sample, cpu) : 0;
    }
    return MIN(idle, waiting);
}

static void take_sample(struct placement *p)
{
    u32 usable[MAX_CPUS], wasted = 0, sample = p->taken;
    u64 time = arch_clock_ns();
    p->times[sample] = time;
    for (u32 cpu = 0; cpu < p->cpus; cpu++) {
        struct sched_cpu_now s;
        sched_cpu_now(cpu, &s);
        p->threads[(u64)sample * p->cpus + cpu] = s.thread;
        p->queued[(u64)sample * p->cpus + cpu] = (u16)MIN(s.queued + s.in_flight, (u32)UINT16_MAX);
        usable[cpu] = s.capacity;
    }
    for (u32 domain = 0; domain < MAX_DOMAINS && sched_domain(domain).num_cpus; domain++) {
        wasted += idle_while_overloaded(p, sample, domain, usable);
    }
    p->taken = sample + 1;
    p->overloaded_cpus += wasted;
    p->overloaded_samples += wasted != 0;
    if (!wasted) {
        now.run_since_ns = 0;
    } else if (!now.run_since_ns) {
        now.run_since_ns = time;
    }
    p->longest_ns = MAX(p->longest_ns, wasted ? time - now.run_since_ns + p->period_ns : 0);
}

static void on_timer(struct timer *timer)
{
    struct placement *p = now.p;
    take_sample(p);
    if (p->taken < p->num_samples) {
        timer_arm(timer, p->start_ns + p->taken * p->period_ns);
    } else {
        STORE_RELEASE(now.done, true);
        thread_unpark(now.recorder);
    }
}

/* Adds sign times the counters of all CPUs. */
static void add_counters(struct placement *p, u64 sign)
{
    struct sched_cpu_stats s;
    for (u32 cpu = 0; cpu < p->cpus; cpu++) {
        sched_cpu_stats(cpu, &s);
        p->passes += sign * s.balance_passes;
        p->moves += sign * s.balance_moves_accepted;
        p->switches += sign * s.switches;
        p->ipis += sign * s.ipis_sent;
        for (u32 i = 0; i < NUM_MOVE_REJECTS; i++) {
            p->rejected[i] += sign * s.balance_moves_rejected[i];
        }
        for (u32 i = 0; i < NUM_MIGRATE_REASONS; i++) {
            p->migrations[i] += sign * s.migrations[i];
        }
    }
}

void placement_record(struct placement *p)
{
    now.p = p;
    now.recorder = current_thread();
    now.run_since_ns = 0;
    now.done = false;
    timer_init(&now.timer, on_timer);
    add_counters(p, ~0ull);
    p->start_ns = arch_clock_ns();
    preempt_disable();
    timer_arm(&now.timer, p->start_ns);
    preempt_enable();
    while (!LOAD_ACQUIRE(now.done)) {
        thread_park_uninterruptible(NO_DEADLINE, WAIT_WORK, 0);
    }
    add_counters(p, 1);
}
