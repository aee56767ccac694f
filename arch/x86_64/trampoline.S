/* Start of the other CPUs: real mode at a page below 1 MiB, to 64-bit mode in the kernel's page
 * tables, to the link address. The page is a copy; smp.c fills in the fields at its end. */
#include "arch/x86_64/asm_defs.h"

    .section .rodata
    .balign 16
    .globl trampoline_start
trampoline_start:
    .code16
    cli
    cld
    movw %cs, %ax
    movw %ax, %ds
    xorl %ebx, %ebx
    movw %cs, %bx
    shll $4, %ebx /* physical base of the page */
    lgdtl (trampoline_gdt_ptr - trampoline_start)
    movl %cr0, %eax
    orl $CR0_PE, %eax
    movl %eax, %cr0
    ljmpl *(trampoline_far32 - trampoline_start)

    .code32
trampoline_32:
    movl $SEL_DATA, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    movl %cr4, %eax
    orl $CR4_PAE, %eax
    movl %eax, %cr4
    movl (trampoline_cr3 - trampoline_start)(%ebx), %eax
    movl %eax, %cr3
    movl $MSR_EFER, %ecx
    rdmsr
    orl $(EFER_LME | EFER_NXE), %eax
    wrmsr
    movl %cr0, %eax
    andl $~(CR0_CD | CR0_NW), %eax
    orl $(CR0_PG | CR0_WP | CR0_PE), %eax
    movl %eax, %cr0
    ljmpl *(trampoline_far64 - trampoline_start)(%ebx)

    .code64
trampoline_64:
    movq $ap_entry, %rax
    jmp *%rax

    .balign 8
    .globl trampoline_gdt
trampoline_gdt:
    .quad 0
    .quad 0x00cf9b000000ffff /* 32-bit code */
    .quad 0x00cf93000000ffff /* data */
    .quad 0x00af9b000000ffff /* 64-bit code */
    .globl trampoline_gdt_ptr
trampoline_gdt_ptr:
    .word 31
    .long trampoline_gdt - trampoline_start
    .balign 4
    .globl trampoline_far32
trampoline_far32:
    .long trampoline_32 - trampoline_start
    .word 0x08
    .balign 4
    .globl trampoline_far64
trampoline_far64:
    .long trampoline_64 - trampoline_start
    .word 0x18
    .balign 4
    .globl trampoline_cr3
trampoline_cr3:
    .long 0
    .globl trampoline_end
trampoline_end:

    .text
    .code64
/* In the kernel's tables, no stack yet: finds this CPU's number by its APIC id. */
ap_entry:
    xorl %eax, %eax
    cpuid
    cmpl $0xb, %eax
    jb 1f
    movl $0xb, %eax
    xorl %ecx, %ecx
    cpuid
    testl %ebx, %ebx /* no logical processors: the leaf is empty */
    jz 1f
    movl %edx, %edi
    jmp 2f
1:  movl $1, %eax
    cpuid
    shrl $24, %ebx
    movl %ebx, %edi
2:  xorl %esi, %esi
3:  cmpl ap_count, %esi
    jae 5f
    cmpl %edi, ap_apic_ids(, %rsi, 4)
    je 4f
    incl %esi
    jmp 3b
4:  movl $1, %eax /* AP_STARTING -> AP_ALIVE, else the boot CPU has given up on us */
    movl $2, %ecx
    lock cmpxchgl %ecx, ap_state(, %rsi, 4)
    jne 5f
    movq ap_stack_tops(, %rsi, 8), %rsp
    xorl %ebp, %ebp
    movl %esi, %edi
    call ap_main
5:  cli
    hlt
    jmp 5b
    .section .note.GNU-stack, "", @progbits
