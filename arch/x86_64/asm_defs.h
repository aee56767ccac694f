/* Numbers shared by assembly and C.  The offsets are pinned by static assertions in traps.c. */
#ifndef WEIR_ARCH_X86_64_ASM_DEFS_H
#define WEIR_ARCH_X86_64_ASM_DEFS_H

/* ---- layout of memory (the same values as in arch/arch.h, without C suffixes) ---- */
#define ASM_KERNEL_IMAGE_BASE     0xffffffff80000000
#define ASM_DIRECT_MAP_PML4_INDEX 273 /* of 0xffff888000000000 */
#define ASM_KERNEL_PML4_INDEX     511
#define ASM_KERNEL_PDPT_INDEX     510
#define ASM_KERNEL_PD_INDEX       8 /* the image is linked 16 MiB above the base */
#define ASM_BOOT_STACK_SIZE       16384

/* ---- segment selectors ---- */
#define SEL_CODE 0x08 /* syscall loads SS = code + 8 */
#define SEL_DATA 0x10
#define SEL_TSS  0x18

/* ---- struct percpu (core/base/percpu.h), offsets from GS ---- */
#define PERCPU_SELF          0
#define PERCPU_SYSCALL_SP    8
#define PERCPU_KSTACK_TOP    16
#define PERCPU_CURRENT       24
#define PERCPU_IRQ_STACK_TOP 48
#define PERCPU_PRIVATE       56
/* Slots of percpu.arch_private[]. */
#define PRIV_TSS         0 /* struct tss of this CPU */
#define PRIV_FS_BASE     1 /* value in the FS base register */
#define PRIV_TLB_PENDING 2 /* nonzero: another CPU asks for a TLB flush */
#define PRIV_APIC_ID     3
#define PRIV_IDLE        4 /* nonzero: halted in arch_idle_wait() */
#define PRIV_TIMER       5 /* armed deadline, ns; 0 = none */
#define PRIV_VECTORS     6 /* struct irq_slot [256 - 32] of this CPU */
#define PRIV_FAULTING    7 /* nonzero while the fault stack is in use */
#define PRIV_STOPPED     8 /* nonzero: this CPU has stopped for a panic */
#define PERCPU_TSS       (PERCPU_PRIVATE + 8 * PRIV_TSS)
#define PERCPU_FS_BASE   (PERCPU_PRIVATE + 8 * PRIV_FS_BASE)
#define PERCPU_IDLE      (PERCPU_PRIVATE + 8 * PRIV_IDLE)

/* ---- struct tss: interrupt stack table entries ---- */
#define TSS_IST1   36
#define TSS_IST2   44
#define IST_IRQ    1 /* current thread's interrupt stack */
#define IST_FAULT  2 /* current thread's fault stack */
#define IST_NMI    3
#define IST_DOUBLE 4 /* double fault, machine check */

/* ---- struct arch_thread (arch/arch.h) ---- */
#define THREAD_SP              0
#define THREAD_KSTACK_TOP      8
#define THREAD_IRQ_STACK_TOP   16
#define THREAD_FAULT_STACK_TOP 24
#define THREAD_FS_BASE         32
#define THREAD_HAS_FPU         40
#define THREAD_FPU             48

/* ---- struct arch_regs (arch/x86_64/regs.h) ---- */
#define REGS_RDI    48
#define REGS_RSI    56
#define REGS_RDX    64
#define REGS_R10    72
#define REGS_R8     80
#define REGS_R9     88
#define REGS_RBP    32
#define REGS_RAX    112
#define REGS_VECTOR 120
#define REGS_RIP    136
#define REGS_RFLAGS 152
#define REGS_RSP    160
#define REGS_SIZE   176
/* Values of regs.vector beyond the 256 of the hardware. */
#define VECTOR_SYSCALL 0x100 /* system call; leaves by the short way */
#define VECTOR_RESUME  0x101 /* system call whose registers were all replaced (sigreturn) */

/* ---- vectors that the kernel itself uses ---- */
#define VECTOR_FIRST_IRQ  32
#define VECTOR_FIRST_FREE 48 /* 32..47: where the masked 8259s are put, spurious only */
#define VECTOR_SCI        0xf8
#define VECTOR_APIC_ERROR 0xf9
#define VECTOR_TLB        0xfa
#define VECTOR_CALL       0xfb
#define VECTOR_RESCHED    0xfc
#define VECTOR_TIMER      0xfd
#define VECTOR_SPURIOUS   0xff

/* ---- control registers and MSRs ---- */
#define RFLAGS_TF        0x100
#define RFLAGS_IF        0x200
#define RFLAGS_DF        0x400
#define CR0_PE           0x1
#define CR0_MP           0x2
#define CR0_EM           0x4
#define CR0_TS           0x8
#define CR0_NE           0x20
#define CR0_WP           0x10000
#define CR0_NW           0x20000000
#define CR0_CD           0x40000000
#define CR0_PG           0x80000000
#define CR4_PAE          0x20
#define CR4_MCE          0x40
#define CR4_OSFXSR       0x200
#define CR4_OSXMMEXCPT   0x400
#define CR4_UMIP         0x800
#define CR4_LA57         0x1000
#define CR4_FSGSBASE     0x10000
#define CR4_SMEP         0x100000
#define MSR_APIC_BASE    0x1b
#define MSR_TSC_DEADLINE 0x6e0
#define MSR_X2APIC_BASE  0x800
#define MSR_EFER         0xc0000080
#define EFER_SCE         0x1
#define EFER_LME         0x100
#define EFER_NXE         0x800
#define MSR_STAR         0xc0000081
#define MSR_LSTAR        0xc0000082
#define MSR_FMASK        0xc0000084
#define MSR_FS_BASE      0xc0000100
#define MSR_GS_BASE      0xc0000101

/* Page-table entry bits. */
#define PTE_P   0x1
#define PTE_W   0x2
#define PTE_PWT 0x8
#define PTE_PCD 0x10
#define PTE_PS  0x80

/* ---- trampoline page: layout in trampoline.S ---- */
#define TRAMPOLINE_PHYS_MAX 0xa0000

#endif
