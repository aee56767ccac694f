/* Memory pressure: what happens above grant.memory_high. */
#ifndef WEIR_CORE_KERN_PRESSURE_H
#define WEIR_CORE_KERN_PRESSURE_H

#include "core/kern/proc.h"

struct pressure {
    u64 total_ns;          /* time during which at least one thread was stalled */
    u32 avg10, avg60, avg300; /* of PRESSURE_ONE (pressure_math.h) */
    u64 delays;            /* threads slowed down */
    u64 delayed_ns;        /* sum over threads */
    u64 reclaims, reclaimed_pages;
};
void pressure_init(void);
/* The current thread took pages above high: gives back what the kernel keeps in advance, then sleeps for what it owes.  Thread
 * context, no lock held. */
void pressure_pay(struct kthread *k);
void pressure_read(struct pressure *out);

#endif
