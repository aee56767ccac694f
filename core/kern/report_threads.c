/* Thread dump. */
#include "core/base/string.h"
#include "core/kern/obs/thread_list.h"
#include "core/kern/proc.h"
#include "core/kern/report.h"
#include "core/kern/symbol.h"
#include "core/mm/mm.h"

static void add_mask(struct text *t, cpumask_t mask)
{
    const char *comma = "";
    for (u32 cpu = 0; cpu < MAX_CPUS; cpu++) {
        if (!(mask & BIT(cpu))) {
            continue;
        }
        u32 last = cpu;
        while (last + 1 < MAX_CPUS && (mask & BIT(last + 1))) {
            last++;
        }
        if (last == cpu) {
            text_add(t, "%s%u", comma, cpu);
        } else {
            text_add(t, "%s%u-%u", comma, cpu, last);
        }
        comma = ",";
        cpu = last;
    }
}

static void add_wait(struct text *t, const struct thread_info *info)
{
    u64 now = arch_clock_ns();
    if (info->wait_kind != WAIT_NONE) {
        u64 ns = now > info->wait_since_ns ? now - info->wait_since_ns : 0;
        text_add(t, " waits-for=%s:0x%lx since=%lu.%06lus", wait_kind_name(info->wait_kind),
                 info->wait_object, TO_SEC(ns), SUB_SEC_USEC(ns));
    }
}

static void add_thread(struct thread *thread, void *arg)
{
    struct text *t = arg;
    struct thread_info info;
    char name[SYMBOL_BYTES];
    struct kthread *k = thread_head(thread)->app;
    thread_info(thread, &info);
    text_add(t, "thread %u \"%s\" process=%s state=%s cpu=%u last-cpu=%u affinity=", info.id, info.name,
             k ? k->proc->name : "kernel", info.state, info.cpu, info.last_cpu);
    add_mask(t, info.affinity);
    text_add(t, " nice=%d runtime=%lu.%06lus switches=%lu migrations=%lu", info.nice,
             TO_SEC(info.runtime_ns), SUB_SEC_USEC(info.runtime_ns), info.switches,
             info.migrations);
    add_wait(t, &info);
    text_append(t, "\n", 1);
    for (size_t i = 0; i < info.num_pcs; i++) {
        text_add(t, "    #%lu 0x%lx %s\n", i, info.pcs[i],
                 symbol_name(k ? k->proc : NULL, info.pcs[i], name));
    }
}

void report_threads(struct text *t)
{
    text_add(t, "%u threads\n", thread_count());
    t->failed |= !thread_list_each(add_thread, t);
}
