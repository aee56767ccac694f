#include "arch/x86_64/acpi.h"

#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"

#define RSDP_SIZE_V1   20
#define RSDP_SIZE_V2   36
#define HEADER_SIZE    36
#define TABLE_MAX      (4u << 20) /* DSDTs of large servers are under 1 MiB */
#define MAX_TABLES     256
#define BIOS_AREA_BASE 0xe0000u
#define BIOS_AREA_SIZE 0x20000u
#define EBDA_POINTER   0x40eu
#define EBDA_SCAN      1024

/* Unaligned little-endian reads: tables follow each other without padding. */
static u16 rd16(const u8 *p)
{
    return (u16)(p[0] | p[1] << 8);
}

static u32 rd32(const u8 *p)
{
    return rd16(p) | (u32)rd16(p + 2) << 16;
}

static u64 rd64(const u8 *p)
{
    return rd32(p) | (u64)rd32(p + 4) << 32;
}

static u8 sum(const u8 *p, size_t n)
{
    u8 total = 0;
    for (size_t i = 0; i < n; i++) {
        total = (u8)(total + p[i]);
    }
    return total;
}

/* Four signature bytes as a C string; anything unprintable becomes '?'. */
static const char *signature_text(const u8 *p, char text[5])
{
    for (u32 i = 0; i < 4; i++) {
        text[i] = p[i] >= ' ' && p[i] < 127 ? (char)p[i] : '?';
    }
    text[4] = 0;
    return text;
}

/* Maps a whole table after checking its header; NULL with a warning if it is bad. */
static const u8 *map_table(const struct acpi_memory *mem, u64 phys, u32 *length)
{
    char name[5];
    const u8 *header = phys ? mem->map(mem->ctx, phys, HEADER_SIZE) : NULL;
    if (!header) {
        log_warn("acpi: table at 0x%lx cannot be read", phys);
        return NULL;
    }
    u32 bytes = rd32(header + 4);
    signature_text(header, name);
    if (bytes < HEADER_SIZE || bytes > TABLE_MAX) {
        log_warn("acpi: table %s at 0x%lx has an impossible length of %u", name, phys, bytes);
        return NULL;
    }
    const u8 *table = mem->map(mem->ctx, phys, bytes);
    if (!table) {
        log_warn("acpi: table %s at 0x%lx (%u bytes) cannot be read", name, phys, bytes);
        return NULL;
    }
    if (sum(table, bytes) != 0) {
        log_warn("acpi: table %s at 0x%lx has a wrong checksum", name, phys);
        return NULL;
    }
    *length = bytes;
    return table;
}

/* ---- MADT ---- */

enum madt_type {
    MADT_LOCAL_APIC = 0,
    MADT_IOAPIC = 1,
    MADT_OVERRIDE = 2,
    MADT_LAPIC_ADDRESS = 5,
    MADT_LOCAL_X2APIC = 9,
};
#define MADT_FIRST_ENTRY 44
#define MADT_CPU_ENABLED BIT(0)
#define APIC_ID_NONE     0xffffffffu

static void add_cpu(struct acpi_info *out, u32 apic_id, u32 flags)
{
    if (!(flags & MADT_CPU_ENABLED) || apic_id == APIC_ID_NONE) {
        return;
    }
    for (u32 i = 0; i < out->num_cpus; i++) {
        if (out->apic_ids[i] == apic_id) {
            return; /* firmware may list a CPU as APIC and as x2APIC */
        }
    }
    if (out->num_cpus == MAX_CPUS) {
        out->cpus_ignored++;
        return;
    }
    out->apic_ids[out->num_cpus++] = apic_id;
}

static void add_override(struct acpi_info *out, const u8 *e)
{
    if (out->num_overrides == ACPI_MAX_OVERRIDES) {
        log_warn("acpi: more than %u interrupt overrides, the rest ignored", ACPI_MAX_OVERRIDES);
        return;
    }
    u32 polarity = rd16(e + 8) & 3u, trigger = rd16(e + 8) >> 2 & 3u;
    out->overrides[out->num_overrides++] = (struct acpi_override){
        .irq = e[3],
        .gsi = rd32(e + 4),
        .polarity_given = polarity != 0,
        .active_low = polarity == 3,
        .trigger_given = trigger != 0,
        .level = trigger == 3,
    };
}

