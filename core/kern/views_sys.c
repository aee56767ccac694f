/* /sys: CPUs and the control group, both telling the grant. */
#include "core/kern/grant.h"
#include "core/kern/pressure.h"
#include "core/kern/pressure_math.h"
#include "core/kern/vfs.h"
#include "core/mm/mm.h"

static void show_cpu_range(struct text *t, struct proc *p)
{
    struct sched_domain_info d = sched_domain(p ? p->domain : 0);
    if (d.num_cpus == 1) {
        text_add(t, "%u\n", d.first_cpu);
    } else {
        text_add(t, "%u-%u\n", d.first_cpu, d.first_cpu + d.num_cpus - 1);
    }
}

/* Those that programs are told of: the first ones of the domain. */
static void show_cpu_online(struct text *t, struct proc *p)
{
    struct sched_domain_info d = sched_domain(p ? p->domain : 0);
    u32 shown = grant_shown_cpus(p ? p->domain : 0);
    if (shown == 1) {
        text_add(t, "%u\n", d.first_cpu);
    } else {
        text_add(t, "%u-%u\n", d.first_cpu, d.first_cpu + shown - 1);
    }
}

static void show_cpu_max(struct text *t, struct proc *p)
{
    struct grant_info g;
    (void)p;
    grant_info(&g);
    if (g.limits.quota_us) {
        text_add(t, "%lu %lu\n", g.limits.quota_us, g.limits.period_us);
    } else {
        text_add(t, "max %lu\n", g.limits.period_us);
    }
}

static void show_cpu_stat(struct text *t, struct proc *p)
{
    struct grant_info g;
    (void)p;
    grant_info(&g);
    u64 usage = TO_USEC(g.cpu.usage_ns);
    text_add(t, "usage_usec %lu\nuser_usec %lu\nsystem_usec 0\n", usage, usage);
    text_add(t, "nr_periods %lu\nnr_throttled %lu\nthrottled_usec %lu\n", g.cpu.periods,
             g.cpu.throttled, TO_USEC(g.cpu.throttled_ns));
}

static void show_limit(struct text *t, u64 bytes, u64 none)
{
    if (bytes) {
        text_add(t, "%lu\n", bytes);
    } else if (none) {
        text_add(t, "max\n");
    } else {
        text_add(t, "0\n");
    }
}

static void show_memory_low(struct text *t, struct proc *p)
{
    struct grant_info g;
    (void)p;
    grant_info(&g);
    show_limit(t, g.limits.memory_low, 0);
}

static void show_memory_high(struct text *t, struct proc *p)
{
    struct grant_info g;
    (void)p;
    grant_info(&g);
    show_limit(t, g.limits.memory_high, 1);
}

static void show_memory_max(struct text *t, struct proc *p)
{
    struct grant_info g;
    (void)p;
    grant_info(&g);
    show_limit(t, g.limits.memory, 1);
}

static u64 used_bytes(const struct mem_stats *s)
{
    u64 pages = 0;
    for (u32 kind = 0; kind < NUM_MEM_KINDS; kind++) {
        pages += s->kind_pages[kind];
    }
    return PAGES_TO_BYTES(pages);
}

static void show_memory_current(struct text *t, struct proc *p)
{
    struct mem_stats s;
    (void)p;
    mem_stats(&s);
    text_add(t, "%lu\n", used_bytes(&s));
}

static void show_memory_stat(struct text *t, struct proc *p)
{
    struct mem_stats s;
    (void)p;
    mem_stats(&s);
    text_add(t, "anon %lu\nfile %lu\nkernel %lu\nsock %lu\n", PAGES_TO_BYTES(s.kind_pages[MEM_ANON]),
             PAGES_TO_BYTES(s.kind_pages[MEM_FILE]), PAGES_TO_BYTES(s.kind_pages[MEM_KERNEL]),
             PAGES_TO_BYTES(s.kind_pages[MEM_NET]));
}

static void add_average(struct text *t, const char *name, u32 average)
{
    u64 hundredths = (u64)average * 10000 / PRESSURE_ONE;
    text_add(t, " %s=%lu.%02lu", name, hundredths / 100, hundredths % 100);
}

static void show_memory_pressure(struct text *t, struct proc *p)
{
    struct pressure s;
    (void)p;
    pressure_read(&s);
    text_add(t, "some");
    add_average(t, "avg10", s.avg10);
    add_average(t, "avg60", s.avg60);
    add_average(t, "avg300", s.avg300);
    text_add(t, " total=%lu\n", TO_USEC(s.total_ns));
}

static void show_memory_events(struct text *t, struct proc *p)
{
    struct mem_stats s;
    (void)p;
    mem_stats(&s);
    /* Never below low: mm_reclaim() leaves that alone.  And nothing is killed: what is out of memory is told so. */
    text_add(t, "low 0\nhigh %lu\nmax %lu\noom %lu\noom_kill 0\n", s.events_high, s.events_max, s.events_oom);
}

#define CGROUP "/sys/fs/cgroup/"

const struct view sys_views[] = {
    { "/sys/devices/system/cpu/online", show_cpu_online, NULL },
    { "/sys/devices/system/cpu/possible", show_cpu_range, NULL },
    { "/sys/devices/system/cpu/present", show_cpu_range, NULL },
    { CGROUP "cpu.max", show_cpu_max, NULL },
    { CGROUP "cpu.stat", show_cpu_stat, NULL },
    { CGROUP "memory.low", show_memory_low, NULL },
    { CGROUP "memory.high", show_memory_high, NULL },
    { CGROUP "memory.max", show_memory_max, NULL },
    { CGROUP "memory.current", show_memory_current, NULL },
    { CGROUP "memory.stat", show_memory_stat, NULL },
    { CGROUP "memory.events", show_memory_events, NULL },
    { CGROUP "memory.pressure", show_memory_pressure, NULL },
    { NULL, NULL, NULL },
};
