/*
 * Virtual time for a multi-threaded TCG guest: shared state and the parts' interfaces.
 *
 * DESIGN
 * A guest with 16 busy vCPUs on two host cores shows in host time what the host's scheduler
 * does, not what the guest's does. So time is taken from the guest's own work: each vCPU has a
 * clock of its own that advances by a fixed time per instruction executed, and all clocks of
 * the machine (TSC, HPET, APIC and ACPI timers) are driven from them.
 *
 *  count.c     counts instructions in generated code, and calls lockstep.c every `quantum`
 *  lockstep.c  keeps running vCPUs within `window` ns of the slowest one: a vCPU that is
 *              further ahead sleeps on a futex until the slowest catches up
 *  clock.c     the published machine clock and the four functions that are installed in
 *              QEMU's accelerator table: read clock, set clock, read TSC, kick a vCPU
 *  idle.c      carries time on while every vCPU is halted (a warp to the next timer, or a
 *              fixed number of virtual ns per host ns)
 *  layout.c    finds the emulator's internals, and refuses an emulator that is laid out
 *              otherwise
 *  main.c      options, registration, the closing report
 *
 * WHAT IS CHARGED
 *  - one instruction: ns1000 / 1000 ns (default 1 ns), whatever it does
 *  - PAUSE: `pause` instructions more (default 40, about a PAUSE of a recent x86)
 *  - a repeated string instruction: one instruction per 8 bytes moved; QEMU loops inside one
 *    block, so that a plain count would make a copy of any length free
 *  - `ipi_send` ns to a vCPU that makes another one run or look (an interrupt sent), and
 *    `ipi_wake` ns before a halted vCPU runs (default 0 each: the model's plain form; one that is
 *    still running takes the interrupt at once)
 *  - a halted vCPU: nothing; it resumes at its waker's time
 *
 * WHAT IT CANNOT MODEL
 * Caches, memory bandwidth, cost of a migration, branch prediction, differences between
 * instructions, host devices (a client outside the guest lives in host time). Two reads of the
 * clock on different vCPUs blur by up to the window, and so does what passes through memory
 * between a vCPU and one that polls. A lock holder that is behind makes its waiters burn up to a
 * window. So the window is small while few vCPUs run, when a round trip of a few us is measured
 * and waiting for each other is cheap, and grows with the crowd (500 ns for 4, 2 us for 16, 4.5 us for 36),
 * when each wait costs the host a switch between threads.
 *
 * BOOTING
 * Booting Linux on 37 vCPUs takes minutes in small windows, since they all spin for each other
 * now and then, and nobody measures it. With `coarse` set the window is that wide until some
 * vCPU executes the marker: an 8-byte NOP with VT_MARKER in its displacement, which the load
 * generator executes before its first phase and which does nothing on any processor.
 *
 * CONTEXT
 * Callbacks run on vCPU threads without the big lock, unless said otherwise. They never wait
 * without bound: an exclusive section of QEMU needs every vCPU to return (lockstep.c).
 */
#ifndef VTIME_H
#define VTIME_H

#include "qemu_api.h"

/* ---- tunables -------------------------------------------------------------------------- */

#define VT_MAX_VCPUS 128        /* slots; the guest may have up to this many vCPUs */

/* The counter counts eighths of an instruction, so that a byte of a string can be charged. */
#define VT_UNIT 8

/* Displacement of the NOP that begins the measured part: "WEIR" in memory order. */
#define VT_MARKER 0x52494557u

/* Longest single wait in a callback, ns of host time. An exclusive section waits that long. */
#define VT_WAIT_NS 1000000

/* Timed-out waits before a callback returns to let exclusive sections in. */
#define VT_WAIT_ROUNDS 2

/* A kicked vCPU that has not resumed after this host time was woken in vain: unmark it. */
#define VT_PENDING_NS 50000000

/* A clock read may lead the published clock by this many windows; more is a stale counter. */
#define VT_LEAD_WINDOWS 4

struct vt_options {
    uint64_t quantum;       /* instructions between two accountings of a vCPU */
    uint64_t ns1000;        /* virtual ns per 1000 instructions */
    uint64_t tsc1000;       /* TSC ticks per 1000 virtual ns */
    uint64_t pause;         /* instructions charged per PAUSE, beside itself */
    int64_t window;         /* ns that a vCPU may lead the slowest running one */
    int64_t crowd;          /* with more running vCPUs than this the window grows in proportion */
    int64_t coarse;         /* window until the marker is executed; 0: `window` from the start */
    int64_t ipi_send;       /* ns charged to the sender of a kick */
    int64_t ipi_wake;       /* ns between a kick and a halted vCPU's first instruction */
    double idlerate;        /* virtual ns per host ns while all are halted; 0: warp */
    int64_t limit;          /* virtual ns after which the emulator is ended; 0: none */
};
extern struct vt_options vt_opt;