static void madt_entry(struct acpi_info *out, const u8 *e, u32 length)
{
    if (e[0] == MADT_LOCAL_APIC && length >= 8) {
        add_cpu(out, e[3] == 0xff ? APIC_ID_NONE : e[3], rd32(e + 4));
    } else if (e[0] == MADT_LOCAL_X2APIC && length >= 16) {
        add_cpu(out, rd32(e + 4), rd32(e + 8));
    } else if (e[0] == MADT_IOAPIC && length >= 12) {
        if (out->num_ioapics == ACPI_MAX_IOAPICS) {
            log_warn("acpi: more than %u IOAPICs, the rest ignored", ACPI_MAX_IOAPICS);
            return;
        }
        out->ioapics[out->num_ioapics++] =
            (struct acpi_ioapic){.id = e[2], .address = rd32(e + 4), .gsi_base = rd32(e + 8)};
    } else if (e[0] == MADT_OVERRIDE && length >= 10) {
        add_override(out, e);
    } else if (e[0] == MADT_LAPIC_ADDRESS && length >= 12) {
        out->lapic_base = rd64(e + 4);
    }
}

static void parse_madt(struct acpi_info *out, const u8 *t, u32 length)
{
    if (length < MADT_FIRST_ENTRY) {
        log_warn("acpi: MADT of %u bytes is too short", length);
        return;
    }
    out->lapic_base = rd32(t + 36);
    for (u32 at = MADT_FIRST_ENTRY; at + 2 <= length;) {
        u32 bytes = t[at + 1];
        if (bytes < 2 || bytes > length - at) {
            log_warn("acpi: MADT entry at %u has an impossible length of %u, rest ignored", at,
                     bytes);
            return;
        }
        madt_entry(out, t + at, bytes);
        at += bytes;
    }
    if (out->cpus_ignored) {
        log_warn("acpi: %u CPUs beyond %u ignored", out->cpus_ignored, MAX_CPUS);
    }
}

/* ---- small tables ---- */

static void parse_hpet(struct acpi_info *out, const u8 *t, u32 length)
{
    if (length < 56) {
        log_warn("acpi: HPET table of %u bytes is too short", length);
    } else if (t[40] != ACPI_SPACE_MEMORY) {
        log_warn("acpi: HPET in address space %u ignored", t[40]);
    } else {
        out->hpet_base = rd64(t + 44);
    }
}

static void parse_mcfg(struct acpi_info *out, const u8 *t, u32 length)
{
    for (u32 at = 44; at + 16 <= length; at += 16) {
        struct acpi_ecam e = {rd64(t + at), rd16(t + at + 8), t[at + 10], t[at + 11]};
        if (e.base == 0 || e.base & 0xfffff || e.last_bus < e.first_bus) {
            log_warn("acpi: MCFG entry 0x%lx, buses %u-%u ignored", e.base, e.first_bus,
                     e.last_bus);
        } else if (out->num_ecam == ACPI_MAX_ECAM) {
            log_warn("acpi: more than %u PCI segments, the rest ignored", ACPI_MAX_ECAM);
            return;
        } else {
            out->ecam[out->num_ecam++] = e;
        }
    }
}

/* ---- DSDT: \_S5_ ---- Name (_S5_, Package (n) {a, b, ...}) as bytes: 08 ['\'] "_S5_" 12 PkgLength
 * n a b.  Searching for the bytes is enough: what they say is checked, and the name can hardly
 * occur otherwise. */

enum { AML_ZERO = 0x00, AML_ONE = 0x01, AML_NAME = 0x08, AML_BYTE = 0x0a, AML_WORD = 0x0b };
enum { AML_DWORD = 0x0c, AML_PACKAGE = 0x12, AML_ONES = 0xff };

/* Reads one integer; returns how many bytes it takes, 0 if it is none. */
static u32 aml_integer(const u8 *p, u32 left, u32 *value)
{
    if (left >= 1 && (p[0] == AML_ZERO || p[0] == AML_ONE || p[0] == AML_ONES)) {
        *value = p[0];
        return 1;
    }
    if (left >= 2 && p[0] == AML_BYTE) {
        *value = p[1];
        return 2;
    }
    if (left >= 3 && p[0] == AML_WORD) {
        *value = rd16(p + 1);
        return 3;
    }
    if (left >= 5 && p[0] == AML_DWORD) {
        *value = rd32(p + 1);
        return 5;
    }
    return 0;
}

