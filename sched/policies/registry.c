/* The table of all policies of this build, made from the list in policies.h. */
#include "sched/policies/policies.h"

#define POLICY_ENTRY(id) &policy_##id,

const struct policy *const policy_registry[] = {POLICY_LIST(POLICY_ENTRY) POLICY_TEST_LIST(POLICY_ENTRY) NULL};
