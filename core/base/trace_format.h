/* The trace event format, shared by kernel, simulator and tools.  Little endian, 32 bytes an event. */
#ifndef WEIR_CORE_BASE_TRACE_FORMAT_H
#define WEIR_CORE_BASE_TRACE_FORMAT_H

#include <stdint.h>

enum trace_type {
    TRACE_SWITCH = 1, /* thread = next (0: idle), a = previous (0: idle), arg: TRACE_SWITCH_*, b = what the previous one waits for */
    TRACE_WAKE,       /* thread = woken, a = waker (0: interrupt), arg = target CPU */
    TRACE_ENQUEUE,    /* thread, a = queue length after */
    TRACE_MIGRATE,    /* thread, a = from CPU, b = to CPU, arg = enum migrate_reason */
    TRACE_IPI,        /* arg = target CPU, a = 1: for the network, not to reschedule */
    TRACE_IDLE_ENTER,
    TRACE_IDLE_EXIT,  /* a = ns idle */
    TRACE_BALANCE,    /* a = candidates, b = moves planned, arg = moves carried out */
    TRACE_FUTEX_WAIT, /* thread, a = address */
    TRACE_FUTEX_WAKE, /* thread = waker, a = address, b = how many woken */
    TRACE_LOCK_WAIT,  /* a = ns waited, b = address of the lock's class */
    TRACE_RX,         /* arg = queue, a = packets of the pass */
    TRACE_TX,         /* arg = queue, a = packets of the doorbell */
    TRACE_THREAD,     /* thread, a and b = 16 bytes of name */
    TRACE_EXIT,       /* thread */
    TRACE_MARK,       /* a and b = 16 bytes of the marker's text */
    TRACE_IPI_TAKEN,  /* on the CPU that takes it, a as above */
    TRACE_THROTTLE,   /* thread: its group's quota is used up */
    NUM_TRACE_TYPES
};

/* arg of TRACE_SWITCH: the previous thread's state, its enum wait_kind if it is blocked, and how many wait in the queue after. */
#define TRACE_SWITCH_ARG(state, kind, waiting) \
    ((uint16_t)((state) | (uint32_t)(kind) << 4 | ((waiting) < 255u ? (waiting) : 255u) << 8))
#define TRACE_SWITCH_STATE(arg) ((arg) & 15u)
#define TRACE_SWITCH_KIND(arg) ((arg) >> 4 & 15u)
#define TRACE_SWITCH_WAITING(arg) ((arg) >> 8)

/* States in TRACE_SWITCH: those of sched/state.h. */
enum trace_state {
    TRACE_STATE_RUNNABLE = 2,
    TRACE_STATE_BLOCKED = 3,
    TRACE_STATE_WAKING = 4, /* somebody has woken it already, or it must leave this CPU */
    TRACE_STATE_DEAD = 5,
    TRACE_STATE_THROTTLED = 6,
};

/* Categories, each switched on by itself. */
enum trace_category {
    TRACE_CAT_SCHED = 1,  /* switch, wake, migrate, balance, throttle, thread, exit, mark */
    TRACE_CAT_IPI = 2,
    TRACE_CAT_IDLE = 4,
    TRACE_CAT_FUTEX = 8,
    TRACE_CAT_LOCK = 16,
    TRACE_CAT_NET = 32,
    TRACE_CAT_QUEUE = 64, /* enqueue */
    TRACE_CAT_ALL = 127,
};

struct trace_event {
    uint64_t time_ns; /* of the scheduler's clock; never falls within one CPU's ring */
    uint8_t type;     /* enum trace_type */
    uint8_t cpu;
    uint16_t arg;
    uint32_t thread;
    uint64_t a, b;
};

#endif
