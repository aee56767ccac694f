/* Every counter of the kernel in Prometheus text format (version 0.0.4): each family once, its HELP and TYPE first. */
#include "core/base/string.h"
#include "core/kern/futex.h"
#include "core/kern/grant.h"
#include "core/kern/pressure.h"
#include "core/kern/pressure_math.h"
#include "core/kern/report.h"
#include "core/kern/syscall.h"
#include "core/mm/mm.h"
#include "net/net.h"

static void family(struct text *t, const char *name, const char *type, const char *help)
{
    text_add(t, "# HELP weir_%s %s\n# TYPE weir_%s %s\n", name, help, name, type);
}

static void single(struct text *t, const char *name, const char *type, const char *help, u64 value)
{
    family(t, name, type, help);
    text_add(t, "weir_%s %lu\n", name, value);
}

/* Nanoseconds as seconds with all digits. */
static void add_seconds(struct text *t, u64 ns)
{
    text_add(t, "%lu.%09lu\n", TO_SEC(ns), SUB_SEC_NS(ns));
}

struct cpu_counter {
    const char *name, *type, *help;
    size_t offset;
};

#define COUNTER(field, name, help) { name, "counter", help, offsetof(struct sched_cpu_stats, field) }

static const struct cpu_counter cpu_counters[] = {
    COUNTER(switches, "switches_total", "Thread switches."),
    COUNTER(wakes_local, "wakes_local_total", "Wakeups of threads for the waking CPU."),
    COUNTER(wakes_remote, "wakes_remote_total", "Wakeups of threads for another CPU."),
    COUNTER(ipis_sent, "ipis_sent_total", "Inter-processor interrupts sent."),
    COUNTER(ipis_received, "ipis_received_total", "Rescheduling interrupts taken."),
    COUNTER(balance_passes, "balance_passes_total", "Passes of the load balancer."),
    COUNTER(balance_moves_accepted, "balance_moves_total", "Moves of the balancer that were made."),
    COUNTER(idle_enters, "idle_enters_total", "Times that the CPU became idle."),
    COUNTER(idle_polls_hit, "idle_polls_hit_total", "Idle periods that ended while polling."),
    COUNTER(halts, "halts_total", "Times that the CPU halted."),
    COUNTER(pull_tries, "pull_tries_total", "Times that the idle CPU looked for work elsewhere."),
    COUNTER(pull_hits, "pull_hits_total", "Times that it found some."),
    COUNTER(pull_contended, "pull_contended_total", "Times that it met a run queue that somebody was changing."),
    COUNTER(pull_calls, "pull_calls_total", "Times that this CPU called an idle one to fetch a thread that waits here."),
    COUNTER(timer_irqs, "timer_irqs_total", "Timer interrupts."),
};

static const struct cpu_counter cpu_times[] = {
    COUNTER(idle_ns, "cpu_idle_seconds_total", "Time without a thread."),
    COUNTER(busy_ns, "cpu_busy_seconds_total", "Time running threads."),
    COUNTER(irq_ns, "cpu_irq_seconds_total", "Time in interrupt handlers."),
};

static u64 field(const struct sched_cpu_stats *s, const struct cpu_counter *c)
{
    u64 value;
    memcpy(&value, (const char *)s + c->offset, sizeof(value));
    return value;
}

