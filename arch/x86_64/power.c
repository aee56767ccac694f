/* Power button, power-off, hardware randomness. */
#include "arch/x86_64/asm_defs.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"
#include "core/base/log.h"

/* ACPI specification, "PM1 event and control registers". */
#define PM1_POWER_BUTTON     BIT(8)
#define PM1_SCI_ENABLED      BIT(0)
#define PM1_SLEEP_TYPE_SHIFT 10
#define PM1_SLEEP_ENABLE     BIT(13)
#define ACPI_ENABLE_POLLS    100000u
#define DEBUG_EXIT_PORT      0xf4 /* QEMU's isa-debug-exit: the process ends with code * 2 + 1 */
#define CPUID_1_ECX_RDRAND   BIT(30)
#define CPUID_7_EBX_RDSEED   BIT(18)
/* Intel's guide: 10 are enough for RDRAND; RDSEED may run dry for longer. */
#define RANDOM_TRIES 32

static const struct acpi_info *fadt;

void power_init(const struct acpi_info *acpi)
{
    if (!acpi->have_fadt || !acpi->pm1a_event || !acpi->pm1a_control) {
        log_warn("power: no ACPI event registers, the power button does nothing");
        return;
    }
    fadt = acpi;
    if (!(inw(acpi->pm1a_control) & PM1_SCI_ENABLED) && acpi->smi_command && acpi->acpi_enable) {
        outb(acpi->smi_command, acpi->acpi_enable);
        for (u32 i = 0; i < ACPI_ENABLE_POLLS && !(inw(acpi->pm1a_control) & PM1_SCI_ENABLED);
             i++) {
            arch_cpu_relax();
        }
    }
    if (!(inw(acpi->pm1a_control) & PM1_SCI_ENABLED)) {
        log_warn("power: ACPI mode cannot be switched on, the power button does nothing");
        return;
    }
    u16 enable = (u16)(acpi->pm1a_event + acpi->pm1_event_bytes / 2);
    outw(acpi->pm1a_event, PM1_POWER_BUTTON);
    outw(enable, PM1_POWER_BUTTON);
    if (!ioapic_route(acpi, acpi->sci_irq, VECTOR_SCI, true, true)) {
        log_warn("power: no IOAPIC for interrupt %u, the power button does nothing", acpi->sci_irq);
    }
}

void irq_handle_sci(void)
{
    u16 status = inw(fadt->pm1a_event);
    outw(fadt->pm1a_event, status); /* write 1 to clear */
    if (status & PM1_POWER_BUTTON) {
        upcall_power_button();
    }
}

void arch_power_off(int code)
{
    arch_irq_disable();
    if (fw_cfg_present()) {
        outb(DEBUG_EXIT_PORT, (u8)(code & 0x7f));
    }
    const struct acpi_info *acpi = arch_acpi();
    if (acpi->have_s5 && acpi->pm1a_control) {
        outw(acpi->pm1a_control, (u16)(acpi->s5_type_a << PM1_SLEEP_TYPE_SHIFT | PM1_SLEEP_ENABLE));
        if (acpi->pm1b_control) {
            outw(acpi->pm1b_control,
                 (u16)(acpi->s5_type_b << PM1_SLEEP_TYPE_SHIFT | PM1_SLEEP_ENABLE));
        }
    }
    for (;;) {
        __asm__ volatile("cli\n\thlt");
    }
}

bool arch_random(u64 *out)
{
    bool seed = cpuid(0, 0).eax >= 7 && cpuid(7, 0).ebx & CPUID_7_EBX_RDSEED;
    bool rand = cpuid(1, 0).ecx & CPUID_1_ECX_RDRAND;
    u8 ok = 0;
    for (u32 i = 0; seed && !ok && i < RANDOM_TRIES; i++) {
        __asm__ volatile("rdseed %0\n\tsetc %1" : "=r"(*out), "=qm"(ok)::"cc");
    }
    for (u32 i = 0; rand && !ok && i < RANDOM_TRIES; i++) {
        __asm__ volatile("rdrand %0\n\tsetc %1" : "=r"(*out), "=qm"(ok)::"cc");
    }
    return ok != 0;
}
