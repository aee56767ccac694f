/* Parking and waking.
 *
 * DESIGN
 *   parker                                   waker
 *   P1 token = exchange(0); set -> return    W1 old = exchange(token, 1); was set -> done
 *   P2 state = BLOCKED                       W2 compare-and-swap BLOCKED -> WAKING; lost -> done
 *   P3 token set? -> back to RUNNING         W3 choose a CPU; on_cpu still set -> the CPU it is on
 *   P4 schedule()                            W4 local: queue it.  Remote: push on its wake list,
 *                                               IPI if the list was empty and the CPU is not polling
 * All four of P2, P3, W1, W2 are sequentially consistent: either the parker sees the token in P3, or the waker sees
 * BLOCKED in W2.  If P3 sees the token but a waker has won W2, the parker goes on to schedule() and is queued
 * again by that waker.  The idle loop's side of W4 is in idle.c.  Checked in tests/model. */
#include "core/base/trace.h"
#include "sched/thread.h"

void (*sched_offcpu_hook)(struct thread *t, enum wait_kind kind, u64 object, u64 blocked_ns);

void offcpu_ended(struct thread *t, enum wait_kind kind, u64 object, u64 waited_ns)
{
    void (*hook)(struct thread *, enum wait_kind, u64, u64) = READ_ONCE(sched_offcpu_hook);
    if (unlikely(hook != NULL)) {
        hook(t, kind, object, waited_ns);
    }
}

static void park_timer_fired(struct timer *timer)
{
    thread_unpark(container_of(timer, struct thread, park_timer));
}

/* ---- wake list: many producers push, the owner takes all; a Treiber stack, whose ABA problem needs a popper of single
 * nodes, which there is not ---- */

