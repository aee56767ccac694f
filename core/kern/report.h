/* What the kernel tells about itself: texts shared by /proc/weir and the HTTP port. Thread context; may allocate. */
#ifndef WEIR_CORE_KERN_REPORT_H
#define WEIR_CORE_KERN_REPORT_H

#include "core/kern/text.h"

void report_metrics(struct text *t); /* Prometheus text format */
void report_sched(struct text *t);   /* JSON: policy, placement map, counters */
void report_threads(struct text *t); /* one block a thread, with stacks and symbols */
void report_memory(struct text *t);
void report_futex(struct text *t);
void report_syscalls(struct text *t);
void report_locks(struct text *t);
void report_grant(struct text *t);   /* JSON */

#endif