static void add_cpu_counters(struct text *t, const struct sched_cpu_stats *stats, u32 cpus)
{
    for (size_t i = 0; i < ARRAY_SIZE(cpu_counters); i++) {
        const struct cpu_counter *c = &cpu_counters[i];
        family(t, c->name, c->type, c->help);
        for (u32 cpu = 0; cpu < cpus; cpu++) {
            text_add(t, "weir_%s{cpu=\"%u\"} %lu\n", c->name, cpu, field(&stats[cpu], c));
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(cpu_times); i++) {
        const struct cpu_counter *c = &cpu_times[i];
        family(t, c->name, c->type, c->help);
        for (u32 cpu = 0; cpu < cpus; cpu++) {
            text_add(t, "weir_%s{cpu=\"%u\"} ", c->name, cpu);
            add_seconds(t, field(&stats[cpu], c));
        }
    }
}

static void add_cpu_reasons(struct text *t, const struct sched_cpu_stats *stats, u32 cpus)
{
    family(t, "migrations_total", "counter", "Threads that came to the CPU from another, by reason.");
    for (u32 cpu = 0; cpu < cpus; cpu++) {
        for (u32 r = 0; r < NUM_MIGRATE_REASONS; r++) {
            text_add(t, "weir_migrations_total{cpu=\"%u\",reason=\"%s\"} %lu\n", cpu,
                     migrate_reason_names[r], stats[cpu].migrations[r]);
        }
    }
    family(t, "balance_rejects_total", "counter", "Moves of a plan that were not made, by reason.");
    for (u32 cpu = 0; cpu < cpus; cpu++) {
        for (u32 r = 0; r < NUM_MOVE_REJECTS; r++) {
            text_add(t, "weir_balance_rejects_total{cpu=\"%u\",reason=\"%s\"} %lu\n", cpu,
                     move_reject_names[r], stats[cpu].balance_moves_rejected[r]);
        }
    }
}

static void add_cpu_gauges(struct text *t, const struct sched_cpu_stats *stats, u32 cpus)
{
    family(t, "threads", "gauge", "Threads of the CPU by state.");
    for (u32 cpu = 0; cpu < cpus; cpu++) {
        text_add(t, "weir_threads{cpu=\"%u\",state=\"running\"} %u\n", cpu, stats[cpu].running);
        text_add(t, "weir_threads{cpu=\"%u\",state=\"queued\"} %u\n", cpu, stats[cpu].queued);
        text_add(t, "weir_threads{cpu=\"%u\",state=\"in_flight\"} %u\n", cpu, stats[cpu].in_flight);
    }
    family(t, "cpu_capacity", "gauge", "Share of its time that the CPU gets, of 1024; 0: parked.");
    for (u32 cpu = 0; cpu < cpus; cpu++) {
        text_add(t, "weir_cpu_capacity{cpu=\"%u\"} %u\n", cpu, sched_capacity(cpu));
    }
}

static void add_sched(struct text *t)
{
    u32 cpus = sched_num_cpus();
    struct sched_cpu_stats *stats = kzalloc(sizeof(*stats) * cpus);
    if (!stats) {
        return;
    }
    for (u32 cpu = 0; cpu < cpus; cpu++) {
        sched_cpu_stats(cpu, &stats[cpu]);
    }
    add_cpu_counters(t, stats, cpus);
    add_cpu_reasons(t, stats, cpus);
    add_cpu_gauges(t, stats, cpus);
    kfree(stats);
    single(t, "threads_alive", "gauge", "Threads that exist.", thread_count());
    single(t, "threads_peak", "gauge", "Most threads that existed at once.", thread_limits.peak);
    single(t, "threads_refused_total", "counter", "Threads that could not be created.",
           thread_limits.refused);
}

static void add_memory(struct text *t)
{
    static const char *const kinds[NUM_MEM_KINDS] = { "kernel", "anon", "net", "file" };
    struct mem_stats s;
    mem_stats(&s);
    single(t, "memory_total_bytes", "gauge", "RAM of the machine.", PAGES_TO_BYTES(s.total_pages));
    single(t, "memory_free_bytes", "gauge", "RAM in no use.", PAGES_TO_BYTES(s.free_pages));
    family(t, "memory_used_bytes", "gauge", "RAM in use by kind.");
    for (u32 k = 0; k < NUM_MEM_KINDS; k++) {
        text_add(t, "weir_memory_used_bytes{kind=\"%s\"} %lu\n", kinds[k], PAGES_TO_BYTES(s.kind_pages[k]));
    }
    single(t, "memory_alloc_failures_total", "counter", "Page allocations that failed.",
           s.alloc_failures);
    single(t, "memory_high_events_total", "counter", "Times that usage rose above grant.memory_high.",
           s.events_high);
    single(t, "memory_max_events_total", "counter", "Allocations refused at grant.memory.",
           s.events_max);
    single(t, "memory_oom_events_total", "counter", "Allocations refused, at grant.memory or for want of RAM.", s.events_oom);
}

static void add_delivered(struct text *t)
{
    struct delivered_stats d;
    family(t, "cpu_delivered_share", "gauge", "Share of 1024 of its time that the host gives to the CPU while it runs threads.");
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        sched_delivered(cpu, &d);
        text_add(t, "weir_cpu_delivered_share{cpu=\"%u\"} %u\n", cpu, d.share);
    }
    family(t, "cpu_probes_total", "counter", "Probes for time taken away, by whether they found some.");
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        sched_delivered(cpu, &d);
        text_add(t, "weir_cpu_probes_total{cpu=\"%u\",found=\"taken\"} %lu\n", cpu, d.hits);
        text_add(t, "weir_cpu_probes_total{cpu=\"%u\",found=\"nothing\"} %lu\n", cpu, d.samples - d.hits);
    }
    family(t, "cpu_taken_seconds_total", "counter", "Time seen to be taken away by the host: a lower bound.");
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        sched_delivered(cpu, &d);
        text_add(t, "weir_cpu_taken_seconds_total{cpu=\"%u\"} ", cpu);
        add_seconds(t, d.taken_ns);
    }
    family(t, "cpu_held", "gauge", "1 while the CPU is left alone because the host gives it too little.");
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        sched_delivered(cpu, &d);
        text_add(t, "weir_cpu_held{cpu=\"%u\"} %u\n", cpu, d.held);
    }
}

