/* What the rest of the kernel asks of a CPU and its platform, and what it promises to be told (upcalls at the end).
 *
 * Unless a function says otherwise it may be called from any context (thread, interrupt), with any locks held, and does not
 * block.  Times are nanoseconds.  Errors are negative errno values (core/base/errno.h). */
#ifndef WEIR_ARCH_ARCH_H
#define WEIR_ARCH_ARCH_H

#include "arch/boot_info.h"
#include "core/base/percpu.h"
#include "core/base/types.h"

/* ---- address space (one for all) ----
 * Applications: APP_MIN..APP_MAX.  Everything above is the kernel's. */
#define APP_MIN 0x0000000000010000ull /* below it nothing is ever mapped: null dereferences fault */
#define APP_MAX 0x00007ffffffff000ull
#define DIRECT_MAP_BASE 0xffff888000000000ull /* all RAM, writable, never executable */
#define DYNAMIC_MAP_BASE 0xffffc90000000000ull /* stacks with guard pages, device memory, lwIP images */
#define DYNAMIC_MAP_END 0xffffe90000000000ull
#define KERNEL_IMAGE_BASE 0xffffffff80000000ull

static inline void *phys_to_virt(paddr_t pa)
{
    return (void *)(uintptr_t)(pa + DIRECT_MAP_BASE);
}

/* Inverse of phys_to_virt: direct-map addresses only. */
static inline paddr_t virt_to_phys(const void *va)
{
    return (u64)(uintptr_t)va - DIRECT_MAP_BASE;
}

/* Saved registers of an interrupted or system-calling context.  Layout: arch/x86_64/regs.h. */
struct arch_regs;

/* Inline part: irq flags, this_cpu(), relax, atomically-enable-and-halt.  The host tests have their own.  Gives:
 *   typedef irqflags_t
 *   irqflags_t arch_irq_save(void)           interrupts off, returns the previous state
 *   void arch_irq_restore(irqflags_t)
 *   void arch_irq_enable(void) / arch_irq_disable(void)
 *   bool arch_irqs_on(void)
 *   struct percpu *this_cpu(void)            stable only while preemption or interrupts are off
 *   struct thread *current_thread(void)      one instruction, always safe in thread context
 *   void arch_cpu_relax(void)                pause hint for spin loops
 *   void arch_idle_wait(void)                entered with interrupts off: enables and halts with no window between the two;
 *                                            returns with interrupts off after at least one interrupt
 *   u64 arch_tsc(void)                       raw cycle counter
 *   bool arch_irqflags_on(irqflags_t)        did this saved state have interrupts on?
 *   bool this_cpu_resched_due(void)          need_resched set and preempt_count == 0
 *   void this_cpu_add_preempt(u32 n)         percpu.preempt_count += n, one instruction
 *   bool this_cpu_sub_preempt_and_test(void) percpu.preempt_count -= 1; true if it is now 0 and need_resched is set */
#if defined(WEIR_ARCH_INLINE)
#include WEIR_ARCH_INLINE
#elif defined(WEIR_HOST_TEST)
#include "tests/unit/fake/arch_inline.h"
#else
#include "arch/x86_64/inline.h"
#endif

/* ---- start-up; called once by core/kern/main.c in this order, on the boot CPU ---- */

/* The kernel's copy of what the loader handed over.  Valid from kernel_main() on. */
const struct boot_info *arch_boot_info(void);
/* ACPI tables, interrupt controllers, clocks, per-CPU areas.  Needs arch_set_page_source().
 * Returns the number of usable CPUs (1..MAX_CPUS; more are ignored with a log line), negative errno on a broken machine. */
int arch_init(void);
/* Starts CPUs 1..num-1; each runs entry() on its own idle stack, interrupts off, per-CPU block installed.  Returns how many
 * CPUs run, the boot CPU included; a CPU that does not answer within 1 s is named in the log and left out. */
u32 arch_start_cpus(u32 num, void (*entry)(void));
/* Where page-table pages come from.  alloc returns a zeroed page's physical address, 0 if there is none. */
void arch_set_page_source(paddr_t (*alloc)(void), void (*release)(paddr_t page));

