/* Time while every vCPU is halted: kept by one helper thread. See vtime.h. */
#define _GNU_SOURCE
#include "vtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* How long the helper sleeps when nothing tells it when to look again, ns of host time. */
#define RUNNING_NAP_NS 20000000     /* vCPUs run: vt_idle_enter() wakes it earlier */
#define SETTLE_NAP_NS 20000         /* a vCPU is between its mark and its halt, or it ends */
#define NO_TIMER_NAP_NS 500000      /* nothing is due, ever: only a device can wake the guest */
#define RATE_NAP_NS 1000000         /* longest nap in rate mode */

/* Warps in a row that woke nobody, after which the helper naps between warps: only devices'
 * own timers are left (a real-time clock ticks on in a guest that has shut down), and the main
 * loop needs the big lock to end the emulator. */
#define BARREN_WARPS 8
#define BARREN_NAP_NS 1000000

static int idle_futex;              /* bumped when the last running vCPU halts */
static int64_t idle_host;           /* host ns and virtual ns of that moment */
static int64_t idle_virtual;

int64_t vt_host_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void nap(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};

    nanosleep(&t, NULL);
}

void vt_idle_enter(void)
{
    VT_STORE(idle_virtual, vt_clock_now());
    VT_STORE(idle_host, vt_host_ns());
    vt_bump_futex(&idle_futex);
}

/* Rate mode: the clock follows the host's while nobody runs. Called at wake-up too, else idle
 * times shorter than the helper's nap would cost nothing. */
void vt_idle_catch_up(void)
{
    int64_t since = VT_LOAD(idle_host);
    int64_t target, now;

    if (vt_opt.idlerate <= 0 || !since) {
        return;
    }
    target = VT_LOAD(idle_virtual) + (int64_t)((double)(vt_host_ns() - since) * vt_opt.idlerate);
    now = vt_clock_now();
    if (target > now) {
        VT_ADD(vt_stats.idle_ns, target - now);
        vt_clock_raise(target);
    }
}

static int64_t next_deadline(void)
{
    return vt_qemu.qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL, QEMU_TIMER_ATTR_ALL);
}

static void run_timers(void)
{
    vt_qemu.qemu_clock_run_timers(QEMU_CLOCK_VIRTUAL);
    VT_ADD(vt_stats.timer_runs, 1);
}

/* One step of warp mode; big lock held on entry, released on return. */
static void step_warp(void)
{
    static int barren;
    int64_t due = next_deadline();

    if (due > 0) {
        vt_clock_raise(vt_clock_now() + due);
        VT_ADD(vt_stats.idle_ns, due);
    }
    if (due >= 0) {
        run_timers();
    }
    barren = VT_LOAD(vt_nrunning) > 0 ? 0 : barren + 1;
    vt_qemu.bql_unlock();
    if (due < 0) {
        nap(NO_TIMER_NAP_NS);
    } else if (barren > BARREN_WARPS) {
        nap(BARREN_NAP_NS);
    }
}

/* One step of rate mode; big lock held on entry, released on return. */
static void step_rate(void)
{
    int64_t due;

    vt_idle_catch_up();
    due = next_deadline();
    if (due == 0) {
        run_timers();
    }
    vt_qemu.bql_unlock();
    if (due != 0) {
        int64_t host = due < 0 ? RATE_NAP_NS : (int64_t)((double)due / vt_opt.idlerate);

        nap(host > RATE_NAP_NS ? RATE_NAP_NS : host);
    }
}

static void *keep_time(void *unused)
{
    (void)unused;
    vt_qemu.rcu_register_thread();
    for (;;) {
        int seen = VT_LOAD(idle_futex);

        if (VT_LOAD(vt_nrunning) > 0) {
            vt_wait_futex(&idle_futex, seen, RUNNING_NAP_NS);
            vt_clock_run_due();
            continue;
        }
        vt_qemu.bql_lock_impl(__FILE__, __LINE__);
        if (VT_LOAD(vt_nrunning) > 0 || !vt_qemu.runstate_is_running() ||
            vt_qemu.qemu_shutdown_requested_get() || !vt_qemu.all_cpu_threads_idle()) {
            vt_qemu.bql_unlock();
            nap(SETTLE_NAP_NS);
            continue;
        }
        VT_ADD(vt_stats.idle_rounds, 1);
        if (vt_opt.idlerate > 0) {
            step_rate();
        } else {
            step_warp();
        }
    }
    return NULL;
}

void vt_idle_start(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, keep_time, NULL) != 0) {
        fprintf(stderr, "vtime: cannot start the idle time keeper\n");
        exit(1);
    }
    pthread_detach(thread);
}
