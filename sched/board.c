/* The board: what each CPU publishes of its load, read by policies without locks.
 *
 * running and queued are written by their CPU under its run-queue lock (or by a migrating CPU that holds it); in_flight is
 * atomic.  The idle mask is a hint: a waker that picks an idle CPU clears its bit at once, so that the next waker looks
 * elsewhere; the CPU sets it again when it next goes idle with nothing in flight. */
#include "sched/thread.h"

struct policy_cpu board[MAX_CPUS];

void board_publish(struct cpu_sched *c)
{
    struct policy_cpu *b = &board[c->cpu];
    bool running = c->current != c->idle;
    WRITE_ONCE(b->running, running);
    WRITE_ONCE(b->queued, c->runq.count);
    bool overloaded = running && c->runq.count;
    if (unlikely(overloaded != c->overloaded)) {
        struct domain *d = domain_of(c->cpu);
        u64 bit = BIT(c->cpu - d->first_cpu);
        c->overloaded = overloaded;
        if (overloaded) {
            __atomic_fetch_or(&d->overloaded, bit, __ATOMIC_RELAXED);
        } else {
            __atomic_fetch_and(&d->overloaded, ~bit, __ATOMIC_RELAXED);
        }
    }
}

void board_in_flight(u32 cpu, i32 delta)
{
    __atomic_fetch_add(&board[cpu].in_flight, (u32)delta, __ATOMIC_RELAXED);
    if (delta > 0) {
        struct domain *d = domain_of(cpu);
        u64 bit = BIT(cpu - d->first_cpu);
        if (READ_ONCE(d->idle) & bit) {
            __atomic_fetch_and(&d->idle, ~bit, __ATOMIC_RELAXED);
        }
    }
}

void board_idle(struct cpu_sched *c, bool idle)
{
    struct domain *d = domain_of(c->cpu);
    u64 bit = BIT(c->cpu - d->first_cpu);
    if (!idle) {
        if (READ_ONCE(d->idle) & bit) {
            __atomic_fetch_and(&d->idle, ~bit, __ATOMIC_RELAXED);
        }
        return;
    }
    struct policy_cpu *b = &board[c->cpu];
    WRITE_ONCE(b->idle_since_ns, c->idle_since_ns);
    if (!READ_ONCE(b->in_flight) && READ_ONCE(b->capacity)) {
        __atomic_fetch_or(&d->idle, bit, __ATOMIC_SEQ_CST); /* before the last look for queues: pull_offer() */
    }
}

u64 board_seed(struct cpu_sched *c)
{
    c->seed = c->seed * 6364136223846793005ull + 1442695040888963407ull; /* Knuth's MMIX generator */
    return c->seed ^ (c->seed >> 29);
}

void sched_add_receive_path(u32 cpu)
{
    if (!board[cpu].receive_queue) {
        board[cpu].receive_queue = 1;
        domain_of(cpu)->receive_cpus++;
    }
}
