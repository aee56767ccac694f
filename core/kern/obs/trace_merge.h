/* The events of all CPUs in order of time, from the rings of a stopped trace. */
#ifndef WEIR_CORE_KERN_OBS_TRACE_MERGE_H
#define WEIR_CORE_KERN_OBS_TRACE_MERGE_H

#include "core/base/param.h"
#include "core/base/trace.h"

struct trace_merge {
    u64 from_ns, to_ns;           /* where the events of every CPU are complete */
    u64 recorded, lost;
    u32 num_cpus;
    u32 heap_size;
    u32 heap[MAX_CPUS];           /* CPUs by their next event */
    u64 cursor[MAX_CPUS];
    struct trace_event next[MAX_CPUS];
};

/* started_ns: events before it are leftovers of an earlier recording. */
void trace_merge_begin(struct trace_merge *m, u32 num_cpus, u64 started_ns, bool stop_when_full);
bool trace_merge_next(struct trace_merge *m, struct trace_event *out);

#endif
