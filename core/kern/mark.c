/* Phase marks: the load generator tells where a measured phase begins and ends by writing "begin NAME" and "end NAME" (or
 * "NAME begin") to /proc/weir/mark; at the end a line `#stat {json}` on the console says what the server's domain did
 * meanwhile. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/base/trace.h"
#include "core/kern/mark.h"
#include "core/kern/text.h"
#include "core/kern/tunables.h"
#include "core/mm/mm.h"
#include "net/net.h"
#include "sched/sched.h"

#define NAME_BYTES 64
#define SHARE_UNIT 10000u /* shares are printed with four decimals */

struct snapshot {
    u64 time_ns;
    u64 packets;
    struct sched_cpu_stats cpu[MAX_CPUS];
    u64 kernel_ns[MAX_CPUS]; /* run time of kernel threads that are pinned to the CPU */
};

static struct mutex mark_mutex;
static struct snapshot *begin; /* NULL: no phase is open */
static char phase[NAME_BYTES];

static void add_kernel_thread(struct thread *t, void *arg)
{
    struct snapshot *s = arg;
    cpumask_t mask = thread_affinity(t);
    if (!thread_head(t)->app && mask && !(mask & (mask - 1))) {
        s->kernel_ns[__builtin_ctzll(mask)] += thread_runtime_ns(t);
    }
}

static bool has_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && strcmp(s + n - m, suffix) == 0;
}

static void add_packets(const char *name, const char *labels, u64 value, void *arg)
{
    (void)labels;
    if (has_suffix(name, "rx_packets_total") || has_suffix(name, "tx_packets_total")) {
        *(u64 *)arg += value;
    }
}

static struct snapshot *take_snapshot(void)
{
    struct snapshot *s = kzalloc(sizeof(*s));
    if (!s) {
        return NULL;
    }
    thread_for_each(add_kernel_thread, s);
    net_for_each_counter(add_packets, &s->packets);
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        sched_cpu_stats(cpu, &s->cpu[cpu]);
    }
    s->time_ns = arch_clock_ns();
    return s;
}

static void add_share(struct text *t, u64 part, u64 whole)
{
    u64 share = whole ? MIN(part * SHARE_UNIT / whole, (u64)SHARE_UNIT) : 0;
    text_add(t, "%lu.%04lu", share / SHARE_UNIT, share % SHARE_UNIT);
}

/* Differences over the phase, summed over the domain's CPUs. */
struct sums {
    u64 idle_ns, migrations, ipis, switches, wakes_local, wakes_remote;
    u64 reasons[NUM_MIGRATE_REASONS];
    u32 cpus_used;
};

static u64 app_ns(const struct snapshot *a, const struct snapshot *b, u32 cpu)
{
    u64 busy = b->cpu[cpu].busy_ns - a->cpu[cpu].busy_ns;
    u64 kernel = b->kernel_ns[cpu] - a->kernel_ns[cpu];
    return busy > kernel ? busy - kernel : 0;
}

static void add_cpu(struct sums *sums, const struct snapshot *a, const struct snapshot *b, u32 cpu)
{
    const struct sched_cpu_stats *x = &a->cpu[cpu], *y = &b->cpu[cpu];
    sums->idle_ns += y->idle_ns - x->idle_ns;
    sums->ipis += y->ipis_sent - x->ipis_sent;
    sums->switches += y->switches - x->switches;
    sums->wakes_local += y->wakes_local - x->wakes_local;
    sums->wakes_remote += y->wakes_remote - x->wakes_remote;
    for (u32 r = 0; r < NUM_MIGRATE_REASONS; r++) {
        sums->reasons[r] += y->migrations[r] - x->migrations[r];
        sums->migrations += y->migrations[r] - x->migrations[r];
    }
    sums->cpus_used += app_ns(a, b, cpu) > (b->time_ns - a->time_ns) / MARK_CPU_USED_DIVISOR;
}

