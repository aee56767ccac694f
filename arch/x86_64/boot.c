/* First C code: boot information from either loader, final page tables, descriptor tables, then
 * kernel_main(). */
#include "arch/x86_64/asm_defs.h"
#include "arch/x86_64/boot_util.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"

/* Xen public ABI, arch-x86/hvm/start_info.h. */
#define PVH_MAGIC 0x336ec578u
struct pvh_start_info {
    u32 magic, version, flags, num_modules;
    u64 modules, cmdline, rsdp;
    u64 memmap; /* from version 1 on */
    u32 num_memmap, reserved;
};
struct pvh_module {
    u64 base, size, cmdline, reserved;
};
struct pvh_memmap {
    u64 base, size;
    u32 type, reserved;
};
enum { PVH_RAM = 1, PVH_ACPI = 3 };

#define LOW_MEMORY_END 0x100000ull
#define FOUR_GIB       (4ull << 30)

/* Copied to by boot_entry.S before anything else. */
struct boot_info boot_info_copy;
extern const u32 boot_info_bytes;
const u32 boot_info_bytes = sizeof(struct boot_info);

static paddr_t kernel_base;
static struct acpi_info acpi;
static paddr_t trampoline_page;
static struct boot_range loader_ranges[BOOT_MAX_RANGES];
static u32 num_loader_ranges;

/* Stacks of the boot CPU until its first thread switch; each has an unmapped page below it. */
static struct {
    u8 irq_guard[PAGE_SIZE], irq[CPU_IRQ_STACK_SIZE];
    u8 thread_irq_guard[PAGE_SIZE], thread_irq[THREAD_IRQ_STACK_SIZE];
    u8 fault_guard[PAGE_SIZE], fault[THREAD_FAULT_STACK_SIZE];
    u8 nmi_guard[PAGE_SIZE], nmi[PAGE_SIZE];
    u8 fatal_guard[PAGE_SIZE], fatal[PAGE_SIZE];
} boot_stacks __aligned(4096);

const struct boot_info *arch_boot_info(void)
{
    return &boot_info_copy;
}

const struct acpi_info *arch_acpi(void)
{
    return &acpi;
}

paddr_t boot_trampoline_page(void)
{
    return trampoline_page;
}

paddr_t image_phys(const void *va)
{
    return (u64)(uintptr_t)va - (u64)(uintptr_t)__kernel_start + kernel_base;
}

/* Physical memory while the boot tables, which reach to 4 GiB, are in use. */
static const void *boot_phys(paddr_t base, u64 bytes)
{
    return base && bytes <= FOUR_GIB && base <= FOUR_GIB - bytes ? phys_to_virt(base) : NULL;
}

static void pvh_ranges(struct boot_info *info, const struct pvh_start_info *start)
{
    u32 count = MIN(start->num_memmap, (u32)BOOT_MAX_RANGES);
    const struct pvh_memmap *map =
        start->version >= 1 ? boot_phys(start->memmap, count * sizeof(*map)) : NULL;
    if (!map || count == 0) {
        panic("boot: the PVH loader gives no memory map (version %u)", start->version);
    }
    if (start->num_memmap > count) {
        log_warn("boot: %u memory ranges, only %u are used", start->num_memmap, count);
    }
    for (u32 i = 0; i < count; i++) {
        info->ranges[i] = (struct boot_range){
            .base = map[i].base,
            .size = map[i].size,
            .type = map[i].type == PVH_RAM    ? BOOT_MEM_USABLE
                    : map[i].type == PVH_ACPI ? BOOT_MEM_ACPI
                                              : BOOT_MEM_RESERVED,
        };
    }
    info->num_ranges = count;
}

