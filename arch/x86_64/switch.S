/* Thread switch. */
#include "arch/x86_64/asm_defs.h"

    .text
/* void arch_switch(struct arch_thread *prev, struct arch_thread *next): interrupts off. At most 40
 * instructions; the FPU is saved and loaded for application threads only, the FS base is written
 * only if it differs (kernel threads leave the application's in place: theirs is never used). */
    .globl arch_switch
    .balign 16
arch_switch:
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    pushq %rbp
    movq %rsp, THREAD_SP(%rdi)
    cmpq $0, THREAD_HAS_FPU(%rdi)
    je 1f
    fxsave64 THREAD_FPU(%rdi)
1:  movq THREAD_SP(%rsi), %rsp
    movq THREAD_KSTACK_TOP(%rsi), %rax
    movq %rax, %gs:PERCPU_KSTACK_TOP
    movq %gs:PERCPU_TSS, %rcx
    movq THREAD_IRQ_STACK_TOP(%rsi), %rax
    movq %rax, TSS_IST1(%rcx)
    movq THREAD_FAULT_STACK_TOP(%rsi), %rax
    movq %rax, TSS_IST2(%rcx)
    cmpq $0, THREAD_HAS_FPU(%rsi)
    je 3f
    fxrstor64 THREAD_FPU(%rsi)
    movq THREAD_FS_BASE(%rsi), %rax
    cmpq %gs:PERCPU_FS_BASE, %rax
    je 3f
    movq %rax, %gs:PERCPU_FS_BASE
    cmpb $0, cpu_has_fsgsbase
    je 2f
    wrfsbase %rax
    jmp 3f
2:  movq %rax, %rdx
    shrq $32, %rdx
    movl $MSR_FS_BASE, %ecx
    wrmsr
3:  popq %rbp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    ret

/* First step of a new thread: R12 = entry, R13 = arg. */
    .globl arch_thread_start
arch_thread_start:
    movq %r13, %rdi
    xorl %ebp, %ebp
    call *%r12
    ud2
    .section .note.GNU-stack, "", @progbits
