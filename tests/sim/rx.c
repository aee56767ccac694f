/* The receive path.  A packet raises an interrupt, which takes packets up to a budget; what is left is carried on by a
 * worker thread of that CPU, so that a flood shares the CPU with the threads there instead of starving them (the kernel's
 * softwork).  The wakeups of a pass are flushed together. */
#include <stdlib.h>

#include "tests/sim/internal.h"

static uint32_t rx_budget(const struct sim *s)
{
    return s->cfg.rx_batch != 0 ? s->cfg.rx_batch : SIM_RX_BUDGET;
}

static void rx_deliver(struct sim *s, struct sim_rxq *q)
{
    sim_batch_begin(s);
    for (; q->batch != 0; q->batch--) {
        struct sim_packet p = q->ring[q->head];

        q->head = (q->head + 1) % q->size;
        q->count--;
        s->st.packets++;
        p.deliver(s, p.arg);
    }
    sim_batch_flush(s);
}

static void rx_pass(struct sim *s, struct sim_rxq *q)
{
    struct sim_cpu *cpu = &s->cpus[q->cpu];

    q->batch = q->count < q->budget ? q->count : q->budget;
    q->budget -= q->batch;
    cpu_spend(s, cpu, q->batch * s->cost.rx_packet_ns);
    sim_event_add(s, cpu_time(s, cpu), EV_RX, 0, q, NULL);
}

/* The worker: passes of one budget until the queue is empty. */
static struct sim_action worker_step(struct sim *s, struct sim_thread *t)
{
    struct sim_rxq *q = t->arg;

    if (q->batch != 0) {
        rx_deliver(s, q);
    }
    if (q->count == 0 || !q->worker_owns) {
        q->busy = q->busy && !q->worker_owns;
        q->worker_owns = false;
        return (struct sim_action){ACT_PARK, 0};
    }
    q->batch = q->count < rx_budget(s) ? q->count : rx_budget(s);
    return (struct sim_action){ACT_RUN, q->batch * s->cost.rx_packet_ns};
}

void rx_event(struct sim *s, struct sim_rxq *q)
{
    struct sim_cpu *cpu = &s->cpus[q->cpu];

    s->ctx_cpu = (int32_t)q->cpu;
    s->ctx_irq = true;
    rx_deliver(s, q);
    if (q->count != 0 && q->budget == 0) {
        q->worker_owns = true;
        sim_wake(s, q->worker, 0);
    }
    s->ctx_cpu = -1;
    if (q->count != 0 && !q->worker_owns) {
        rx_pass(s, q);
        return;
    }
    q->busy = q->worker_owns;
    cpu->in_rx--;
    track_cpu(s, q->cpu);
    cpu_settle(s, cpu);
}

static void grow(struct sim_rxq *q)
{
    struct sim_packet *ring = sim_alloc(2ull * q->size, sizeof(*ring));

    for (uint32_t i = 0; i < q->count; i++) {
        ring[i] = q->ring[(q->head + i) % q->size];
    }
    free(q->ring);
    q->ring = ring;
    q->head = 0;
    q->size *= 2;
}

void sim_packet(struct sim *s, uint32_t index, sim_deliver_fn deliver, void *arg)
{
    struct sim_rxq *q = &s->rxqs[index];
    struct sim_cpu *cpu = &s->cpus[q->cpu];

    if (q->count == q->size) { /* closed-loop workloads bound it by their connections */
        grow(q);
    }
    q->ring[(q->head + q->count) % q->size] = (struct sim_packet){.deliver = deliver, .arg = arg};
    q->count++;
    if (q->busy) {
        return;
    }
    q->busy = true;
    q->budget = rx_budget(s);
    cpu_irq_begin(s, cpu);
    cpu->in_rx++;
    track_cpu(s, q->cpu);
    rx_pass(s, q);
}

void sim_rxqs(struct sim *s, uint32_t count)
{
    s->rxqs = sim_alloc(count, sizeof(*s->rxqs));
    s->rx_affinity = sim_alloc(count, sizeof(*s->rx_affinity));
    s->num_rxqs = count;
    for (uint32_t i = 0; i < count; i++) {
        struct sim_rxq *q = &s->rxqs[i];

        q->cpu = (uint32_t)((uint64_t)i * s->n / count);
        q->size = 64;
        q->ring = sim_alloc(q->size, sizeof(struct sim_packet));
        s->pcpus[q->cpu].receive_queue = 1;
        s->rx_affinity[i][q->cpu / 64] = 1ull << (q->cpu % 64);
        q->worker = sim_thread_new(s, "receive", worker_step, q, s->rx_affinity[i]);
        q->worker->service = true;
        sim_spawn(s, q->worker, q->cpu);
    }
}
