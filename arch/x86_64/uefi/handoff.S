/* From the firmware's world into the kernel's.  System V calling convention. */
    .text
    .globl loader_enter_kernel
loader_enter_kernel: /* RDI: top table, RSI: entry, RDX: boot_info */
    cli
    cld
    movq %rdi, %cr3 /* identity: this code lies under the same address in the new tables */
    movq %rdx, %rdi
    jmp *%rsi
    .section .note.GNU-stack, "", @progbits
