/* Thread contexts and register sets. */
#include "arch/x86_64/asm_defs.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"
#include "core/base/log.h"
#include "core/base/string.h"

/* FXSAVE image: control word at 0, MXCSR at 24 (Intel SDM vol. 1, "FXSAVE area"). */
#define FX_CONTROL_WORD    0
#define FX_MXCSR           24
#define FX_CONTROL_DEFAULT 0x037f
#define FX_MXCSR_DEFAULT   0x1f80u

void arch_thread_init(struct arch_thread *t, u64 kstack_top, u64 irq_stack_top, u64 fault_stack_top,
                      void (*entry)(void *arg), void *arg)
{
    memset(t, 0, sizeof(*t));
    t->kstack_top = kstack_top;
    t->irq_stack_top = irq_stack_top;
    t->fault_stack_top = fault_stack_top;
    /* What arch_switch() pops: rbp r15 r14 r13 r12 rbx, return address. */
    u64 *frame = (u64 *)(uintptr_t)kstack_top - 7;
    frame[0] = 0;
    frame[1] = 0;
    frame[2] = 0;
    frame[3] = (u64)(uintptr_t)arg;
    frame[4] = (u64)(uintptr_t)entry;
    frame[5] = 0;
    frame[6] = (u64)(uintptr_t)arch_thread_start;
    t->sp = (u64)(uintptr_t)frame;
}

void arch_thread_init_fpu(struct arch_thread *t)
{
    static const u16 control = FX_CONTROL_DEFAULT;
    static const u32 mxcsr = FX_MXCSR_DEFAULT;
    memset(t->fpu, 0, sizeof(t->fpu));
    memcpy(t->fpu + FX_CONTROL_WORD, &control, sizeof(control));
    memcpy(t->fpu + FX_MXCSR, &mxcsr, sizeof(mxcsr));
    irqflags_t flags = arch_irq_save();
    t->has_fpu = 1;
    if (t->kstack_top == this_cpu()->kstack_top) { /* the current thread: exec */
        __asm__ volatile("fxrstor64 %0" ::"m"(t->fpu));
    }
    arch_irq_restore(flags);
}

void arch_thread_copy_fpu(struct arch_thread *child)
{
    /* The kernel does not use the FPU: the registers hold the current thread's state. */
    __asm__ volatile("fxsave64 %0" : "=m"(child->fpu));
    child->has_fpu = 1;
}

void arch_set_tls(struct arch_thread *t, u64 fs_base)
{
    ASSERT(fs_base <= APP_MAX);
    irqflags_t flags = arch_irq_save();
    struct percpu *pc = this_cpu();
    t->fs_base = fs_base;
    if (t->kstack_top == pc->kstack_top) {
        pc->arch_private[PRIV_FS_BASE] = fs_base;
        wrmsr(MSR_FS_BASE, fs_base);
    }
    arch_irq_restore(flags);
}

void arch_resume_app(const struct arch_regs *regs)
{
    arch_irq_disable();
    struct arch_regs copy = *regs;
    copy.cs = SEL_CODE;
    copy.ss = SEL_DATA;
    copy.rflags |= RFLAGS_IF;
    resume_regs(&copy);
}

u64 arch_thread_saved_fp(const struct arch_thread *t)
{
    return *(const u64 *)(uintptr_t)t->sp;
}

u64 arch_regs_pc(const struct arch_regs *r)
{
    return r->rip;
}

u64 arch_regs_sp(const struct arch_regs *r)
{
    return r->rsp;
}

u64 arch_regs_fp(const struct arch_regs *r)
{
    return r->rbp;
}

void arch_regs_set_pc(struct arch_regs *r, u64 pc)
{
    r->rip = pc;
}

void arch_regs_set_sp(struct arch_regs *r, u64 sp)
{
    r->rsp = sp;
}

void arch_regs_set_return(struct arch_regs *r, i64 value)
{
    r->rax = (u64)value;
}

size_t arch_regs_size(void)
{
    return sizeof(struct arch_regs);
}

bool arch_regs_in_app(const struct arch_regs *r)
{
    return r->rip < APP_MAX;
}
