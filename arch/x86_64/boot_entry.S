/* 64-bit entry, from the UEFI loader and from boot_pvh.S.
 *
 * kernel_entry64(const struct boot_info *): long mode, everything needed identity-mapped,
 * interrupts off.  The image may lie at any 2 MiB-aligned physical address below 4 GiB: until the
 * jump to the link address only RIP-relative addresses are used.  The loader's page tables are left
 * as soon as its boot_info is copied, for they may lie in memory that the kernel takes for free. */
#include "arch/x86_64/asm_defs.h"

    .section .text.boot, "ax"
    .code64
    .globl kernel_entry64
kernel_entry64:
    xorl %esi, %esi
    .globl kernel_entry_common
kernel_entry_common: /* RDI: struct boot_info or 0; RSI: hvm_start_info or 0 */
    cli
    cld
    movq %rsi, %r12

    /* Copy boot_info. */
    testq %rdi, %rdi
    jz 1f
    movq %rdi, %rsi
    leaq boot_info_copy(%rip), %rdi
    movl boot_info_bytes(%rip), %ecx
    rep movsb
1:
    leaq __kernel_start(%rip), %rbx /* physical base */

    /* Identity map of 4 GiB, seen at the direct map's place too. */
    leaq boot_pd_low(%rip), %rdi
    movl $(PTE_P | PTE_W | PTE_PS), %eax
    movl $2048, %ecx
2:  movq %rax, (%rdi)
    addq $0x200000, %rax
    addq $8, %rdi
    decl %ecx
    jnz 2b
    leaq boot_pd_low + (PTE_P | PTE_W)(%rip), %rax
    leaq boot_pdpt_low(%rip), %rdi
    movl $4, %ecx
3:  movq %rax, (%rdi)
    addq $4096, %rax
    addq $8, %rdi
    decl %ecx
    jnz 3b
    leaq boot_pml4(%rip), %rdx
    leaq boot_pdpt_low + (PTE_P | PTE_W)(%rip), %rax
    movq %rax, (%rdx)
    movq %rax, 8 * ASM_DIRECT_MAP_PML4_INDEX(%rdx)

    /* The kernel image at its link address. */
    leaq boot_pdpt_kernel + (PTE_P | PTE_W)(%rip), %rax
    movq %rax, 8 * ASM_KERNEL_PML4_INDEX(%rdx)
    leaq boot_pd_kernel + (PTE_P | PTE_W)(%rip), %rax
    movq %rax, boot_pdpt_kernel + 8 * ASM_KERNEL_PDPT_INDEX(%rip)
    leaq boot_pd_kernel + 8 * ASM_KERNEL_PD_INDEX(%rip), %rdi
    leaq (PTE_P | PTE_W | PTE_PS)(%rbx), %rax
    movl $(512 - ASM_KERNEL_PD_INDEX), %ecx
4:  movq %rax, (%rdi)
    addq $0x200000, %rax
    addq $8, %rdi
    decl %ecx
    jnz 4b

    movq %cr4, %rax
    testl $CR4_LA57, %eax /* five-level tables cannot be left in long mode: not for loaders */
    jnz 6f
    orl $CR4_PAE, %eax
    movq %rax, %cr4
    movl $MSR_EFER, %ecx
    rdmsr
    orl $(EFER_NXE | EFER_SCE), %eax
    wrmsr
    leaq boot_pml4(%rip), %rax
    movq %rax, %cr3
    movq $5f, %rax
    jmp *%rax
5:
    movq $boot_stack_top, %rsp
    xorl %ebp, %ebp
    lgdt boot_gdt_ptr
    pushq $SEL_CODE
    leaq 7f(%rip), %rax
    pushq %rax
    lretq
7:
    movl $SEL_DATA, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    xorl %eax, %eax
    movl %eax, %fs
    movl %eax, %gs
    movq %r12, %rdi /* hvm_start_info or 0 */
    movq %rbx, %rsi /* physical base */
    call boot_main
6:
    cli
    hlt
    jmp 6b

    .section .rodata
    .balign 8
boot_gdt:
    .quad 0
    .quad 0x00af9b000000ffff
    .quad 0x00cf93000000ffff
boot_gdt_ptr:
    .word 23
    .quad boot_gdt

    .section .bss.page_tables, "aw", @nobits
    .balign 4096
    .globl boot_pml4
boot_pml4:
    .skip 4096
    .globl boot_pdpt_low
boot_pdpt_low:
    .skip 4096
    .globl boot_pd_low
boot_pd_low:
    .skip 4 * 4096
boot_pdpt_kernel:
    .skip 4096
boot_pd_kernel:
    .skip 4096
    /* Boot stack; the page below it is unmapped in the final tables. */
    .globl boot_stack_guard
boot_stack_guard:
    .skip 4096
    .skip ASM_BOOT_STACK_SIZE
    .globl boot_stack_top
boot_stack_top:
    .section .note.GNU-stack, "", @progbits
