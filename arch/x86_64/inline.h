/* The inline part of arch/arch.h for x86-64. */
#ifndef WEIR_ARCH_X86_64_INLINE_H
#define WEIR_ARCH_X86_64_INLINE_H

#include "core/base/percpu.h"
#include "core/base/types.h"

typedef u64 irqflags_t;

#define ARCH_IRQ_FLAG 0x200ull /* RFLAGS.IF */

static inline void arch_irq_disable(void)
{
    __asm__ volatile("cli" ::: "memory");
}

static inline void arch_irq_enable(void)
{
    __asm__ volatile("sti" ::: "memory");
}

static inline irqflags_t arch_irq_save(void)
{
    irqflags_t flags;
    __asm__ volatile("pushfq\n\tpopq %0\n\tcli" : "=r"(flags)::"memory");
    return flags;
}

static inline void arch_irq_restore(irqflags_t flags)
{
    if (flags & ARCH_IRQ_FLAG) {
        arch_irq_enable();
    } else {
        arch_irq_disable();
    }
}

static inline bool arch_irqflags_on(irqflags_t flags)
{
    return (flags & ARCH_IRQ_FLAG) != 0;
}

static inline bool arch_irqs_on(void)
{
    irqflags_t flags;
    __asm__ volatile("pushfq\n\tpopq %0" : "=r"(flags)::"memory");
    return (flags & ARCH_IRQ_FLAG) != 0;
}

static inline struct percpu *this_cpu(void)
{
    struct percpu *self;
    __asm__ volatile("movq %%gs:%c1, %0" : "=r"(self) : "i"(offsetof(struct percpu, self)));
    return self;
}

static inline struct thread *current_thread(void)
{
    struct thread *t;
    __asm__ volatile("movq %%gs:%c1, %0" : "=r"(t) : "i"(offsetof(struct percpu, current)));
    return t;
}

static inline void this_cpu_add_preempt(u32 n)
{
    __asm__ volatile("addl %0, %%gs:%c1" ::"ri"(n), "i"(offsetof(struct percpu, preempt_count))
                     : "memory", "cc");
}

/* The two reads need not be one: need_resched set in between is seen by the end of the interrupt
 * that set it. */
static inline bool this_cpu_resched_due(void)
{
    u32 wanted, count;
    __asm__ volatile("movl %%gs:%c1, %0"
                     : "=r"(wanted)
                     : "i"(offsetof(struct percpu, need_resched))
                     : "memory");
    __asm__ volatile("movl %%gs:%c1, %0"
                     : "=r"(count)
                     : "i"(offsetof(struct percpu, preempt_count))
                     : "memory");
    return wanted && !count;
}

static inline bool this_cpu_sub_preempt_and_test(void)
{
    bool zero;
    __asm__ volatile("decl %%gs:%c1"
                     : "=@ccz"(zero)
                     : "i"(offsetof(struct percpu, preempt_count))
                     : "memory");
    return zero && this_cpu_resched_due();
}

static inline void arch_cpu_relax(void)
{
    __asm__ volatile("pause" ::: "memory");
}

void arch_idle_wait(void); /* tlb.c */

static inline u64 arch_tsc(void)
{
    u32 lo, hi;
    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
    return ((u64)hi << 32) | lo;
}

#endif
