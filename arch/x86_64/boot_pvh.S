/* PVH entry: 32-bit protected mode, paging off, EBX = physical address of the hvm_start_info
 * structure (Xen public ABI, "x86/HVM direct boot").  Builds an identity map of 4 GiB and enters
 * long mode. */
#include "arch/x86_64/asm_defs.h"

#define PHYS(sym) (sym - ASM_KERNEL_IMAGE_BASE)
#define XEN_ELFNOTE_PHYS32_ENTRY 18

    .section .note.pvh, "a", @note
    .balign 4
    .long 2f - 1f
    .long 4f - 3f
    .long XEN_ELFNOTE_PHYS32_ENTRY
1:  .asciz "Xen"
2:  .balign 4
3:  .quad PHYS(pvh_entry32)
4:  .balign 4

    .section .text.boot, "ax"
    .code32
    .globl pvh_entry32
pvh_entry32:
    cli
    cld
    movl %ebx, %ebp

    /* Page directories: 2048 entries of 2 MiB. */
    movl $PHYS(boot_pd_low), %edi
    movl $(PTE_P | PTE_W | PTE_PS), %eax
    movl $2048, %ecx
1:  movl %eax, (%edi)
    movl $0, 4(%edi)
    addl $0x200000, %eax
    addl $8, %edi
    decl %ecx
    jnz 1b

    movl $PHYS(boot_pd_low), %eax
    orl $(PTE_P | PTE_W), %eax
    movl $PHYS(boot_pdpt_low), %edi
    movl $4, %ecx
2:  movl %eax, (%edi)
    movl $0, 4(%edi)
    addl $4096, %eax
    addl $8, %edi
    decl %ecx
    jnz 2b

    movl $PHYS(boot_pdpt_low), %eax
    orl $(PTE_P | PTE_W), %eax
    movl %eax, PHYS(boot_pml4)

    movl $PHYS(boot_pml4), %eax
    movl %eax, %cr3
    movl %cr4, %eax
    orl $CR4_PAE, %eax
    movl %eax, %cr4
    movl $MSR_EFER, %ecx
    rdmsr
    orl $EFER_LME, %eax
    wrmsr
    movl %cr0, %eax
    orl $(CR0_PG | CR0_PE), %eax
    movl %eax, %cr0
    lgdt PHYS(pvh_gdt_ptr)
    ljmp $SEL_CODE, $PHYS(pvh_entry64)

    .code64
pvh_entry64:
    xorl %edi, %edi
    movl %ebp, %esi
    jmp kernel_entry_common

    .section .rodata
    .balign 8
pvh_gdt:
    .quad 0
    .quad 0x00af9b000000ffff /* 64-bit code */
    .quad 0x00cf93000000ffff /* data */
pvh_gdt_ptr:
    .word 23
    .long PHYS(pvh_gdt)
    .section .note.GNU-stack, "", @progbits
