/* Starting the other CPUs, all at the same time, and stopping them. */
#include "arch/x86_64/asm_defs.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"

#define START_TIMEOUT_NS   NSEC_PER_SEC         /* without any CPU making progress */
#define SIPI_REPEAT_NS     (10 * NSEC_PER_MSEC) /* a lost start-up IPI is sent again */
#define INIT_DELAY_NS      (10 * NSEC_PER_MSEC) /* Intel SDM; hypervisors need none */
#define STOP_TIMEOUT_POLLS 10000000u

enum ap_state_value {
    AP_ABSENT = 0,
    AP_STARTING = 1,
    AP_ALIVE = 2,
    AP_READY = 3,
    AP_ABANDONED = 4
};

extern const char trampoline_start[], trampoline_end[];
extern const char trampoline_gdt[], trampoline_gdt_ptr[];
extern const char trampoline_far32[], trampoline_far64[], trampoline_cr3[];

/* Read by trampoline.S. */
extern u32 ap_count, ap_apic_ids[MAX_CPUS], ap_state[MAX_CPUS];
extern u64 ap_stack_tops[MAX_CPUS];
u32 ap_count, ap_apic_ids[MAX_CPUS], ap_state[MAX_CPUS];
u64 ap_stack_tops[MAX_CPUS];

static struct cpu_stack_tops ap_tops[MAX_CPUS];
static void (*ap_entry_function)(void);
bool stop_requested;

void ap_main(u32 cpu) __noreturn;

void ap_main(u32 cpu)
{
    cpu_init(cpu, &ap_tops[cpu]);
    this_cpu()->kstack_top = ap_stack_tops[cpu];
    lapic_enable_this_cpu();
    lapic_timer_init_this_cpu();
    kvmclock_init_this_cpu(cpu);
    __atomic_fetch_or(&cpus_online, BIT(cpu), __ATOMIC_SEQ_CST);
    tlb_flush_all_local(); /* what was flushed elsewhere before this CPU counted as online */
    STORE_RELEASE(ap_state[cpu], AP_READY);
    ap_entry_function();
    panic("smp: entry of cpu %u returned", cpu);
}

static bool allocate_stacks(u32 cpu)
{
    ap_stack_tops[cpu] = arch_stack_alloc(KSTACK_SIZE);
    ap_tops[cpu] = (struct cpu_stack_tops){
        .irq = arch_stack_alloc(CPU_IRQ_STACK_SIZE),
        .thread_irq = arch_stack_alloc(THREAD_IRQ_STACK_SIZE),
        .fault = arch_stack_alloc(THREAD_FAULT_STACK_SIZE),
        .nmi = arch_stack_alloc(PAGE_SIZE),
        .fatal = arch_stack_alloc(PAGE_SIZE),
    };
    const struct cpu_stack_tops *t = &ap_tops[cpu];
    return ap_stack_tops[cpu] && t->irq && t->thread_irq && t->fault && t->nmi && t->fatal;
}

static u32 read32(const u8 *p)
{
    u32 v;
    memcpy(&v, p, sizeof(v));
    return v;
}

/* Copies the trampoline to its page, adds the page's address where absolute addresses are
 * needed. */
static void install_trampoline(paddr_t page)
{
    u8 *copy = phys_to_virt(page);
    const char *const absolute[] = {trampoline_gdt_ptr + 2, trampoline_far32, trampoline_far64};
    memcpy(copy, trampoline_start, (size_t)(trampoline_end - trampoline_start));
    for (u32 i = 0; i < ARRAY_SIZE(absolute); i++) {
        u8 *field = copy + (absolute[i] - trampoline_start);
        u32 value = read32(field) + (u32)page;
        memcpy(field, &value, sizeof(value));
    }
    u32 cr3 = (u32)paging_root();
    memcpy(copy + (trampoline_cr3 - trampoline_start), &cr3, sizeof(cr3));
}

static void send_to_starting(u32 num, u32 command)
{
    for (u32 cpu = 1; cpu < num; cpu++) {
        if (LOAD_ACQUIRE(ap_state[cpu]) == AP_STARTING) {
            lapic_send(ap_apic_ids[cpu], command);
        }
    }
}

