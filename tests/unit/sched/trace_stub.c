/* The trace of the interleaving tests: the last events of the machine, printed when a schedule fails. It is always on, so that a
 * replay takes the same course. */
#include <stdio.h>

#include "core/base/trace.h"
#include "tests/unit/sched/vmach.h"

#define KEPT 48u

u32 trace_categories = UINT32_MAX;

static struct {
    uint64_t point, time_ns, head, a, b;
    uint32_t cpu;
} events[KEPT];
static uint64_t recorded;

void trace_record(u64 head, u64 a, u64 b)
{
    uint64_t i = recorded++ % KEPT;

    events[i].point = vm_points();
    events[i].time_ns = vm_now();
    events[i].cpu = vm_here()->cpu;
    events[i].head = head;
    events[i].a = a;
    events[i].b = b;
}

static const char *name_of(uint64_t type)
{
    static const char *const names[NUM_TRACE_TYPES] = {
        [TRACE_SWITCH] = "switch",   [TRACE_WAKE] = "wake",       [TRACE_ENQUEUE] = "enqueue",     [TRACE_MIGRATE] = "migrate",
        [TRACE_IPI] = "ipi",         [TRACE_IDLE_ENTER] = "idle", [TRACE_IDLE_EXIT] = "idle-exit", [TRACE_BALANCE] = "balance",
        [TRACE_THROTTLE] = "throttle",
    };
    return type < NUM_TRACE_TYPES && names[type] ? names[type] : "other";
}

void trace_print(void)
{
    for (uint64_t n = recorded > KEPT ? recorded - KEPT : 0; n < recorded; n++) {
        uint64_t i = n % KEPT;

        printf("  %8llu %10llu ns cpu %u %-10s arg %llu thread %llu a %lld b %lld\n", (unsigned long long)events[i].point,
               (unsigned long long)events[i].time_ns, events[i].cpu, name_of(events[i].head & 0xffff),
               (unsigned long long)(events[i].head >> 16 & 0xffff), (unsigned long long)(events[i].head >> 32),
               (long long)events[i].a, (long long)events[i].b);
    }
}

void trace_record_text(enum trace_type type, u32 thread, const char *text)
{
    (void)type;
    (void)thread;
    (void)text; /* names of threads */
}