/* ---- threads ---- */

#define ARCH_FPU_SIZE 512
/* Embedded in struct thread.  Private to arch/ but for fs_base. */
struct arch_thread {
    u64 sp;
    u64 kstack_top;
    u64 irq_stack_top;
    u64 fault_stack_top;
    u64 fs_base; /* application's TLS pointer: set through arch_set_tls() for the current thread */
    u64 has_fpu; /* 0: kernel thread, no FPU state kept */
    u8 fpu[ARCH_FPU_SIZE] __aligned(16);
};

/* Prepares a thread so that the first arch_switch() to it calls entry(arg) with interrupts off on its kernel stack.
 * entry must not return.  Stack tops are 16-byte aligned ends of mapped areas. */
void arch_thread_init(struct arch_thread *t, u64 kstack_top, u64 irq_stack_top, u64 fault_stack_top,
                      void (*entry)(void *arg), void *arg);
/* Gives an application thread a clean FPU state. */
void arch_thread_init_fpu(struct arch_thread *t);
/* Copies the current thread's FPU state into a child (clone). */
void arch_thread_copy_fpu(struct arch_thread *child);
/* Saves prev, resumes next.  Interrupts off, run-queue lock rules: sched/switch.c.  Returns when prev is resumed. */
void arch_switch(struct arch_thread *prev, struct arch_thread *next);
/* Leaves the kernel for application code at pc with stack sp, all other registers zero, interrupts on.  Thread context. */
void arch_enter_app(u64 pc, u64 sp) __noreturn;
/* Resumes application code from a full register set, interrupts on (a cloned thread's first step). */
void arch_resume_app(const struct arch_regs *regs) __noreturn;
void arch_set_tls(struct arch_thread *t, u64 fs_base);

/* Register access for system calls, clone, signals and profiles. */
u64 arch_regs_pc(const struct arch_regs *r);
u64 arch_regs_sp(const struct arch_regs *r);
u64 arch_regs_fp(const struct arch_regs *r);
void arch_regs_set_pc(struct arch_regs *r, u64 pc);
void arch_regs_set_sp(struct arch_regs *r, u64 sp);
void arch_regs_set_return(struct arch_regs *r, i64 value);
size_t arch_regs_size(void); /* bytes, to copy a register set opaquely */
/* True if the registers belong to application code (pc below APP_MAX). */
bool arch_regs_in_app(const struct arch_regs *r);

/* Signal frames (Linux x86-64 layout).  push: builds siginfo + ucontext on the application's stack (or alt_sp if nonzero)
 * and points r at handler(signo, siginfo, ucontext) returning to restorer; false if the stack is not writable.
 * pop: rt_sigreturn; restores r and *mask from the frame at its stack pointer; false if the frame is not readable. */
struct arch_signal {
    u32 signo;
    i32 code;       /* si_code */
    u64 value;      /* si_value, or si_addr for faults */
    u32 sender_pid;
    u64 handler;
    u64 restorer;
    u64 mask;       /* blocked signals to be restored by sigreturn */
    u64 alt_sp;
};
bool arch_signal_push(struct arch_regs *r, struct arch_thread *t, const struct arch_signal *sig);
bool arch_signal_pop(struct arch_regs *r, struct arch_thread *t, u64 *mask);

/* A place to come back to from code that has run away.  set: 0 when called, 1 when arch_recover() made the CPU return there; the
 * frame that called it must still be live.  recover: from upcall_nmi() only; changes what the interrupted code goes on with. */
struct arch_recovery {
    u64 saved[8];
};
int arch_recovery_set(struct arch_recovery *r) __attribute__((returns_twice));
void arch_recover(struct arch_regs *regs, const struct arch_recovery *r);

/* Return addresses from frame pointers, newest first, starting at frame pointer fp; never faults, stops at the first
 * address that is not mapped, not aligned or not rising.  Returns how many were stored. */
size_t arch_backtrace(u64 fp, u64 *pcs, size_t max);
/* Frame pointer of a thread that is switched out (for dumps). */
u64 arch_thread_saved_fp(const struct arch_thread *t);

