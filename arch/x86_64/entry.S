/* Entry and exit: system calls, interrupts, exceptions.
 *
 * Applications run in ring 0.  Their code has a red zone, so nothing may be pushed on their stacks:
 * interrupts and exceptions land on IST stacks, system calls change stacks by hand.  GS is always
 * the kernel's. */
#include "arch/x86_64/asm_defs.h"

    .text

    .macro PUSH_REGS
    pushq %rax
    pushq %r11
    pushq %rcx
    pushq %r9
    pushq %r8
    pushq %r10
    pushq %rdx
    pushq %rsi
    pushq %rdi
    pushq %rbx
    pushq %rbp
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    .endm

/* ---- system calls ---- 51 instructions in all, of which the callee-saved registers are only
 * saved: C code preserves them. */
    .globl syscall_entry
    .balign 16
syscall_entry:
    movq %rsp, %gs:PERCPU_SYSCALL_SP
    movq %gs:PERCPU_KSTACK_TOP, %rsp
    pushq $SEL_DATA
    pushq %gs:PERCPU_SYSCALL_SP
    pushq %r11
    pushq $SEL_CODE
    pushq %rcx
    pushq %rax
    pushq $VECTOR_SYSCALL
    PUSH_REGS
    sti
    movq %rax, %rdi
    leaq REGS_RDI(%rsp), %rsi
    movq %rsp, %rdx
    pushq %rcx /* a frame, so that back traces show the application's pc */
    pushq %rbp
    movq %rsp, %rbp
    call upcall_syscall
    cli
    popq %rbp
    addq $8, %rsp
    cmpl $VECTOR_SYSCALL, REGS_VECTOR(%rsp)
    jne restore_regs
    movq REGS_RDI(%rsp), %rdi
    movq REGS_RSI(%rsp), %rsi
    movq REGS_RDX(%rsp), %rdx
    movq REGS_R10(%rsp), %r10
    movq REGS_R8(%rsp), %r8
    movq REGS_R9(%rsp), %r9
    movq REGS_RIP(%rsp), %rcx
    movq REGS_RFLAGS(%rsp), %r11
    andl $~(RFLAGS_IF | RFLAGS_TF), REGS_RFLAGS(%rsp)
    pushq REGS_RFLAGS(%rsp)
    popfq
    movq REGS_RSP(%rsp), %rsp
    sti /* takes effect after the jump */
    jmp *%rcx

/* ---- common way back: RSP = struct arch_regs, interrupts off ---- */
    .globl restore_regs
    .balign 16
restore_regs:
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbp
    popq %rbx
    popq %rdi
    popq %rsi
    popq %rdx
    popq %r10
    popq %r8
    popq %r9
    popq %rcx
    popq %r11
    popq %rax
    addq $16, %rsp
    iretq

/* void resume_regs(const struct arch_regs *) */
    .globl resume_regs
resume_regs:
    movq %rdi, %rsp
    jmp restore_regs

/* void arch_enter_app(u64 pc, u64 sp) */
    .globl arch_enter_app
arch_enter_app:
    cli
    movq %rdi, %rcx
    movq %rsi, %rsp
    xorl %eax, %eax
    xorl %ebx, %ebx
    xorl %edx, %edx
    xorl %ebp, %ebp
    xorl %esi, %esi
    xorl %edi, %edi
    xorl %r8d, %r8d
    xorl %r9d, %r9d
    xorl %r10d, %r10d
    xorl %r11d, %r11d
    xorl %r12d, %r12d
    xorl %r13d, %r13d
    xorl %r14d, %r14d
    xorl %r15d, %r15d
    sti
    jmp *%rcx

/* ---- interrupts: on the thread's interrupt stack (IST1) ---- */
    .balign 16
irq_common:
    PUSH_REGS
    cld
    movq %rsp, %rbx
    movq %rsp, %rdi
    movq %gs:PERCPU_IRQ_STACK_TOP, %rsp
    pushq REGS_RIP(%rbx) /* a frame that leads back traces into the interrupted code */
    pushq REGS_RBP(%rbx)
    movq %rsp, %rbp
    call irq_dispatch
    movq %rbx, %rsp
    movq %rbx, %rdi
    pushq REGS_RIP(%rbx)
    pushq REGS_RBP(%rbx)
    movq %rsp, %rbp
    call upcall_irq_exit
    movq %rbx, %rsp
    jmp restore_regs

/* ---- exceptions: on the thread's fault stack (IST2), or a per-CPU one ---- */
    .balign 16
exception_common:
    PUSH_REGS
    cld
    movq %rsp, %rbx
    movq %rsp, %rdi
    call trap_exception /* returns the registers to go on with */
    movq %rax, %rsp
    cmpq %rax, %rbx
    je restore_regs
    /* They were moved to the thread's kernel stack: the application is to hear of the exception,
     * which may fault. */
    movq %rax, %rbx
    movq %rax, %rdi
    pushq REGS_RIP(%rbx)
    pushq REGS_RBP(%rbx)
    movq %rsp, %rbp
    call trap_app_exception
    movq %rbx, %rsp
    jmp restore_regs

/* ---- one stub per vector, 16 bytes each ---- */
    .balign 16
    .globl vector_stubs
vector_stubs:
    .set vec, 0
    .rept 256
    .balign 16
    /* The CPU itself pushes an error code for these. */
    .if (vec == 8) || ((vec >= 10) && (vec <= 14)) || (vec == 17) || (vec == 21)
    .else
    pushq $0
    .endif
    pushq $vec
    .if vec < VECTOR_FIRST_IRQ
    jmp exception_common
    .else
    jmp irq_common
    .endif
    .set vec, vec + 1
    .endr
    .section .note.GNU-stack, "", @progbits
