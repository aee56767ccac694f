/* Local APIC: x2APIC where present, else memory-mapped; inter-processor interrupts; the one-shot
 * timer.
 *
 * Registers and commands: Intel SDM vol. 3, "Advanced Programmable Interrupt Controller". */
#include "arch/x86_64/asm_defs.h"
#include "arch/x86_64/clock_math.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"
#include "core/base/log.h"

enum lapic_reg {
    REG_ID = 0x20,
    REG_TPR = 0x80,
    REG_EOI = 0xb0,
    REG_SPURIOUS = 0xf0,
    REG_ERROR = 0x280,
    REG_ICR_LOW = 0x300,
    REG_ICR_HIGH = 0x310,
    REG_LVT_TIMER = 0x320,
    REG_LVT_LINT0 = 0x350,
    REG_LVT_LINT1 = 0x360,
    REG_LVT_ERROR = 0x370,
    REG_TIMER_INITIAL = 0x380,
    REG_TIMER_CURRENT = 0x390,
    REG_TIMER_DIVIDE = 0x3e0,
};

#define APIC_BASE_X2APIC  BIT(10)
#define APIC_BASE_ENABLE  BIT(11)
#define SPURIOUS_ENABLE   BIT(8)
#define LVT_MASKED        BIT(16)
#define LVT_NMI           0x400u
#define LVT_TSC_DEADLINE  BIT(18)
#define TIMER_DIVIDE_BY_1 0xbu
/* Later deadlines are taken for this one: 36 years, and still no overflow when it is scaled to
 * ticks. */
#define LAST_DEADLINE_NS BIT(60)
#define ICR_PENDING      BIT(12)

#define CPUID_1_EDX_APIC         BIT(9)
#define CPUID_1_ECX_X2APIC       BIT(21)
#define CPUID_1_ECX_TSC_DEADLINE BIT(24)

static bool x2apic;
static bool tsc_deadline;
static bool send_is_immediate; /* emulated: no need to look whether the last IPI has left */
static volatile u8 *mmio;      /* NULL with x2APIC */
static struct clock_scale ticks_per_ns;

static u32 lapic_read(enum lapic_reg reg)
{
    if (x2apic) {
        return (u32)rdmsr(MSR_X2APIC_BASE + ((u32)reg >> 4));
    }
    return mmio_read32(mmio + reg);
}

static void lapic_write(enum lapic_reg reg, u32 value)
{
    if (x2apic) {
        wrmsr(MSR_X2APIC_BASE + ((u32)reg >> 4), value);
    } else {
        mmio_write32(mmio + reg, value);
    }
}

bool lapic_init(paddr_t base)
{
    struct cpuid_regs features = cpuid(1, 0);
    if (!(features.edx & CPUID_1_EDX_APIC)) {
        return false;
    }
    x2apic = (features.ecx & CPUID_1_ECX_X2APIC) != 0;
    send_is_immediate = cpu_in_hypervisor();
    if (!x2apic) {
        mmio = arch_mmio_map(base, PAGE_SIZE);
        if (!mmio) {
            return false;
        }
    }
    lapic_enable_this_cpu();
    return true;
}

void lapic_enable_this_cpu(void)
{
    u64 base = rdmsr(MSR_APIC_BASE) | APIC_BASE_ENABLE;
    wrmsr(MSR_APIC_BASE, base);
    if (x2apic) {
        wrmsr(MSR_APIC_BASE, base | APIC_BASE_X2APIC);
    }
    lapic_write(REG_TPR, 0);
    lapic_write(REG_LVT_LINT0, LVT_MASKED);
    lapic_write(REG_LVT_LINT1, LVT_NMI);
    lapic_write(REG_LVT_ERROR, VECTOR_APIC_ERROR);
    lapic_write(REG_LVT_TIMER, LVT_MASKED);
    lapic_write(REG_SPURIOUS, SPURIOUS_ENABLE | VECTOR_SPURIOUS);
}

u32 lapic_id(void)
{
    u32 id = lapic_read(REG_ID);
    return x2apic ? id : id >> 24;
}

bool lapic_is_x2apic(void)
{
    return x2apic;
}

void lapic_eoi(void)
{
    lapic_write(REG_EOI, 0);
}

u32 lapic_error_status(void)
{
    lapic_write(REG_ERROR, 0);
    return lapic_read(REG_ERROR);
}

