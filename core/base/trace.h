/* Event trace: one ring a CPU, written by that CPU with interrupts off, so without locks.
 *
 * Off, an event costs one load and one untaken branch.  On, about 60 instructions.  A full ring overwrites the oldest (flight
 * recorder) or refuses the newest (TRACE_STOP_WHEN_FULL); both are counted. */
#ifndef WEIR_CORE_BASE_TRACE_H
#define WEIR_CORE_BASE_TRACE_H

#include "core/base/trace_format.h"
#include "core/base/types.h"

#if defined(WEIR_HOST_TEST)
#define TRACE_LINKED __attribute__((weak)) /* host tests of other rooms do without trace.c */
#else
#define TRACE_LINKED
#endif

extern u32 trace_categories TRACE_LINKED; /* set of enum trace_category that is recorded */

static inline bool trace_wants(enum trace_category category)
{
#if defined(WEIR_NO_TRACE) /* what the events cost while they are off is measured against this: tests/obs/overhead.py */
    return false;
#endif
#if defined(WEIR_HOST_TEST)
    if (&trace_categories == NULL) {
        return false;
    }
#endif
    return unlikely(READ_ONCE(trace_categories) & category);
}

/* head: type, arg << 16, thread << 32 as in struct trace_event; the CPU is added. */
void trace_record(u64 head, u64 a, u64 b) TRACE_LINKED;

static inline void trace(enum trace_category category, enum trace_type type, u16 arg, u32 thread, u64 a, u64 b)
{
    if (trace_wants(category)) {
        trace_record((u64)type | (u64)arg << 16 | (u64)thread << 32, a, b);
    }
}

/* Same with 16 bytes of text in a and b (cut, no NUL if full): thread names, marks. */
void trace_record_text(enum trace_type type, u32 thread, const char *text) TRACE_LINKED;

static inline void trace_text(enum trace_category category, enum trace_type type, u32 thread, const char *text)
{
    if (trace_wants(category)) {
        trace_record_text(type, thread, text);
    }
}

/* Gives each of num_cpus CPUs a ring of `events` slots (a power of two) in memory from alloc(bytes); once.  -ENOMEM, -EINVAL. */
int trace_init(u32 num_cpus, u32 events, void *(*alloc)(size_t bytes));
bool trace_ready(void);
/* Empties the rings and records the categories from now on; 0 stops. */
void trace_start(u32 categories, bool stop_when_full);
void trace_stop(void);

struct trace_ring_info {
    u64 recorded; /* events since trace_start */
    u64 lost;     /* overwritten or refused */
};
void trace_ring_info(u32 cpu, struct trace_ring_info *out);
/* Copies the i-th event kept (0: oldest) of a stopped trace; false past the end. */
bool trace_read(u32 cpu, u64 i, struct trace_event *out);
/* The last n events of all CPUs in order of time, for a panic: calls fn for each.  Bounded work, no memory. */
void trace_tail(u32 n, void (*fn)(const struct trace_event *e));
const char *trace_type_name(u32 type);

#endif
