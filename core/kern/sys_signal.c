/* Signal calls. */
#include "core/kern/abi.h"
#include "core/kern/signal.h"
#include "core/kern/syscall.h"
#include "core/kern/time.h"

#define SIGSET_BYTES 8

i64 sys_rt_sigaction(struct kthread *k, const u64 *a)
{
    struct proc *p = k->proc;
    struct sig_action new, old;
    u64 signo = a[0];
    if (signo == 0 || signo > NUM_SIGNALS || a[3] != SIGSET_BYTES ||
        (a[1] && (SIGBIT(signo) & SIG_UNBLOCKABLE))) {
        return -EINVAL;
    }
    if (a[1] && !arch_copy_from_app(&new, a[1], sizeof(new))) {
        return -EFAULT;
    }
    irqflags_t flags = spin_lock_irq(&p->siglock);
    old = p->actions[signo - 1];
    if (a[1]) {
        p->actions[signo - 1] = new;
    }
    spin_unlock_irq(&p->siglock, flags);
    return a[2] && !arch_copy_to_app(a[2], &old, sizeof(old)) ? -EFAULT : 0;
}

i64 sys_rt_sigprocmask(struct kthread *k, const u64 *a)
{
    enum { SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK };
    u64 set, old = k->sig_mask;
    if (a[3] != SIGSET_BYTES) {
        return -EINVAL;
    }
    if (a[1]) {
        if (!arch_copy_from_app(&set, a[1], sizeof(set))) {
            return -EFAULT;
        }
        switch ((u32)a[0]) {
        case SIG_BLOCK:
            set = old | set;
            break;
        case SIG_UNBLOCK:
            set = old & ~set;
            break;
        case SIG_SETMASK:
            break;
        default:
            return -EINVAL;
        }
        signal_set_mask(k, set);
    }
    return a[2] && !arch_copy_to_app(a[2], &old, sizeof(old)) ? -EFAULT : 0;
}

i64 sys_rt_sigreturn(struct kthread *k, const u64 *a)
{
    u64 mask;
    (void)a;
    if (!arch_signal_pop(k->regs, thread_arch(k->thread), &mask)) {
        signal_report_fault(k, SIGSEGV, arch_regs_sp(k->regs), k->regs);
        proc_kill(k->proc, 128 + SIGSEGV, SIGSEGV);
        thread_exit();
    }
    signal_set_mask(k, mask);
    /* All registers come from the frame; the value returned here is not used. */
    return 0;
}

i64 sys_rt_sigpending(struct kthread *k, const u64 *a)
{
    u64 set = (k->pending.mask | k->proc->pending.mask) & k->sig_mask;
    if (a[1] > SIGSET_BYTES) {
        return -EINVAL;
    }
    return arch_copy_to_app(a[0], &set, a[1]) ? 0 : -EFAULT;
}

static i64 wait_for_signal(void)
{
    for (;;) {
        if (thread_park(NO_DEADLINE, WAIT_SIGNAL, 0) == PARK_INTERRUPTED && signal_wait_ends()) {
            return -EINTR;
        }
    }
}

i64 sys_rt_sigsuspend(struct kthread *k, const u64 *a)
{
    u64 mask;
    if (a[1] != SIGSET_BYTES) {
        return -EINVAL;
    }
    if (!arch_copy_from_app(&mask, a[0], sizeof(mask))) {
        return -EFAULT;
    }
    signal_set_temporary_mask(k, mask);
    return wait_for_signal();
}

i64 sys_pause(struct kthread *k, const u64 *a)
{
    (void)k;
    (void)a;
    return wait_for_signal();
}

/* Linux's siginfo_t for signals sent by somebody. */
struct siginfo_sent {
    i32 signo, error, code, pad;
    i32 pid, uid;
    u64 value;
    u8 rest[96];
};

static i64 take_waited(struct kthread *k, u64 set, struct sig_node *out)
{
    irqflags_t flags = spin_lock_irq(&k->proc->siglock);
    u32 signo = signal_take_locked(k, set, out);
    spin_unlock_irq(&k->proc->siglock, flags);
    return signo;
}

/* Waits for one of set: its number, -EAGAIN, -EINTR. */
static i64 wait_for_set(struct kthread *k, u64 set, u64 deadline_ns, struct sig_node *out)
{
    i64 result;
    WRITE_ONCE(k->wait_set, set);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    while ((result = take_waited(k, set, out)) == 0) {
        enum park_result r = thread_park(deadline_ns, WAIT_SIGNAL, 0);
        if (r == PARK_TIMEOUT) {
            result = -EAGAIN;
            break;
        }
        if (r == PARK_INTERRUPTED && signal_wait_ends()) {
            if ((result = take_waited(k, set, out)) == 0) {
                result = -EINTR;
            }
            break;
        }
    }
    WRITE_ONCE(k->wait_set, 0);
    /* The mark may have been for the set alone: let the next look decide. */
    if (result > 0) {
        signal_wait_ends();
    }
    return result;
}

