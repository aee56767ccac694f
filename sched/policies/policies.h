/* The list of policies.  To add one: write mine.c that defines `const struct policy policy_mine`, and add X(mine) here. */
#ifndef WEIR_SCHED_POLICIES_POLICIES_H
#define WEIR_SCHED_POLICIES_POLICIES_H

#include "sched/policy.h"

#define POLICY_LIST(X) \
    X(drain)           \
    X(legacy)          \
    X(none)            \
    X(flow)            \
    X(template)

/* Policies that misbehave, for tests of the protection: only in debug kernels. */
#if defined(WEIR_TEST_POLICIES)
#define POLICY_TEST_LIST(X) X(bad_loop) X(bad_answer)
#else
#define POLICY_TEST_LIST(X)
#endif

#define POLICY_DECLARE(id) extern const struct policy policy_##id;
POLICY_LIST(POLICY_DECLARE)
POLICY_TEST_LIST(POLICY_DECLARE)
#undef POLICY_DECLARE

#endif
