/* Lockstep: accounting of vCPUs, and who has to wait for whom. See vtime.h. */
#define _GNU_SOURCE
#include "vtime.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct vt_vcpu vt_vcpus[VT_MAX_VCPUS];
int vt_ncpus;
int vt_nrunning;
__thread struct vt_vcpu *vt_self;

void vt_wait_futex(int *futex, int seen, int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};

    syscall(SYS_futex, futex, FUTEX_WAIT_PRIVATE, seen, &t, NULL, 0);
}

void vt_bump_futex(int *futex)
{
    VT_ADD(*futex, 1);
    syscall(SYS_futex, futex, FUTEX_WAKE_PRIVATE, VT_MAX_VCPUS, NULL, NULL, 0);
}

/* The clock of the slowest vCPU that is not halted; INT64_MAX when all are. */
static int64_t slowest_clock(void)
{
    int64_t least = INT64_MAX;

    for (int i = 0; i < vt_ncpus; i++) {
        if (VT_LOAD(vt_vcpus[i].run) != VT_HALTED) {
            int64_t local = VT_LOAD(vt_vcpus[i].local);

            least = local < least ? local : least;
        }
    }
    return least;
}

void vt_release_waiters(int64_t slowest)
{
    /* Half a window: a waiter that is let go can run for at least as long again, so that each
     * switch between host threads buys some work. The slowest itself never waits. */
    int64_t limit = slowest == INT64_MAX ? INT64_MAX : slowest + vt_window() / 2;

    for (int i = 0; i < vt_ncpus; i++) {
        struct vt_vcpu *v = &vt_vcpus[i];

        /* Whoever clears the flag wakes it: the others need not. */
        if (VT_LOAD(v->waiting) && VT_LOAD(v->local) <= limit && vt_cas(&v->waiting, 1, 0)) {
            vt_bump_futex(&v->futex);
        }
    }
}

/* Adds what the calling vCPU has executed since the last time to its clock. */
static void account(struct vt_vcpu *v)
{
    int64_t ns = vt_units_to_ns(vt_counter_take(v)) + v->surcharge;

    v->surcharge = 0;
    VT_STORE(v->local, v->local + ns);
}

static void start_running(struct vt_vcpu *v)
{
    int was = VT_SWAP(v->run, VT_RUNNING);

    if (was != VT_HALTED) {
        return;     /* running already, or marked by its waker, who set its clock */
    }
    if (VT_LOAD(vt_nrunning) == 0) {
        vt_idle_catch_up();
    }
    VT_ADD(vt_nrunning, 1);
    if (v->local < vt_clock_now()) {
        VT_STORE(v->local, vt_clock_now());
    }
}

/* Kicks whose vCPU never resumed (it had nothing to do after all) hold everybody back. */
static void revert_stale_kicks(int64_t host_now)
{
    for (int i = 0; i < vt_ncpus; i++) {
        struct vt_vcpu *v = &vt_vcpus[i];

        if (VT_LOAD(v->run) == VT_KICKED && host_now - v->pending_since > VT_PENDING_NS &&
            vt_cas(&v->run, VT_KICKED, VT_HALTED)) {
            VT_ADD(vt_nrunning, -1);
            VT_ADD(vt_stats.reverted_kicks, 1);
        }
    }
}

/* One bounded wait; true when it timed out. */
static bool wait_once(struct vt_vcpu *v)
{
    int seen = VT_LOAD(v->futex);
    bool timed_out = false;

    /* Flag, then look again: whoever moves the slowest clock after the look sees the flag. */
    VT_STORE(v->waiting, 1);
    if (v->local > slowest_clock() + vt_window() && !VT_LOAD(v->kicked)) {
        v->waits++;
        vt_wait_futex(&v->futex, seen, VT_WAIT_NS);
        if (VT_LOAD(v->futex) == seen) {
            timed_out = true;
            v->timeouts++;
            revert_stale_kicks(vt_host_ns());
        }
    }
    VT_STORE(v->waiting, 0);
    return timed_out;
}

/* Called by generated code when a vCPU has executed a quantum. */
void vt_on_quantum(unsigned vcpu, void *unused)
{
    struct vt_vcpu *v = &vt_vcpus[vcpu];
    int64_t slowest;
    int timeouts = 0;

    (void)unused;
    vt_self = v;
    if (VT_LOAD(v->run) != VT_RUNNING) {
        start_running(v);
    }
    account(v);
    slowest = slowest_clock();
    if (slowest != INT64_MAX) {
        vt_clock_raise(slowest);
        VT_ADD(vt_stats.advances, 1);
        vt_clock_run_due();
    }
    vt_release_waiters(slowest);
    while ((slowest = slowest_clock()) != INT64_MAX && v->local > slowest + vt_window()) {
        if (VT_SWAP(v->kicked, 0) || timeouts >= VT_WAIT_ROUNDS) {
            /* Somebody needs this thread out of generated code: come back at the next block. */
            vt_counter_recheck(v);
            return;
        }
        timeouts += wait_once(v);
    }
}

/* The vCPU halts. Big lock held. Timers are left to whoever advances the clock next: the check
 * for "nothing to do" has been made already, so that a kick of ourselves would be lost. */
void vt_on_idle(qemu_plugin_id_t id, unsigned vcpu)
{
    struct vt_vcpu *v = &vt_vcpus[vcpu];
    int64_t slowest;

    (void)id;
    vt_self = v;
    account(v);
    if (VT_SWAP(v->run, VT_HALTED) != VT_HALTED) {
        VT_ADD(vt_nrunning, -1);
    }
    slowest = slowest_clock();
    if (slowest != INT64_MAX) {
        vt_clock_raise(slowest);
        vt_release_waiters(slowest);
    } else if (v->local < vt_clock_now() + VT_LEAD_WINDOWS * vt_window()) {
        vt_clock_raise(v->local);
    }
    if (VT_LOAD(vt_nrunning) == 0) {
        vt_idle_enter();
    }
}

void vt_on_resume(qemu_plugin_id_t id, unsigned vcpu)
{
    (void)id;
    vt_self = &vt_vcpus[vcpu];
    start_running(vt_self);
}