/* ---- state ------------------------------------------------------------------------------ */

enum vt_run {
    VT_HALTED,      /* in its idle wait: does not hold the others back */
    VT_RUNNING,
    VT_KICKED,      /* woken, its thread not yet resumed: counts as running from its waker's time */
};

/* The element of the scoreboard that generated code adds to. One cache line. */
struct vt_counter {
    uint64_t units;
    uint64_t pad[7];
};

struct vt_vcpu {
    int64_t local;          /* virtual ns at the last accounting; written by its own thread, or
                             * by its waker while halted */
    int run;                /* enum vt_run */
    int futex;              /* bumped to end its wait */
    int waiting;            /* it is about to wait, or waits */
    int kicked;             /* it must return from its wait at once */
    int rechecking;         /* the counter was left at the quantum on purpose: not work */
    int64_t pending_since;  /* host ns of the kick; for VT_PENDING_NS */
    int64_t surcharge;      /* ns to add at the next accounting (IPIs sent) */
    CPUState *cpu;
    uint64_t units;         /* counted so far */
    uint64_t waits;
    uint64_t timeouts;
    uint64_t kicks;
} __attribute__((aligned(128)));

extern struct vt_vcpu vt_vcpus[VT_MAX_VCPUS];
extern int vt_ncpus;
extern int vt_nrunning;                     /* vCPUs not VT_HALTED */
extern int vt_marked;                       /* the marker has been executed */
extern __thread struct vt_vcpu *vt_self;    /* NULL on threads that are not vCPUs */
extern struct qemu_internals vt_qemu;
extern struct qemu_plugin_scoreboard *vt_scores;

struct vt_stats {
    uint64_t advances;
    uint64_t timer_runs;
    uint64_t idle_rounds;
    uint64_t reverted_kicks;
    int64_t idle_ns;
};
extern struct vt_stats vt_stats;

#define VT_LOAD(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define VT_STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_SEQ_CST)
#define VT_ADD(x, v) __atomic_add_fetch(&(x), (v), __ATOMIC_SEQ_CST)
#define VT_SWAP(x, v) __atomic_exchange_n(&(x), (v), __ATOMIC_SEQ_CST)

/* Compare and swap: true when x was `was` and is now `now`. */
static inline bool vt_cas(int *x, int was, int now)
{
    return __atomic_compare_exchange_n(x, &was, now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* ---- parts ------------------------------------------------------------------------------ */

/* count.c */
void vt_count_init(void);
void vt_on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
/* Units counted on a vCPU since its last accounting; vt_counter_take also restarts it. The
 * scoreboard is looked up each time: QEMU moves it when a vCPU is added. */
uint64_t vt_counter_read(struct vt_vcpu *v);
uint64_t vt_counter_take(struct vt_vcpu *v);
/* Leaves the counter so that the next block calls back at once. Own thread only. */
void vt_counter_recheck(struct vt_vcpu *v);

/* How far a vCPU may lead the slowest one right now, ns. */
static inline int64_t vt_window(void)
{
    int64_t running = VT_LOAD(vt_nrunning);

    if (vt_opt.coarse && !VT_LOAD(vt_marked)) {
        return vt_opt.coarse;
    }
    return running > vt_opt.crowd ? vt_opt.window * running / vt_opt.crowd : vt_opt.window;
}

static inline int64_t vt_units_to_ns(uint64_t units)
{
    return (int64_t)(units * vt_opt.ns1000 / (1000 * VT_UNIT));
}

/* lockstep.c: the callbacks of vCPUs */
void vt_on_quantum(unsigned vcpu, void *unused);
void vt_on_idle(qemu_plugin_id_t id, unsigned vcpu);
void vt_on_resume(qemu_plugin_id_t id, unsigned vcpu);
/* Lets every waiter that is within the window of `slowest` go on. */
void vt_release_waiters(int64_t slowest);
void vt_bump_futex(int *futex);
void vt_wait_futex(int *futex, int seen, int64_t ns);

/* clock.c */
void vt_clock_install(void);
int64_t vt_clock_now(void);                 /* published clock, ns */
void vt_clock_raise(int64_t ns);            /* never goes back */
void vt_clock_run_due(void);                /* runs QEMU timers that are due; takes the big lock */

/* idle.c */
void vt_idle_start(void);
void vt_idle_enter(void);                   /* the last running vCPU has halted */
void vt_idle_catch_up(void);                /* rate mode: before the first one runs again */
int64_t vt_host_ns(void);

/* layout.c: false, with one line on standard error, when the emulator does not fit */
bool vt_layout_find(void);
bool vt_layout_check(void **ops);

#endif
