/* How many pages are mapped in each 2 MiB of the applications' address space, so that unmapping a
 * huge, barely used range skips what was never touched. Caller holds the address-space lock. */
#ifndef WEIR_CORE_MM_RESIDENCY_H
#define WEIR_CORE_MM_RESIDENCY_H

#include "core/base/types.h"

#define RESIDENCY_REGION (2ull << 20)

/* Forgets everything. */
void residency_init(void);
/* Makes the counters of va's region exist; false without memory.  Must precede residency_add. */
bool residency_prepare(u64 va);
void residency_add(u64 va);
void residency_drop(u64 va);
/* va if its region has a mapped page, else the start of the next region that has; end if there is
 * none below end. */
u64 residency_next(u64 va, u64 end);

#endif
