/* System-call dispatch. */
#include "core/base/log.h"
#include "core/base/bitops.h"
#include "core/kern/pressure.h"
#include "core/kern/signal.h"
#include "core/kern/syscall.h"

/* Calls of each number by CPU; one row more for numbers outside the table. */
static u64 counts[MAX_CPUS][NUM_SYSCALLS + 1];
static u64 named[(NUM_SYSCALLS + 63) / 64]; /* unknown calls already in the log */
static bool named_outside;

static i64 unknown_call(struct kthread *k, u64 nr)
{
    if (nr == SYS_WEIR_GATE) {
        thread_exit(); /* sent here because its process ends */
    }
    counts[this_cpu()->cpu][NUM_SYSCALLS]++;
    bool first;
    if (nr < NUM_SYSCALLS) {
        u64 bit = BIT(nr % 64);
        first = !(__atomic_fetch_or(&named[nr / 64], bit, __ATOMIC_RELAXED) & bit);
    } else {
        first = !__atomic_exchange_n(&named_outside, true, __ATOMIC_RELAXED);
    }
    if (first) {
        log_warn("weir: %s: system call %lu (%s) is not supported: ENOSYS", k->proc->name, nr,
                 syscall_name(nr));
    }
    return -ENOSYS;
}

i64 upcall_syscall(u64 nr, const u64 args[6], struct arch_regs *regs)
{
    struct thread *t = current_thread();
    struct kthread *k = thread_head(t)->app;
    i64 result;
    k->regs = regs;
    k->syscall_nr = nr;
    if (likely(nr < NUM_SYSCALLS && syscall_table[nr].fn)) {
        counts[this_cpu()->cpu][nr]++;
        result = syscall_table[nr].fn(k, args);
    } else {
        result = unknown_call(k, nr);
    }
    if (unlikely(k->high_debt)) {
        pressure_pay(k);
    }
    /* From here to application code interrupts stay off: a signal that comes now brings an interrupt that sees it. */
    arch_irq_disable();
    if (unlikely(READ_ONCE(thread_head(t)->interrupt) || result == -ERESTART || k->has_saved_mask)) {
        arch_irq_enable();
        return signal_syscall_exit(k, result);
    }
    return result;
}

u64 syscall_count(u32 nr)
{
    u64 sum = 0;
    for (u32 cpu = 0; cpu < MAX_CPUS; cpu++) {
        sum += READ_ONCE(counts[cpu][nr]);
    }
    return sum;
}

u64 syscall_unknown_count(void)
{
    return syscall_count(NUM_SYSCALLS);
}

const char *syscall_name(u64 nr)
{
    const char *name = nr < NUM_SYSCALLS ? syscall_table[nr].name : NULL;
    return name ? name : "?";
}
