/* The inline part of arch/arch.h for host tests: a "CPU" is whichever number the calling pthread
 * has chosen with fake_cpu_set(); interrupts are a flag of that pthread. See fake_arch.h for what
 * tests control. */
#ifndef WEIR_TESTS_FAKE_ARCH_INLINE_H
#define WEIR_TESTS_FAKE_ARCH_INLINE_H

#include "core/base/percpu.h"
#include "core/base/types.h"

typedef u64 irqflags_t;

extern _Thread_local u32 fake_cpu;
extern _Thread_local bool fake_irqs_on;

/* Called whenever interrupts go on, outermost only: where tests deliver what is pending. NULL:
 * nothing. */
extern void (*fake_irqs_enabled_hook)(void);
/* Called by every arch_cpu_relax(): lets other pthreads run. */
void fake_relax(void);
/* Stands in for the halt of arch_idle_wait(). */
void fake_idle_wait(void);
u64 fake_tsc(void);

static inline struct percpu *this_cpu(void)
{
    return percpu_of(fake_cpu);
}

static inline struct thread *current_thread(void)
{
    return this_cpu()->current;
}

static inline bool arch_irqs_on(void)
{
    return fake_irqs_on;
}

static inline bool arch_irqflags_on(irqflags_t flags)
{
    return flags != 0;
}

static inline void arch_irq_disable(void)
{
    fake_irqs_on = false;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void arch_irq_enable(void)
{
    bool were_on = fake_irqs_on;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    fake_irqs_on = true;
    if (!were_on && fake_irqs_enabled_hook != NULL) {
        fake_irqs_enabled_hook();
    }
}

static inline irqflags_t arch_irq_save(void)
{
    irqflags_t flags = fake_irqs_on;
    arch_irq_disable();
    return flags;
}

static inline void arch_irq_restore(irqflags_t flags)
{
    if (flags != 0) {
        arch_irq_enable();
    } else {
        arch_irq_disable();
    }
}

static inline void arch_cpu_relax(void)
{
    fake_relax();
}

static inline void arch_idle_wait(void)
{
    fake_idle_wait();
}

static inline u64 arch_tsc(void)
{
    return fake_tsc();
}

static inline bool this_cpu_resched_due(void)
{
    return this_cpu()->need_resched != 0 && this_cpu()->preempt_count == 0;
}

static inline void this_cpu_add_preempt(u32 n)
{
    this_cpu()->preempt_count += n;
}

static inline bool this_cpu_sub_preempt_and_test(void)
{
    struct percpu *cpu = this_cpu();
    cpu->preempt_count--;
    return cpu->preempt_count == 0 && cpu->need_resched != 0;
}

#endif
