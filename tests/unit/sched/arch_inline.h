/* Inline part of arch.h for the interleaving tests: CPUs are simulated, see vmach.h. */
#ifndef WEIR_TESTS_SCHED_ARCH_INLINE_H
#define WEIR_TESTS_SCHED_ARCH_INLINE_H

#include "core/base/percpu.h"
#include "core/base/types.h"
#include "tests/unit/sched/vmach.h"

typedef bool irqflags_t;

static inline void arch_irq_disable(void)
{
    vm_here()->irqs_on = false;
}

static inline void arch_irq_enable(void)
{
    vm_here()->irqs_on = true;
    vm_point();
}

static inline irqflags_t arch_irq_save(void)
{
    bool was = vm_here()->irqs_on;
    vm_here()->irqs_on = false;
    return was;
}

static inline void arch_irq_restore(irqflags_t on)
{
    if (on) {
        arch_irq_enable();
    }
}

static inline bool arch_irqflags_on(irqflags_t on)
{
    return on;
}

static inline bool arch_irqs_on(void)
{
    return vm_here()->irqs_on;
}

static inline struct percpu *this_cpu(void)
{
    return &percpu_blocks[vm_here()->cpu];
}

static inline struct thread *current_thread(void)
{
    return this_cpu()->current;
}

static inline void this_cpu_add_preempt(u32 n)
{
    this_cpu()->preempt_count += n;
}

static inline bool this_cpu_resched_due(void)
{
    return this_cpu()->need_resched && !this_cpu()->preempt_count;
}

static inline bool this_cpu_sub_preempt_and_test(void)
{
    return --this_cpu()->preempt_count == 0 && this_cpu_resched_due();
}

static inline void arch_cpu_relax(void)
{
    vm_point();
}

static inline void arch_idle_wait(void)
{
    vm_idle_wait();
}

static inline u64 arch_tsc(void)
{
    return vm_now();
}

#endif
