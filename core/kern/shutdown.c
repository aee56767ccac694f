/* The end of the machine: by the processes, or by the power button. */
#include "core/base/log.h"
#include "core/kern/obs/obs.h"
#include "core/kern/proc.h"
#include "core/kern/shutdown.h"
#include "core/kern/signal.h"

/* Exit codes that the machine's exit device can show. */
#define CODE_VISIBLE_MAX 127

static bool button_pressed;
static struct thread *waiter_thread;

void upcall_power_button(void)
{
    WRITE_ONCE(button_pressed, true);
    struct thread *t = READ_ONCE(waiter_thread);
    if (t) {
        thread_unpark(t);
    }
}

void weir_exit(int code)
{
    net_shutdown();
    obs_shutdown();
    log_raw("", 0);
    log_info("weir: exit code %d", code);
    arch_power_off(MIN(code, CODE_VISIBLE_MAX));
}

static void wake_waiter(void)
{
    struct thread *t = READ_ONCE(waiter_thread);
    if (t) {
        thread_unpark(t);
    }
}

void shutdown_proc_ended(void)
{
    wake_waiter();
}

static bool all_ended(struct proc *const *list, u32 n)
{
    for (u32 i = 0; i < n; i++) {
        if (LOAD_ACQUIRE(list[i]->state) != PROC_ENDED) {
            return false;
        }
    }
    return true;
}

/* SIGTERM, time to end, then the end whatever they do. */
static void power_off_in_order(struct proc *const *list, u32 n)
{
    u64 deadline_ns = arch_clock_ns() + SHUTDOWN_GRACE_NS;
    log_info("weir: power button: SIGTERM to %u processes", n);
    signal_all_procs(SIGTERM);
    while (!all_ended(list, n)) {
        if (thread_park(deadline_ns, WAIT_OTHER, 0) == PARK_TIMEOUT) {
            log_warn("weir: processes did not end within %llu ms",
                     (unsigned long long)(SHUTDOWN_GRACE_NS / NSEC_PER_MSEC));
            weir_exit(EXIT_UNORDERLY);
        }
    }
    weir_exit(0);
}

void shutdown_wait(struct proc *const *list, u32 n, struct proc *decisive)
{
    WRITE_ONCE(waiter_thread, current_thread());
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    while (LOAD_ACQUIRE(decisive->state) != PROC_ENDED) {
        if (READ_ONCE(button_pressed)) {
            power_off_in_order(list, n);
        }
        thread_park(NO_DEADLINE, WAIT_OTHER, decisive->pid);
    }
    weir_exit(decisive->exit_code);
}
