/* Memory, futexes, system calls, grant. */
#include "core/base/string.h"
#include "core/kern/futex.h"
#include "core/kern/grant.h"
#include "core/kern/pressure.h"
#include "core/kern/pressure_math.h"
#include "core/kern/report.h"
#include "core/kern/symbol.h"
#include "core/kern/syscall.h"
#include "core/kern/vfs.h"
#include "core/mm/mm.h"


static void add_slab(const char *name, size_t bytes, u64 in_use, u64 pages, void *arg)
{
    text_add(arg, "  %-20s %8lu bytes %10lu in use %8lu pages\n", name, bytes, in_use, pages);
}

void report_memory(struct text *t)
{
    static const char *const kinds[NUM_MEM_KINDS] = { "kernel", "anon", "net", "file" };
    struct mem_stats s;
    u64 tmp_bytes;
    u32 tmp_files;
    mem_stats(&s);
    tmp_usage(&tmp_bytes, &tmp_files);
    text_add(t, "total %lu KiB\nfree %lu KiB\n", PAGES_TO_KIB(s.total_pages),
             PAGES_TO_KIB(s.free_pages));
    for (u32 k = 0; k < NUM_MEM_KINDS; k++) {
        text_add(t, "%s %lu KiB\n", kinds[k], PAGES_TO_KIB(s.kind_pages[k]));
    }
    text_add(t, "tmp %lu KiB in %u files\n", tmp_bytes / 1024, tmp_files);
    text_add(t, "failures %lu\nhigh events %lu\nmax events %lu\noom events %lu\n", s.alloc_failures,
             s.events_high, s.events_max, s.events_oom);
    if (s.limit_pages != UINT64_MAX || s.high_pages != UINT64_MAX || s.low_pages) {
        text_add(t, "low %lu KiB\n", PAGES_TO_KIB(s.low_pages));
        text_add(t, "high %lu KiB\n", s.high_pages == UINT64_MAX ? 0 : PAGES_TO_KIB(s.high_pages));
        text_add(t, "max %lu KiB\n", s.limit_pages == UINT64_MAX ? 0 : PAGES_TO_KIB(s.limit_pages));
    }
    struct pressure pressure;
    pressure_read(&pressure);
    text_add(t, "stalled %lu us, slowed down %lu times for %lu us, reclaimed %lu pages in %lu goes\n",
             TO_USEC(pressure.total_ns), pressure.delays, TO_USEC(pressure.delayed_ns), pressure.reclaimed_pages,
             pressure.reclaims);
    const u32 averages[] = { pressure.avg10, pressure.avg60, pressure.avg300 };
    static const char *const spans[] = { "10 s", "60 s", "300 s" };
    text_add(t, "stalled of the last");
    for (u32 i = 0; i < ARRAY_SIZE(averages); i++) {
        u64 hundredths = (u64)averages[i] * 10000 / PRESSURE_ONE;
        text_add(t, "%s %s: %lu.%02lu%%", i ? "," : "", spans[i], hundredths / 100, hundredths % 100);
    }
    text_append(t, "\n", 1);
    text_add(t, "caches:\n");
    slab_for_each(add_slab, t);
}

/* ---- futexes ---- */

struct futex_list {
    struct futex_stat *stats;
    u32 n, max;
};

static void collect_stat(const struct futex_stat *s, void *arg)
{
    struct futex_list *l = arg;
    if (l->n < l->max) {
        l->stats[l->n++] = *s;
    }
}

/* Most time asleep first; insertion is enough for a view. */
static void sort_stats(struct futex_list *l)
{
    for (u32 i = 1; i < l->n; i++) {
        struct futex_stat s = l->stats[i];
        u32 at = i;
        for (; at > 0 && l->stats[at - 1].asleep_ns < s.asleep_ns; at--) {
            l->stats[at] = l->stats[at - 1];
        }
        l->stats[at] = s;
    }
}

