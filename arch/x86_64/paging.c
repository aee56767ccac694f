/* Page tables of the one address space.
 *
 * Everything is supervisor-only, for applications run in ring 0; no page is global, so that loading
 * CR3 flushes all. Intermediate tables are made when needed and kept.  A nonzero entry without
 * PTE_P is a page that is mapped but may not be accessed (PROT_NONE). */
#include "arch/x86_64/asm_defs.h"
#include "arch/x86_64/boot_util.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"

#define PTE_NX           BIT(63)
#define PTE_NO_ACCESS    BIT(9) /* software bit: keeps the entry of a PROT_NONE page nonzero */
#define PTE_ADDR         0x000ffffffffff000ull
#define LARGE_2M         (2ull << 20)
#define LARGE_1G         (1ull << 30)
#define CPUID_EXT_EDX_1G BIT(26)

/* Address space for arch's own mappings: behind the part that core/mm hands out. */
#define ARCH_MAP_BASE DYNAMIC_MAP_END
#define ARCH_MAP_END  0xffffea0000000000ull

static paddr_t root;
static paddr_t (*page_alloc)(void);
static void (*page_release)(paddr_t page);
static u64 arch_map_next = ARCH_MAP_BASE; /* atomic */

void arch_set_page_source(paddr_t (*alloc)(void), void (*release)(paddr_t page))
{
    page_alloc = alloc;
    page_release = release;
}

paddr_t arch_page_alloc(void)
{
    return page_alloc ? page_alloc() : 0;
}

paddr_t paging_root(void)
{
    return root;
}

static u64 *entry_of(paddr_t table, u64 va, u32 level)
{
    return (u64 *)phys_to_virt(table) + (va >> (12 + 9 * level) & 511);
}

