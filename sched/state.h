/* Thread states and the only transitions between them.
 *
 *   from       to         by                                              place while in `to`
 *   NEW        WAKING     thread_start                                    the starter's hands, then a wake list
 *   RUNNING    RUNNABLE   schedule(): preempted or yielding               a run queue
 *   RUNNING    BLOCKED    thread_park, by the thread itself               nowhere: its waker has it by reference
 *   RUNNING    WAKING     schedule(): current CPU no longer allowed       the switching CPU's hands, then a wake list
 *   RUNNING    DEAD       thread_exit                                     nowhere
 *   BLOCKED    WAKING     thread_unpark: compare-and-swap, one winner     the waker's hands, then a wake list
 *   BLOCKED    RUNNING    thread_park, which found a token after all      its CPU
 *   WAKING     RUNNABLE   enqueue_here, under the run-queue lock          a run queue
 *   RUNNABLE   RUNNING    schedule(), under the run-queue lock            its CPU
 *   RUNNABLE   WAKING     thread_set_affinity or parking, under the lock  the caller's hands, then a wake list
 *   RUNNABLE   THROTTLED  schedule(): its group has no quota left         the group's list
 *   THROTTLED  WAKING     the group's refill                              the refill's hands, then a wake list
 *   DEAD       NEW        thread_create reuses the memory                 the creator's hands
 *
 * A migration of a queued thread keeps it RUNNABLE: it leaves one queue and enters the other under both locks.
 * So a thread is in exactly one place at any time.  The SPIN model in tests/model checks this protocol. */
#ifndef WEIR_SCHED_STATE_H
#define WEIR_SCHED_STATE_H

#include "core/base/log.h"
#include "core/base/types.h"

enum thread_state { T_NEW, T_RUNNING, T_RUNNABLE, T_BLOCKED, T_WAKING, T_DEAD, T_THROTTLED, NUM_THREAD_STATES };

#define T_BIT(s) (1u << (s))
/* thread_state_next[from]: set of allowed targets. */
static const u32 thread_state_next[NUM_THREAD_STATES] = {
    [T_NEW] = T_BIT(T_WAKING) | T_BIT(T_DEAD),
    [T_RUNNING] = T_BIT(T_RUNNABLE) | T_BIT(T_BLOCKED) | T_BIT(T_WAKING) | T_BIT(T_DEAD),
    [T_RUNNABLE] = T_BIT(T_RUNNING) | T_BIT(T_WAKING) | T_BIT(T_THROTTLED),
    [T_BLOCKED] = T_BIT(T_WAKING) | T_BIT(T_RUNNING),
    [T_WAKING] = T_BIT(T_RUNNABLE),
    [T_DEAD] = T_BIT(T_NEW),
    [T_THROTTLED] = T_BIT(T_WAKING),
};

/* Moves *state from `from` to `to`; panics if it is not in `from` or the table forbids it. */
static inline void state_move(u32 *state, enum thread_state from, enum thread_state to)
{
    DEBUG_ASSERT(thread_state_next[from] & T_BIT(to));
    u32 seen = __atomic_exchange_n(state, (u32)to, __ATOMIC_SEQ_CST);
    ASSERT(seen == (u32)from);
}

/* Same, but fails quietly if another CPU was first. */
static inline bool state_try_move(u32 *state, enum thread_state from, enum thread_state to)
{
    DEBUG_ASSERT(thread_state_next[from] & T_BIT(to));
    u32 expected = (u32)from;
    return __atomic_compare_exchange_n(state, &expected, (u32)to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

#endif
