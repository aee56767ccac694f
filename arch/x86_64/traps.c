/* Exceptions.
 *
 * They arrive on the current thread's fault stack (IST2) with interrupts off.  Page faults are
 * offered to core/mm there. What the application must hear of goes on from its kernel stack, which
 * is empty while application code runs: telling it writes a signal frame, which may itself fault,
 * and that fault needs the fault stack. */
#include "arch/x86_64/asm_defs.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"
#include "core/base/log.h"

_Static_assert(offsetof(struct percpu, self) == PERCPU_SELF, "asm_defs.h");
_Static_assert(offsetof(struct percpu, syscall_sp) == PERCPU_SYSCALL_SP, "asm_defs.h");
_Static_assert(offsetof(struct percpu, kstack_top) == PERCPU_KSTACK_TOP, "asm_defs.h");
_Static_assert(offsetof(struct percpu, current) == PERCPU_CURRENT, "asm_defs.h");
_Static_assert(offsetof(struct percpu, irq_stack_top) == PERCPU_IRQ_STACK_TOP, "asm_defs.h");
_Static_assert(offsetof(struct percpu, arch_private) == PERCPU_PRIVATE, "asm_defs.h");
_Static_assert(offsetof(struct arch_thread, sp) == THREAD_SP, "asm_defs.h");
_Static_assert(offsetof(struct arch_thread, kstack_top) == THREAD_KSTACK_TOP, "asm_defs.h");
_Static_assert(offsetof(struct arch_thread, irq_stack_top) == THREAD_IRQ_STACK_TOP, "asm_defs.h");
_Static_assert(offsetof(struct arch_thread, fault_stack_top) == THREAD_FAULT_STACK_TOP,
               "asm_defs.h");
_Static_assert(offsetof(struct arch_thread, fs_base) == THREAD_FS_BASE, "asm_defs.h");
_Static_assert(offsetof(struct arch_thread, has_fpu) == THREAD_HAS_FPU, "asm_defs.h");
_Static_assert(offsetof(struct arch_thread, fpu) == THREAD_FPU, "asm_defs.h");
_Static_assert(offsetof(struct arch_regs, rdi) == REGS_RDI, "asm_defs.h");
_Static_assert(offsetof(struct arch_regs, rsi) == REGS_RSI, "asm_defs.h");
_Static_assert(offsetof(struct arch_regs, rdx) == REGS_RDX, "asm_defs.h");
_Static_assert(offsetof(struct arch_regs, r10) == REGS_R10, "asm_defs.h");
_Static_assert(offsetof(struct arch_regs, r8) == REGS_R8, "asm_defs.h");
_Static_assert(offsetof(struct arch_regs, r9) == REGS_R9, "asm_defs.h");
_Static_assert(offsetof(struct arch_regs, rbp) == REGS_RBP, "asm_defs.h");
_Static_assert(offsetof(struct arch_regs, rax) == REGS_RAX, "asm_defs.h");
_Static_assert(offsetof(struct arch_regs, vector) == REGS_VECTOR, "asm_defs.h");
_Static_assert(offsetof(struct arch_regs, rip) == REGS_RIP, "asm_defs.h");
_Static_assert(offsetof(struct arch_regs, rflags) == REGS_RFLAGS, "asm_defs.h");
_Static_assert(offsetof(struct arch_regs, rsp) == REGS_RSP, "asm_defs.h");
_Static_assert(sizeof(struct arch_regs) == REGS_SIZE, "asm_defs.h");
_Static_assert(KERNEL_IMAGE_BASE == ASM_KERNEL_IMAGE_BASE, "asm_defs.h");
_Static_assert((DIRECT_MAP_BASE >> 39 & 511) == ASM_DIRECT_MAP_PML4_INDEX, "asm_defs.h");

enum vector {
    VEC_DIVIDE = 0,
    VEC_DEBUG = 1,
    VEC_NMI = 2,
    VEC_BREAKPOINT = 3,
    VEC_OVERFLOW = 4,
    VEC_BOUND = 5,
    VEC_INVALID_OPCODE = 6,
    VEC_DOUBLE_FAULT = 8,
    VEC_NOT_PRESENT = 11,
    VEC_STACK = 12,
    VEC_PROTECTION = 13,
    VEC_PAGE_FAULT = 14,
    VEC_X87 = 16,
    VEC_ALIGNMENT = 17,
    VEC_MACHINE_CHECK = 18,
    VEC_SIMD = 19,
};

