/* /proc: what Linux programs look at. */
#include "core/base/string.h"
#include "core/kern/abi.h"
#include "core/kern/grant.h"
#include "core/kern/vfs.h"
#include "core/mm/mm.h"

#define KIB 1024ul
#define TICKS_PER_SEC 100
#define TICK_NS ((u64)(NSEC_PER_SEC / TICKS_PER_SEC))

/* ---- one process ---- */

struct maps {
    struct text *t;
    const struct proc *p;
    u64 bytes;
};

static bool show_mapping(u64 start, u64 end, u32 prot, void *owner, void *arg)
{
    struct maps *m = arg;
    if (owner != m->p) {
        return true;
    }
    m->bytes += end - start;
    if (m->t) {
        bool image = start >= m->p->image_start && end <= m->p->image_end;
        bool heap = start == m->p->brk_start && m->p->brk_mapped > m->p->brk_start;
        text_add(m->t, "%012lx-%012lx %c%c%cp 00000000 00:00 0 %s%s\n", start, end,
                 prot & MM_READ ? 'r' : '-', prot & MM_WRITE ? 'w' : '-', prot & MM_EXEC ? 'x' : '-',
                 image || heap ? "                         " : "",
                 image  ? m->p->path
                 : heap ? "[heap]"
                        : "");
    }
    return true;
}

static void show_maps(struct text *t, struct proc *p)
{
    struct maps m = { t, p, 0 };
    mm_for_each(show_mapping, &m);
}

static u64 mapped_bytes(const struct proc *p)
{
    struct maps m = { NULL, p, 0 };
    mm_for_each(show_mapping, &m);
    return m.bytes;
}

static u64 anon_pages(void)
{
    struct mem_stats stats;
    mem_stats(&stats);
    return stats.kind_pages[MEM_ANON];
}

static void show_stat(struct text *t, struct proc *p)
{
    u64 ticks = proc_runtime_ns(p) / TICK_NS;
    /* pid comm state ppid pgrp session tty tpgid flags faults(4) utime stime cutime cstime prio nice threads itreal start
     * vsize rss */
    text_add(t, "%u (%s) R 0 0 0 0 -1 0 0 0 0 0 %lu 0 0 0 20 0 %u 0 %lu %lu %lu", p->pid, p->name,
             ticks, READ_ONCE(p->num_threads), p->start_ns / TICK_NS, mapped_bytes(p), anon_pages());
    for (u32 i = 25; i <= 52; i++) {
        text_append(t, " 0", 2);
    }
    text_append(t, "\n", 1);
}

static void show_statm(struct text *t, struct proc *p)
{
    u64 image = (p->image_end - p->image_start) / (u64)PAGE_SIZE;
    text_add(t, "%lu %lu 0 %lu 0 %lu 0\n", mapped_bytes(p) / (u64)PAGE_SIZE, anon_pages(), image,
             anon_pages());
}

static void show_status(struct text *t, struct proc *p)
{
    struct sched_domain_info d = sched_domain(p->domain);
    u64 kib = PAGES_TO_KIB(anon_pages());
    text_add(t, "Name:\t%s\nUmask:\t0%u%u%u\nState:\tR (running)\nTgid:\t%u\nPid:\t%u\nPPid:\t0\n",
             p->name, p->umask >> 6, p->umask >> 3 & 7, p->umask & 7, p->pid, p->pid);
    text_add(t, "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t%u\n", READ_ONCE(p->fds.open));
    text_add(t, "VmSize:\t%8lu kB\nVmRSS:\t%8lu kB\nRssAnon:\t%8lu kB\nThreads:\t%u\n",
             mapped_bytes(p) / KIB, kib, kib, READ_ONCE(p->num_threads));
    text_add(t, "SigPnd:\t0000000000000000\nShdPnd:\t%016lx\n", READ_ONCE(p->pending.mask));
    text_add(t, "Cpus_allowed_list:\t%u-%u\n", d.first_cpu, d.first_cpu + grant_shown_cpus(p->domain) - 1);
}

static void show_cmdline(struct text *t, struct proc *p)
{
    text_append(t, p->cmdline, p->cmdline_len);
}

static void show_comm(struct text *t, struct proc *p)
{
    text_add(t, "%s\n", p->name);
}

static void show_exe(struct text *t, struct proc *p)
{
    text_add(t, "%s", p->path);
}

static void show_cgroup(struct text *t, struct proc *p)
{
    (void)p;
    text_add(t, "0::/\n");
}

static void show_limits(struct text *t, struct proc *p)
{
    (void)p;
    text_add(t, "%-26s%-21s%-21s%s\n", "Limit", "Soft Limit", "Hard Limit", "Units");
    text_add(t, "%-26s%-21llu%-21llu%s\n", "Max stack size", APP_STACK_SIZE, APP_STACK_SIZE, "bytes");
    text_add(t, "%-26s%-21d%-21d%s\n", "Max open files", FD_MAX, FD_MAX, "files");
}

/* ---- the machine ---- */

static void show_cpuinfo(struct text *t, struct proc *p)
{
    struct sched_domain_info d = sched_domain(p ? p->domain : 0);
    u64 hz;
    arch_clock_name(&hz);
    for (u32 cpu = d.first_cpu; cpu < d.first_cpu + grant_shown_cpus(p ? p->domain : 0); cpu++) {
        text_add(t, "processor\t: %u\nvendor_id\t: Weir\nmodel name\t: %s virtual CPU\n", cpu,
                 ABI_MACHINE);
        text_add(t, "cpu MHz\t\t: %lu.%03lu\ncpu cores\t: 1\n\n", hz / 1000000, hz / 1000 % 1000);
    }
}

