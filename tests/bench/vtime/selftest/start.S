/*
 * Entry points of the self-test guest: PVH (32-bit protected mode) for the first CPU, the
 * start-up page (real mode) for the others, and the two interrupt stubs.
 */
#include "selftest.h"

    .section .note.pvh, "a", @note
    .long 4, 4, 18                  /* name size, descriptor size, XEN_ELFNOTE_PHYS32_ENTRY */
    .asciz "Xen"
    .long pvh_entry

    .text
    .code32
    .globl pvh_entry
pvh_entry:
    cli
    cld
    lgdt gdt_pointer
    ljmp $0x08, $1f
1:  mov $0x10, %ax
    mov %ax, %ds
    mov %ax, %es
    mov %ax, %ss
    mov $stacks + STACK_SIZE, %esp
    xor %ebp, %ebp
    push %ebx                       /* struct hvm_start_info */
    push $0
    call first_cpu
2:  hlt
    jmp 2b

/* Copied to AP_START_PAGE. Real mode, cs = AP_START_PAGE >> 4, ip = 0. */
    .code16
    .globl ap_start, ap_start_end
ap_start:
    cli
    xor %ax, %ax
    mov %ax, %ds
    lgdtl AP_START_PAGE + (ap_gdt_pointer - ap_start)
    mov %cr0, %eax
    or $1, %eax
    mov %eax, %cr0
    ljmpl $0x08, $ap_protected
    .align 8
ap_gdt_pointer:
    .word gdt_end - gdt - 1
    .long gdt
ap_start_end:

    .code32
ap_protected:
    mov $0x10, %ax
    mov %ax, %ds
    mov %ax, %es
    mov %ax, %ss
    mov $1, %eax
    lock xadd %eax, cpus_started    /* our number: 1, 2, ... */
    mov %eax, %ebx
    inc %ebx
    imul $STACK_SIZE, %ebx
    lea stacks(%ebx), %esp
    xor %ebp, %ebp
    push %eax
    call other_cpu
3:  hlt
    jmp 3b

    .globl on_timer, on_ping, on_fault
on_timer:
    lock incl timer_ticks
    jmp end_of_interrupt
on_ping:
    push %eax
    mov LAPIC_BASE + LAPIC_ID, %eax
    shr $24, %eax
    lock incl pings(, %eax, 4)
    pop %eax
end_of_interrupt:
    movl $0, LAPIC_BASE + LAPIC_EOI
    iret
on_fault:
    mov $EXIT_FAULT, %eax
    out %al, $DEBUG_EXIT_PORT
    hlt

    .section .rodata
    .align 8
gdt:
    .quad 0
    .quad 0x00cf9a000000ffff        /* code, 4 GiB */
    .quad 0x00cf92000000ffff        /* data, 4 GiB */
gdt_end:
gdt_pointer:
    .word gdt_end - gdt - 1
    .long gdt

    .bss
    .align 16
    .globl stacks
stacks:
    .skip STACK_SIZE * MAX_CPUS

    .section .note.GNU-stack, "", @progbits
