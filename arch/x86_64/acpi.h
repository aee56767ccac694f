/* ACPI tables (ACPI specification 6.4; MCFG: PCI firmware specification 3.0; HPET: IA-PC HPET
 * 1.0a).
 *
 * The parser trusts nothing: every length, checksum and count is checked, a bad table is named in
 * one warning and left out.  It reads through a memory accessor, so that host tests and fuzzers can
 * feed it. */
#ifndef WEIR_ARCH_X86_64_ACPI_H
#define WEIR_ARCH_X86_64_ACPI_H

#include "core/base/param.h"
#include "core/base/types.h"

struct acpi_memory {
    /* `bytes` readable bytes of physical memory at phys, or NULL.  Stays valid. */
    const void *(*map)(void *ctx, u64 phys, size_t bytes);
    void *ctx;
};

#define ACPI_MAX_IOAPICS   8
#define ACPI_MAX_OVERRIDES 16
#define ACPI_MAX_ECAM      4

struct acpi_ioapic {
    u32 id;
    u32 address;
    u32 gsi_base;
};

/* A legacy interrupt that does not arrive on the global interrupt of its own number. */
struct acpi_override {
    u8 irq;
    bool level;
    bool active_low;
    bool polarity_given, trigger_given; /* else the bus's default */
    u32 gsi;
};

struct acpi_ecam {
    u64 base;
    u16 segment;
    u8 first_bus, last_bus;
};

struct acpi_info {
    u32 num_cpus; /* enabled ones, in table order */
    u32 apic_ids[MAX_CPUS];
    u32 cpus_ignored; /* enabled, beyond MAX_CPUS */
    u64 lapic_base;
    u32 num_ioapics;
    struct acpi_ioapic ioapics[ACPI_MAX_IOAPICS];
    u32 num_overrides;
    struct acpi_override overrides[ACPI_MAX_OVERRIDES];
    u64 hpet_base; /* 0 if none */
    u32 num_ecam;
    struct acpi_ecam ecam[ACPI_MAX_ECAM];
    /* FADT; ports are 0 if absent. */
    bool have_fadt;
    u16 sci_irq;
    u16 smi_command;
    u8 acpi_enable;
    u16 pm1a_event, pm1b_event, pm1a_control, pm1b_control;
    u8 pm1_event_bytes;
    u16 pm_timer_port;
    bool pm_timer_32bit;
    bool have_reset;
    u8 reset_space; /* ACPI_SPACE_* */
    u64 reset_address;
    u8 reset_value;
    bool have_s5; /* \_S5_ found in the DSDT */
    u8 s5_type_a, s5_type_b;
};

#define ACPI_SPACE_MEMORY 0
#define ACPI_SPACE_IO     1

/* Fills *out from the tables under the RSDP at rsdp; with rsdp 0, it is searched in the BIOS areas.
 * Returns 0; -ENOENT without a usable RSDP or root table; -EINVAL if no MADT names a CPU. */
int acpi_parse(const struct acpi_memory *mem, u64 rsdp, struct acpi_info *out);

#endif