i64 sys_rt_sigtimedwait(struct kthread *k, const u64 *a)
{
    u64 set, ns, deadline_ns = NO_DEADLINE;
    struct sig_node taken;
    if (a[3] != SIGSET_BYTES) {
        return -EINVAL;
    }
    if (!arch_copy_from_app(&set, a[0], sizeof(set))) {
        return -EFAULT;
    }
    if (a[2]) {
        i64 error = time_load(a[2], &ns);
        if (error < 0) {
            return error;
        }
        deadline_ns = time_after(ns);
    }
    i64 signo = wait_for_set(k, set & ~SIG_UNBLOCKABLE, deadline_ns, &taken);
    if (signo > 0 && a[1]) {
        struct siginfo_sent info = { .signo = (i32)signo, .code = taken.code,
                                     .pid = (i32)taken.sender_pid, .value = taken.value };
        if (!arch_copy_to_app(a[1], &info, sizeof(info))) {
            return -EFAULT;
        }
    }
    return signo;
}

i64 sys_rt_sigqueueinfo(struct kthread *k, const u64 *a)
{
    struct siginfo_sent info;
    (void)k;
    if (!arch_copy_from_app(&info, a[2], sizeof(info))) {
        return -EFAULT;
    }
    if (info.code >= 0) {
        return -EPERM;
    }
    struct proc *p = proc_find((u32)a[0]);
    return p ? signal_send(p, NULL, (u32)a[1], info.code, info.value) : -ESRCH;
}

i64 sys_sigaltstack(struct kthread *k, const u64 *a)
{
    struct {
        u64 sp;
        u32 flags, pad;
        u64 size;
    } new, old = { .sp = k->alt_sp, .size = k->alt_size };
    u64 sp = arch_regs_sp(k->regs);
    bool on_it = !(k->alt_flags & SS_DISABLE) && sp > k->alt_sp && sp - k->alt_sp <= k->alt_size;
    old.flags = on_it ? SS_ONSTACK : (u32)k->alt_flags;
    if (a[0]) {
        if (!arch_copy_from_app(&new, a[0], sizeof(new))) {
            return -EFAULT;
        }
        if (on_it) {
            return -EPERM;
        }
        if (new.flags & ~(SS_DISABLE | SS_ONSTACK)) {
            return -EINVAL;
        }
        if (!(new.flags & SS_DISABLE) && new.size < ABI_MIN_SIGNAL_STACK) {
            return -ENOMEM;
        }
        k->alt_sp = new.flags & SS_DISABLE ? 0 : new.sp;
        k->alt_size = new.flags & SS_DISABLE ? 0 : new.size;
        k->alt_flags = new.flags & SS_DISABLE;
    }
    return a[1] && !arch_copy_to_app(a[1], &old, sizeof(old)) ? -EFAULT : 0;
}

i64 sys_kill(struct kthread *k, const u64 *a)
{
    i32 pid = (i32)a[0];
    /* 0 and -pgid: the caller's group is the caller. */
    struct proc *p = pid > 0 ? proc_find((u32)pid) : pid == 0 || -pid == (i32)k->proc->pid ? k->proc : NULL;
    if (!p) {
        return -ESRCH;
    }
    return a[1] == 0 ? 0 : signal_send(p, NULL, (u32)a[1], SI_USER, 0);
}

static i64 send_to_thread(u32 tgid, u32 tid, u32 signo)
{
    if ((i32)tid <= 0 || signo > NUM_SIGNALS) {
        return -EINVAL;
    }
    struct thread *t = thread_find(tid);
    struct kthread *target = t ? thread_head(t)->app : NULL;
    i64 result = -ESRCH;
    if (target && (!tgid || target->proc->pid == tgid)) {
        result = signo == 0 ? (target->ended ? -ESRCH : 0)
                            : signal_send(target->proc, target, signo, SI_TKILL, 0);
    }
    if (t) {
        thread_put(t);
    }
    return result;
}

i64 sys_tkill(struct kthread *k, const u64 *a)
{
    (void)k;
    return send_to_thread(0, (u32)a[0], (u32)a[1]);
}

i64 sys_tgkill(struct kthread *k, const u64 *a)
{
    (void)k;
    if ((i32)a[0] <= 0) {
        return -EINVAL;
    }
    return send_to_thread((u32)a[0], (u32)a[1], (u32)a[2]);
}