static void info_from_pvh(struct boot_info *info, paddr_t start_info)
{
    const struct pvh_start_info *start = boot_phys(start_info, sizeof(*start));
    if (!start || start->magic != PVH_MAGIC) {
        panic("boot: no PVH start information at 0x%lx", start_info);
    }
    memset(info, 0, sizeof(*info));
    info->magic = BOOT_INFO_MAGIC;
    info->version = BOOT_INFO_VERSION;
    info->source = BOOT_FROM_PVH;
    info->boot_start_tsc = arch_tsc();
    info->rsdp = start->rsdp;
    pvh_ranges(info, start);
    const char *text = boot_phys(start->cmdline, 1);
    if (text &&
        !boot_copy_cmdline(info->cmdline, sizeof(info->cmdline), text, FOUR_GIB - start->cmdline)) {
        log_warn("boot: command line cut to %u characters", BOOT_MAX_CMDLINE - 1);
    }
    const struct pvh_module *module =
        start->num_modules ? boot_phys(start->modules, sizeof(*module)) : NULL;
    if (module) {
        info->initrd_phys = module->base;
        info->initrd_size = module->size;
    }
    if (start->num_modules > 1) {
        log_warn("boot: %u modules, only the first is used", start->num_modules);
    }
}

static void check_info(struct boot_info *info)
{
    if (info->magic != BOOT_INFO_MAGIC || info->version != BOOT_INFO_VERSION) {
        panic("boot: boot information has magic 0x%x, version %u; expected 0x%x, %u", info->magic,
              info->version, BOOT_INFO_MAGIC, BOOT_INFO_VERSION);
    }
    if (info->num_ranges > BOOT_MAX_RANGES) {
        panic("boot: %u memory ranges, at most %u", info->num_ranges, BOOT_MAX_RANGES);
    }
    info->cmdline[BOOT_MAX_CMDLINE - 1] = 0;
    info->kernel_phys = kernel_base;
    info->kernel_size = (u64)(__kernel_end - __kernel_start);
    if (info->initrd_size && info->initrd_phys < kernel_base + info->kernel_size &&
        info->initrd_phys + info->initrd_size > kernel_base) {
        panic(
            "boot: the initial file (%lu bytes) does not fit beside the kernel: more memory needed",
            info->initrd_size);
    }
}

/* After this the usable ranges are free: the image, the initrd and low memory are taken out. */
static void carve_ranges(struct boot_info *info)
{
    static struct boot_range usable[BOOT_MAX_RANGES];
    u64 lost, total = 0;
    num_loader_ranges = info->num_ranges;
    memcpy(loader_ranges, info->ranges, num_loader_ranges * sizeof(loader_ranges[0]));
    u32 n = boot_ranges_usable(info->ranges, info->num_ranges, usable, BOOT_MAX_RANGES, &lost);
    for (u32 i = 0; i < n && !trampoline_page; i++) {
        paddr_t page = MAX(usable[i].base, PAGE_SIZE); /* page 0 holds BIOS data */
        if (page + PAGE_SIZE <= MIN(usable[i].base + usable[i].size, (u64)TRAMPOLINE_PHYS_MAX)) {
            trampoline_page = page;
        }
    }
    lost += boot_ranges_carve(usable, &n, BOOT_MAX_RANGES, 0, LOW_MEMORY_END);
    lost += boot_ranges_carve(usable, &n, BOOT_MAX_RANGES, info->kernel_phys, info->kernel_size);
    lost += boot_ranges_carve(usable, &n, BOOT_MAX_RANGES, info->initrd_phys, info->initrd_size);
    for (u32 i = 0; i < num_loader_ranges && n < BOOT_MAX_RANGES; i++) {
        if (loader_ranges[i].type != BOOT_MEM_USABLE) {
            usable[n++] = loader_ranges[i];
        }
    }
    memcpy(info->ranges, usable, n * sizeof(usable[0]));
    info->num_ranges = n;
    for (u32 i = 0; i < n; i++) {
        total += usable[i].type == BOOT_MEM_USABLE ? usable[i].size : 0;
    }
    if (lost) {
        log_warn("boot: %lu bytes of RAM lost, the memory map is too fragmented", lost);
    }
    if (total == 0) {
        panic("boot: no usable memory");
    }
}

