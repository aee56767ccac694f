/* PCI configuration space: memory-mapped (ECAM) where the MCFG table says so, else ports
 * 0xcf8/0xcfc.  Segment 0 only. */
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"
#include "core/base/log.h"

/* PCI local bus specification 3.0, "configuration space". */
enum {
    CFG_VENDOR = 0x00,
    CFG_DEVICE = 0x02,
    CFG_COMMAND = 0x04,
    CFG_SUBCLASS = 0x0a,
    CFG_CLASS = 0x0b,
    CFG_HEADER_TYPE = 0x0e,
    CFG_BAR0 = 0x10,
    CFG_SECONDARY_BUS = 0x19,
    CFG_SUBSYSTEM = 0x2e,
};
#define COMMAND_MEMORY       BIT(1)
#define HEADER_MULTIFUNCTION 0x80u
#define HEADER_BRIDGE        1u
#define BAR_IO               BIT(0)
#define BAR_TYPE_64          0x4u
#define BAR_TYPE_MASK        0x6u
#define BAR_ADDRESS_MASK     0xfffffff0u
#define NUM_BARS             6
#define CONFIG_ADDRESS       0xcf8
#define CONFIG_DATA          0xcfc
#define CONFIG_ENABLE        BIT(31)
#define PORT_CONFIG_SIZE     256u
#define ECAM_BUS_SIZE        (1ull << 20)
#define MAX_BUSES            256

static u32 lock;
static paddr_t ecam_base;
static u8 ecam_first, ecam_last;
static volatile u8 *ecam_bus[MAX_BUSES]; /* mapped when first used: 1 MiB each */

void pci_init(const struct acpi_info *acpi)
{
    for (u32 i = 0; i < acpi->num_ecam; i++) {
        if (acpi->ecam[i].segment == 0) {
            ecam_base = acpi->ecam[i].base;
            ecam_first = acpi->ecam[i].first_bus;
            ecam_last = acpi->ecam[i].last_bus;
            return;
        }
    }
}

static volatile u8 *ecam_address(const struct arch_pci_dev *d, u32 offset)
{
    if (!ecam_base || d->bus < ecam_first || d->bus > ecam_last) {
        return NULL;
    }
    if (!LOAD_ACQUIRE(ecam_bus[d->bus])) {
        /* MCFG gives the address that bus 0 would have, whatever the first bus is. */
        volatile u8 *mapped = arch_mmio_map(ecam_base + d->bus * ECAM_BUS_SIZE, ECAM_BUS_SIZE);
        if (!mapped) {
            return NULL;
        }
        STORE_RELEASE(ecam_bus[d->bus], mapped);
    }
    return ecam_bus[d->bus] + ((u32)d->slot << 15 | (u32)d->func << 12) + offset;
}

static void select_port(const struct arch_pci_dev *d, u32 offset)
{
    outl(CONFIG_ADDRESS, (u32)(CONFIG_ENABLE | (u32)d->bus << 16 | (u32)d->slot << 11 |
                               (u32)d->func << 8 | (offset & 0xfc)));
}

u32 arch_pci_read(const struct arch_pci_dev *dev, u32 offset, u32 bytes)
{
    volatile u8 *p = ecam_address(dev, offset);
    if (p) {
        return bytes == 1 ? *p : bytes == 2 ? *(volatile u16 *)(volatile void *)p : mmio_read32(p);
    }
    if (offset >= PORT_CONFIG_SIZE) {
        return UINT32_MAX; /* extended space is not reachable by ports: reads as absent */
    }
    irqflags_t flags = raw_lock(&lock);
    select_port(dev, offset);
    u16 port = (u16)(CONFIG_DATA + (offset & 3));
    u32 value = bytes == 1 ? inb(port) : bytes == 2 ? inw(port) : inl(port);
    raw_unlock(&lock, flags);
    return value;
}

void arch_pci_write(const struct arch_pci_dev *dev, u32 offset, u32 bytes, u32 value)
{
    volatile u8 *p = ecam_address(dev, offset);
    if (p) {
        if (bytes == 1) {
            *p = (u8)value;
        } else if (bytes == 2) {
            *(volatile u16 *)(volatile void *)p = (u16)value;
        } else {
            mmio_write32(p, value);
        }
        return;
    }
    if (offset >= PORT_CONFIG_SIZE) {
        return;
    }
    irqflags_t flags = raw_lock(&lock);
    select_port(dev, offset);
    u16 port = (u16)(CONFIG_DATA + (offset & 3));
    if (bytes == 1) {
        outb(port, (u8)value);
    } else if (bytes == 2) {
        outw(port, (u16)value);
    } else {
        outl(port, value);
    }
    raw_unlock(&lock, flags);
}