static void show_meminfo(struct text *t, struct proc *p)
{
    struct mem_stats s;
    u64 tmp_bytes;
    u32 tmp_files;
    (void)p;
    mem_stats(&s);
    tmp_usage(&tmp_bytes, &tmp_files);
    u64 total = PAGES_TO_KIB(MIN(s.total_pages, s.limit_pages));
    u64 free = MIN(PAGES_TO_KIB(s.free_pages), total);
    text_add(t, "MemTotal:       %8lu kB\nMemFree:        %8lu kB\nMemAvailable:   %8lu kB\n", total,
             free, free);
    text_add(t, "Buffers:               0 kB\nCached:         %8lu kB\nAnonPages:      %8lu kB\n",
             tmp_bytes / KIB, PAGES_TO_KIB(s.kind_pages[MEM_ANON]));
    text_add(t, "Shmem:          %8lu kB\nSlab:           %8lu kB\nSwapTotal:             0 kB\n",
             tmp_bytes / KIB, PAGES_TO_KIB(s.kind_pages[MEM_KERNEL]));
    text_add(t, "SwapFree:              0 kB\n");
}

static void add_cpu_times(struct text *t, const char *name, const struct sched_cpu_stats *s, u64 steal)
{
    text_add(t, "%s %lu 0 0 %lu 0 %lu 0 %lu 0 0\n", name, s->busy_ns / TICK_NS, s->idle_ns / TICK_NS,
             s->irq_ns / TICK_NS, steal / TICK_NS);
}

static void show_machine_stat(struct text *t, struct proc *p)
{
    struct sched_cpu_stats sum = { 0 }, s;
    u64 steal = 0, one, switches = 0;
    char name[16];
    struct text lines;
    (void)p;
    text_init(&lines);
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        sched_cpu_stats(cpu, &s);
        one = 0;
        if (arch_steal_ns(cpu, &one)) {
            steal += one;
        }
        sum.busy_ns += s.busy_ns;
        sum.idle_ns += s.idle_ns;
        sum.irq_ns += s.irq_ns;
        switches += s.switches;
        str_format(name, sizeof(name), "cpu%u", cpu);
        add_cpu_times(&lines, name, &s, one);
    }
    add_cpu_times(t, "cpu ", &sum, steal);
    if (lines.data) {
        text_append(t, lines.data, lines.len);
    }
    text_free(&lines);
    text_add(t, "ctxt %lu\nbtime %lu\nprocesses %u\nprocs_running 1\nprocs_blocked 0\n", switches,
             TO_SEC(arch_wall_base_ns()), thread_count());
}

static void show_uptime(struct text *t, struct proc *p)
{
    u64 idle = 0, now = arch_clock_ns() / (NSEC_PER_SEC / 100);
    struct sched_cpu_stats s;
    (void)p;
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        sched_cpu_stats(cpu, &s);
        idle += s.idle_ns / (NSEC_PER_SEC / 100);
    }
    text_add(t, "%lu.%02lu %lu.%02lu\n", now / 100, now % 100, idle / 100, idle % 100);
}

static void show_loadavg(struct text *t, struct proc *p)
{
    u32 running = 0;
    struct sched_cpu_stats s;
    (void)p;
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        sched_cpu_stats(cpu, &s);
        running += s.running + s.queued;
    }
    /* No averages are kept: the three figures are the load now. */
    text_add(t, "%u.00 %u.00 %u.00 %u/%u 0\n", running, running, running, running, thread_count());
}

static void show_version(struct text *t, struct proc *p)
{
    (void)p;
    text_add(t, "Linux version 6.1.0-weir (Weir) " ABI_MACHINE "\n");
}

static void show_cmdline_boot(struct text *t, struct proc *p)
{
    (void)p;
    text_add(t, "%s\n", arch_boot_info()->cmdline);
}

static void show_filesystems(struct text *t, struct proc *p)
{
    (void)p;
    text_add(t, "nodev\tproc\nnodev\tsysfs\nnodev\ttmpfs\n");
}

static void show_max_map_count(struct text *t, struct proc *p)
{
    (void)p;
    text_add(t, "65530\n");
}

static void show_somaxconn(struct text *t, struct proc *p)
{
    (void)p;
    text_add(t, "4096\n");
}

static void show_overcommit(struct text *t, struct proc *p)
{
    (void)p;
    text_add(t, "1\n");
}

const struct view proc_views[] = {
    { "/proc/self/maps", show_maps, NULL },
    { "/proc/self/stat", show_stat, NULL },
    { "/proc/self/statm", show_statm, NULL },
    { "/proc/self/status", show_status, NULL },
    { "/proc/self/cmdline", show_cmdline, NULL },
    { "/proc/self/comm", show_comm, NULL },
    { "/proc/self/exe", show_exe, NULL },
    { "/proc/self/cgroup", show_cgroup, NULL },
    { "/proc/self/limits", show_limits, NULL },
    { "/proc/cpuinfo", show_cpuinfo, NULL },
    { "/proc/meminfo", show_meminfo, NULL },
    { "/proc/stat", show_machine_stat, NULL },
    { "/proc/uptime", show_uptime, NULL },
    { "/proc/loadavg", show_loadavg, NULL },
    { "/proc/version", show_version, NULL },
    { "/proc/cmdline", show_cmdline_boot, NULL },
    { "/proc/filesystems", show_filesystems, NULL },
    { "/proc/sys/vm/max_map_count", show_max_map_count, NULL },
    { "/proc/sys/vm/overcommit_memory", show_overcommit, NULL },
    { "/proc/sys/net/core/somaxconn", show_somaxconn, NULL },
    { NULL, NULL, NULL },
};