paddr_t early_page_alloc(void)
{
    /* From the top of the largest range below 4 GiB: the boot tables reach no further, and AP start
     * needs its tables there. */
    struct boot_range *best = NULL;
    for (u32 i = 0; i < boot_info_copy.num_ranges; i++) {
        struct boot_range *r = &boot_info_copy.ranges[i];
        if (r->type == BOOT_MEM_USABLE && r->base + r->size <= FOUR_GIB && r->size >= PAGE_SIZE &&
            (!best || r->size > best->size)) {
            best = r;
        }
    }
    if (!best) {
        panic("boot: no memory for page tables");
    }
    best->size -= PAGE_SIZE;
    paddr_t page = best->base + best->size;
    memset(phys_to_virt(page), 0, PAGE_SIZE);
    return page;
}

static void boot_cpu_init(void)
{
    struct cpu_stack_tops tops = {
        .irq = (u64)(uintptr_t)(boot_stacks.irq + sizeof(boot_stacks.irq)),
        .thread_irq = (u64)(uintptr_t)(boot_stacks.thread_irq + sizeof(boot_stacks.thread_irq)),
        .fault = (u64)(uintptr_t)(boot_stacks.fault + sizeof(boot_stacks.fault)),
        .nmi = (u64)(uintptr_t)(boot_stacks.nmi + sizeof(boot_stacks.nmi)),
        .fatal = (u64)(uintptr_t)(boot_stacks.fatal + sizeof(boot_stacks.fatal)),
    };
    idt_init();
    cpu_init(0, &tops);
    percpu_of(0)->kstack_top = (u64)(uintptr_t)boot_stack_top;
}

void boot_main(paddr_t pvh_start_info, paddr_t kernel_phys)
{
    kernel_base = kernel_phys;
    boot_cpu_init();
    serial_init();
    struct boot_info *info = &boot_info_copy;
    if (pvh_start_info) {
        info_from_pvh(info, pvh_start_info);
    }
    check_info(info);
    carve_ranges(info);
    paging_init(loader_ranges, num_loader_ranges, info);
    const void *const guards[] = {
        boot_stack_guard,        boot_stacks.irq_guard, boot_stacks.thread_irq_guard,
        boot_stacks.fault_guard, boot_stacks.nmi_guard, boot_stacks.fatal_guard,
    };
    for (u32 i = 0; i < ARRAY_SIZE(guards); i++) {
        arch_pt_unmap((u64)(uintptr_t)guards[i]);
    }
    tlb_flush_all_local();
    kernel_main();
}

static const void *map_acpi(void *ctx, u64 phys, size_t bytes)
{
    (void)ctx;
    return arch_phys_map(phys, bytes);
}

int arch_init(void)
{
    const struct acpi_memory memory = {map_acpi, NULL};
    int err = acpi_parse(&memory, boot_info_copy.rsdp, &acpi);
    if (err) {
        return err;
    }
    if (!lapic_init(acpi.lapic_base)) {
        log_error("arch: no local APIC");
        return -ENODEV;
    }
    /* The boot CPU is number 0, wherever the table lists it. */
    u32 boot_id = lapic_id();
    u32 at = 0;
    while (at < acpi.num_cpus && acpi.apic_ids[at] != boot_id) {
        at++;
    }
    at = MIN(at, acpi.num_cpus - 1);
    for (; at > 0; at--) {
        acpi.apic_ids[at] = acpi.apic_ids[at - 1];
    }
    acpi.apic_ids[0] = boot_id;
    for (u32 cpu = 0; cpu < acpi.num_cpus; cpu++) {
        percpu_of(cpu)->arch_private[PRIV_APIC_ID] = acpi.apic_ids[cpu];
    }
    err = irq_tables_init(acpi.num_cpus);
    if (err) {
        return err;
    }
    ioapic_init(&acpi);
    err = clock_init(&acpi);
    if (err) {
        return err;
    }
    lapic_timer_init_this_cpu();
    pci_init(&acpi);
    power_init(&acpi);
    log_info("arch: %u CPUs, %s, boot by %s", acpi.num_cpus, lapic_is_x2apic() ? "x2APIC" : "xAPIC",
             boot_info_copy.source == BOOT_FROM_PVH ? "PVH" : "UEFI");
    return (int)acpi.num_cpus;
}
