/* IOAPICs: all pins masked, but those that the kernel routes; the 8259s are put out of the way. */
#include "arch/x86_64/asm_defs.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"
#include "core/base/log.h"

#define IOAPIC_SIZE 32
enum { IOAPIC_SELECT = 0x00, IOAPIC_WINDOW = 0x10 };
enum { IOAPIC_REG_VERSION = 1, IOAPIC_REG_REDIRECTION = 0x10 };
#define REDIRECT_ACTIVE_LOW BIT(13)
#define REDIRECT_LEVEL      BIT(15)
#define REDIRECT_MASKED     BIT(16)

enum { PIC1_COMMAND = 0x20, PIC1_DATA = 0x21, PIC2_COMMAND = 0xa0, PIC2_DATA = 0xa1 };

static struct {
    volatile u8 *mmio;
    u32 gsi_base, pins;
} ioapics[ACPI_MAX_IOAPICS];
static u32 num_ioapics;

static u32 ioapic_read(volatile u8 *mmio, u32 reg)
{
    mmio_write32(mmio + IOAPIC_SELECT, reg);
    return mmio_read32(mmio + IOAPIC_WINDOW);
}

static void ioapic_write(volatile u8 *mmio, u32 reg, u32 value)
{
    mmio_write32(mmio + IOAPIC_SELECT, reg);
    mmio_write32(mmio + IOAPIC_WINDOW, value);
}

static void disable_8259(void)
{
    /* Moved away from the exceptions, in case one raises a spurious interrupt, then masked. */
    outb(PIC1_COMMAND, 0x11);
    outb(PIC2_COMMAND, 0x11);
    outb(PIC1_DATA, VECTOR_FIRST_IRQ);
    outb(PIC2_DATA, VECTOR_FIRST_IRQ + 8);
    outb(PIC1_DATA, 4);
    outb(PIC2_DATA, 2);
    outb(PIC1_DATA, 1);
    outb(PIC2_DATA, 1);
    outb(PIC1_DATA, 0xff);
    outb(PIC2_DATA, 0xff);
}

void ioapic_init(const struct acpi_info *acpi)
{
    disable_8259();
    for (u32 i = 0; i < acpi->num_ioapics; i++) {
        volatile u8 *mmio = arch_mmio_map(acpi->ioapics[i].address, IOAPIC_SIZE);
        if (!mmio) {
            log_warn("ioapic: 0x%x cannot be mapped", acpi->ioapics[i].address);
            continue;
        }
        u32 pins = (ioapic_read(mmio, IOAPIC_REG_VERSION) >> 16 & 0xff) + 1;
        for (u32 pin = 0; pin < pins; pin++) {
            ioapic_write(mmio, IOAPIC_REG_REDIRECTION + 2 * pin, REDIRECT_MASKED);
        }
        ioapics[num_ioapics].mmio = mmio;
        ioapics[num_ioapics].gsi_base = acpi->ioapics[i].gsi_base;
        ioapics[num_ioapics++].pins = pins;
    }
}

bool ioapic_route(const struct acpi_info *acpi, u32 irq, u8 vector, bool level, bool active_low)
{
    u32 gsi = irq;
    for (u32 i = 0; i < acpi->num_overrides; i++) {
        const struct acpi_override *o = &acpi->overrides[i];
        if (o->irq == irq) {
            gsi = o->gsi;
            level = o->trigger_given ? o->level : level;
            active_low = o->polarity_given ? o->active_low : active_low;
        }
    }
    u32 apic_id = (u32)percpu_of(0)->arch_private[PRIV_APIC_ID];
    for (u32 i = 0; i < num_ioapics; i++) {
        u32 pin = gsi - ioapics[i].gsi_base;
        if (gsi < ioapics[i].gsi_base || pin >= ioapics[i].pins || apic_id > 255) {
            continue;
        }
        u32 low = vector | (level ? REDIRECT_LEVEL : 0) | (active_low ? REDIRECT_ACTIVE_LOW : 0);
        ioapic_write(ioapics[i].mmio, IOAPIC_REG_REDIRECTION + 2 * pin + 1, apic_id << 24);
        ioapic_write(ioapics[i].mmio, IOAPIC_REG_REDIRECTION + 2 * pin, low);
        return true;
    }
    return false;
}
