/* The run queue of one CPU: fair by virtual run time.  Pure: no clock, no locks, no arch; the simulator links it too.
 *
 * Each entity's virtual run time (vruntime) advances by its run time, scaled by weight; the one with the least runs next.
 * A run queue's floor follows the least vruntime on it; an entity that joins is set no lower than floor - RUNQ_WAKE_CREDIT_NS,
 * so that a long sleep earns a prompt start but not a monopoly.  An entity that leaves for another queue carries its lag
 * (vruntime - floor) with it.
 *
 * Locking: the caller's (the CPU's run-queue lock). */
#ifndef WEIR_SCHED_RUNQ_H
#define WEIR_SCHED_RUNQ_H

#include "core/base/heap.h"
#include "core/base/list.h"
#include "core/base/types.h"

/* Weight of nice 0; each nice step is a factor of 1.25, as users of Unix expect. */
#define RUNQ_WEIGHT_NICE0 1024u
/* A thread that woke starts at most this far ahead of the queue (ns of vruntime): half a slice. */
#define RUNQ_WAKE_CREDIT_NS 2000000ull
/* How far (ns) a woken thread must be ahead of the running one to preempt it: keeps short handlers from chopping each
 * other's bursts; 1 ms is long against a request (tens of us) and short against a slice. */
#define RUNQ_WAKE_GRANULARITY_NS 1000000ull
/* A thread runs this long (ns) before an equal may replace it: 4 ms bounds the wait behind 7 others to 28 ms. */
#define RUNQ_SLICE_NS 4000000ull

struct runq_entity {
    struct heap_node node; /* key: vruntime, ns at weight 1024 */
    struct list order;     /* arrival order, for the balancer's candidates */
    u64 queued_ns;         /* when it entered this queue */
    u32 weight;            /* RUNQ_WEIGHT_NICE0 at nice 0 */
    bool queued;
};

struct runq {
    struct heap_node *root;
    struct list order;
    u32 count;
    u64 floor; /* ns of vruntime: monotonic */
};

void runq_init(struct runq *q);
void runq_entity_init(struct runq_entity *e, u32 weight);
u32 runq_weight_of_nice(i32 nice); /* -20..19 */

/* How an entity enters. */
enum runq_how {
    RUNQ_NEW,     /* first time: starts at the floor */
    RUNQ_WAKE,    /* after blocking: own vruntime, not below floor - credit */
    RUNQ_PREEMPT, /* still had work: own vruntime */
    RUNQ_MIGRATE, /* from another queue, after runq_leave(): lag re-based */
};
void runq_add(struct runq *q, struct runq_entity *e, enum runq_how how, u64 now_ns);
/* Takes e out because it will run (runq_pick does it) or blocks. */
void runq_remove(struct runq *q, struct runq_entity *e);
/* Takes e out for another queue: its vruntime becomes the lag that RUNQ_MIGRATE expects. */
void runq_leave(struct runq *q, struct runq_entity *e);
/* Same for an entity that is not queued (woken to another CPU than it blocked on). */
void runq_rebase(const struct runq *from, struct runq_entity *e);
/* The entity with the least vruntime, NULL if empty; stays queued. */
struct runq_entity *runq_first(const struct runq *q);
/* Takes the first one out. */
struct runq_entity *runq_pick(struct runq *q);
/* Charges ran_ns of running to e (not queued) and moves the floor. */
void runq_charge(struct runq *q, struct runq_entity *e, u64 ran_ns);
/* Should woken preempt the entity that has run for ran_ns uncharged? */
bool runq_should_preempt(const struct runq_entity *running, u64 ran_ns, const struct runq_entity *woken);

static inline struct runq_entity *runq_entity_of(struct heap_node *n)
{
    return container_of(n, struct runq_entity, node);
}

#endif
