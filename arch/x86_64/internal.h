/* What the files of arch/x86_64 tell each other.  Private. */
#ifndef WEIR_ARCH_X86_64_INTERNAL_H
#define WEIR_ARCH_X86_64_INTERNAL_H

#include "arch/arch.h"
#include "arch/x86_64/acpi.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/regs.h"
#include "core/base/types.h"

/* Lock for arch's own short sections (device registers): innermost, interrupts off. */
static inline irqflags_t raw_lock(u32 *lock)
{
    irqflags_t flags = arch_irq_save();
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) {
        arch_tlb_poll();
        arch_cpu_relax();
    }
    return flags;
}

static inline void raw_unlock(u32 *lock, irqflags_t flags)
{
    STORE_RELEASE(*lock, 0);
    arch_irq_restore(flags);
}

/* ---- linker script ---- */
extern char __kernel_start[], __kernel_end[], __text_end[];
extern char __rodata_start[], __rodata_end[], __data_start[];
extern char boot_stack_guard[], boot_stack_top[];

/* ---- boot.c ---- */
extern struct boot_info boot_info_copy;
/* Physical address of something in the kernel image (text, data, bss). */
paddr_t image_phys(const void *va);
/* A zeroed page below 4 GiB while the early tables are built; panics if there is none. */
paddr_t early_page_alloc(void);
void boot_main(paddr_t pvh_start_info, paddr_t kernel_phys) __noreturn;
/* Page below 1 MiB for the AP trampoline, 0 if the machine has none. */
paddr_t boot_trampoline_page(void);

/* ---- paging.c ---- */
/* Builds the final tables and loads them.  `ranges` as the loader gave them (RAM is mapped), before
 * carving. */
void paging_init(const struct boot_range *ranges, u32 num, const struct boot_info *info);
paddr_t paging_root(void);
paddr_t arch_page_alloc(void); /* from the page source; 0 if none */
/* Address space for arch's own mappings, page-aligned, with an unmapped page before it; 0 if none
 * is left. */
u64 arch_va_alloc(u64 bytes);
/* Allocates and maps a stack with a guard page below; returns its top, 0 without memory. */
u64 arch_stack_alloc(u64 bytes);
/* Pointer to physical memory that may lie outside the direct map (firmware tables); read-only,
 * cached; NULL on failure. */
const void *arch_phys_map(paddr_t base, u64 bytes);
/* Does the page table let code in ring 0 do this access now?  Used to spot stale TLB entries. */
bool paging_allows(u64 va, bool write, bool exec);

/* ---- gdt.c ---- */
struct cpu_stack_tops {
    u64 irq;        /* per-CPU interrupt-handler stack */
    u64 thread_irq; /* IST1 until the first switch */
    u64 fault;      /* IST2 until the first switch */
    u64 nmi;
    u64 fatal;
};
/* Installs this CPU's GDT, TSS, IDT, GS base, system-call MSRs and control-register bits. */
void cpu_init(u32 cpu, const struct cpu_stack_tops *tops);
void idt_init(void);
extern bool cpu_has_fsgsbase;
static inline bool cpu_in_hypervisor(void)
{
    return (cpuid(1, 0).ecx & BIT(31)) != 0; /* the bit that hypervisors set, 0 on hardware */
}

/* ---- apic.c ---- */
bool lapic_init(paddr_t base); /* boot CPU: finds and enables; false without a local APIC */
void lapic_enable_this_cpu(void);
u32 lapic_id(void);
bool lapic_is_x2apic(void);
void lapic_eoi(void);
void lapic_send(u32 apic_id, u32 command); /* ICR low word */
u32 lapic_error_status(void);
/* Calibration (clock.c): lets the timer count down with its interrupt masked; reads it; ends with
 * the rate found. */
void lapic_timer_calibrate_begin(void);
u32 lapic_timer_count(void);
void lapic_timer_calibrate_end(u64 hz);
void lapic_timer_init_this_cpu(void);
void lapic_timer_interrupt(struct arch_regs *regs);
#define ICR_INIT    0x4500u
#define ICR_STARTUP 0x4600u
#define ICR_NMI     0x4400u
#define ICR_FIXED   0x4000u

/* ---- ioapic.c ---- */
void ioapic_init(const struct acpi_info *acpi);
/* Routes the legacy interrupt `irq` (overrides applied) to vector on the boot CPU; false if no
 * IOAPIC has the pin. */
bool ioapic_route(const struct acpi_info *acpi, u32 irq, u8 vector, bool level, bool active_low);

/* ---- traps.c, irq.c ---- */
struct arch_regs *trap_exception(struct arch_regs *regs);
void trap_app_exception(struct arch_regs *regs);
void irq_dispatch(struct arch_regs *regs);
int irq_tables_init(u32 num_cpus);
void irq_handle_sci(void);
u64 ex_table_lookup(u64 rip); /* 0 if none */

/* ---- clock.c, kvmclock.c ---- */
int clock_init(const struct acpi_info *acpi);
void clock_delay_ns(u64 ns); /* busy; after clock_init */
/* TSC value at a clock time; false if the clock is not the TSC. */
bool clock_tsc_at(u64 clock_ns, u64 *tsc);
bool kvmclock_detect(void);
void kvmclock_init_this_cpu(u32 cpu);
bool kvmclock_usable(void);
u64 kvmclock_tsc_hz(void);
u64 kvmclock_read_ns(void);

/* ---- tlb.c, smp.c ---- */
void tlb_flush_all_local(void);
/* First thing in an interrupt: catches up with flushes that this CPU was spared while it was
 * halted. */
void tlb_leave_idle(struct percpu *pc);
extern cpumask_t cpus_online; /* atomic; CPUs that take part in TLB flushes */
extern bool stop_requested;   /* a panic stops all CPUs: NMIs halt */
const struct acpi_info *arch_acpi(void);
void cpu_stop_forever(void) __noreturn;

/* ---- power.c, fw_cfg.c, pci.c ---- */
void power_init(const struct acpi_info *acpi);
bool fw_cfg_present(void);
void pci_init(const struct acpi_info *acpi);

/* ---- serial.c ---- */
void serial_init(void);

/* ---- assembly ---- */
void syscall_entry(void);
void resume_regs(const struct arch_regs *regs) __noreturn;
void arch_thread_start(void);
extern char vector_stubs[];

#endif
