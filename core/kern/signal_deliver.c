/* Signals: delivery to the current thread at the end of a system call or of an interrupt, and after a fault. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/kern/abi.h"
#include "core/kern/signal.h"
#include "core/kern/start.h"
#include "core/kern/symbol.h"
#include "core/kern/syscall.h"
#include "core/mm/mm.h"

#define BACKTRACE_MAX 16

struct delivery {
    struct sig_node signal;
    struct sig_action action;
    u64 mask; /* to be restored by sigreturn */
};

/* The next signal with a handler; signals without one are dealt with on the way. False: nothing (more) to deliver, or the
 * process ends. */
static bool next_delivery(struct kthread *k, struct delivery *d)
{
    struct proc *p = k->proc;
    u32 kill = 0;
    bool found = false;
    irqflags_t flags = spin_lock_irq(&p->siglock);
    while (!found && !kill) {
        u32 signo = signal_take_locked(k, ~k->sig_mask, &d->signal);
        if (!signo) {
            /* Under the lock: a sender marks the thread again after this. */
            if (!proc_exiting(p)) {
                thread_interrupt_clear();
            }
            break;
        }
        struct sig_action *action = &p->actions[signo - 1];
        if (action->handler == SIG_DFL && signal_default_kills(signo)) {
            kill = signo;
        } else if (action->handler != SIG_DFL && action->handler != SIG_IGN) {
            d->action = *action;
            if (action->flags & SA_RESETHAND) {
                action->handler = SIG_DFL;
            }
            found = true;
        }
    }
    spin_unlock_irq(&p->siglock, flags);
    if (kill) {
        log_warn("weir: process %s killed by %s", p->name, signal_name(kill));
        proc_kill(p, 128 + (int)kill, (int)kill);
    }
    return found;
}

static bool on_alt_stack(const struct kthread *k, u64 sp)
{
    return !(k->alt_flags & SS_DISABLE) && sp > k->alt_sp && sp - k->alt_sp <= k->alt_size;
}

static bool push_frame(struct kthread *k, struct arch_regs *regs, const struct delivery *d)
{
    u32 signo = d->signal.signo;
    struct arch_signal s = {
        .signo = signo,
        .code = d->signal.code,
        .value = d->signal.value,
        .sender_pid = d->signal.sender_pid,
        .handler = d->action.handler,
        .restorer = d->action.restorer,
        .mask = k->has_saved_mask ? k->saved_mask : k->sig_mask,
    };
    if ((d->action.flags & SA_ONSTACK) && !(k->alt_flags & SS_DISABLE) &&
        !on_alt_stack(k, arch_regs_sp(regs))) {
        s.alt_sp = k->alt_sp + k->alt_size;
    }
    k->has_saved_mask = false;
    u64 blocked = d->action.mask | (d->action.flags & SA_NODEFER ? 0 : SIGBIT(signo));
    WRITE_ONCE(k->sig_mask, (k->sig_mask | blocked) & ~SIG_UNBLOCKABLE);
    if (arch_signal_push(regs, thread_arch(k->thread), &s)) {
        return true;
    }
    log_error("weir: process %s killed by SIGSEGV: no stack for %s at 0x%lx", k->proc->name,
              signal_name(signo), arch_regs_sp(regs));
    proc_kill(k->proc, 128 + SIGSEGV, SIGSEGV);
    return false;
}

i64 signal_syscall_exit(struct kthread *k, i64 result)
{
    struct arch_regs *regs = k->regs;
    struct delivery d;
    bool restart = result == -ERESTART;
    bool first = true;
    for (;;) {
        while (next_delivery(k, &d)) {
            if (first && restart) {
                restart = d.action.flags & SA_RESTART;
                result = restart ? (i64)k->syscall_nr : -EINTR;
                if (restart) {
                    arch_regs_set_pc(regs, arch_regs_pc(regs) - ABI_SYSCALL_BYTES);
                }
            }
            if (first) {
                arch_regs_set_return(regs, result);
            }
            first = false;
            if (!push_frame(k, regs, &d)) {
                break;
            }
        }
        if (proc_exiting(k->proc)) {
            thread_exit();
        }
        if (k->has_saved_mask) {
            signal_end_temporary_mask(k);
        }
        arch_irq_disable();
        if (!thread_interrupt_pending()) {
            break;
        }
        arch_irq_enable();
    }
    /* Interrupts stay off until the application runs: a mark that comes now brings an interrupt that sees it. */
    if (first && restart) {
        arch_regs_set_pc(regs, arch_regs_pc(regs) - ABI_SYSCALL_BYTES);
        result = (i64)k->syscall_nr;
    }
    return result;
}

void signal_before_app(struct kthread *k, struct arch_regs *regs)
{
    struct delivery d;
    for (;;) {
        arch_irq_disable();
        if (!thread_interrupt_pending() && !proc_exiting(k->proc)) {
            return;
        }
        arch_irq_enable();
        while (!proc_exiting(k->proc) && next_delivery(k, &d) && push_frame(k, regs, &d)) {
        }
        if (proc_exiting(k->proc)) {
            thread_exit();
        }
    }
}

