/* Recording of policy calls, for replays on another machine: sched/policy_call.c's side.  Starting and stopping: sched.h.
 *
 * Off, a call of a policy costs one load and one untaken branch more.  On, a copy of the board and of the candidates. */
#ifndef WEIR_SCHED_POLICY_RECORD_H
#define WEIR_SCHED_POLICY_RECORD_H

#include "sched/policy_record_format.h"
#include "sched/thread.h"

extern u32 policy_recording;

/* Interrupts off.  Writes the inputs of a call down and makes *view point at what was written; NULL: this call is not
 * recorded (not on, or no space).  capacity: of the plan, 0 but for balance. */
struct policy_record *policy_record_inputs(u32 cpu, const char *policy, struct policy_view *view, u32 capacity);
/* After the call: its answer is in the record. */
void policy_record_done(u32 cpu, struct policy_record *r, enum record_kind kind);
/* The call under way on this CPU was cut off. */
void policy_record_cut_off(u32 cpu);

static inline struct policy_record *policy_record_call(u32 cpu, const struct policy *policy, struct policy_view *view,
                                                       u32 capacity)
{
    if (likely(!READ_ONCE(policy_recording))) {
        return NULL;
    }
    return policy_record_inputs(cpu, policy->name, view, capacity);
}

#endif
