/* int arch_recovery_set(struct arch_recovery *r): remembers the caller's place; 0 now, 1 when arch_recover() comes back. */
    .text
    .globl arch_recovery_set
    .balign 16
arch_recovery_set:
    movq %rbx, 0(%rdi)
    movq %rbp, 8(%rdi)
    movq %r12, 16(%rdi)
    movq %r13, 24(%rdi)
    movq %r14, 32(%rdi)
    movq %r15, 40(%rdi)
    leaq 8(%rsp), %rax
    movq %rax, 48(%rdi)
    movq (%rsp), %rax
    movq %rax, 56(%rdi)
    xorl %eax, %eax
    ret