static bool parse_s5_package(struct acpi_info *out, const u8 *p, u32 left)
{
    if (left < 2 || p[0] != AML_PACKAGE) {
        return false;
    }
    u32 at = 2 + (p[1] >> 6); /* PkgLength has 1..4 bytes, told by its top two bits */
    if (at >= left || p[at] < 1) {
        return false;
    }
    u32 elements = p[at++], a, b = 0;
    u32 bytes = aml_integer(p + at, left - at, &a);
    if (bytes == 0) {
        return false;
    }
    at += bytes;
    if (elements >= 2 && aml_integer(p + at, left - at, &b) == 0) {
        return false;
    }
    if (a > 7 || b > 7) {
        return false; /* SLP_TYP has three bits */
    }
    out->have_s5 = true;
    out->s5_type_a = (u8)a;
    out->s5_type_b = (u8)b;
    return true;
}

static void parse_dsdt(struct acpi_info *out, const u8 *t, u32 length)
{
    for (u32 at = HEADER_SIZE + 1; at + 4 <= length; at++) {
        if (memcmp(t + at, "_S5_", 4) != 0) {
            continue;
        }
        bool named = t[at - 1] == AML_NAME || (t[at - 1] == '\\' && t[at - 2] == AML_NAME);
        if (named && parse_s5_package(out, t + at + 4, length - at - 4)) {
            return;
        }
    }
}

/* ---- FADT ---- */

enum fadt_field {
    FADT_DSDT = 40,
    FADT_SCI = 46,
    FADT_SMI_COMMAND = 48,
    FADT_ACPI_ENABLE = 52,
    FADT_PM1A_EVENT = 56,
    FADT_PM1B_EVENT = 60,
    FADT_PM1A_CONTROL = 64,
    FADT_PM1B_CONTROL = 68,
    FADT_PM_TIMER = 76,
    FADT_PM1_EVENT_BYTES = 88,
    FADT_PM_TIMER_BYTES = 91,
    FADT_FLAGS = 112,
    FADT_RESET = 116,
    FADT_RESET_VALUE = 128,
    FADT_X_DSDT = 140,
    FADT_X_PM1A_EVENT = 148,
    FADT_X_PM1A_CONTROL = 172,
    FADT_X_PM_TIMER = 208,
};
#define FADT_MIN_SIZE        116
#define FADT_TIMER_32BIT     BIT(8)
#define FADT_RESET_SUPPORTED BIT(10)
#define GAS_SIZE             12

/* Port from the 32-bit field, else from the generic address structure that newer tables carry. */
static u16 fadt_port(const u8 *t, u32 length, u32 field, u32 extended)
{
    u32 port = rd32(t + field);
    if (port == 0 && extended && extended + GAS_SIZE <= length && t[extended] == ACPI_SPACE_IO &&
        rd64(t + extended + 4) <= UINT16_MAX) {
        port = (u32)rd64(t + extended + 4);
    }
    return port <= UINT16_MAX ? (u16)port : 0;
}

static void parse_fadt(const struct acpi_memory *mem, struct acpi_info *out, const u8 *t,
                       u32 length)
{
    if (length < FADT_MIN_SIZE) {
        log_warn("acpi: FADT of %u bytes is too short", length);
        return;
    }
    u32 flags = rd32(t + FADT_FLAGS);
    out->have_fadt = true;
    out->sci_irq = rd16(t + FADT_SCI);
    out->smi_command = fadt_port(t, length, FADT_SMI_COMMAND, 0);
    out->acpi_enable = t[FADT_ACPI_ENABLE];
    out->pm1a_event = fadt_port(t, length, FADT_PM1A_EVENT, FADT_X_PM1A_EVENT);
    out->pm1b_event = fadt_port(t, length, FADT_PM1B_EVENT, 0);
    out->pm1a_control = fadt_port(t, length, FADT_PM1A_CONTROL, FADT_X_PM1A_CONTROL);
    out->pm1b_control = fadt_port(t, length, FADT_PM1B_CONTROL, 0);
    out->pm1_event_bytes = t[FADT_PM1_EVENT_BYTES];
    out->pm_timer_port = fadt_port(t, length, FADT_PM_TIMER, FADT_X_PM_TIMER);
    out->pm_timer_32bit = (flags & FADT_TIMER_32BIT) != 0;
    if (flags & FADT_RESET_SUPPORTED && length > FADT_RESET_VALUE) {
        out->have_reset = true;
        out->reset_space = t[FADT_RESET];
        out->reset_address = rd64(t + FADT_RESET + 4);
        out->reset_value = t[FADT_RESET_VALUE];
    }
    u64 dsdt = rd32(t + FADT_DSDT);
    if (FADT_X_DSDT + 8 <= length && rd64(t + FADT_X_DSDT)) {
        dsdt = rd64(t + FADT_X_DSDT);
    }
    u32 dsdt_length;
    const u8 *d = map_table(mem, dsdt, &dsdt_length);
    if (d) {
        parse_dsdt(out, d, dsdt_length);
    }
    if (!out->have_s5) {
        log_warn("acpi: no usable \\_S5_ in the DSDT, power-off by ACPI is not possible");
    }
}

