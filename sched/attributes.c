/* Attributes of threads: affinity, priority, names, run time; and what dumps show of them. */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/base/trace.h"
#include "sched/thread.h"

cpumask_t thread_affinity(const struct thread *t)
{
    return READ_ONCE(t->affinity);
}

/* Locks the run queue of the CPU that t is on, queued for, or last ran on. */
static struct cpu_sched *lock_cpu_of(struct thread *t)
{
    for (;;) {
        u32 cpu = READ_ONCE(t->cpu);
        struct cpu_sched *c = sched_of(cpu);
        spin_acquire_raw(&c->lock);
        if (READ_ONCE(t->cpu) == cpu) {
            return c;
        }
        spin_release_raw(&c->lock);
    }
}

int thread_set_affinity(struct thread *t, cpumask_t mask)
{
    mask &= domains[t->head.domain].cpus;
    if (!mask) {
        return -EINVAL;
    }
    irqflags_t flags = arch_irq_save();
    struct cpu_sched *c = lock_cpu_of(t);
    __atomic_store_n(&t->affinity, mask, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&t->cpu, __ATOMIC_SEQ_CST) != c->cpu) {
        spin_release_raw(&c->lock); /* it arrived somewhere else meanwhile, perhaps by the old mask: sched/wake.c arrive() */
        c = lock_cpu_of(t);
    }
    bool away = !(mask & BIT(c->cpu));
    bool send = false;
    if (away && t->entity.queued) {
        runq_remove(&c->runq, &t->entity);
        state_move(&t->state, T_RUNNABLE, T_WAKING);
        board_publish(c);
        send = true;
    }
    bool running = away && c->current == t;
    if (running) {
        percpu_of(c->cpu)->need_resched = 1;
    }
    spin_release_raw(&c->lock);
    if (send) {
        STAT_INC(sched_here(), migrations[MIGRATE_AFFINITY]);
        wake_send(t, policy_place_wake(t, sched_here()->cpu, 0), RUNQ_MIGRATE, NULL);
    } else if (running && c != sched_here()) {
        arch_send_ipi(c->cpu, ARCH_IPI_RESCHED);
    }
    arch_irq_restore(flags);
    if (this_cpu_resched_due()) {
        preempt_enable_slow();
    }
    return 0;
}

void thread_set_nice(struct thread *t, i32 nice)
{
    nice = MIN(MAX(nice, -20), 19);
    irqflags_t flags = arch_irq_save();
    struct cpu_sched *c = lock_cpu_of(t);
    t->nice = nice;
    t->entity.weight = runq_weight_of_nice(nice);
    spin_release_raw(&c->lock);
    arch_irq_restore(flags);
}

i32 thread_nice(const struct thread *t)
{
    return READ_ONCE(t->nice);
}

u64 thread_runtime_ns(struct thread *t)
{
    u64 ns = READ_ONCE(t->runtime_ns);
    if (t == current_thread()) {
        ns += arch_clock_ns() - t->exec_start_ns;
    }
    return ns;
}

void thread_set_name(struct thread *t, const char *name)
{
    str_copy(t->head.name, name, sizeof(t->head.name));
    trace_text(TRACE_CAT_SCHED, TRACE_THREAD, t->head.id, t->head.name);
}

struct thread *thread_waker(const struct thread *t)
{
    return READ_ONCE(t->waker);
}

struct arch_thread *thread_arch(struct thread *t)
{
    return &t->arch;
}

const char *wait_kind_name(enum wait_kind kind)
{
    static const char *const names[] = {
        [WAIT_NONE] = "none",   [WAIT_FUTEX] = "futex", [WAIT_SOCKET] = "socket",     [WAIT_SLEEP] = "sleep",
        [WAIT_POLL] = "poll",   [WAIT_JOIN] = "join",   [WAIT_PIPE] = "pipe",         [WAIT_LOCK] = "lock",
        [WAIT_SIGNAL] = "signal", [WAIT_WORK] = "work", [WAIT_OTHER] = "other", [WAIT_THROTTLE] = "throttle",
    };
    return (size_t)kind < ARRAY_SIZE(names) ? names[kind] : "unknown";
}

static const char *const state_names[NUM_THREAD_STATES] = {
    [T_NEW] = "new",         [T_RUNNING] = "running", [T_RUNNABLE] = "runnable",
    [T_BLOCKED] = "blocked", [T_WAKING] = "waking",   [T_DEAD] = "dead",       [T_THROTTLED] = "throttled",
};

/* Called with the thread-table lock held or with a reference.  A thread that starts to run while its stack is walked gives a
 * meaningless trace, never a fault: the walk checks every address, and the trace is dropped if the thread ran meanwhile. */
void thread_info(struct thread *t, struct thread_info *out)
{
    *out = (struct thread_info){
        .id = t->head.id,
        .cpu = READ_ONCE(t->cpu),
        .last_cpu = READ_ONCE(t->last_cpu),
        .domain = t->head.domain,
        .state = state_names[MIN(READ_ONCE(t->state), (u32)NUM_THREAD_STATES - 1)],
        .wait_kind = (enum wait_kind)t->head.wait_kind,
        .wait_object = t->head.wait_object,
        .wait_since_ns = READ_ONCE(t->wait_since_ns),
        .runtime_ns = READ_ONCE(t->runtime_ns),
        .affinity = READ_ONCE(t->affinity),
        .nice = READ_ONCE(t->nice),
        .migrations = READ_ONCE(t->migrations),
        .switches = READ_ONCE(t->switches),
    };
    str_copy(out->name, t->head.name, sizeof(out->name));
    u64 switches = READ_ONCE(t->switches);
    if (!LOAD_ACQUIRE(t->on_cpu)) {
        out->num_pcs = arch_backtrace(arch_thread_saved_fp(&t->arch), out->pcs, ARRAY_SIZE(out->pcs));
        if (LOAD_ACQUIRE(t->on_cpu) || READ_ONCE(t->switches) != switches) {
            out->num_pcs = 0;
        }
    }
}
