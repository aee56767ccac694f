/* What the export of a trace knows about each thread while it goes through the events. */
#ifndef WEIR_CORE_KERN_OBS_TRACE_THREADS_H
#define WEIR_CORE_KERN_OBS_TRACE_THREADS_H

#include "core/kern/obs/trace_json.h"
#include "sched/sched.h"

enum track_state { TRACK_UNKNOWN, TRACK_RUNNING, TRACK_RUNNABLE, TRACK_BLOCKED, TRACK_THROTTLED, TRACK_GONE };

struct trace_thread {
    u32 id; /* 0: free slot */
    u32 pid;
    const char *process;
    char name[THREAD_NAME_MAX];
    bool announced;
    enum track_state state; /* until an event has told, as the recorder found it soon after the start */
    bool told;
    bool woken; /* before it had left its CPU */
    u32 cpu;
    u32 flow; /* arrow that ends at its next run, 0: none */
    u64 since_ns;
    u32 wait_kind;
    u64 wait_object;
};

struct trace_threads {
    u32 mask, used;
    u64 refused; /* lookups that found the table full */
    struct trace_thread slots[];
};

/* The thread, added if it is new; NULL: the table is full (counted). */
struct trace_thread *trace_thread_get(struct trace_threads *t, u32 id);
void trace_thread_name(struct trace_thread *th, const char *text, size_t n);

#endif