/* Linux signal numbers and si_code values. */
enum {
    SIGNO_ILL = 4,
    SIGNO_TRAP = 5,
    SIGNO_BUS = 7,
    SIGNO_FPE = 8,
    SIGNO_SEGV = 11,
    CODE_KERNEL = 0x80,
    CODE_ILL_OPN = 2,
    CODE_TRAP_BRKPT = 1,
    CODE_TRAP_TRACE = 2,
    CODE_BUS_ADRALN = 1,
    CODE_SEGV_MAPERR = 1,
    CODE_SEGV_ACCERR = 2,
    CODE_FPE_INTDIV = 1,
    CODE_FPE_FLTDIV = 3,
    CODE_FPE_FLTOVF = 4,
    CODE_FPE_FLTUND = 5,
    CODE_FPE_FLTRES = 6,
    CODE_FPE_FLTINV = 7,
};

#define PF_PRESENT  BIT(0)
#define PF_WRITE    BIT(1)
#define PF_RESERVED BIT(3)
#define PF_EXEC     BIT(4)

static const char *const vector_names[32] = {
    "divide error",
    "debug",
    "NMI",
    "breakpoint",
    "overflow",
    "bound range",
    "invalid opcode",
    "device not available",
    "double fault",
    "",
    "invalid TSS",
    "segment not present",
    "stack fault",
    "general protection",
    "page fault",
    "",
    "x87 floating point",
    "alignment check",
    "machine check",
    "SIMD floating point",
};

/* Exception-fixup table, made by app_access.S. */
struct ex_entry {
    u64 insn, fixup;
};
extern const char app_access_start[], app_access_end[];
extern const struct ex_entry __ex_table_start[], __ex_table_end[];

u64 ex_table_lookup(u64 rip)
{
    if (rip < (u64)(uintptr_t)app_access_start || rip >= (u64)(uintptr_t)app_access_end) {
        return 0;
    }
    for (const struct ex_entry *e = __ex_table_start; e < __ex_table_end; e++) {
        if (e->insn == rip) {
            return e->fixup;
        }
    }
    return 0;
}

/* Application code on an application stack: the kernel stack is empty. */
static bool from_app(const struct arch_regs *regs)
{
    return regs->rip < APP_MAX && regs->rsp <= APP_MAX;
}

static void __noreturn kernel_fault(struct arch_regs *regs, u64 addr)
{
    const char *name = regs->vector < 32 && vector_names[regs->vector] ? vector_names[regs->vector]
                                                                       : "unknown exception";
    log_error("rax %016lx rbx %016lx rcx %016lx rdx %016lx", regs->rax, regs->rbx, regs->rcx,
              regs->rdx);
    log_error("rsi %016lx rdi %016lx rbp %016lx rsp %016lx", regs->rsi, regs->rdi, regs->rbp,
              regs->rsp);
    log_error("r8  %016lx r9  %016lx r10 %016lx r11 %016lx", regs->r8, regs->r9, regs->r10,
              regs->r11);
    log_error("r12 %016lx r13 %016lx r14 %016lx r15 %016lx", regs->r12, regs->r13, regs->r14,
              regs->r15);
    log_error("rip %016lx rflags %lx cr2 %016lx cr3 %lx gs:current %p", regs->rip, regs->rflags,
              read_cr2(), read_cr3(), (void *)current_thread());
    if (regs->vector == VEC_PAGE_FAULT) {
        panic_at(regs, "kernel %s at %016lx: %s %016lx, error %lx%s", name, regs->rip,
                 regs->error & PF_EXEC    ? "execute"
                 : regs->error & PF_WRITE ? "write"
                                          : "read",
                 addr, regs->error,
                 addr >= DYNAMIC_MAP_BASE && addr < KERNEL_IMAGE_BASE &&
                         addr - regs->rsp + PAGE_SIZE < 2 * PAGE_SIZE
                     ? " (stack overflow)"
                     : "");
    }
    panic_at(regs, "kernel %s at %016lx, error %lx", name, regs->rip, regs->error);
}

/* Where the application goes on after an exception: a copy of the registers on its kernel stack. */
static struct arch_regs *move_to_kernel_stack(const struct arch_regs *regs)
{
    struct arch_regs *copy = (struct arch_regs *)(uintptr_t)this_cpu()->kstack_top - 1;
    *copy = *regs;
    return copy;
}

static struct arch_regs *page_fault(struct arch_regs *regs)
{
    u64 addr = read_cr2();
    bool write = regs->error & PF_WRITE;
    bool exec = regs->error & PF_EXEC;
    bool app = from_app(regs);
    u64 fixup = app ? 0 : ex_table_lookup(regs->rip);
    if (regs->error & PF_RESERVED || (!app && !fixup)) {
        kernel_fault(regs, addr);
    }
    if (regs->error & PF_PRESENT && paging_allows(addr, write, exec)) {
        return regs; /* the TLB held an older, narrower protection */
    }
    if (addr >= APP_MIN && addr < APP_MAX) {
        u64 *faulting = &this_cpu()->arch_private[PRIV_FAULTING];
        if (*faulting) {
            kernel_fault(regs, addr); /* a fault inside the fault handler: its stack is lost */
        }
        *faulting = 1;
        bool solved = upcall_page_fault(addr, write, exec, regs);
        *faulting = 0;
        if (solved) {
            return regs;
        }
    }
    if (fixup) {
        regs->rip = fixup;
        return regs;
    }
    return move_to_kernel_stack(regs);
}

