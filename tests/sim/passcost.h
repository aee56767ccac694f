/* Counts the instructions of a balance pass by running it one instruction at a time. */
#ifndef WEIR_TESTS_SIM_PASSCOST_H
#define WEIR_TESTS_SIM_PASSCOST_H

#include "sched/policy.h"

/* Instructions that policy->balance() takes on a view of n CPUs with one running and `queued` waiting threads each: a balanced
 * machine.  -1 if this host does not allow single-stepping. */
long passcost_balanced(const struct policy *policy, uint32_t n, uint32_t queued);
/* Prints the cost of every policy for several n against 50 + 6n.  0 if all are within, 1 if not, 2 if it cannot count. */
int passcost_report(void);

#endif
