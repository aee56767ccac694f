/* Policy `drain`, the default: every 10 ms drain the whole imbalance of this CPU, at most one move per CPU of the machine.
 * k threads on one of n CPUs spread in ceil((k - ceil(k / n)) / n) passes: 32 on 16 in two, 20 ms. */
#include "sched/policies/drain.h"
#include "sched/policies/policies.h"

static void drain_balance(const struct policy_view *view, struct policy_plan *plan)
{
    drain_pass(view, plan);
}

const struct policy policy_drain = {
    .name = "drain",
    .summary = "every 10 ms drain the imbalance to the least loaded CPUs, at most one move per CPU",
    .interval_ms = DRAIN_INTERVAL_MS,
    .balance = drain_balance,
};