void lapic_send(u32 apic_id, u32 command)
{
    if (x2apic) {
        /* The MSR write does not order earlier stores, which the receiver must see. */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        wrmsr(MSR_X2APIC_BASE + (REG_ICR_LOW >> 4), (u64)apic_id << 32 | command);
        return;
    }
    irqflags_t flags = arch_irq_save(); /* the two writes belong together */
    while (!send_is_immediate && lapic_read(REG_ICR_LOW) & ICR_PENDING) {
        arch_cpu_relax();
    }
    lapic_write(REG_ICR_HIGH, apic_id << 24);
    lapic_write(REG_ICR_LOW, command);
    arch_irq_restore(flags);
}

void arch_send_ipi(u32 cpu, enum arch_ipi ipi)
{
    static const u32 commands[] = {
        [ARCH_IPI_RESCHED] = ICR_FIXED | VECTOR_RESCHED,
        [ARCH_IPI_CALL] = ICR_FIXED | VECTOR_CALL,
        [ARCH_IPI_TLB] = ICR_FIXED | VECTOR_TLB,
        [ARCH_IPI_STOP] = ICR_NMI,
        [ARCH_IPI_WATCH] = ICR_NMI,
    };
    lapic_send((u32)percpu_of(cpu)->arch_private[PRIV_APIC_ID], commands[ipi]);
}

/* ---- timer ---- */

void lapic_timer_calibrate_begin(void)
{
    lapic_write(REG_TIMER_DIVIDE, TIMER_DIVIDE_BY_1);
    lapic_write(REG_TIMER_INITIAL, UINT32_MAX);
}

u32 lapic_timer_count(void)
{
    return lapic_read(REG_TIMER_CURRENT);
}

void lapic_timer_calibrate_end(u64 hz)
{
    lapic_write(REG_TIMER_INITIAL, 0);
    tsc_deadline = cpuid(1, 0).ecx & CPUID_1_ECX_TSC_DEADLINE && clock_tsc_at(0, &(u64){0});
    ticks_per_ns = clock_scale_make(NSEC_PER_SEC, hz);
}

void lapic_timer_init_this_cpu(void)
{
    if (tsc_deadline) {
        lapic_write(REG_LVT_TIMER, LVT_TSC_DEADLINE | VECTOR_TIMER);
        /* The mode must be set before the first deadline is written (SDM: order MMIO against
         * WRMSR). */
        __asm__ volatile("mfence" ::: "memory");
    } else {
        lapic_write(REG_TIMER_DIVIDE, TIMER_DIVIDE_BY_1);
        lapic_write(REG_LVT_TIMER, VECTOR_TIMER);
    }
}

static void program(u64 deadline_ns)
{
    u64 tsc;
    if (tsc_deadline && clock_tsc_at(deadline_ns, &tsc)) {
        wrmsr(MSR_TSC_DEADLINE, tsc ? tsc : 1);
        return;
    }
    u64 now = arch_clock_ns();
    u64 delta = deadline_ns > now ? deadline_ns - now : 0;
    lapic_write(REG_TIMER_INITIAL, clock_timer_count(ticks_per_ns, delta));
}

void arch_timer_arm(u64 deadline_ns)
{
    u64 *armed = &this_cpu()->arch_private[PRIV_TIMER];
    deadline_ns = MIN(MAX(deadline_ns, 1ull), LAST_DEADLINE_NS);
    if (*armed == deadline_ns) {
        return;
    }
    *armed = deadline_ns;
    program(deadline_ns);
}

void arch_timer_disarm(void)
{
    u64 *armed = &this_cpu()->arch_private[PRIV_TIMER];
    if (*armed == 0) {
        return;
    }
    *armed = 0;
    if (tsc_deadline) {
        wrmsr(MSR_TSC_DEADLINE, 0);
    } else {
        lapic_write(REG_TIMER_INITIAL, 0);
    }
}

void lapic_timer_interrupt(struct arch_regs *regs)
{
    u64 *armed = &this_cpu()->arch_private[PRIV_TIMER];
    u64 deadline = *armed;
    if (deadline == 0) {
        return; /* disarmed while the interrupt was on its way */
    }
    if (arch_clock_ns() < deadline) {
        program(deadline); /* further away than the counter's 32 bits reach */
        return;
    }
    *armed = 0;
    upcall_timer(regs);
}
