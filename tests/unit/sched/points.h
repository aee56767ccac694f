/* Forced in front of the kernel sources under test: every atomic access becomes a point at which the simulated machine may
 * go on with another CPU or deliver an interrupt.  A macro's own name is not expanded again inside it. */
#ifndef WEIR_TESTS_SCHED_POINTS_H
#define WEIR_TESTS_SCHED_POINTS_H

#include "tests/unit/sched/vmach.h"

#define __atomic_load_n(p, o) (vm_point(), __atomic_load_n(p, o))
#define __atomic_store_n(p, v, o) (vm_point(), __atomic_store_n(p, v, o))
#define __atomic_exchange_n(p, v, o) (vm_point(), __atomic_exchange_n(p, v, o))
#define __atomic_compare_exchange_n(p, e, d, w, s, f) (vm_point(), __atomic_compare_exchange_n(p, e, d, w, s, f))
#define __atomic_fetch_add(p, v, o) (vm_point(), __atomic_fetch_add(p, v, o))
#define __atomic_add_fetch(p, v, o) (vm_point(), __atomic_add_fetch(p, v, o))
#define __atomic_sub_fetch(p, v, o) (vm_point(), __atomic_sub_fetch(p, v, o))
#define __atomic_fetch_or(p, v, o) (vm_point(), __atomic_fetch_or(p, v, o))
#define __atomic_fetch_and(p, v, o) (vm_point(), __atomic_fetch_and(p, v, o))

#endif
