/* Affinity, priorities, and which CPU this is. */
#include "core/base/string.h"
#include "core/kern/grant.h"
#include "core/kern/syscall.h"

#define SCHED_OTHER 0
#define SCHED_BATCH 3
#define SCHED_IDLE 5

/* The thread that a tid argument means, with a reference; 0 is the caller. Only threads of processes count. */
static struct thread *thread_of(struct kthread *k, u64 tid)
{
    struct thread *t = thread_find(tid ? (u32)tid : thread_head(k->thread)->id);
    if (t && !thread_head(t)->app) {
        thread_put(t);
        return NULL;
    }
    return t;
}

i64 sys_sched_getaffinity(struct kthread *k, const u64 *a)
{
    struct thread *t = thread_of(k, a[0]);
    if (!t) {
        return -ESRCH;
    }
    u64 mask = grant_affinity(t);
    thread_put(t);
    if (a[1] < sizeof(mask) || a[1] % sizeof(mask) != 0) {
        return -EINVAL;
    }
    return arch_copy_to_app(a[2], &mask, sizeof(mask)) ? (i64)sizeof(mask) : -EFAULT;
}

i64 sys_sched_setaffinity(struct kthread *k, const u64 *a)
{
    u64 mask = 0;
    if (!arch_copy_from_app(&mask, a[2], MIN(a[1], (u64)sizeof(mask)))) {
        return -EFAULT;
    }
    struct thread *t = thread_of(k, a[0]);
    if (!t) {
        return -ESRCH;
    }
    i64 result = mask ? thread_set_affinity(t, mask) : -EINVAL;
    thread_put(t);
    return result;
}

i64 sys_sched_getscheduler(struct kthread *k, const u64 *a)
{
    struct thread *t = thread_of(k, a[0]);
    if (!t) {
        return -ESRCH;
    }
    thread_put(t);
    return SCHED_OTHER;
}

static i64 check_param(u64 param)
{
    i32 priority;
    if (!arch_copy_from_app(&priority, param, sizeof(priority))) {
        return -EFAULT;
    }
    return priority == 0 ? 0 : -EINVAL;
}

/* Only the fair class exists; real-time requests are refused as they are for an unprivileged user of Linux. */
i64 sys_sched_setscheduler(struct kthread *k, const u64 *a)
{
    struct thread *t = thread_of(k, a[0]);
    if (!t) {
        return -ESRCH;
    }
    thread_put(t);
    u32 policy = (u32)a[1];
    if (policy == SCHED_OTHER || policy == SCHED_BATCH || policy == SCHED_IDLE) {
        return check_param(a[2]);
    }
    return policy <= 6 ? -EPERM : -EINVAL;
}

i64 sys_sched_getparam(struct kthread *k, const u64 *a)
{
    static const i32 zero;
    struct thread *t = thread_of(k, a[0]);
    if (!t) {
        return -ESRCH;
    }
    thread_put(t);
    return arch_copy_to_app(a[1], &zero, sizeof(zero)) ? 0 : -EFAULT;
}

i64 sys_sched_setparam(struct kthread *k, const u64 *a)
{
    struct thread *t = thread_of(k, a[0]);
    if (!t) {
        return -ESRCH;
    }
    thread_put(t);
    return check_param(a[1]);
}

static i64 priority_bound(u64 policy, i64 real_time)
{
    switch (policy) {
    case 1: /* SCHED_FIFO */
    case 2: /* SCHED_RR */
        return real_time;
    case SCHED_OTHER:
    case SCHED_BATCH:
    case SCHED_IDLE:
        return 0;
    default:
        return -EINVAL;
    }
}

i64 sys_sched_prio_max(struct kthread *k, const u64 *a)
{
    (void)k;
    return priority_bound(a[0], 99);
}

i64 sys_sched_prio_min(struct kthread *k, const u64 *a)
{
    (void)k;
    return priority_bound(a[0], 1);
}

#define PRIO_PROCESS 0

/* Linux's raw call gives 20 - nice, so that it is never negative. */
i64 sys_getpriority(struct kthread *k, const u64 *a)
{
    if (a[0] != PRIO_PROCESS) {
        return -EINVAL;
    }
    struct thread *t = thread_of(k, a[1]);
    if (!t) {
        return -ESRCH;
    }
    i64 result = 20 - thread_nice(t);
    thread_put(t);
    return result;
}

i64 sys_setpriority(struct kthread *k, const u64 *a)
{
    if (a[0] != PRIO_PROCESS) {
        return -EINVAL;
    }
    struct thread *t = thread_of(k, a[1]);
    if (!t) {
        return -ESRCH;
    }
    thread_set_nice(t, MAX(-20, MIN((i32)a[2], 19)));
    thread_put(t);
    return 0;
}

i64 sys_getcpu(struct kthread *k, const u64 *a)
{
    u32 cpu = this_cpu()->cpu, node = 0;
    (void)k;
    if (a[0] && !arch_copy_to_app(a[0], &cpu, sizeof(cpu))) {
        return -EFAULT;
    }
    return a[1] && !arch_copy_to_app(a[1], &node, sizeof(node)) ? -EFAULT : 0;
}