void report_futex(struct text *t)
{
    struct futex_totals f;
    struct futex_list l = { kmalloc(sizeof(*l.stats) * (FUTEX_STATS + 1)), 0, FUTEX_STATS + 1 };
    futex_totals(&f);
    text_add(t, "calls %lu waits %lu wakes %lu woken %lu requeued %lu\n", f.calls, f.waits, f.wakes,
             f.woken, f.requeued);
    text_add(t, "errors: EAGAIN %lu ETIMEDOUT %lu EINTR %lu EFAULT %lu\n", f.eagain, f.etimedout,
             f.eintr, f.efault);
    text_add(t, "asleep %lu us\n", TO_USEC(f.asleep_ns));
    if (!l.stats) {
        t->failed = true;
        return;
    }
    futex_stats_for_each(collect_stat, &l);
    sort_stats(&l);
    text_add(t, "%-18s %10s %10s %10s %8s %8s %8s %12s %12s\n", "address", "waits", "wakes", "woken",
             "EAGAIN", "TIMEDOUT", "EINTR", "asleep_us", "longest_us");
    for (u32 i = 0; i < l.n; i++) {
        struct futex_stat *s = &l.stats[i];
        text_add(t, "0x%-16lx %10lu %10lu %10lu %8lu %8lu %8lu %12lu %12lu\n", s->addr, s->waits,
                 s->wakes, s->woken, s->eagain, s->etimedout, s->eintr, TO_USEC(s->asleep_ns),
                 TO_USEC(s->asleep_max_ns));
    }
    kfree(l.stats);
}

void report_syscalls(struct text *t)
{
    for (u32 nr = 0; nr < NUM_SYSCALLS; nr++) {
        u64 n = syscall_count(nr);
        if (n) {
            text_add(t, "%-24s %lu\n", syscall_name(nr), n);
        }
    }
    text_add(t, "%-24s %lu\n", "unsupported", syscall_unknown_count());
}

static void add_delivered(struct text *t)
{
    text_add(t, "\"delivered_acts\":%u,\"delivered\":[", sched_delivered_acts());
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        struct delivered_stats d;
        sched_delivered(cpu, &d);
        text_add(t, "%s{\"cpu\":%u,\"capacity\":%u,\"share\":%u,\"error\":%u,\"samples\":%lu,\"hits\":%lu,\"taken_us\":%lu,"
                 "\"longest_us\":%lu,\"steal_us\":%lu,\"held\":%u,\"rests\":%lu}", cpu ? "," : "", cpu, sched_capacity(cpu), d.share,
                 d.error, d.samples, d.hits, TO_USEC(d.taken_ns), TO_USEC(d.longest_ns), TO_USEC(d.steal_ns), d.held, d.rests);
    }
    text_add(t, "],");
}

void report_grant(struct text *t)
{
    struct grant_info g;
    grant_info(&g);
    text_add(t, "{\"cpus_seen\":%u,\"cpus_granted\":%u,\"quota_us\":%lu,\"period_us\":%lu,",
             sched_domain(0).num_cpus, grant_cpus(0), g.limits.quota_us, g.limits.period_us);
    text_add(t, "\"cpus_active\":%u,\"cpus_shown\":%u,\"park\":%u,\"show\":\"%s\",\"complaints\":%lu,\"changes\":%lu,",
             g.active, grant_shown_cpus(0), g.park, g.show_all ? "all" : "granted", g.complaints, g.changes);
    text_add(t, "\"periods\":%lu,\"throttled\":%lu,\"throttled_ns\":%lu,\"usage_ns\":%lu,",
             g.cpu.periods, g.cpu.throttled, g.cpu.throttled_ns, g.cpu.usage_ns);
    add_delivered(t);
    text_add(t, "\"memory_low\":%lu,\"memory_high\":%lu,\"memory_max\":%lu}\n",
             g.limits.memory_low, g.limits.memory_high, g.limits.memory);
}