/* sched_signal_hook: the interrupt interrupted application code of a marked thread. Interrupts off. */
static void interrupt_exit(struct arch_regs *regs)
{
    struct kthread *k = current_kthread();
    struct delivery d;
    if (!k) {
        return;
    }
    while (!proc_exiting(k->proc) && next_delivery(k, &d) && push_frame(k, regs, &d)) {
    }
    if (proc_exiting(k->proc)) {
        arch_regs_set_pc(regs, gate_address());
    }
}

void signal_report_fault(struct kthread *k, u32 signo, u64 addr, const struct arch_regs *regs)
{
    char name[SYMBOL_BYTES];
    u64 pcs[BACKTRACE_MAX];
    u64 pc = arch_regs_pc(regs);
    log_error("weir: process %s killed by %s at pc 0x%lx %s, address 0x%lx, thread %u %s",
              k->proc->name, signal_name(signo), pc, symbol_name(k->proc, pc, name), addr,
              thread_head(k->thread)->id, thread_head(k->thread)->name);
    size_t n = arch_backtrace(arch_regs_fp(regs), pcs, BACKTRACE_MAX);
    for (size_t i = 0; i < n; i++) {
        log_error("  #%lu 0x%lx %s", i + 1, pcs[i], symbol_name(k->proc, pcs[i], name));
    }
}

/* A signal raised by the thread's own instruction: it cannot wait, so blocked or ignored means the end. */
static bool deliver_fault(struct kthread *k, const struct arch_signal *s, struct arch_regs *regs)
{
    struct proc *p = k->proc;
    struct delivery d = { .signal = { .signo = s->signo, .code = s->code, .value = s->value } };
    irqflags_t flags = spin_lock_irq(&p->siglock);
    struct sig_action *action = &p->actions[s->signo - 1];
    d.action = *action;
    bool handled = d.action.handler != SIG_DFL && d.action.handler != SIG_IGN &&
                   !(k->sig_mask & SIGBIT(s->signo));
    if (handled && (action->flags & SA_RESETHAND)) {
        action->handler = SIG_DFL;
    }
    spin_unlock_irq(&p->siglock, flags);
    if (!handled) {
        signal_report_fault(k, s->signo, s->value, regs);
        proc_kill(p, 128 + (int)s->signo, (int)s->signo);
    }
    return handled && push_frame(k, regs, &d);
}

/* Why a page fault could not be served. The first two are Linux's si_code values. */
enum fault_cause { FAULT_NOT_MAPPED = 1, FAULT_NOT_ALLOWED = 2, FAULT_NO_MEMORY = 3 };

static enum fault_cause fault_cause(u64 addr, bool write, bool exec)
{
    u64 start, end;
    u32 prot, needs = exec ? MM_EXEC : write ? MM_WRITE : MM_READ;
    void *owner;
    if (!mm_query(addr, &start, &end, &prot, &owner)) {
        return FAULT_NOT_MAPPED;
    }
    return prot & needs ? FAULT_NO_MEMORY : FAULT_NOT_ALLOWED;
}

bool upcall_page_fault(u64 addr, bool write, bool exec, struct arch_regs *regs)
{
    (void)regs;
    struct kthread *k = current_kthread();
    if (likely(mm_handle_fault(addr, write, exec))) {
        if (unlikely(mm_over_high()) && k) {
            k->high_debt++;
        }
        return true;
    }
    if (k) {
        k->fault_addr = addr;
        k->fault_cause = (u8)fault_cause(addr, write, exec);
    }
    return false;
}

/* A page of a mapping that the process has, and no memory for it: no signal could tell it apart, and no handler mend it. */
static void kill_for_memory(struct kthread *k, u64 addr)
{
    struct mem_stats m;
    mem_stats(&m);
    log_error("weir: process %s killed: out of memory at address 0x%lx (anonymous %llu KiB, free %llu KiB): give the "
              "machine more, or raise grant.memory",
              k->proc->name, addr, m.kind_pages[MEM_ANON] * PAGE_SIZE / 1024, m.free_pages * PAGE_SIZE / 1024);
    proc_kill(k->proc, 128 + SIGKILL, SIGKILL);
}

void upcall_app_exception(u32 signo, i32 code, u64 addr, struct arch_regs *regs)
{
    struct kthread *k = current_kthread();
    struct arch_signal s = { .signo = signo, .code = code, .value = addr };
    if (!k) {
        panic_at(regs, "kernel thread %s jumped to 0x%lx", thread_head(current_thread())->name,
                 arch_regs_pc(regs));
    }
    if (signo == SIGSEGV && k->fault_cause && k->fault_addr == addr) {
        s.code = k->fault_cause;
        if (k->fault_cause == FAULT_NO_MEMORY) {
            kill_for_memory(k, addr);
        }
        k->fault_cause = 0;
    }
    if (proc_exiting(k->proc) || !deliver_fault(k, &s, regs)) {
        arch_irq_enable();
        thread_exit();
    }
}

void signal_init(void)
{
    sched_signal_hook = interrupt_exit;
}
