/* Signals: queueing and choice. Delivery: signal_deliver.c. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/kern/signal.h"
#include "core/kern/syscall.h"
#include "core/mm/mm.h"

static const char *const names[SIGRT_MIN] = {
    "0",       "SIGHUP",  "SIGINT",    "SIGQUIT", "SIGILL",    "SIGTRAP",  "SIGABRT", "SIGBUS",
    "SIGFPE",  "SIGKILL", "SIGUSR1",   "SIGSEGV", "SIGUSR2",   "SIGPIPE",  "SIGALRM", "SIGTERM",
    "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP",   "SIGTTIN",  "SIGTTOU", "SIGURG",
    "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH",  "SIGIO",    "SIGPWR",  "SIGSYS",
};

const char *signal_name(u32 signo)
{
    return signo < SIGRT_MIN ? names[signo] : "a real-time signal";
}

/* Signals whose default action is nothing. Stopping is not supported: a unikernel has nobody to continue it. */
#define DEFAULT_IGNORED                                                                            \
    (SIGBIT(SIGCHLD) | SIGBIT(SIGCONT) | SIGBIT(SIGURG) | SIGBIT(SIGWINCH) | SIGBIT(SIGSTOP) |     \
     SIGBIT(SIGTSTP) | SIGBIT(SIGTTIN) | SIGBIT(SIGTTOU))

bool signal_default_kills(u32 signo)
{
    return !(SIGBIT(signo) & DEFAULT_IGNORED);
}

void sig_pending_init(struct sig_pending *pending)
{
    pending->mask = 0;
    list_init(&pending->queue);
}

void signal_drop_pending(struct sig_pending *pending, struct proc *p)
{
    struct list *node;
    while ((node = list_pop_front(&pending->queue)) != NULL) {
        kfree(list_entry(node, struct sig_node, node));
        p->signals_queued--;
    }
    pending->mask = 0;
}

static bool ignored(const struct proc *p, u32 signo)
{
    u64 handler = p->actions[signo - 1].handler;
    return handler == SIG_IGN || (handler == SIG_DFL && !signal_default_kills(signo));
}

static int queue_locked(struct proc *p, struct sig_pending *pending, const struct sig_node *what)
{
    if (what->signo < SIGRT_MIN && (pending->mask & SIGBIT(what->signo))) {
        return 0; /* standard signals do not queue */
    }
    struct sig_node *n = p->signals_queued < SIGNALS_QUEUED_MAX ? kmalloc(sizeof(*n)) : NULL;
    if (n) {
        *n = *what;
        list_push_back(&pending->queue, &n->node);
        p->signals_queued++;
    } else if (what->signo >= SIGRT_MIN) {
        return -EAGAIN;
    }
    /* Without a node a standard signal still comes, only without its information. */
    pending->mask |= SIGBIT(what->signo);
    return 0;
}

/* A thread that would act upon the signal now. */
static bool takes(const struct kthread *k, u32 signo)
{
    return k->thread && !(READ_ONCE(k->sig_mask) & ~k->wait_set & SIGBIT(signo));
}

static void mark_locked(struct kthread *k)
{
    struct thread_info info;
    thread_interrupt(k->thread);
    if (k->thread == current_thread()) {
        return;
    }
    thread_info(k->thread, &info);
    /* If it runs application code it takes notice at the end of this interrupt; if it is being switched to, the end of the
     * interrupt that preempted it looks at the mark after the switch. */
    if (info.cpu != this_cpu()->cpu) {
        arch_send_ipi(info.cpu, ARCH_IPI_RESCHED);
    }
}

static struct kthread *choose_locked(struct proc *p, u32 signo)
{
    list_for_each(node, &p->threads) {
        struct kthread *k = list_entry(node, struct kthread, node);
        if (takes(k, signo)) {
            return k;
        }
    }
    return NULL;
}

