/* The machine's clock, and the functions installed in QEMU's accelerator table. See vtime.h. */
#define _GNU_SOURCE
#include "vtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Exit status of the emulator when the virtual-time limit is passed. */
#define VT_EXIT_LIMIT 3

static int64_t published;               /* ns; only ever raised */
static __thread bool in_timers;         /* kicks made by a timer are not IPIs of the guest */

int64_t vt_clock_now(void)
{
    return VT_LOAD(published);
}

void vt_clock_raise(int64_t ns)
{
    int64_t was = VT_LOAD(published);

    while (ns > was && !__atomic_compare_exchange_n(&published, &was, ns, false, __ATOMIC_SEQ_CST,
                                                    __ATOMIC_SEQ_CST)) {
    }
    if (vt_opt.limit && ns > vt_opt.limit) {
        fprintf(stderr, "vtime: limit of %.3f virtual seconds reached; ending the emulator\n",
                (double)vt_opt.limit / 1e9);
        _exit(VT_EXIT_LIMIT);
    }
}

/* The calling vCPU's own time, up to the instruction. */
static int64_t live_clock(struct vt_vcpu *v)
{
    return v->local + v->surcharge + vt_units_to_ns(vt_counter_read(v));
}

/* A read by a vCPU that leads raises the clock of all, so that time never goes back between
 * two vCPUs that talk to each other. */
static int64_t hook_get_clock(void)
{
    if (vt_self && VT_LOAD(vt_self->run) == VT_RUNNING) {
        int64_t live = live_clock(vt_self);

        if (live < vt_clock_now() + VT_LEAD_WINDOWS * vt_window()) {
            vt_clock_raise(live);
        }
    }
    return vt_clock_now();
}

static void hook_set_clock(int64_t ns)
{
    vt_clock_raise(ns);
}

static int64_t hook_get_ticks(void)
{
    return (int64_t)((uint64_t)hook_get_clock() * vt_opt.tsc1000 / 1000);
}

static struct vt_vcpu *vcpu_of(CPUState *cpu)
{
    for (int i = 0; i < vt_ncpus; i++) {
        if (vt_vcpus[i].cpu == cpu) {
            return &vt_vcpus[i];
        }
    }
    return NULL;
}

/* A halted vCPU with something to do counts as running from now on, at its waker's time: else
 * the others run ahead while its thread wakes up, and a ping-pong reads four times too slow. */
static void mark_kicked(struct vt_vcpu *v)
{
    bool by_vcpu = vt_self && VT_LOAD(vt_self->run) == VT_RUNNING && !in_timers;
    int64_t start;

    if (VT_LOAD(vt_nrunning) == 0) {
        vt_idle_catch_up();
    }
    start = (by_vcpu ? live_clock(vt_self) : vt_clock_now()) + (by_vcpu ? vt_opt.ipi_wake : 0);
    v->pending_since = vt_host_ns();
    if (VT_LOAD(v->local) < start) {
        VT_STORE(v->local, start);
    }
    if (vt_cas(&v->run, VT_HALTED, VT_KICKED)) {
        VT_ADD(vt_nrunning, 1);
    }
}

static void hook_kick(CPUState *cpu)
{
    struct vt_vcpu *v = vcpu_of(cpu);

    vt_qemu.mttcg_kick_vcpu_thread(cpu);
    if (!v) {
        return;
    }
    VT_ADD(v->kicks, 1);
    if (v != vt_self) {
        if (vt_self && !in_timers) {
            vt_self->surcharge += vt_opt.ipi_send;      /* paid before it leaves */
        }
        /* Only if it has work: a vain wake makes no second idle callback to undo the mark. */
        if (VT_LOAD(v->run) == VT_HALTED && !vt_qemu.cpu_thread_is_idle(cpu)) {
            mark_kicked(v);
        }
    }
    VT_STORE(v->kicked, 1);
    if (VT_LOAD(v->waiting)) {
        vt_bump_futex(&v->futex);
    }
}

void vt_clock_run_due(void)
{
    bool take_lock;

    if (vt_qemu.qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL, QEMU_TIMER_ATTR_ALL) != 0) {
        return;
    }
    take_lock = !vt_qemu.bql_locked();
    if (take_lock) {
        vt_qemu.bql_lock_impl(__FILE__, __LINE__);
    }
    in_timers = true;
    vt_qemu.qemu_clock_run_timers(QEMU_CLOCK_VIRTUAL);
    in_timers = false;
    VT_ADD(vt_stats.timer_runs, 1);
    if (take_lock) {
        vt_qemu.bql_unlock();
    }
}

/* ISO C has no conversion between function and object pointers; POSIX has. */
static void set_op(void **ops, size_t offset, void (*function)(void))
{
    union {
        void (*function)(void);
        void *object;
    } both = {function};

    ops[offset / sizeof(void *)] = both.object;
}

/* Called once, by the first vCPU, before any guest code. */
void vt_clock_install(void)
{
    void **ops = vt_qemu.cpus_get_accel();

    if (!vt_layout_check(ops)) {
        exit(1);
    }
    vt_clock_raise(vt_qemu.cpu_get_clock());
    set_op(ops, ACCEL_OPS_KICK_VCPU_THREAD, (void (*)(void))hook_kick);
    set_op(ops, ACCEL_OPS_GET_VIRTUAL_CLOCK, (void (*)(void))hook_get_clock);
    set_op(ops, ACCEL_OPS_SET_VIRTUAL_CLOCK, (void (*)(void))hook_set_clock);
    set_op(ops, ACCEL_OPS_GET_ELAPSED_TICKS, (void (*)(void))hook_get_ticks);
    vt_idle_start();
}
