#include "sched/runq.h"

void runq_init(struct runq *q)
{
    q->root = NULL;
    list_init(&q->order);
    q->count = 0;
    q->floor = 0;
}

void runq_entity_init(struct runq_entity *e, u32 weight)
{
    *e = (struct runq_entity){ .weight = weight };
    list_init(&e->order);
}

u32 runq_weight_of_nice(i32 nice)
{
    u64 scaled = (u64)RUNQ_WEIGHT_NICE0 << 16;
    for (; nice < 0; nice++) {
        scaled = scaled * 5 / 4;
    }
    for (; nice > 0; nice--) {
        scaled = scaled * 4 / 5;
    }
    return (u32)(scaled >> 16);
}

static u64 scale(u64 ns, u32 weight)
{
    return weight == RUNQ_WEIGHT_NICE0 ? ns : ns * RUNQ_WEIGHT_NICE0 / weight;
}

/* The floor follows the least of what is queued; it never falls. */
static void raise_floor(struct runq *q, u64 candidate)
{
    if (q->root && (i64)(q->root->key - candidate) < 0) {
        candidate = q->root->key;
    }
    if ((i64)(candidate - q->floor) > 0) {
        q->floor = candidate;
    }
}

void runq_add(struct runq *q, struct runq_entity *e, enum runq_how how, u64 now_ns)
{
    u64 least = q->floor;
    switch (how) {
    case RUNQ_NEW:
        e->node.key = q->floor;
        break;
    case RUNQ_WAKE:
        least -= RUNQ_WAKE_CREDIT_NS;
        break;
    case RUNQ_MIGRATE:
        e->node.key += q->floor;
        least -= RUNQ_WAKE_CREDIT_NS;
        break;
    case RUNQ_PREEMPT:
        least = e->node.key;
        break;
    }
    if ((i64)(e->node.key - least) < 0) {
        e->node.key = least;
    }
    e->queued = true;
    e->queued_ns = now_ns;
    heap_insert(&q->root, &e->node);
    list_push_back(&q->order, &e->order);
    q->count++;
}

void runq_remove(struct runq *q, struct runq_entity *e)
{
    heap_remove(&q->root, &e->node);
    list_remove(&e->order);
    e->queued = false;
    q->count--;
}

void runq_leave(struct runq *q, struct runq_entity *e)
{
    runq_remove(q, e);
    e->node.key -= q->floor;
}

void runq_rebase(const struct runq *from, struct runq_entity *e)
{
    e->node.key -= from->floor;
}

struct runq_entity *runq_first(const struct runq *q)
{
    return q->root ? runq_entity_of(q->root) : NULL;
}

struct runq_entity *runq_pick(struct runq *q)
{
    struct runq_entity *e = runq_first(q);
    if (e) {
        runq_remove(q, e);
        raise_floor(q, e->node.key);
    }
    return e;
}

void runq_charge(struct runq *q, struct runq_entity *e, u64 ran_ns)
{
    e->node.key += scale(ran_ns, e->weight);
    raise_floor(q, e->node.key);
}

bool runq_should_preempt(const struct runq_entity *running, u64 ran_ns, const struct runq_entity *woken)
{
    u64 now = running->node.key + scale(ran_ns, running->weight);
    return (i64)(now - woken->node.key) > (i64)RUNQ_WAKE_GRANULARITY_NS;
}
