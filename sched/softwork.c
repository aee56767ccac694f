/* Deferred interrupt work: at the end of the interrupt, or in the CPU's worker thread once a budget is used up. */
#include "sched/thread.h"

/* The worker carries on what interrupts began: it weighs as much as nine ordinary threads, so that a CPU full of handlers
 * still takes its packets in time, yet cannot be starved by them either. */
#define WORKER_NICE (-10)

void softwork_init(struct softwork *w, u32 cpu, bool (*fn)(struct softwork *w, bool in_irq))
{
    *w = (struct softwork){ .fn = fn, .cpu = cpu };
}

void softwork_raise(struct softwork *w)
{
    irqflags_t flags = arch_irq_save();
    struct cpu_sched *c = sched_here();
    DEBUG_ASSERT(w->cpu == c->cpu);
    if (!w->queued) {
        w->queued = true;
        w->next = c->softwork;
        c->softwork = w;
        if (!this_cpu()->irq_depth) {
            arch_send_ipi(c->cpu, ARCH_IPI_RESCHED); /* its end runs the work, on the interrupt stack */
        }
    }
    arch_irq_restore(flags);
}

/* Interrupt stack, interrupts off. */
void softwork_run_pending(struct cpu_sched *c)
{
    if (!c->softwork) {
        return;
    }
    u64 start = arch_clock_ns();
    bool idle = idle_clock_runs(&c->idle_clock); /* what an interrupt does is no idling */
    if (idle) {
        idle_clock_stop(&c->idle_clock, start);
    }
    struct softwork *w = c->softwork;
    c->softwork = NULL;
    bool late = false;
    while (w) {
        struct softwork *next = w->next;
        w->queued = false;
        if (w->fn(w, true) && !w->queued) {
            w->queued = true;
            w->next = c->softwork_late;
            c->softwork_late = w;
            late = true;
        }
        w = next;
    }
    u64 now = arch_clock_ns();
    STAT_ADD(c, irq_ns, now - start);
    if (idle) {
        idle_clock_start(&c->idle_clock, now);
    }
    if (late) {
        thread_unpark(c->worker);
    }
}

/* Takes its turn among the CPU's threads, so a flood of packets cannot starve them. */
static void worker_main(void *arg)
{
    struct cpu_sched *c = arg;
    for (;;) {
        arch_irq_disable();
        struct softwork *w = c->softwork_late;
        if (w) {
            c->softwork_late = w->next;
            w->queued = false;
        }
        arch_irq_enable();
        if (!w) {
            (void)thread_park_uninterruptible(NO_DEADLINE, WAIT_WORK, 0);
            continue;
        }
        preempt_disable();
        bool more = w->fn(w, false);
        arch_irq_disable();
        if (more && !w->queued) {
            w->queued = true;
            w->next = c->softwork_late;
            c->softwork_late = w;
        }
        arch_irq_enable();
        preempt_enable();
    }
}

int softwork_start_worker(u32 cpu)
{
    struct cpu_sched *c = sched_of(cpu);
    const struct thread_attr attr = {
        .name = "worker", .affinity = BIT(cpu), .domain = c->domain, .nice = WORKER_NICE,
    };
    int err = thread_create(&attr, worker_main, c, &c->worker);
    if (err) {
        return err;
    }
    c->worker->pinned_kernel = true;
    thread_start(c->worker);
    return 0;
}
