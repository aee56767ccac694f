/* Application code of the tests: copied to a page, so it is position-independent.
 * R14 tells the result when it makes system call 2 (back to the test): 1 passed, 0 failed. */
#define EXPECT(...) __VA_ARGS__; jne 99f

    .section .rodata
    .globl app_code
app_code:
    /* A system call keeps everything but RAX, RCX, R11; the red zone too. */
    movl $0x1111, %r12d
    movl $0x2222, %ebx
    movq $0xabcdef, -8(%rsp)
    movl $1, %eax
    movl $1, %edi
    movl $2, %esi
    movl $3, %edx
    movl $4, %r10d
    movl $5, %r8d
    movl $6, %r9d
    stc
    syscall
    jnc 99f
    EXPECT(cmpq $91, %rax)
    EXPECT(cmpq $1, %rdi)
    EXPECT(cmpq $6, %r9)
    EXPECT(cmpq $0x1111, %r12)
    EXPECT(cmpq $0x2222, %rbx)
    EXPECT(cmpq $0xabcdef, -8(%rsp))
    /* Demand-zero page. */
    movl $0x50005000, %ebp
    EXPECT(cmpq $0, (%rbp))
    movq $77, (%rbp)
    EXPECT(cmpq $77, (%rbp))
    /* Exceptions; the test goes on at RBX with RAX counting. */
    xorl %r13d, %r13d
    leaq 1f(%rip), %rbx
    movq 0x10, %rax
    jmp 99f
1:  leaq 2f(%rip), %rbx
    ud2
    jmp 99f
2:  leaq 3f(%rip), %rbx
    xorl %ecx, %ecx
    xorl %edx, %edx
    divl %ecx
    jmp 99f
3:  leaq 4f(%rip), %rbx
    int3
    jmp 99f
4:  leaq 5f(%rip), %rbx
    movabsq $0x8000000000000000, %rax
    movq (%rax), %rax
    jmp 99f
5:  leaq 6f(%rip), %rbx
    movb $1, app_code(%rip) /* its own text */
    jmp 99f
6:  /* A signal, taken at the end of a system call: all registers and the FPU come back. */
    movq $0xabc, -128(%rsp)
    movl $42, %r15d
    cvtsi2sd %r15, %xmm3
    movl $5, %eax
    leaq 7f(%rip), %rdi
    leaq 8f(%rip), %rsi
    syscall
    EXPECT(cmpq $4321, %rax)
    EXPECT(cmpq $42, %r15)
    EXPECT(cmpq $0xabc, -128(%rsp))
    cvtsd2si %xmm3, %rax
    EXPECT(cmpq $42, %rax)
    movl $1, %r14d
9:  movl $2, %eax
    syscall
    jmp 9b
7:  /* handler(signo, info, context) */
    EXPECT(cmpl $10, %edi)
    EXPECT(cmpl $10, (%rsi))
    xorl %r15d, %r15d
    xorps %xmm3, %xmm3
    leaq 8(%rsp), %rax
    testb $15, %al
    jnz 99f
    ret
8:  movl $4, %eax /* restorer */
    syscall
99: xorl %r14d, %r14d
    jmp 9b
    .globl app_code_end
app_code_end:

/* Counts at (RDI) for ever; stops with an exception if RSI, XMM5 or the red zone changes. */
    .globl app_spin
app_spin:
1:  incq (%rdi)
    cvtsi2sd %rsi, %xmm5
    movq %rsi, -8(%rsp)
    cvtsd2si %xmm5, %rdx
    cmpq %rsi, %rdx
    jne 2f
    cmpq %rsi, -8(%rsp)
    je 1b
2:  ud2
    .globl app_spin_end
app_spin_end:
    .section .note.GNU-stack, "", @progbits