/* ---- memory ---- */

enum arch_prot {
    ARCH_PROT_READ = 1,
    ARCH_PROT_WRITE = 2,
    ARCH_PROT_EXEC = 4,   /* refused together with WRITE (W^X): -EINVAL */
    ARCH_PROT_UNCACHED = 8, /* device memory */
};

/* Page tables of the one address space.  va, pa: page-aligned; pages >= 1.  The caller serialises calls on one range
 * (core/mm holds its lock).  map: -ENOMEM if no page-table page; mapping over a present page is a bug (panics).
 * No TLB flush is needed after map. */
int arch_pt_map(u64 va, paddr_t pa, size_t pages, u32 prot);
/* Unmaps one page; returns its physical address, 0 if none was mapped.  The caller flushes before it reuses the page. */
paddr_t arch_pt_unmap(u64 va);
/* Changes the protection of one present page; false if none is mapped.  The caller flushes. */
bool arch_pt_protect(u64 va, u32 prot);
/* Physical address behind va (with offset), 0 if not mapped. */
paddr_t arch_pt_lookup(u64 va);
/* Flushes the range from the TLBs of all CPUs; waits for them.  Thread context, interrupts on, no spin lock held. */
void arch_tlb_flush(u64 va, size_t pages);
/* Runs a flush that another CPU asks of this one; spin loops that run with interrupts off call it so that a flush can
 * never deadlock with a lock. */
void arch_tlb_poll(void);

/* Copies between kernel and application memory (demand-zero pages are faulted in).  Return false, with a part possibly
 * copied, if an address is outside APP_MIN..APP_MAX, not mapped, or not writable.  Any context but with the core/mm
 * lock held.  Naturally aligned 1, 2, 4 or 8 bytes are one access: such a word is never seen half written, so that it may
 * be one that the application polls or swaps. */
bool arch_copy_from_app(void *dst, u64 src, size_t bytes);
bool arch_copy_to_app(u64 dst, const void *src, size_t bytes);
/* String of at most max bytes with its NUL; returns its length, -EFAULT, or -ENAMETOOLONG. */
i64 arch_copy_string_from_app(char *dst, u64 src, size_t max);
bool arch_zero_app(u64 dst, size_t bytes);
/* Atomic compare-and-swap on an aligned 32-bit word of the application.  *old receives the value seen. */
bool arch_cmpxchg_app(u64 addr, u32 expected, u32 desired, u32 *old);
/* Reads an aligned 32-bit word of the application. */
bool arch_load_app(u64 addr, u32 *value);

/* ---- time ---- */

/* Monotonic since boot, the same on all CPUs. */
u64 arch_clock_ns(void);
/* Unix time at arch_clock_ns() == 0. */
u64 arch_wall_base_ns(void);
/* One-shot timer of this CPU; the last call counts.  A deadline in the past fires at once.  Interrupts off. */
void arch_timer_arm(u64 deadline_ns);
void arch_timer_disarm(void);
/* "tsc", "kvmclock", "hpet" ...: what the clock reads; and its frequency in Hz. */
const char *arch_clock_name(u64 *hz);
/* Parameters for the vDSO: clock ns = base_ns + ((tsc - base_tsc) * mult >> shift).  false if reading the clock needs the
 * kernel. */
bool arch_clock_params(u64 *base_tsc, u64 *base_ns, u32 *mult, u32 *shift);
/* Time that the host did not give to this CPU since boot, from the host's steal-time report; false if it gives none. */
bool arch_steal_ns(u32 cpu, u64 *ns);

/* ---- interrupts ---- */

enum arch_ipi {
    ARCH_IPI_RESCHED, /* upcall_ipi_resched() */
    ARCH_IPI_CALL,    /* upcall_ipi_call() */
    ARCH_IPI_TLB,     /* internal */
    ARCH_IPI_STOP,    /* panic: the target halts for good */
    ARCH_IPI_WATCH,   /* upcall_nmi(), even if the target has interrupts off */
};
void arch_send_ipi(u32 cpu, enum arch_ipi ipi);