static bool wake_list_push(struct cpu_sched *c, struct thread *t)
{
    struct thread *head = READ_ONCE(c->wake_list);
    do {
        t->wake_next = head;
    } while (!__atomic_compare_exchange_n(&c->wake_list, &head, t, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return head == NULL;
}

/* A WAKING thread has reached this CPU; c->lock is held.  If its affinity changed on the way it goes on to where it is allowed.
 * t->cpu is written before the mask is read, thread_set_affinity writes the mask before it reads t->cpu again, all
 * sequentially consistent: either the new mask is seen here, or the new place is seen there. */
static void arrive(struct cpu_sched *c, struct thread *t, enum runq_how how, u64 now_ns)
{
    __atomic_store_n(&t->cpu, c->cpu, __ATOMIC_SEQ_CST);
    cpumask_t allowed = __atomic_load_n(&t->affinity, __ATOMIC_SEQ_CST);
    if (likely(allowed & BIT(c->cpu))) {
        enqueue_here(c, t, how, now_ns);
        return;
    }
    if (how == RUNQ_MIGRATE) {
        t->entity.node.key += c->runq.floor; /* wake_send() takes it off again */
    }
    wake_send(t, (u32)__builtin_ctzll(allowed), t->new_place ? RUNQ_NEW : RUNQ_MIGRATE, NULL);
}

void wake_list_drain(struct cpu_sched *c)
{
    if (!READ_ONCE(c->wake_list)) {
        return;
    }
    struct thread *t = __atomic_exchange_n(&c->wake_list, NULL, __ATOMIC_SEQ_CST);
    /* The stack is newest first; queue in order of arrival. */
    struct thread *in_order = NULL;
    while (t) {
        struct thread *next = t->wake_next;
        t->wake_next = in_order;
        in_order = t;
        t = next;
    }
    u64 now = arch_clock_ns();
    while (in_order) {
        struct thread *next = in_order->wake_next;
        board_in_flight(c->cpu, -1);
        arrive(c, in_order, in_order->new_place ? RUNQ_NEW : RUNQ_MIGRATE, now);
        in_order = next;
    }
}

void enqueue_here(struct cpu_sched *c, struct thread *t, enum runq_how how, u64 now_ns)
{
    t->cpu = c->cpu;
    t->new_place = false;
    state_move(&t->state, T_WAKING, T_RUNNABLE);
    runq_add(&c->runq, &t->entity, how, now_ns);
    board_publish(c);
    trace(TRACE_CAT_QUEUE, TRACE_ENQUEUE, (u16)how, t->head.id, c->runq.count, 0);
    struct thread *current = c->current;
    if (current == c->idle) {
        board_idle(c, false); /* spoken for: the next wakeup of this batch looks elsewhere */
        sched_request(c);
        return;
    }
    if (runq_should_preempt(&current->entity, now_ns - current->exec_start_ns, &t->entity)) {
        sched_request(c);
    } else {
        sched_arm_timers(c, now_ns);
    }
    pull_offer(c, t);
}

void sched_kick(u32 cpu)
{
    STAT_INC(sched_here(), ipis_sent);
    trace(TRACE_CAT_IPI, TRACE_IPI, (u16)cpu, 0, 0, 0);
    arch_send_ipi(cpu, ARCH_IPI_RESCHED);
}

void wake_send(struct thread *t, u32 cpu, enum runq_how how, struct wake_batch *batch)
{
    struct cpu_sched *target = sched_of(cpu);
    if (t->cpu != cpu && how != RUNQ_NEW) {
        enum migrate_reason why = how == RUNQ_WAKE ? MIGRATE_WAKE : sched_of(t->cpu)->parked ? MIGRATE_PARK : MIGRATE_AFFINITY;
        if (how == RUNQ_WAKE) {
            STAT_INC(sched_here(), migrations[MIGRATE_WAKE]);
        }
        t->migrations++;
        trace(TRACE_CAT_SCHED, TRACE_MIGRATE, (u16)why, t->head.id, t->cpu, cpu);
    }
    /* The entity's vruntime turns into a lag against the queue it left; a stale floor only skews it a little. */
    if (how != RUNQ_NEW) {
        runq_rebase(&sched_of(t->cpu)->runq, &t->entity);
    }
    t->cpu = cpu;
    board_in_flight(cpu, 1);
    if (wake_list_push(target, t) && !__atomic_load_n(&target->polling, __ATOMIC_SEQ_CST)) {
        if (batch) {
            batch->ipi |= BIT(cpu);
        } else {
            sched_kick(cpu);
        }
    }
}

/* Who wakes: NULL for an interrupt. */
static struct thread *waker_here(const struct cpu_sched *here)
{
    return this_cpu()->irq_depth ? NULL : here->current;
}

static void trace_wake(const struct cpu_sched *here, const struct thread *t, u32 target)
{
    if (trace_wants(TRACE_CAT_SCHED)) {
        const struct thread *waker = waker_here(here);
        trace(TRACE_CAT_SCHED, TRACE_WAKE, (u16)target, t->head.id, waker ? waker->head.id : 0, 0);
    }
}

/* W3 and W4.  t is in state WAKING and ours. */
void wake_place(struct thread *t, struct wake_batch *batch)
{
    irqflags_t flags = arch_irq_save();
    struct cpu_sched *here = sched_here();
    if (unlikely(READ_ONCE(sched_offcpu_hook) != NULL)) {
        t->waker = waker_here(here);
    }
    if (__atomic_load_n(&t->on_cpu, __ATOMIC_SEQ_CST)) {
        /* Still switching out over there: that CPU queues it as soon as it has saved the context. */
        STAT_INC(here, wakes_remote);
        trace_wake(here, t, t->cpu);
        wake_send(t, t->cpu, RUNQ_WAKE, batch);
        arch_irq_restore(flags);
        return;
    }
    u32 target = policy_place_wake(t, here->cpu, this_cpu()->irq_depth ? POLICY_WAKE_FROM_IRQ : 0);
    trace_wake(here, t, target);
    if (target == here->cpu) {
        STAT_INC(here, wakes_local);
        bool moved = t->cpu != target;
        if (moved) {
            STAT_INC(here, migrations[MIGRATE_WAKE]);
            t->migrations++;
            trace(TRACE_CAT_SCHED, TRACE_MIGRATE, MIGRATE_WAKE, t->head.id, t->cpu, target);
            runq_rebase(&sched_of(t->cpu)->runq, &t->entity);
        }
        spin_acquire_raw(&here->lock);
        arrive(here, t, moved ? RUNQ_MIGRATE : RUNQ_WAKE, arch_clock_ns());
        spin_release_raw(&here->lock);
    } else {
        STAT_INC(here, wakes_remote);
        wake_send(t, target, RUNQ_WAKE, batch);
    }
    arch_irq_restore(flags);
}

static bool wake_claim(struct thread *t)
{
    if (__atomic_exchange_n(&t->wake_token, 1, __ATOMIC_SEQ_CST)) {
        return false;
    }
    return state_try_move(&t->state, T_BLOCKED, T_WAKING);
}

void thread_unpark_batch(struct thread *t, struct wake_batch *batch)
{
    if (wake_claim(t)) {
        batch->wakes++;
        wake_place(t, batch);
    }
}

void wake_batch_flush(struct wake_batch *batch)
{
    cpumask_t cpus = batch->ipi;
    if (cpus) {
        batch->ipi = 0;
        while (cpus) {
            u32 cpu = (u32)__builtin_ctzll(cpus);
            cpus &= cpus - 1;
            sched_kick(cpu);
        }
    }
    preempt_enable();
}

void thread_unpark(struct thread *t)
{
    if (!wake_claim(t)) {
        return;
    }
    preempt_disable();
    wake_place(t, NULL);
    preempt_enable();
}

void wake_new(struct thread *t)
{
    preempt_disable();
    irqflags_t flags = arch_irq_save();
    struct cpu_sched *here = sched_here();
    state_move(&t->state, T_NEW, T_WAKING);
    t->new_place = true;
    if (t->head.receive_cpu < 0 && t->head.domain == here->domain) {
        /* A server's acceptor makes a thread for the connection that it has just accepted. */
        t->head.receive_cpu = here->current->head.receive_cpu;
    }
    u32 target = policy_place_new(t, here->cpu);
    if (target != here->cpu) {
        STAT_INC(here, migrations[MIGRATE_NEW]);
        trace(TRACE_CAT_SCHED, TRACE_MIGRATE, MIGRATE_NEW, t->head.id, here->cpu, target);
        wake_send(t, target, RUNQ_NEW, NULL);
    } else {
        spin_acquire_raw(&here->lock);
        arrive(here, t, RUNQ_NEW, arch_clock_ns());
        spin_release_raw(&here->lock);
    }
    arch_irq_restore(flags);
    preempt_enable();
}

/* ---- parking ---- */

static bool take_token(struct thread *t)
{
    return READ_ONCE(t->wake_token) && __atomic_exchange_n(&t->wake_token, 0, __ATOMIC_SEQ_CST);
}

/* P2 to P4; returns with the token taken. */
static void park_blocked(struct thread *t)
{
    arch_irq_disable();
    t->wait_since_ns = arch_clock_ns();
    state_move(&t->state, T_RUNNING, T_BLOCKED);
    if (__atomic_load_n(&t->wake_token, __ATOMIC_SEQ_CST) && state_try_move(&t->state, T_BLOCKED, T_RUNNING)) {
        arch_irq_enable();
    } else {
        schedule();
        arch_irq_enable();
    }
    /* An exchange, not a store: whoever left the token did so after making its condition true, which we look at next. */
    (void)__atomic_exchange_n(&t->wake_token, 0, __ATOMIC_SEQ_CST);
}

static enum park_result park(u64 deadline_ns, enum wait_kind kind, u64 object, bool interruptible)
{
    struct thread *t = current_thread();
    DEBUG_ASSERT(arch_irqs_on() && this_cpu()->preempt_count == 0);
    if (take_token(t)) {
        return PARK_WOKEN;
    }
    if (interruptible && READ_ONCE(t->head.interrupt)) {
        return PARK_INTERRUPTED;
    }
    bool timed = deadline_ns != NO_DEADLINE;
    if (timed) {
        if (arch_clock_ns() >= deadline_ns) {
            return PARK_TIMEOUT;
        }
        preempt_disable();
        timer_arm(&t->park_timer, deadline_ns);
        preempt_enable();
    }
    t->head.wait_object = object;
    t->head.wait_kind = (u8)kind;
    park_blocked(t);
    offcpu_ended(t, kind, object, arch_clock_ns() - t->wait_since_ns);
    t->head.wait_kind = WAIT_NONE;
    if (timed && !timer_cancel(&t->park_timer) && arch_clock_ns() >= deadline_ns) {
        return PARK_TIMEOUT;
    }
    if (interruptible && READ_ONCE(t->head.interrupt)) {
        return PARK_INTERRUPTED;
    }
    return PARK_WOKEN;
}

enum park_result thread_park(u64 deadline_ns, enum wait_kind kind, u64 object)
{
    return park(deadline_ns, kind, object, true);
}

enum park_result thread_park_uninterruptible(u64 deadline_ns, enum wait_kind kind, u64 object)
{
    return park(deadline_ns, kind, object, false);
}

void thread_park_init(struct thread *t)
{
    timer_init(&t->park_timer, park_timer_fired);
}

enum park_result thread_sleep_until(u64 deadline_ns)
{
    for (;;) {
        enum park_result r = thread_park(deadline_ns, WAIT_SLEEP, 0);
        if (r != PARK_WOKEN) {
            return r;
        }
        if (arch_clock_ns() >= deadline_ns) {
            return PARK_TIMEOUT;
        }
    }
}

void thread_interrupt(struct thread *t)
{
    __atomic_store_n(&t->head.interrupt, true, __ATOMIC_SEQ_CST);
    thread_unpark(t);
    /* If it runs application code, it must come into the kernel to see the signal. */
    if (READ_ONCE(t->on_cpu) && t != current_thread()) {
        arch_send_ipi(READ_ONCE(t->cpu), ARCH_IPI_RESCHED);
    }
}

void thread_interrupt_clear(void)
{
    thread_head(current_thread())->interrupt = false;
}

bool thread_interrupt_pending(void)
{
    return READ_ONCE(thread_head(current_thread())->interrupt);
}
