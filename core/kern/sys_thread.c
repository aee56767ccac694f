/* Threads: clone, exit, identities. */
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/grant.h"
#include "core/kern/signal.h"
#include "core/kern/syscall.h"
#include "core/mm/mm.h"

#define CLONE_VM 0x00000100ull
#define CLONE_FS 0x00000200ull
#define CLONE_FILES 0x00000400ull
#define CLONE_SIGHAND 0x00000800ull
#define CLONE_THREAD 0x00010000ull
#define CLONE_SETTLS 0x00080000ull
#define CLONE_PARENT_SETTID 0x00100000ull
#define CLONE_CHILD_CLEARTID 0x00200000ull
#define CLONE_CHILD_SETTID 0x01000000ull
#define CLONE_THREAD_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)

static void cloned_thread(void *arg)
{
    struct kthread *k = arg;
    struct arch_regs *regs = (struct arch_regs *)(void *)k->start_regs;
    /* A signal may have come, or the process may be ending, before the first step. */
    signal_before_app(k, regs);
    arch_resume_app(regs);
}

static int clone_create(struct kthread *k, const u64 *a, struct kthread **out)
{
    struct kthread *child = kthread_create(k->proc);
    if (!child) {
        return -ENOMEM;
    }
    struct arch_regs *regs = (struct arch_regs *)(void *)child->start_regs;
    memcpy(regs, k->regs, arch_regs_size());
    arch_regs_set_return(regs, 0);
    if (a[1]) {
        arch_regs_set_sp(regs, a[1]);
    }
    child->sig_mask = k->sig_mask;
    if (a[0] & CLONE_CHILD_CLEARTID) {
        child->clear_child_tid = a[3];
    }
    struct thread_attr attr = {
        .name = thread_head(k->thread)->name,
        .app = child,
        .affinity = thread_affinity(k->thread),
        .domain = k->proc->domain,
        .nice = thread_nice(k->thread),
        .quota = grant_quota(k->proc->domain),
        .has_fpu = true,
        .copy_fpu = true,
    };
    struct thread *t;
    int error = thread_create(&attr, cloned_thread, child, &t);
    if (error < 0) {
        kthread_discard(child);
        kfree(child);
        return error;
    }
    if (a[0] & CLONE_SETTLS) {
        arch_set_tls(thread_arch(t), a[4]);
    }
    child->thread = t;
    *out = child;
    return 0;
}

/* clone(flags, stack, parent_tid, child_tid, tls): threads only, there is one address space. */
i64 sys_clone(struct kthread *k, const u64 *a)
{
    struct kthread *child;
    if ((a[0] & CLONE_THREAD_FLAGS) != CLONE_THREAD_FLAGS) {
        return -ENOSYS; /* fork, vfork */
    }
    int error = clone_create(k, a, &child);
    if (error < 0) {
        return error;
    }
    struct thread *t = child->thread;
    u32 tid = thread_head(t)->id;
    if (((a[0] & CLONE_PARENT_SETTID) && !arch_copy_to_app(a[2], &tid, sizeof(tid))) ||
        ((a[0] & CLONE_CHILD_SETTID) && !arch_copy_to_app(a[3], &tid, sizeof(tid)))) {
        kthread_discard(child);
        thread_discard(t);
        return -EFAULT;
    }
    thread_start(t);
    thread_put(t);
    return tid;
}

i64 sys_exit(struct kthread *k, const u64 *a)
{
    struct proc *p = k->proc;
    irqflags_t flags = spin_lock_irq(&p->siglock);
    /* The code of the process if no exit_group comes: the first thread's. */
    if (thread_head(k->thread)->id == p->pid && p->state == PROC_RUNNING) {
        p->exit_code = (int)(a[0] & 0xff);
    }
    spin_unlock_irq(&p->siglock, flags);
    thread_exit();
}

i64 sys_exit_group(struct kthread *k, const u64 *a)
{
    proc_kill(k->proc, (int)(a[0] & 0xff), 0);
    thread_exit();
}

i64 sys_getpid(struct kthread *k, const u64 *a)
{
    (void)a;
    return k->proc->pid;
}

i64 sys_getppid(struct kthread *k, const u64 *a)
{
    (void)k;
    (void)a;
    return 0;
}