static void nmi(struct arch_regs *regs)
{
    if (READ_ONCE(stop_requested)) {
        cpu_stop_forever(); /* a panic elsewhere stops us */
    }
    upcall_nmi(regs);
}

void arch_recover(struct arch_regs *regs, const struct arch_recovery *r)
{
    regs->rbx = r->saved[0];
    regs->rbp = r->saved[1];
    regs->r12 = r->saved[2];
    regs->r13 = r->saved[3];
    regs->r14 = r->saved[4];
    regs->r15 = r->saved[5];
    regs->rsp = r->saved[6];
    regs->rip = r->saved[7];
    regs->rax = 1;
}

struct arch_regs *trap_exception(struct arch_regs *regs)
{
    switch (regs->vector) {
    case VEC_PAGE_FAULT:
        return page_fault(regs);
    case VEC_NMI:
        nmi(regs);
        return regs;
    case VEC_DOUBLE_FAULT:
    case VEC_MACHINE_CHECK:
        kernel_fault(regs, 0);
    default:
        break;
    }
    if (from_app(regs)) {
        return move_to_kernel_stack(regs);
    }
    u64 fixup = ex_table_lookup(regs->rip); /* non-canonical addresses in copies: #GP */
    if (!fixup) {
        kernel_fault(regs, 0);
    }
    regs->rip = fixup;
    return regs;
}

static i32 simd_code(void)
{
    u32 mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    u32 raised = mxcsr & ~(mxcsr >> 7) & 0x3f;
    if (raised & BIT(0)) {
        return CODE_FPE_FLTINV;
    }
    if (raised & BIT(2)) {
        return CODE_FPE_FLTDIV;
    }
    if (raised & BIT(3)) {
        return CODE_FPE_FLTOVF;
    }
    return raised & (BIT(1) | BIT(4)) ? CODE_FPE_FLTUND : CODE_FPE_FLTRES;
}

static i32 x87_code(void)
{
    u16 status, control;
    __asm__ volatile("fnstsw %0" : "=m"(status));
    __asm__ volatile("fnstcw %0" : "=m"(control));
    u32 raised = status & ~(u32)control & 0x3f;
    if (raised & BIT(0)) {
        return CODE_FPE_FLTINV;
    }
    if (raised & BIT(2)) {
        return CODE_FPE_FLTDIV;
    }
    if (raised & BIT(3)) {
        return CODE_FPE_FLTOVF;
    }
    return raised & (BIT(1) | BIT(4)) ? CODE_FPE_FLTUND : CODE_FPE_FLTRES;
}

void trap_app_exception(struct arch_regs *regs)
{
    u64 pc = regs->rip;
    switch (regs->vector) {
    case VEC_PAGE_FAULT: {
        u64 addr = read_cr2();
        upcall_app_exception(
            SIGNO_SEGV, regs->error & PF_PRESENT ? CODE_SEGV_ACCERR : CODE_SEGV_MAPERR, addr, regs);
        return;
    }
    case VEC_DIVIDE:
        upcall_app_exception(SIGNO_FPE, CODE_FPE_INTDIV, pc, regs);
        return;
    case VEC_DEBUG:
        regs->rflags &= ~(u64)RFLAGS_TF;
        upcall_app_exception(SIGNO_TRAP, CODE_TRAP_TRACE, pc, regs);
        return;
    case VEC_BREAKPOINT:
        upcall_app_exception(SIGNO_TRAP, CODE_TRAP_BRKPT, pc, regs);
        return;
    case VEC_INVALID_OPCODE:
        upcall_app_exception(SIGNO_ILL, CODE_ILL_OPN, pc, regs);
        return;
    case VEC_NOT_PRESENT:
    case VEC_STACK:
        upcall_app_exception(SIGNO_BUS, CODE_KERNEL, 0, regs);
        return;
    case VEC_ALIGNMENT:
        upcall_app_exception(SIGNO_BUS, CODE_BUS_ADRALN, 0, regs);
        return;
    case VEC_X87:
        upcall_app_exception(SIGNO_FPE, x87_code(), pc, regs);
        return;
    case VEC_SIMD:
        upcall_app_exception(SIGNO_FPE, simd_code(), pc, regs);
        return;
    default:
        upcall_app_exception(SIGNO_SEGV, CODE_KERNEL, 0, regs);
        return;
    }
}
