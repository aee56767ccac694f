/* A recorded trace as Chrome trace JSON, which Perfetto opens: https://ui.perfetto.dev.
 *
 * Process "CPUs" has a track for each CPU: which thread runs, when it is idle or halted, spin-lock waits, interrupts sent and
 * taken, packets, balancer passes. Every other process has a track for each thread: running, runnable (waits for a
 * CPU), blocked and on what; migrations with their reason; futex calls. Arrows lead from a waker to the run it caused. */
#ifndef WEIR_CORE_KERN_OBS_TRACE_JSON_H
#define WEIR_CORE_KERN_OBS_TRACE_JSON_H

#include "core/kern/obs/out.h"
#include "core/kern/obs/trace_merge.h"
#include "sched/sched.h"

/* pids and tids of what is no thread: above all thread ids (2^22). */
#define TRACE_JSON_CPUS 5000000u
#define TRACE_JSON_KERNEL 5000001u
#define TRACE_JSON_ENDED 5000002u /* threads whose process is not known any more */
#define TRACE_JSON_CPU_TID(cpu) (5001000u + (cpu))

struct trace_threads;

/* Knows up to `max` threads (a power of two). NULL: no memory. */
struct trace_threads *trace_threads_create(u32 max);
void trace_threads_free(struct trace_threads *t);
/* Tells of a thread before or after the recording. pid: TRACE_JSON_KERNEL for one of the kernel's. */
void trace_threads_add(struct trace_threads *t, u32 id, u32 pid, const char *process, const char *name);
/* And of the state in which the recording finds it, as thread_info() tells it. */
void trace_threads_state(struct trace_threads *t, const struct thread_info *info);

/* What the recorder knows about the recording. */
struct trace_about {
    u64 started_ns, ended_ns, categories;
    const char *const *category_words;
    const char *policy;
    bool sched;              /* switches were recorded: the CPUs' tracks are shown */
    u32 running[MAX_CPUS];   /* thread of each CPU when the recording began, 0: idle; right for those that no switch is recorded of */
};
void trace_json(struct out *out, struct trace_merge *m, struct trace_threads *threads, const struct trace_about *about);

#endif
