/* Does this emulator fit? Names looked up at load, the table checked before it is written. */
#define _GNU_SOURCE
#include "vtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct qemu_internals vt_qemu;

/* The class whose table is written: set by QEMU for multi- and single-threaded TCG alike. */
#define TCG_OPS_CLASS "tcg-accel-ops"

static bool lookup(const char *name, void *slot)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);

    if (!symbol) {
        fprintf(stderr, "vtime: refused: this emulator does not export %s\n", name);
        return false;
    }
    memcpy(slot, &symbol, sizeof(symbol));
    return true;
}

bool vt_layout_find(void)
{
    return lookup("cpus_get_accel", &vt_qemu.cpus_get_accel) &&
           lookup("object_class_get_name", &vt_qemu.object_class_get_name) &&
           lookup("mttcg_kick_vcpu_thread", &vt_qemu.mttcg_kick_vcpu_thread) &&
           lookup("qemu_get_cpu", &vt_qemu.qemu_get_cpu) &&
           lookup("cpu_thread_is_idle", &vt_qemu.cpu_thread_is_idle) &&
           lookup("all_cpu_threads_idle", &vt_qemu.all_cpu_threads_idle) &&
           lookup("bql_lock_impl", &vt_qemu.bql_lock_impl) &&
           lookup("bql_unlock", &vt_qemu.bql_unlock) &&
           lookup("bql_locked", &vt_qemu.bql_locked) &&
           lookup("cpu_get_clock", &vt_qemu.cpu_get_clock) &&
           lookup("qemu_clock_deadline_ns_all", &vt_qemu.qemu_clock_deadline_ns_all) &&
           lookup("qemu_clock_run_timers", &vt_qemu.qemu_clock_run_timers) &&
           lookup("runstate_is_running", &vt_qemu.runstate_is_running) &&
           lookup("qemu_shutdown_requested_get", &vt_qemu.qemu_shutdown_requested_get) &&
           lookup("rcu_register_thread", &vt_qemu.rcu_register_thread);
}

bool vt_layout_check(void **ops)
{
    const char *name = vt_qemu.object_class_get_name(ops);
    void *kick;

    memcpy(&kick, &vt_qemu.mttcg_kick_vcpu_thread, sizeof(kick));
    if (!name || strcmp(name, TCG_OPS_CLASS) != 0) {
        fprintf(stderr, "vtime: refused: the accelerator is %s, not %s\n", name ? name : "unnamed",
                TCG_OPS_CLASS);
        return false;
    }
    if (ops[ACCEL_OPS_KICK_VCPU_THREAD / sizeof(void *)] != kick) {
        fprintf(stderr, "vtime: refused: the accelerator table is laid out otherwise, or TCG is "
                        "not multi-threaded (use -accel tcg,thread=multi)\n");
        return false;
    }
    if (ops[ACCEL_OPS_GET_VIRTUAL_CLOCK / sizeof(void *)] ||
        ops[ACCEL_OPS_SET_VIRTUAL_CLOCK / sizeof(void *)] ||
        ops[ACCEL_OPS_GET_ELAPSED_TICKS / sizeof(void *)]) {
        fprintf(stderr, "vtime: refused: the accelerator has a clock of its own (icount?)\n");
        return false;
    }
    return true;
}
