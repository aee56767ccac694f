/* The per-CPU block at GS:0.
 *
 * Written by its own CPU only, except where a field says otherwise.  The offsets of the first fields are used by assembly
 * (arch/x86_64/entry.S) and pinned by static assertions in arch/x86_64. */
#ifndef WEIR_CORE_BASE_PERCPU_H
#define WEIR_CORE_BASE_PERCPU_H

#include "core/base/param.h"
#include "core/base/types.h"

struct thread;


struct percpu {
    struct percpu *self;      /* 0: GS:0 read gives the block's address */
    u64 syscall_sp;           /* 8: application's stack pointer while entry switches stacks */
    u64 kstack_top;           /* 16: of the current thread; set by arch_switch */
    struct thread *current;   /* 24: thread on this CPU; never NULL after sched_init_cpu */
    u32 cpu;                  /* 32: number of this CPU, 0.. */
    u32 preempt_count;        /* 36: preemption is off while nonzero */
    u32 irq_depth;            /* 40: nonzero while an interrupt handler runs */
    u32 need_resched;         /* 44: set by wake or tick: reschedule at the next preemption point */
    u64 irq_stack_top;        /* 48: stack on which interrupt handlers run */
    u64 arch_private[9];      /* 56: owned by arch/ */
    u64 irq_count[256];       /* interrupts taken by vector; read by anybody */
    /* Lock checker (core/base/spinlock.c): locks that this CPU holds, newest last. */
    const void *locks_held[16];
    u32 num_locks_held;
} __cacheline_aligned;

extern struct percpu percpu_blocks[MAX_CPUS];

static inline struct percpu *percpu_of(u32 cpu)
{
    return &percpu_blocks[cpu];
}

#endif