static u32 count_ready(u32 num, u32 *progress)
{
    u32 ready = 0;
    *progress = 0;
    for (u32 cpu = 1; cpu < num; cpu++) {
        u32 state = LOAD_ACQUIRE(ap_state[cpu]);
        ready += state == AP_READY;
        *progress += state;
    }
    return ready;
}

static void wait_for_cpus(u32 num, u32 wanted, u32 sipi)
{
    u32 progress, seen = 0;
    u64 last_progress = arch_clock_ns(), last_sipi = last_progress;
    while (count_ready(num, &progress) < wanted) {
        u64 now = arch_clock_ns();
        if (progress != seen) {
            seen = progress;
            last_progress = now;
        } else if (now - last_progress > START_TIMEOUT_NS) {
            return;
        }
        if (now - last_sipi > SIPI_REPEAT_NS) {
            last_sipi = now;
            send_to_starting(num, sipi);
        }
        arch_cpu_relax();
    }
}

static u32 collect(u32 num)
{
    u32 running = 1;
    for (u32 cpu = 1; cpu < num; cpu++) {
        u32 expected = AP_STARTING;
        if (__atomic_compare_exchange_n(&ap_state[cpu], &expected, AP_ABANDONED, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
            expected != AP_READY) {
            log_warn("smp: cpu %u (APIC id %u) does not answer and is left out", cpu,
                     ap_apic_ids[cpu]);
        } else {
            running++;
        }
    }
    return running;
}

u32 arch_start_cpus(u32 num, void (*entry)(void))
{
    const struct acpi_info *acpi = arch_acpi();
    paddr_t page = boot_trampoline_page();
    num = MIN(num, acpi->num_cpus);
    if (num <= 1) {
        return 1;
    }
    if (!page || paging_root() >> 32 ||
        arch_pt_map(page, page, 1, ARCH_PROT_READ | ARCH_PROT_EXEC) != 0) {
        log_error("smp: no page below 1 MiB to start CPUs from, running on one");
        return 1;
    }
    install_trampoline(page);
    ap_entry_function = entry;
    u32 wanted = 0;
    for (u32 cpu = 1; cpu < num; cpu++) {
        ap_apic_ids[cpu] = acpi->apic_ids[cpu];
        if (!lapic_is_x2apic() && ap_apic_ids[cpu] > 254) {
            log_warn("smp: cpu %u has APIC id %u, which needs x2APIC", cpu, ap_apic_ids[cpu]);
        } else if (!allocate_stacks(cpu)) {
            log_warn("smp: no memory for the stacks of cpu %u", cpu);
        } else {
            ap_state[cpu] = AP_STARTING;
            wanted++;
        }
    }
    ap_apic_ids[0] = acpi->apic_ids[0];
    STORE_RELEASE(ap_count, num);
    u32 sipi = ICR_STARTUP | (u32)(page >> PAGE_SHIFT);
    send_to_starting(num, ICR_INIT);
    if (!cpu_in_hypervisor()) {
        clock_delay_ns(INIT_DELAY_NS);
    }
    send_to_starting(num, sipi);
    wait_for_cpus(num, wanted, sipi);
    u32 running = collect(num);
    arch_pt_unmap(page);
    if (page < APP_MIN) {
        /* The others flushed when they came up, and nothing is ever mapped there. */
        tlb_flush_all_local();
    } else {
        arch_tlb_flush(page, 1);
    }
    return running;
}

void cpu_stop_forever(void)
{
    WRITE_ONCE(this_cpu()->arch_private[PRIV_STOPPED], 1);
    for (;;) {
        __asm__ volatile("cli\n\thlt");
    }
}

void arch_stop_other_cpus(void)
{
    cpumask_t others = READ_ONCE(cpus_online) & ~BIT(this_cpu()->cpu);
    if (__atomic_exchange_n(&stop_requested, true, __ATOMIC_SEQ_CST)) {
        return;
    }
    for (cpumask_t left = others; left; left &= left - 1) {
        arch_send_ipi((u32)__builtin_ctzll(left), ARCH_IPI_STOP);
    }
    /* By count, not by time: the clock may be what broke. */
    for (u32 polls = 0; polls < STOP_TIMEOUT_POLLS && others; polls++) {
        u32 cpu = (u32)__builtin_ctzll(others);
        if (READ_ONCE(percpu_of(cpu)->arch_private[PRIV_STOPPED])) {
            others &= others - 1;
        }
        arch_cpu_relax();
    }
}
