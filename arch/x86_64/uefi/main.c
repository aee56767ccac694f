/* The loader's way from its start to the kernel's entry (see loader.h). */
#include "arch/x86_64/uefi/firmware.h"

#define CR4_LA57 (1ull << 12)
/* Room for descriptors that our own allocations add to the memory map, and that a retry may add. */
#define MAP_SLACK_ENTRIES 32
/* The map may change between reading it and leaving (a timer event); more than a few times it does not. */
#define EXIT_TRIES 8

struct inputs {
    struct blob kernel;
    struct blob app; /* may be absent: the kernel says so */
    char cmdline[BOOT_MAX_CMDLINE];
};

struct memory_map {
    uint8_t *data;
    UINTN capacity; /* bytes */
    UINTN bytes;
    UINTN key;
    UINTN stride;
};

EFI_STATUS efi_main(EFI_HANDLE image_handle, EFI_SYSTEM_TABLE *table);

static uint64_t read_tsc(void)
{
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

static uint64_t pages_for(uint64_t bytes)
{
    return (bytes + LOADER_PAGE_SIZE - 1) / LOADER_PAGE_SIZE;
}

/* The command line: from whoever started us, from weir.cmd, or from our own section, in this order. */
static bool find_cmdline(EFI_LOADED_IMAGE *image, struct inputs *in)
{
    struct blob text = {NULL, 0};
    bool present;

    if (text_from_load_options(image->LoadOptions, image->LoadOptionsSize, in->cmdline, sizeof(in->cmdline)))
        return true;
    if (!read_volume_file(image, "weir.cmd", BOOT_MAX_CMDLINE, &text, &present))
        return false;
    if (!present)
        text = pe_section(image->ImageBase, image->ImageSize, ".weircmd");
    if (text.data && !text_from_file(text, in->cmdline, sizeof(in->cmdline))) {
        report_error("the command line is longer than 4095 characters or not text", NULL, 0);
        return false;
    }
    return true;
}

static bool find_inputs(EFI_LOADED_IMAGE *image, struct inputs *in)
{
    bool present;

    in->kernel = pe_section(image->ImageBase, image->ImageSize, ".weirknl");
    if (!in->kernel.data) {
        report_error("this image holds no kernel", NULL, 0);
        return false;
    }
    if (!read_volume_file(image, "weir.app", LOADER_MAX_APP, &in->app, &present))
        return false;
    if (!present)
        in->app = pe_section(image->ImageBase, image->ImageSize, ".weirapp");
    return find_cmdline(image, in);
}

/* Puts the kernel where it wants to lie if that is free, else at any 2 MiB boundary below 4 GiB. */
static bool place_kernel(struct blob file, struct boot_info *info, uint64_t *entry)
{
    struct elf_plan plan;
    const char *wrong = elf_plan_kernel(file, &plan);
    uint64_t size, base;

    if (wrong) {
        report_error("the kernel inside this image is damaged", wrong, 0);
        return false;
    }
    size = plan.phys_end - plan.phys_start;
    base = plan.phys_start;
    if (!allocate_pages_at(base, pages_for(size))) {
        base = allocate_pages(pages_for(size + LOADER_LARGE_PAGE), LOADER_LIMIT_4G);
        if (base == 0) {
            report_error("too little memory for the kernel", NULL, 0);
            return false;
        }
        base = (base + LOADER_LARGE_PAGE - 1) & ~(LOADER_LARGE_PAGE - 1);
    }
    elf_copy_segments(file, &plan, (uint8_t *)(uintptr_t)base);
    info->kernel_phys = base;
    info->kernel_size = size;
    *entry = plan.entry_phys - plan.phys_start + base;
    return true;
}

/* The application in pages of its own, which the kernel can keep as they are. */
static bool place_app(struct blob app, struct boot_info *info)
{
    uint64_t address;

    if (!app.data)
        return true;
    address = allocate_pages(pages_for(app.size), 0);
    if (address == 0) {
        report_error("too little memory for the application", NULL, 0);
        return false;
    }
    memcpy((void *)(uintptr_t)address, app.data, app.size);
    info->initrd_phys = address;
    info->initrd_size = app.size;
    return true;
}

static EFI_STATUS read_map(struct memory_map *map)
{
    UINT32 version;

    map->bytes = map->capacity;
    return firmware->BootServices->GetMemoryMap(&map->bytes, (EFI_MEMORY_DESCRIPTOR *)(void *)map->data, &map->key,
                                                &map->stride, &version);
}

static bool allocate_map(struct memory_map *map)
{
    EFI_STATUS status;
    uint64_t address;

    *map = (struct memory_map){.data = NULL};
    status = read_map(map);
    if (status != EFI_BUFFER_TOO_SMALL) {
        report_error("the firmware gives no memory map", NULL, status);
        return false;
    }
    map->capacity = map->bytes + MAP_SLACK_ENTRIES * map->stride;
    address = allocate_pages(pages_for(map->capacity), 0);
    if (address == 0) {
        report_error("too little memory for the memory map", NULL, 0);
        return false;
    }
    map->data = (uint8_t *)(uintptr_t)address;
    status = read_map(map);
    if (EFI_ERROR(status)) {
        report_error("the firmware gives no memory map", NULL, status);
        return false;
    }
    return true;
}

/* Tables that cover 4 GiB and all memory.  0 after an error. */
static uint64_t build_tables(const struct boot_info *info)
{
    uint64_t end = LOADER_LIMIT_4G;
    uint64_t tables;

    for (uint32_t i = 0; i < info->num_ranges; i++) {
        const struct boot_range *r = &info->ranges[i];

        if (r->type != BOOT_MEM_RESERVED && r->base + r->size > end)
            end = r->base + r->size;
    }
    tables = allocate_pages(pages_for(paging_table_bytes(end)), LOADER_LIMIT_4G);
    if (tables == 0) {
        report_error("too little memory for page tables", NULL, 0);
        return 0;
    }
    return paging_build((uint8_t *)(uintptr_t)tables, end);
}

/* Leaves the firmware with a map that is still true.  On failure the firmware's console may be gone; it is tried. */
static bool exit_boot_services(EFI_HANDLE image_handle, struct memory_map *map)
{
    EFI_STATUS status = EFI_SUCCESS;

    for (int i = 0; i < EXIT_TRIES; i++) {
        status = read_map(map);
        if (EFI_ERROR(status))
            break;
        status = firmware->BootServices->ExitBootServices(image_handle, map->key);
        if (!EFI_ERROR(status))
            return true;
    }
    report_error("the firmware does not let go", NULL, status);
    return false;
}

static bool five_level_paging(void)
{
    uint64_t cr4;

    __asm__ volatile("movq %%cr4, %0" : "=r"(cr4));
    return (cr4 & CR4_LA57) != 0;
}

static bool load_and_enter(EFI_HANDLE image_handle, uint64_t start_tsc)
{
    EFI_GUID loaded_image_id = LOADED_IMAGE_PROTOCOL;
    EFI_LOADED_IMAGE *image = NULL;
    EFI_STATUS status = firmware->BootServices->HandleProtocol(image_handle, &loaded_image_id, (void **)&image);
    uint64_t info_address = allocate_pages(pages_for(sizeof(struct boot_info)), LOADER_LIMIT_4G);
    uint64_t inputs_address = allocate_pages(pages_for(sizeof(struct inputs)), 0);
    struct boot_info *info = (struct boot_info *)(uintptr_t)info_address;
    struct inputs *in = (struct inputs *)(uintptr_t)inputs_address;
    struct memory_map map;
    uint64_t entry, top_table;

    if (EFI_ERROR(status) || !info || !in) {
        report_error(EFI_ERROR(status) ? "the firmware does not tell where the loader lies" : "too little memory", NULL,
                     status);
        return false;
    }
    if (five_level_paging()) {
        report_error("the firmware uses five-level page tables, which are not supported", NULL, 0);
        return false;
    }
    memset(info, 0, sizeof(*info));
    memset(in, 0, sizeof(*in));
    if (!find_inputs(image, in) || !place_kernel(in->kernel, info, &entry) || !place_app(in->app, info) ||
        !allocate_map(&map))
        return false;
    info->magic = BOOT_INFO_MAGIC;
    info->version = BOOT_INFO_VERSION;
    info->source = BOOT_FROM_UEFI;
    info->rsdp = find_rsdp();
    info->boot_start_tsc = start_tsc;
    memcpy(info->cmdline, in->cmdline, sizeof(info->cmdline));
    gather_entropy(info->entropy, sizeof(info->entropy) / sizeof(info->entropy[0]));
    memmap_to_ranges(map.data, map.bytes, map.stride, info);
    top_table = build_tables(info);
    if (top_table == 0 || !exit_boot_services(image_handle, &map))
        return false;
    memmap_to_ranges(map.data, map.bytes, map.stride, info);
    loader_enter_kernel(top_table, entry, info);
}

EFI_STATUS efi_main(EFI_HANDLE image_handle, EFI_SYSTEM_TABLE *table)
{
    uint64_t start_tsc = read_tsc();

    firmware_init(table);
    load_and_enter(image_handle, start_tsc);
    power_off_failed();
}
