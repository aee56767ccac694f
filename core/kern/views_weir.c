/* /proc/weir: the kernel's own views, the same texts as on the HTTP port. */
#include "core/kern/mark.h"
#include "core/kern/obs/app_locks.h"
#include "core/kern/report.h"
#include "core/kern/vfs.h"

#define VIEW(name)                                                                                 \
    static void show_##name(struct text *t, struct proc *p)                                        \
    {                                                                                              \
        (void)p;                                                                                   \
        report_##name(t);                                                                          \
    }

VIEW(metrics)
VIEW(sched)
VIEW(threads)
VIEW(memory)
VIEW(futex)
VIEW(syscalls)
VIEW(locks)
VIEW(grant)

static i64 store_mark(struct proc *p, const char *line)
{
    (void)p;
    return mark_write(line);
}

static i64 store_locks(struct proc *p, const char *line)
{
    return app_locks_store(p, line);
}

const struct view weir_views[] = {
    { "/proc/weir/metrics", show_metrics, NULL },
    { "/proc/weir/sched", show_sched, NULL },
    { "/proc/weir/threads", show_threads, NULL },
    { "/proc/weir/memory", show_memory, NULL },
    { "/proc/weir/futex", show_futex, NULL },
    { "/proc/weir/syscalls", show_syscalls, NULL },
    { "/proc/weir/locks", show_locks, store_locks },
    { "/proc/weir/grant", show_grant, NULL },
    { "/proc/weir/mark", NULL, store_mark },
    { NULL, NULL, NULL },
};