/* Next table below *entry, made if absent; 0 without memory. */
static paddr_t next_table(u64 *entry)
{
    u64 value = LOAD_ACQUIRE(*entry);
    if (value) {
        return value & PTE_ADDR;
    }
    paddr_t page = page_alloc ? page_alloc() : early_page_alloc();
    if (!page) {
        return 0;
    }
    /* Another CPU may fill the same slot for a neighbouring range. */
    if (__atomic_compare_exchange_n(entry, &value, page | PTE_P | PTE_W, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        return page;
    }
    page_release(page);
    return value & PTE_ADDR;
}

/* Entry that maps va and its level (0: 4 KiB, 1: 2 MiB, 2: 1 GiB); NULL if a table is absent. */
static u64 *find(u64 va, u32 *level)
{
    paddr_t table = root;
    for (*level = 3;; (*level)--) {
        u64 *entry = entry_of(table, va, *level);
        u64 value = LOAD_ACQUIRE(*entry);
        if (*level == 0 || (*level < 3 && value & PTE_PS && value & PTE_P)) {
            return entry;
        }
        if (!value) {
            return NULL;
        }
        table = value & PTE_ADDR;
    }
}

/* Entry at `level` for va, tables made; NULL without memory. */
static u64 *make(u64 va, u32 level)
{
    paddr_t table = root;
    for (u32 l = 3; l > level; l--) {
        table = next_table(entry_of(table, va, l));
        if (!table) {
            return NULL;
        }
    }
    return entry_of(table, va, level);
}

static u64 prot_bits(u32 prot)
{
    u64 bits = prot & (ARCH_PROT_READ | ARCH_PROT_WRITE | ARCH_PROT_EXEC) ? PTE_P : PTE_NO_ACCESS;
    bits |= prot & ARCH_PROT_WRITE ? PTE_W : 0;
    bits |= prot & ARCH_PROT_EXEC ? 0 : PTE_NX;
    bits |= prot & ARCH_PROT_UNCACHED ? PTE_PCD | PTE_PWT : 0;
    return bits;
}

int arch_pt_map(u64 va, paddr_t pa, size_t pages, u32 prot)
{
    u64 bits = prot_bits(prot);
    if (prot & ARCH_PROT_WRITE && prot & ARCH_PROT_EXEC) {
        return -EINVAL;
    }
    u64 *entry = NULL;
    for (size_t i = 0; i < pages; i++) {
        u64 at = va + i * PAGE_SIZE;
        entry = entry && (at >> 12 & 511) ? entry + 1 : make(at, 0);
        if (!entry) {
            while (i > 0) {
                arch_pt_unmap(va + --i * PAGE_SIZE);
            }
            return -ENOMEM;
        }
        if (*entry) {
            panic("paging: 0x%lx is mapped already", at);
        }
        WRITE_ONCE(*entry, (pa + i * PAGE_SIZE) | bits);
    }
    return 0;
}

paddr_t arch_pt_unmap(u64 va)
{
    u32 level;
    u64 *entry = find(va, &level);
    if (!entry || level != 0) {
        return 0;
    }
    return __atomic_exchange_n(entry, 0, __ATOMIC_ACQ_REL) & PTE_ADDR;
}

bool arch_pt_protect(u64 va, u32 prot)
{
    u32 level;
    u64 *entry = find(va, &level);
    if (!entry || level != 0 || *entry == 0) {
        return false;
    }
    WRITE_ONCE(*entry, (*entry & PTE_ADDR) | prot_bits(prot));
    return true;
}

paddr_t arch_pt_lookup(u64 va)
{
    u32 level;
    u64 *entry = find(va, &level);
    u64 value = entry ? READ_ONCE(*entry) : 0;
    if (!value) {
        return 0;
    }
    u64 offset_mask = (PAGE_SIZE << (9 * level)) - 1;
    return (value & PTE_ADDR & ~offset_mask) | (va & offset_mask);
}

bool paging_allows(u64 va, bool write, bool exec)
{
    u32 level;
    u64 *entry = find(va, &level);
    u64 value = entry ? READ_ONCE(*entry) : 0;
    return value & PTE_P && (!write || value & PTE_W) && (!exec || !(value & PTE_NX));
}

u64 arch_va_alloc(u64 bytes)
{
    u64 span = ALIGN_UP(bytes, PAGE_SIZE) + PAGE_SIZE;
    if (bytes == 0 || bytes > ARCH_MAP_END - ARCH_MAP_BASE) {
        return 0;
    }
    u64 start = __atomic_fetch_add(&arch_map_next, span, __ATOMIC_RELAXED);
    return start + span <= ARCH_MAP_END ? start + PAGE_SIZE : 0;
}

u64 arch_stack_alloc(u64 bytes)
{
    u64 base = arch_va_alloc(bytes);
    if (!base) {
        return 0;
    }
    for (u64 at = base; at < base + bytes; at += PAGE_SIZE) {
        paddr_t page = arch_page_alloc();
        if (!page || arch_pt_map(at, page, 1, ARCH_PROT_READ | ARCH_PROT_WRITE) != 0) {
            if (page) {
                page_release(page);
            }
            while (at > base) {
                at -= PAGE_SIZE;
                page_release(arch_pt_unmap(at));
            }
            return 0;
        }
    }
    return base + bytes;
}

static void *map_physical(paddr_t base, u64 bytes, u32 prot)
{
    u64 offset = base & (PAGE_SIZE - 1);
    if (bytes == 0 || base > PTE_ADDR || bytes > PTE_ADDR - base) {
        return NULL;
    }
    u64 span = ALIGN_UP(bytes + offset, PAGE_SIZE);
    u64 va = arch_va_alloc(span);
    if (!va || arch_pt_map(va, base - offset, span / PAGE_SIZE, prot) != 0) {
        return NULL;
    }
    return (void *)(uintptr_t)(va + offset);
}

void *arch_mmio_map(paddr_t base, u64 bytes)
{
    return map_physical(base, bytes, ARCH_PROT_READ | ARCH_PROT_WRITE | ARCH_PROT_UNCACHED);
}

const void *arch_phys_map(paddr_t base, u64 bytes)
{
    bool direct = bytes > 0 && base < BIT(46);
    for (u64 at = ALIGN_DOWN(base, PAGE_SIZE); direct && at < base + bytes; at += PAGE_SIZE) {
        direct = arch_pt_lookup(DIRECT_MAP_BASE + at) == at && at != 0;
    }
    return direct ? phys_to_virt(base) : map_physical(base, bytes, ARCH_PROT_READ);
}

/* ---- final tables ---- */

static bool have_1g_pages;

static void map_large(u64 va, paddr_t pa, u64 bytes, u64 bits)
{
    while (bytes > 0) {
        u32 level = 0;
        u64 size = PAGE_SIZE;
        if (have_1g_pages && IS_ALIGNED(va | pa, LARGE_1G) && bytes >= LARGE_1G) {
            level = 2;
            size = LARGE_1G;
        } else if (IS_ALIGNED(va | pa, LARGE_2M) && bytes >= LARGE_2M) {
            level = 1;
            size = LARGE_2M;
        }
        *make(va, level) = pa | bits | (level ? PTE_PS : 0);
        va += size;
        pa += size;
        bytes -= size;
    }
}

/* Direct map of [base, end): the kernel's text and read-only data are not writable through it
 * either. */
static void map_direct(paddr_t base, paddr_t end)
{
    paddr_t ro_start = image_phys(__kernel_start), ro_end = image_phys(__data_start);
    while (base < end) {
        paddr_t stop = end;
        bool read_only = base >= ro_start && base < ro_end;
        if (read_only) {
            stop = MIN(end, ro_end);
        } else if (base < ro_start) {
            stop = MIN(end, ro_start);
        }
        map_large(DIRECT_MAP_BASE + base, base, stop - base,
                  PTE_P | PTE_NX | (read_only ? 0 : PTE_W));
        base = stop;
    }
}

static void map_image(const char *from, const char *to, u64 bits)
{
    for (const char *p = from; p < to; p += PAGE_SIZE) {
        *make((u64)(uintptr_t)p, 0) = image_phys(p) | bits;
    }
}

void paging_init(const struct boot_range *ranges, u32 num, const struct boot_info *info)
{
    static struct boot_range ram[BOOT_MAX_RANGES + 2];
    u32 n = 0;
    have_1g_pages =
        cpuid(0x80000000u, 0).eax >= 0x80000001u && cpuid(0x80000001u, 0).edx & CPUID_EXT_EDX_1G;
    root = early_page_alloc();
    for (u32 i = 0; i < num; i++) {
        if (ranges[i].type != BOOT_MEM_RESERVED) {
            /* Whole pages: outwards for ACPI tables, whose neighbours the firmware owns as well. */
            bool usable = ranges[i].type == BOOT_MEM_USABLE;
            u64 base = ranges[i].base, end = base + ranges[i].size;
            base = usable ? ALIGN_UP(base, PAGE_SIZE) : ALIGN_DOWN(base, PAGE_SIZE);
            end = usable ? ALIGN_DOWN(end, PAGE_SIZE) : ALIGN_UP(end, PAGE_SIZE);
            ram[n++] = (struct boot_range){.base = base, .size = end > base ? end - base : 0};
        }
    }
    ram[n++] = (struct boot_range){.base = info->kernel_phys, .size = info->kernel_size};
    u64 initrd = ALIGN_DOWN(info->initrd_phys, PAGE_SIZE);
    u64 initrd_end = ALIGN_UP(info->initrd_phys + info->initrd_size, PAGE_SIZE);
    ram[n++] = (struct boot_range){.base = initrd, .size = initrd_end - initrd};
    n = boot_ranges_merge(ram, n);
    u64 limit = DYNAMIC_MAP_BASE - DIRECT_MAP_BASE;
    for (u32 i = 0; i < n; i++) {
        if (ram[i].base < limit) {
            map_direct(ram[i].base, ram[i].base + MIN(ram[i].size, limit - ram[i].base));
        }
    }
    map_image(__kernel_start, __text_end, PTE_P);
    map_image(__rodata_start, __rodata_end, PTE_P | PTE_NX);
    map_image(__data_start, __kernel_end, PTE_P | PTE_W | PTE_NX);
    write_cr3(root);
}