i64 sys_gettid(struct kthread *k, const u64 *a)
{
    (void)a;
    return thread_head(k->thread)->id;
}

i64 sys_set_tid_address(struct kthread *k, const u64 *a)
{
    k->clear_child_tid = a[0];
    return thread_head(k->thread)->id;
}

#define ROBUST_HEAD_BYTES 24

i64 sys_set_robust_list(struct kthread *k, const u64 *a)
{
    if (a[1] != ROBUST_HEAD_BYTES) {
        return -EINVAL;
    }
    k->robust_list = a[0];
    return 0;
}

i64 sys_get_robust_list(struct kthread *k, const u64 *a)
{
    u64 bytes = ROBUST_HEAD_BYTES;
    if (a[0] != 0 && a[0] != thread_head(k->thread)->id) {
        return -EPERM;
    }
    return arch_copy_to_app(a[1], &k->robust_list, sizeof(u64)) &&
                   arch_copy_to_app(a[2], &bytes, sizeof(bytes))
               ? 0
               : -EFAULT;
}

i64 sys_arch_prctl(struct kthread *k, const u64 *a)
{
    enum { ARCH_SET_FS = 0x1002, ARCH_GET_FS = 0x1003 };
    struct arch_thread *t = thread_arch(k->thread);
    switch ((u32)a[0]) {
    case ARCH_SET_FS:
        if (a[1] >= APP_MAX) {
            return -EPERM;
        }
        arch_set_tls(t, a[1]);
        return 0;
    case ARCH_GET_FS:
        return arch_copy_to_app(a[1], &t->fs_base, sizeof(u64)) ? 0 : -EFAULT;
    default:
        return -EINVAL;
    }
}

i64 sys_prctl(struct kthread *k, const u64 *a)
{
    enum {
        PR_SET_PDEATHSIG = 1,
        PR_GET_DUMPABLE = 3,
        PR_SET_DUMPABLE = 4,
        PR_SET_NAME = 15,
        PR_GET_NAME = 16,
        PR_SET_TIMERSLACK = 29,
        PR_SET_NO_NEW_PRIVS = 38,
        PR_GET_NO_NEW_PRIVS = 39,
        PR_SET_THP_DISABLE = 41,
    };
    char name[THREAD_NAME_MAX] = { 0 };
    switch ((u32)a[0]) {
    case PR_SET_NAME:
        /* Linux cuts longer names; the string may end anywhere before. */
        if (arch_copy_string_from_app(name, a[1], sizeof(name)) == -EFAULT) {
            return -EFAULT;
        }
        name[THREAD_NAME_MAX - 1] = '\0';
        thread_set_name(k->thread, name);
        return 0;
    case PR_GET_NAME:
        str_copy(name, thread_head(k->thread)->name, sizeof(name));
        return arch_copy_to_app(a[1], name, sizeof(name)) ? 0 : -EFAULT;
    case PR_GET_DUMPABLE:
    case PR_GET_NO_NEW_PRIVS:
        return 1;
    case PR_SET_PDEATHSIG:
    case PR_SET_DUMPABLE:
    case PR_SET_TIMERSLACK:
    case PR_SET_NO_NEW_PRIVS:
    case PR_SET_THP_DISABLE:
        return 0;
    default:
        return -EINVAL;
    }
}

i64 sys_sched_yield(struct kthread *k, const u64 *a)
{
    (void)k;
    (void)a;
    thread_yield();
    return 0;
}

/* All commands ask for a barrier on every CPU that runs a thread of the process. */
i64 sys_membarrier(struct kthread *k, const u64 *a)
{
    enum { MEMBARRIER_QUERY = 0, MEMBARRIER_SUPPORTED = 0x1f };
    if (a[1] != 0) {
        return -EINVAL;
    }
    if (a[0] == MEMBARRIER_QUERY) {
        return MEMBARRIER_SUPPORTED;
    }
    if (a[0] & ~(u64)MEMBARRIER_SUPPORTED) {
        return -EINVAL;
    }
    /* A TLB flush interrupts every CPU and waits for its answer: more than a barrier. */
    arch_tlb_flush(k->proc->image_start, 1);
    return 0;
}

i64 sys_wait4(struct kthread *k, const u64 *a)
{
    (void)k;
    (void)a;
    return -ECHILD;
}