struct arch_msi {
    u64 address;
    u32 data;
};
/* Allocates a vector on `cpu` that calls handler(arg) in interrupt context; fills what the device must write.
 * Returns the vector, -ENOSPC if the CPU has none left (224 minus the kernel's own).  Start-up or thread context. */
int arch_irq_alloc_msi(u32 cpu, void (*handler)(void *arg), void *arg, struct arch_msi *msi);
void arch_irq_free(u32 cpu, int vector);

/* ---- PCI ---- */

struct arch_pci_dev {
    u16 vendor, device, subsystem;
    u8 bus, slot, func;
    u8 class_code, subclass;
};
/* Calls fn for every function found until it returns false. */
void arch_pci_scan(bool (*fn)(const struct arch_pci_dev *dev, void *arg), void *arg);
u32 arch_pci_read(const struct arch_pci_dev *dev, u32 offset, u32 bytes); /* bytes: 1, 2, 4 */
void arch_pci_write(const struct arch_pci_dev *dev, u32 offset, u32 bytes, u32 value);
/* Size and physical base of a memory BAR (64-bit BARs included); 0 if absent or an I/O BAR. */
u64 arch_pci_bar(const struct arch_pci_dev *dev, u32 index, paddr_t *base);
/* Maps device memory uncached; NULL if no address space is left. */
void *arch_mmio_map(paddr_t base, u64 bytes);

/* ---- platform ---- */

void arch_console_write(const char *s, size_t n); /* polled; safe in a panic */
/* Powers the machine off.  code 0..127 is visible outside where the machine has an exit device. */
void arch_power_off(int code) __noreturn;
/* 64 bits of hardware randomness; false if the CPU has none. */
bool arch_random(u64 *out);
/* Reads QEMU's fw_cfg file `name`; returns bytes read (at most max), -ENOENT, -ENODEV. */
i64 arch_fw_cfg_read(const char *name, void *buf, size_t max);
/* Are the CPUs emulated in software (QEMU's TCG)?  Then polling takes host time from the very CPU that is waited for. */
bool arch_emulated(void);
/* Stops all other CPUs (panic). */
void arch_stop_other_cpus(void);

/* ---- upcalls: implemented by the rest of the kernel ---- */

/* First C code after arch's own early set-up: boot CPU, interrupts off, direct map and kernel image mapped with their
 * final protections, console working, per-CPU block of CPU 0 installed. */
void kernel_main(void) __noreturn;
/* A system call of the current thread; interrupts on, its own kernel stack.  The result is what the application sees. */
i64 upcall_syscall(u64 nr, const u64 args[6], struct arch_regs *regs);
/* Interrupt context: the CPU's one-shot timer fired / somebody sent an IPI. */
void upcall_timer(struct arch_regs *regs);
void upcall_ipi_resched(void);
void upcall_ipi_call(void);
/* A CPU asked to look at this one (ARCH_IPI_WATCH).  NMI context: touch nothing but this CPU's own state, take no locks. */
void upcall_nmi(struct arch_regs *regs);
/* After each interrupt's handler and EOI, still on the per-CPU interrupt stack, interrupts off: deferred work. */
void upcall_irq_tail(void);
/* End of the outermost interrupt, back on the interrupted thread's interrupt stack, interrupts off: may switch threads, may
 * deliver a signal by changing regs. */
void upcall_irq_exit(struct arch_regs *regs);
/* A page fault that arch could not explain.  Fault stack, interrupts off, must not block.  True: retry the instruction. */
bool upcall_page_fault(u64 addr, bool write, bool exec, struct arch_regs *regs);
/* Any other exception in application code (signo: SIGSEGV, SIGILL, SIGFPE, SIGBUS, SIGTRAP); also page faults that
 * upcall_page_fault refused.  Same context.  Changes regs or does not return. */
void upcall_app_exception(u32 signo, i32 code, u64 addr, struct arch_regs *regs);
/* The power button was pressed. */
void upcall_power_button(void);

#endif