struct scan {
    bool (*fn)(const struct arch_pci_dev *dev, void *arg);
    void *arg;
    u64 seen[MAX_BUSES / 64]; /* buses done: bridges that loop cannot */
    u64 wanted[MAX_BUSES / 64];
};

/* False if the caller's function has had enough. */
static bool scan_function(struct scan *s, struct arch_pci_dev *d)
{
    d->device = (u16)arch_pci_read(d, CFG_DEVICE, 2);
    d->subsystem = (u16)arch_pci_read(d, CFG_SUBSYSTEM, 2);
    d->class_code = (u8)arch_pci_read(d, CFG_CLASS, 1);
    d->subclass = (u8)arch_pci_read(d, CFG_SUBCLASS, 1);
    if ((arch_pci_read(d, CFG_HEADER_TYPE, 1) & ~HEADER_MULTIFUNCTION) == HEADER_BRIDGE) {
        u32 bus = arch_pci_read(d, CFG_SECONDARY_BUS, 1);
        if (bus && !(s->seen[bus / 64] & BIT(bus % 64))) {
            s->wanted[bus / 64] |= BIT(bus % 64);
        }
    }
    return s->fn(d, s->arg);
}

static bool scan_bus(struct scan *s, u32 bus)
{
    for (u32 slot = 0; slot < 32; slot++) {
        u32 functions = 1;
        for (u32 func = 0; func < functions; func++) {
            struct arch_pci_dev d = {.bus = (u8)bus, .slot = (u8)slot, .func = (u8)func};
            d.vendor = (u16)arch_pci_read(&d, CFG_VENDOR, 2);
            if (d.vendor == 0xffff) {
                continue;
            }
            if (func == 0 && arch_pci_read(&d, CFG_HEADER_TYPE, 1) & HEADER_MULTIFUNCTION) {
                functions = 8;
            }
            if (!scan_function(s, &d)) {
                return false;
            }
        }
    }
    return true;
}

void arch_pci_scan(bool (*fn)(const struct arch_pci_dev *dev, void *arg), void *arg)
{
    struct scan s = {.fn = fn, .arg = arg};
    s.wanted[0] = 1;
    for (u32 bus = 0; bus < MAX_BUSES; bus++) {
        /* Firmware numbers buses depth first, so those behind a bridge come later. */
        if (s.wanted[bus / 64] & BIT(bus % 64)) {
            s.seen[bus / 64] |= BIT(bus % 64);
            if (!scan_bus(&s, bus)) {
                return;
            }
        }
    }
}

u64 arch_pci_bar(const struct arch_pci_dev *dev, u32 index, paddr_t *base)
{
    *base = 0;
    if (index >= NUM_BARS) {
        return 0;
    }
    u32 offset = CFG_BAR0 + 4 * index;
    u32 low = arch_pci_read(dev, offset, 4), high = 0;
    if (low & BAR_IO) {
        return 0;
    }
    bool wide = (low & BAR_TYPE_MASK) == BAR_TYPE_64 && index + 1 < NUM_BARS;
    /* Sizing moves the window: no decoding meanwhile. */
    u32 command = arch_pci_read(dev, CFG_COMMAND, 2);
    arch_pci_write(dev, CFG_COMMAND, 2, command & ~(u32)COMMAND_MEMORY);
    arch_pci_write(dev, offset, 4, UINT32_MAX);
    u64 mask = arch_pci_read(dev, offset, 4) & BAR_ADDRESS_MASK;
    arch_pci_write(dev, offset, 4, low);
    if (wide) {
        high = arch_pci_read(dev, offset + 4, 4);
        arch_pci_write(dev, offset + 4, 4, UINT32_MAX);
        mask |= (u64)arch_pci_read(dev, offset + 4, 4) << 32;
        arch_pci_write(dev, offset + 4, 4, high);
    } else if (mask) {
        mask |= 0xffffffff00000000ull;
    }
    arch_pci_write(dev, CFG_COMMAND, 2, command);
    if (mask == 0) {
        return 0;
    }
    *base = (u64)high << 32 | (low & BAR_ADDRESS_MASK);
    if (*base == 0) {
        log_warn("pci: %02x:%02x.%u: the firmware gave BAR %u no address", dev->bus, dev->slot,
                 dev->func, index);
        return 0;
    }
    return ~mask + 1;
}
