/* Processes: table, threads' coming and going, the end. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/file.h"
#include "core/kern/futex.h"
#include "core/kern/proc.h"
#include "core/kern/shutdown.h"
#include "core/kern/signal.h"
#include "core/mm/mm.h"

struct proc procs[MAX_PROCS];

static struct lock_class sig_class = { .name = "proc_signals", .rank = RANK_FILE + 5, .irq = true };

static void proc_reset(struct proc *p, u32 index)
{
    p->index = index;
    spin_init(&p->siglock, &sig_class);
    mutex_init(&p->brk_mutex);
    list_init(&p->threads);
    sig_pending_init(&p->pending);
    fd_table_init(&p->fds);
    p->umask = 022;
}

struct kthread *kthread_create(struct proc *p)
{
    size_t bytes = sizeof(struct kthread) + arch_regs_size();
    struct kthread *k = kzalloc(bytes);
    if (!k) {
        return NULL;
    }
    k->proc = p;
    k->alt_flags = SS_DISABLE;
    sig_pending_init(&k->pending);
    irqflags_t flags = spin_lock_irq(&p->siglock);
    list_push_back(&p->threads, &k->node);
    p->num_threads++;
    p->threads_started++;
    spin_unlock_irq(&p->siglock, flags);
    return k;
}

static bool kthread_leave(struct kthread *k, u64 runtime_ns)
{
    struct proc *p = k->proc;
    irqflags_t flags = spin_lock_irq(&p->siglock);
    signal_drop_pending(&k->pending, p);
    list_remove(&k->node);
    k->ended = true;
    p->dead_runtime_ns += runtime_ns;
    bool last = --p->num_threads == 0;
    spin_unlock_irq(&p->siglock, flags);
    return last;
}

void kthread_discard(struct kthread *k)
{
    kthread_leave(k, 0);
}

static void proc_end(struct proc *p)
{
    fd_close_all(p);
    mm_unmap_owner(p);
    irqflags_t flags = spin_lock_irq(&p->siglock);
    signal_drop_pending(&p->pending, p);
    spin_unlock_irq(&p->siglock, flags);
    STORE_RELEASE(p->state, PROC_ENDED);
    shutdown_proc_ended();
}

/* thread_exit_hook: the dying thread itself. */
static void thread_exits(struct thread *t)
{
    struct kthread *k = thread_head(t)->app;
    if (!k) {
        return;
    }
    struct proc *p = k->proc;
    futex_thread_exit(k);
    if (kthread_leave(k, thread_runtime_ns(t))) {
        proc_end(p);
    }
}

static void thread_freed(struct thread *t)
{
    kfree(thread_head(t)->app);
}

static void kick_domain(u32 domain)
{
    struct sched_domain_info d = sched_domain(domain);
    u32 self = this_cpu()->cpu;
    for (u32 cpu = d.first_cpu; cpu < d.first_cpu + d.num_cpus; cpu++) {
        if (cpu != self) {
            arch_send_ipi(cpu, ARCH_IPI_RESCHED);
        }
    }
}

void proc_kill(struct proc *p, int exit_code, int signo)
{
    irqflags_t flags = spin_lock_irq(&p->siglock);
    bool first = p->state < PROC_EXITING;
    if (first) {
        p->exit_code = exit_code;
        p->term_signal = signo;
        WRITE_ONCE(p->state, PROC_EXITING);
        list_for_each(node, &p->threads) {
            struct kthread *k = list_entry(node, struct kthread, node);
            if (k->thread) {
                thread_interrupt(k->thread);
            }
        }
    }
    if (first) {
        /* Threads that run application code take notice at the end of an interrupt. */
        kick_domain(p->domain);
    }
    spin_unlock_irq(&p->siglock, flags);
}

struct proc *proc_find(u32 pid)
{
    for (u32 i = 0; i < MAX_PROCS; i++) {
        enum proc_state state = READ_ONCE(procs[i].state);
        if (procs[i].pid == pid && (state == PROC_RUNNING || state == PROC_EXITING)) {
            return &procs[i];
        }
    }
    return NULL;
}

u64 proc_runtime_ns(struct proc *p)
{
    irqflags_t flags = spin_lock_irq(&p->siglock);
    u64 sum = p->dead_runtime_ns;
    list_for_each(node, &p->threads) {
        struct kthread *k = list_entry(node, struct kthread, node);
        sum += k->thread ? thread_runtime_ns(k->thread) : 0;
    }
    spin_unlock_irq(&p->siglock, flags);
    return sum;
}

void proc_init(void)
{
    for (u32 i = 0; i < MAX_PROCS; i++) {
        proc_reset(&procs[i], i);
    }
    thread_exit_hook = thread_exits;
    thread_free_hook = thread_freed;
}