static void add_pressure(struct text *t)
{
    struct pressure p;
    pressure_read(&p);
    family(t, "memory_pressure_ratio", "gauge", "Share of the last seconds in which a thread waited because of grant.memory_high.");
    const u32 averages[] = { p.avg10, p.avg60, p.avg300 };
    static const char *const spans[] = { "10", "60", "300" };
    for (u32 i = 0; i < ARRAY_SIZE(averages); i++) {
        u64 millionths = (u64)averages[i] * 1000000 / PRESSURE_ONE;
        text_add(t, "weir_memory_pressure_ratio{seconds=\"%s\"} %lu.%06lu\n", spans[i], millionths / 1000000, millionths % 1000000);
    }
    family(t, "memory_stalled_seconds_total", "counter", "Time during which a thread waited because of grant.memory_high.");
    text_add(t, "weir_memory_stalled_seconds_total ");
    add_seconds(t, p.total_ns);
    single(t, "memory_slowed_total", "counter", "Delays of threads that took memory above grant.memory_high.", p.delays);
    single(t, "memory_reclaimed_pages_total", "counter", "Pages given back above grant.memory_high.", p.reclaimed_pages);
}

static void add_grant(struct text *t)
{
    struct grant_info g;
    grant_info(&g);
    single(t, "grant_cpus", "gauge", "CPUs granted to the application.", grant_cpus(0));
    single(t, "grant_cpus_active", "gauge", "CPUs that run the application's threads; the others are parked.", g.active);
    single(t, "grant_complaints_total", "counter", "Words of a grant that were malformed or contradictory.", g.complaints);
    single(t, "grant_changes_total", "counter", "Changes of the grant at run time.", g.changes);
    family(t, "cpu_usage_seconds_total", "counter", "CPU time of the application's threads.");
    text_add(t, "weir_cpu_usage_seconds_total ");
    add_seconds(t, g.cpu.usage_ns);
    single(t, "cpu_periods_total", "counter", "Quota periods that passed.", g.cpu.periods);
    single(t, "cpu_throttled_total", "counter", "Quota periods in which the quota ran out.",
           g.cpu.throttled);
    family(t, "cpu_throttled_seconds_total", "counter", "Time during which a thread was throttled.");
    text_add(t, "weir_cpu_throttled_seconds_total ");
    add_seconds(t, g.cpu.throttled_ns);
}

static void add_futex(struct text *t)
{
    struct futex_totals f;
    futex_totals(&f);
    single(t, "futex_calls_total", "counter", "Futex operations.", f.calls);
    single(t, "futex_waits_total", "counter", "Futex waits.", f.waits);
    single(t, "futex_wakes_total", "counter", "Futex wakes.", f.wakes);
    single(t, "futex_woken_total", "counter", "Threads that wakes woke.", f.woken);
    single(t, "futex_requeued_total", "counter", "Threads moved from one word to another.", f.requeued);
    family(t, "futex_errors_total", "counter", "Futex waits that ended in an error.");
    text_add(t, "weir_futex_errors_total{error=\"EAGAIN\"} %lu\n", f.eagain);
    text_add(t, "weir_futex_errors_total{error=\"ETIMEDOUT\"} %lu\n", f.etimedout);
    text_add(t, "weir_futex_errors_total{error=\"EINTR\"} %lu\n", f.eintr);
    text_add(t, "weir_futex_errors_total{error=\"EFAULT\"} %lu\n", f.efault);
    single(t, "futex_owner_died_total", "counter", "Robust mutexes whose owner died.", f.robust_died);
    family(t, "futex_asleep_seconds_total", "counter", "Time that threads slept on futexes.");
    text_add(t, "weir_futex_asleep_seconds_total ");
    add_seconds(t, f.asleep_ns);
}

static void add_syscalls(struct text *t)
{
    family(t, "syscalls_total", "counter", "System calls by name.");
    for (u32 nr = 0; nr < NUM_SYSCALLS; nr++) {
        u64 n = syscall_table[nr].fn ? syscall_count(nr) : 0;
        if (n) {
            text_add(t, "weir_syscalls_total{call=\"%s\"} %lu\n", syscall_name(nr), n);
        }
    }
    single(t, "syscalls_unsupported_total", "counter", "System calls answered by ENOSYS.",
           syscall_unknown_count());
}

/* Counters of the network come one by one; families are told apart by the name changing. */
struct net_metrics {
    struct text *t;
    char last[64];
};

static void add_net_counter(const char *name, const char *labels, u64 value, void *arg)
{
    struct net_metrics *n = arg;
    if (strcmp(n->last, name) != 0) {
        str_copy(n->last, name, sizeof(n->last));
        family(n->t, name, "untyped", "Network counter.");
    }
    if (labels[0]) {
        text_add(n->t, "weir_%s{%s} %lu\n", name, labels, value);
    } else {
        text_add(n->t, "weir_%s %lu\n", name, value);
    }
}

void report_metrics(struct text *t)
{
    struct net_metrics n = { .t = t };
    single(t, "uptime_seconds", "gauge", "Time since boot.", TO_SEC(arch_clock_ns()));
    add_sched(t);
    add_memory(t);
    add_grant(t);
    add_pressure(t);
    add_delivered(t);
    add_futex(t);
    add_syscalls(t);
    net_for_each_counter(add_net_counter, &n);
}
