/* Policy `none`: threads stay where the defaults put them (new ones with their creator, waking ones where they last ran).
 * The floor that every other policy is measured against. */
#include "sched/policies/policies.h"

const struct policy policy_none = {
    .name = "none",
    .summary = "no balancing: new threads stay with their creator, waking ones where they last ran",
};
