/* Accesses to application memory.  Each instruction that may fault has an entry in the fixup table:
 * traps.c offers the fault to core/mm first (demand-zero pages) and goes on at the fixup if that
 * refuses. */

    .macro FIXUP label
    .pushsection .ex_table, "a"
    .quad \label, app_fault
    .popsection
    .endm

    .macro MAYFAULT insn:vararg
9:  \insn
    FIXUP 9b
    .endm

    .text
    .globl app_access_start
app_access_start:
app_fault:
    movl $1, %eax
    ret

/* int app_copy_bytes(void *dst, const void *src, size_t n): 0, or 1 on a fault. */
    .globl app_copy_bytes
    .balign 16
app_copy_bytes:
    cmpq $512, %rdx /* beyond: the string instruction's start-up time is paid back */
    jae 4f
    subq $32, %rdx
    jb 2f
1:  MAYFAULT movq (%rsi), %rax
    MAYFAULT movq 8(%rsi), %rcx
    MAYFAULT movq 16(%rsi), %r8
    MAYFAULT movq 24(%rsi), %r9
    MAYFAULT movq %rax, (%rdi)
    MAYFAULT movq %rcx, 8(%rdi)
    MAYFAULT movq %r8, 16(%rdi)
    MAYFAULT movq %r9, 24(%rdi)
    addq $32, %rsi
    addq $32, %rdi
    subq $32, %rdx
    jae 1b
2:  addq $32, %rdx
5:  subq $8, %rdx
    jb 6f
    MAYFAULT movq (%rsi), %rax
    MAYFAULT movq %rax, (%rdi)
    addq $8, %rsi
    addq $8, %rdi
    jmp 5b
6:  addq $8, %rdx
    jz 8f
    /* The rest by its size, not byte by byte: a word that other CPUs poll must never be seen half written. */
7:  testb $4, %dl
    jz 3f
    MAYFAULT movl (%rsi), %eax
    MAYFAULT movl %eax, (%rdi)
    addq $4, %rsi
    addq $4, %rdi
3:  testb $2, %dl
    jz 3f
    MAYFAULT movw (%rsi), %ax
    MAYFAULT movw %ax, (%rdi)
    addq $2, %rsi
    addq $2, %rdi
3:  testb $1, %dl
    jz 8f
    MAYFAULT movb (%rsi), %al
    MAYFAULT movb %al, (%rdi)
8:  xorl %eax, %eax
    ret
4:  movq %rdx, %rcx
    shrq $3, %rcx
    MAYFAULT rep movsq
    andl $7, %edx
    jnz 7b
    xorl %eax, %eax
    ret

/* int app_zero_bytes(void *dst, size_t n) */
    .globl app_zero_bytes
    .balign 16
app_zero_bytes:
    xorl %eax, %eax
    movq %rsi, %rcx
    shrq $3, %rcx
    MAYFAULT rep stosq
    movl %esi, %ecx
    andl $7, %ecx
    MAYFAULT rep stosb
    ret

/* int app_load_word(u32 *value, const u32 *addr) */
    .globl app_load_word
    .balign 16
app_load_word:
    MAYFAULT movl (%rsi), %ecx
    movl %ecx, (%rdi)
    xorl %eax, %eax
    ret

/* int app_cmpxchg_word(u32 *addr, u32 expected, u32 desired, u32 *old) */
    .globl app_cmpxchg_word
    .balign 16
app_cmpxchg_word:
    movq %rcx, %r8
    movl %esi, %eax
    MAYFAULT lock cmpxchgl %edx, (%rdi)
    movl %eax, (%r8)
    xorl %eax, %eax
    ret

/* int app_copy_string(char *dst, const char *src, size_t max): 0, 1 on a fault, 2 if there is no
 * NUL within max. */
    .globl app_copy_string
    .balign 16
app_copy_string:
    testq %rdx, %rdx
    jz 2f
1:  MAYFAULT movb (%rsi), %al
    movb %al, (%rdi)
    testb %al, %al
    jz 3f
    incq %rsi
    incq %rdi
    decq %rdx
    jnz 1b
2:  movl $2, %eax
    ret
3:  xorl %eax, %eax
    ret
    .globl app_access_end
app_access_end:
    .section .note.GNU-stack, "", @progbits