/* ---- root tables ---- */

static bool rsdp_valid(const u8 *p)
{
    return memcmp(p, "RSD PTR ", 8) == 0 && sum(p, RSDP_SIZE_V1) == 0;
}

static u64 scan_for_rsdp(const struct acpi_memory *mem, u64 base, size_t bytes)
{
    const u8 *area = mem->map(mem->ctx, base, bytes);
    for (size_t at = 0; area && at + RSDP_SIZE_V1 <= bytes; at += 16) {
        if (rsdp_valid(area + at)) {
            return base + at;
        }
    }
    return 0;
}

static u64 find_rsdp(const struct acpi_memory *mem)
{
    const u8 *pointer = mem->map(mem->ctx, EBDA_POINTER, 2);
    u64 ebda = pointer ? (u64)rd16(pointer) << 4 : 0;
    u64 found =
        ebda >= 0x400 && ebda <= 0xa0000 - EBDA_SCAN ? scan_for_rsdp(mem, ebda, EBDA_SCAN) : 0;
    return found ? found : scan_for_rsdp(mem, BIOS_AREA_BASE, BIOS_AREA_SIZE);
}

/* Address of the root table; *wide tells whether its entries have 64 bits. */
static u64 root_table(const struct acpi_memory *mem, u64 rsdp, bool *wide)
{
    const u8 *p = mem->map(mem->ctx, rsdp, RSDP_SIZE_V1);
    if (!p || !rsdp_valid(p)) {
        log_warn("acpi: no valid RSDP at 0x%lx", rsdp);
        return 0;
    }
    *wide = false;
    if (p[15] >= 2) { /* revision */
        const u8 *v2 = mem->map(mem->ctx, rsdp, RSDP_SIZE_V2);
        if (v2 && rd32(v2 + 20) >= RSDP_SIZE_V2 && sum(v2, RSDP_SIZE_V2) == 0 && rd64(v2 + 24)) {
            *wide = true;
            return rd64(v2 + 24);
        }
        log_warn("acpi: the extended part of the RSDP is invalid, using the RSDT");
    }
    return rd32(p + 16);
}

static void parse_table(const struct acpi_memory *mem, struct acpi_info *out, u64 phys)
{
    u32 length;
    const u8 *t = map_table(mem, phys, &length);
    if (!t) {
        return;
    }
    if (memcmp(t, "APIC", 4) == 0) {
        parse_madt(out, t, length);
    } else if (memcmp(t, "HPET", 4) == 0) {
        parse_hpet(out, t, length);
    } else if (memcmp(t, "MCFG", 4) == 0) {
        parse_mcfg(out, t, length);
    } else if (memcmp(t, "FACP", 4) == 0) {
        parse_fadt(mem, out, t, length);
    }
}

int acpi_parse(const struct acpi_memory *mem, u64 rsdp, struct acpi_info *out)
{
    memset(out, 0, sizeof(*out));
    bool wide = false;
    u64 root = rsdp ? root_table(mem, rsdp, &wide) : 0;
    if (!root) {
        rsdp = find_rsdp(mem);
        root = rsdp ? root_table(mem, rsdp, &wide) : 0;
    }
    u32 length;
    const u8 *t = root ? map_table(mem, root, &length) : NULL;
    if (!t) {
        log_error("acpi: no usable root table (RSDP at 0x%lx)", rsdp);
        return -ENOENT;
    }
    u32 entry = wide ? 8 : 4, count = (length - HEADER_SIZE) / entry;
    if (count > MAX_TABLES) {
        log_warn("acpi: %u tables, only the first %u are read", count, MAX_TABLES);
        count = MAX_TABLES;
    }
    for (u32 i = 0; i < count; i++) {
        const u8 *p = t + HEADER_SIZE + i * entry;
        u64 phys = wide ? rd64(p) : rd32(p);
        if (phys) {
            parse_table(mem, out, phys);
        }
    }
    if (out->num_cpus == 0) {
        log_error("acpi: no MADT that names an enabled CPU");
        return -EINVAL;
    }
    return 0;
}