static void print_stat(const struct snapshot *a, const struct snapshot *b)
{
    struct sched_domain_info d = sched_domain(0);
    u64 duration = b->time_ns - a->time_ns;
    struct sums sums = { 0 };
    struct text t;
    text_init(&t);
    for (u32 cpu = d.first_cpu; cpu < d.first_cpu + d.num_cpus; cpu++) {
        add_cpu(&sums, a, b, cpu);
    }
    text_add(&t, "#stat {\"phase\":");
    text_json(&t, phase);
    text_add(&t, ",\"policy\":\"%s\",\"duration_ns\":%lu,\"idle_share\":", sched_policy_name(), duration);
    add_share(&t, sums.idle_ns, duration * d.num_cpus);
    text_add(&t, ",\"cpus\":%u,\"cpus_used\":%u,\"migrations\":%lu,\"migrations_by_reason\":{", d.num_cpus,
             sums.cpus_used, sums.migrations);
    for (u32 r = 0; r < NUM_MIGRATE_REASONS; r++) {
        text_add(&t, "%s\"%s\":%lu", r ? "," : "", migrate_reason_names[r], sums.reasons[r]);
    }
    text_add(&t, "},\"ipis\":%lu,\"switches\":%lu,\"wakes_local\":%lu,\"wakes_remote\":%lu,\"packets\":%lu",
             sums.ipis, sums.switches, sums.wakes_local, sums.wakes_remote, b->packets - a->packets);
    text_add(&t, ",\"busy_share\":[");
    for (u32 cpu = d.first_cpu; cpu < d.first_cpu + d.num_cpus; cpu++) {
        text_append(&t, ",", cpu > d.first_cpu);
        add_share(&t, b->cpu[cpu].busy_ns - a->cpu[cpu].busy_ns, duration);
    }
    text_add(&t, "],\"app_share\":[");
    for (u32 cpu = d.first_cpu; cpu < d.first_cpu + d.num_cpus; cpu++) {
        text_append(&t, ",", cpu > d.first_cpu);
        add_share(&t, app_ns(a, b, cpu), duration);
    }
    text_add(&t, "]}\n");
    if (!t.failed) {
        log_raw(t.data, t.len);
    }
    text_free(&t);
}

static i64 mark_begin(const char *name)
{
    kfree(begin);
    str_copy(phase, name, sizeof(phase));
    begin = take_snapshot();
    return begin ? 0 : -ENOMEM;
}

static i64 mark_end(const char *name)
{
    if (!begin || strcmp(name, phase) != 0) {
        return -EINVAL;
    }
    struct snapshot *end = take_snapshot();
    if (end) {
        print_stat(begin, end);
    }
    kfree(begin);
    kfree(end);
    begin = NULL;
    return end ? 0 : -ENOMEM;
}

i64 mark_write(const char *line)
{
    char name[NAME_BYTES];
    size_t n = strlen(line);
    bool ends = false;
    if (str_starts_with(line, "begin ") && n < NAME_BYTES) {
        str_copy(name, line + 6, sizeof(name));
    } else if (str_starts_with(line, "end ") && n < NAME_BYTES) {
        str_copy(name, line + 4, sizeof(name));
        ends = true;
    } else if (has_suffix(line, " begin") && n - 6 < NAME_BYTES) {
        str_copy(name, line, n - 6 + 1);
    } else if (has_suffix(line, " end") && n - 4 < NAME_BYTES) {
        str_copy(name, line, n - 4 + 1);
        ends = true;
    } else {
        return -EINVAL;
    }
    trace_text(TRACE_CAT_SCHED, TRACE_MARK, thread_head(current_thread())->id, line);
    mutex_lock(&mark_mutex);
    i64 result = ends ? mark_end(name) : mark_begin(name);
    mutex_unlock(&mark_mutex);
    return result;
}

void mark_init(void)
{
    mutex_init(&mark_mutex);
}