int signal_send(struct proc *p, struct kthread *k, u32 signo, i32 code, u64 value)
{
    if (signo == 0 || signo > NUM_SIGNALS) {
        return -EINVAL;
    }
    if (signo == SIGKILL) {
        proc_kill(p, 128 + SIGKILL, SIGKILL);
        return 0;
    }
    struct kthread *self = current_kthread();
    struct sig_node what = { .signo = signo, .code = code, .value = value,
                             .sender_pid = self ? self->proc->pid : 0 };
    int result = 0;
    irqflags_t flags = spin_lock_irq(&p->siglock);
    if (k && k->ended) {
        result = -ESRCH;
    } else if (!ignored(p, signo) || (k && (k->sig_mask & SIGBIT(signo)))) {
        result = queue_locked(p, k ? &k->pending : &p->pending, &what);
        /* Pairs with signal_set_mask(): one of the two sees the other. */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        struct kthread *target = k ? (takes(k, signo) ? k : NULL) : choose_locked(p, signo);
        if (result == 0 && target) {
            mark_locked(target);
        }
    }
    spin_unlock_irq(&p->siglock, flags);
    return result;
}

void signal_self(u32 signo)
{
    struct kthread *k = current_kthread();
    if (k) {
        signal_send(k->proc, k, signo, SI_KERNEL, 0);
    }
}

void signal_all_procs(u32 signo)
{
    for (u32 i = 0; i < MAX_PROCS; i++) {
        if (LOAD_ACQUIRE(procs[i].state) == PROC_RUNNING) {
            signal_send(&procs[i], NULL, signo, SI_KERNEL, 0);
        }
    }
}

static u32 take_from(struct proc *p, struct sig_pending *pending, u64 set, struct sig_node *out)
{
    if (!(pending->mask & set)) {
        return 0;
    }
    u32 signo = (u32)__builtin_ctzll(pending->mask & set) + 1;
    bool found = false, more = false;
    list_for_each_safe(node, next, &pending->queue) {
        struct sig_node *n = list_entry(node, struct sig_node, node);
        if (n->signo != signo) {
            continue;
        }
        if (found) {
            more = true;
            break;
        }
        *out = *n;
        found = true;
        list_remove(&n->node);
        kfree(n);
        p->signals_queued--;
    }
    if (!found) {
        *out = (struct sig_node){ .signo = signo, .code = SI_USER };
    }
    if (!more) {
        pending->mask &= ~SIGBIT(signo);
    }
    return signo;
}

u32 signal_take_locked(struct kthread *k, u64 set, struct sig_node *out)
{
    u32 signo = take_from(k->proc, &k->pending, set, out);
    return signo ? signo : take_from(k->proc, &k->proc->pending, set, out);
}

u64 signal_deliverable(struct kthread *k)
{
    return (READ_ONCE(k->pending.mask) | READ_ONCE(k->proc->pending.mask)) &
           (~k->sig_mask | k->wait_set);
}

bool signal_wait_ends(void)
{
    struct kthread *k = current_kthread();
    if (!k || proc_exiting(k->proc)) {
        return true;
    }
    irqflags_t flags = spin_lock_irq(&k->proc->siglock);
    bool ends = signal_deliverable(k) != 0 || proc_exiting(k->proc);
    if (!ends) {
        thread_interrupt_clear();
    }
    spin_unlock_irq(&k->proc->siglock, flags);
    return ends;
}

void signal_set_mask(struct kthread *k, u64 mask)
{
    WRITE_ONCE(k->sig_mask, mask & ~SIG_UNBLOCKABLE);
    /* Pairs with signal_send(): it queues, then looks at the mask; we change the mask, then look at the queue. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (unlikely(signal_deliverable(k))) {
        thread_interrupt(k->thread);
    }
}

void signal_set_temporary_mask(struct kthread *k, u64 mask)
{
    k->saved_mask = k->sig_mask;
    k->has_saved_mask = true;
    signal_set_mask(k, mask);
}

void signal_end_temporary_mask(struct kthread *k)
{
    k->has_saved_mask = false;
    signal_set_mask(k, k->saved_mask);
}
