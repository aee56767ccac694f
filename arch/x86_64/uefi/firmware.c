/* Console, memory, files, tables: the calls into the firmware. */
#include "arch/x86_64/uefi/firmware.h"

#define COM1 0x3f8
#define COM_LINE_STATUS 5
#define COM_TRANSMIT_EMPTY 0x20
#define COM_SPINS 100000 /* tries until a byte is given up: no port, or nobody drains it */
#define DEBUG_EXIT_PORT 0xf4
#define CPUID_HYPERVISOR_BIT (1u << 31) /* leaf 1, ECX */
#define LINE_MAX 200
#define MAX_FILE_INFO 512 /* bytes: EFI_FILE_INFO with a short name */

EFI_SYSTEM_TABLE *firmware;

/* True if we write to the serial port ourselves: the firmware has no driver for one. */
static bool serial_is_ours;

static void out8(uint16_t port, uint8_t value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static uint8_t in8(uint16_t port)
{
    uint8_t value;

    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

static void serial_write(const char *s)
{
    for (; *s != '\0'; s++) {
        for (int i = 0; i < COM_SPINS && !(in8(COM1 + COM_LINE_STATUS) & COM_TRANSMIT_EMPTY); i++)
            ;
        out8(COM1, (uint8_t)*s);
    }
}

static void console_write(const char *s)
{
    CHAR16 wide[LINE_MAX + 1];
    size_t n = 0;

    if (!firmware->ConOut)
        return;
    while (*s != '\0' && n < LINE_MAX)
        wide[n++] = (CHAR16)(uint8_t)*s++;
    wide[n] = 0;
    firmware->ConOut->OutputString(firmware->ConOut, wide);
}

void firmware_init(EFI_SYSTEM_TABLE *table)
{
    EFI_GUID serial_io = SERIAL_IO_PROTOCOL;
    void *found = NULL;

    firmware = table;
    serial_is_ours = EFI_ERROR(table->BootServices->LocateProtocol(&serial_io, NULL, &found)) || !found;
}

/* Appends text to a line of LINE_MAX characters. */
static size_t append(char *line, size_t at, const char *text)
{
    while (*text != '\0' && at < LINE_MAX)
        line[at++] = *text++;
    line[at] = '\0';
    return at;
}

static size_t append_hex(char *line, size_t at, uint64_t value)
{
    char digits[sizeof("0123456789abcdef")];
    size_t n = sizeof(digits) - 1;

    digits[n] = '\0';
    do {
        digits[--n] = "0123456789abcdef"[value & 15];
        value >>= 4;
    } while (value != 0);
    return append(line, append(line, at, "0x"), digits + n);
}

void report_error(const char *what, const char *detail, EFI_STATUS status)
{
    char line[LINE_MAX + 1];
    size_t at = append(line, 0, "weir: error: ");

    at = append(line, at, what);
    if (detail)
        at = append(line, append(line, at, ": "), detail);
    if (status)
        at = append_hex(line, append(line, at, ", firmware status "), status);
    append(line, at, "\r\n");
    console_write(line);
    if (serial_is_ours)
        serial_write(line);
}

void report(const char *what, const char *detail)
{
    char line[LINE_MAX + 1];
    size_t at = append(line, 0, "weir: ");

    at = append(line, at, what);
    if (detail)
        at = append(line, append(line, at, ": "), detail);
    append(line, at, "\r\n");
    console_write(line);
}

uint64_t allocate_pages(uint64_t pages, uint64_t limit)
{
    EFI_PHYSICAL_ADDRESS address = limit ? limit - 1 : 0;
    EFI_STATUS status = firmware->BootServices->AllocatePages(limit ? AllocateMaxAddress : AllocateAnyPages,
                                                              EfiLoaderData, pages, &address);

    return EFI_ERROR(status) ? 0 : address;
}

bool allocate_pages_at(uint64_t address, uint64_t pages)
{
    EFI_PHYSICAL_ADDRESS at = address;

    return !EFI_ERROR(firmware->BootServices->AllocatePages(AllocateAddress, EfiLoaderData, pages, &at));
}

/* Reads the whole of an open file into fresh pages (at least one, so that an empty file is not an absent one). */
static bool read_whole(EFI_FILE_HANDLE file, const char *name, uint64_t limit, struct blob *out)
{
    EFI_GUID info_id = EFI_FILE_INFO_ID;
    uint64_t buffer[MAX_FILE_INFO / sizeof(uint64_t)];
    UINTN bytes = sizeof(buffer);
    EFI_STATUS status = file->GetInfo(file, &info_id, &bytes, buffer);
    EFI_FILE_INFO *info = (EFI_FILE_INFO *)(void *)buffer;
    uint64_t address;

    if (EFI_ERROR(status)) {
        report_error(name, "its size cannot be told", status);
        return false;
    }
    if (info->FileSize > limit) {
        report_error(name, "is larger than it may be", 0);
        return false;
    }
    address = allocate_pages(info->FileSize / LOADER_PAGE_SIZE + 1, 0);
    if (address == 0) {
        report_error(name, "too little memory for it", 0);
        return false;
    }
    bytes = info->FileSize;
    status = file->Read(file, &bytes, (void *)(uintptr_t)address);
    if (EFI_ERROR(status) || bytes != info->FileSize) {
        report_error(name, "cannot be read", status);
        return false;
    }
    *out = (struct blob){(const uint8_t *)(uintptr_t)address, bytes};
    return true;
}

bool read_volume_file(EFI_LOADED_IMAGE *image, const char *name, uint64_t limit, struct blob *out, bool *present)
{
    EFI_GUID file_system_id = SIMPLE_FILE_SYSTEM_PROTOCOL;
    EFI_FILE_IO_INTERFACE *volume = NULL;
    EFI_FILE_HANDLE root, file;
    CHAR16 path[32];
    size_t n = 0;
    bool good;

    *present = false;
    if (!image->DeviceHandle ||
        EFI_ERROR(firmware->BootServices->HandleProtocol(image->DeviceHandle, &file_system_id, (void **)&volume)) ||
        EFI_ERROR(volume->OpenVolume(volume, &root)))
        return true; /* not started from a volume */
    for (; name[n] != '\0' && n + 1 < sizeof(path) / sizeof(path[0]); n++)
        path[n] = (CHAR16)(uint8_t)name[n];
    path[n] = 0;
    if (EFI_ERROR(root->Open(root, &file, path, EFI_FILE_MODE_READ, 0))) {
        root->Close(root);
        return true;
    }
    *present = true;
    good = read_whole(file, name, limit, out);
    file->Close(file);
    root->Close(root);
    return good;
}

static bool same_guid(const EFI_GUID *a, const EFI_GUID *b)
{
    const uint8_t *x = (const uint8_t *)a;
    const uint8_t *y = (const uint8_t *)b;

    for (size_t i = 0; i < sizeof(*a); i++)
        if (x[i] != y[i])
            return false;
    return true;
}

uint64_t find_rsdp(void)
{
    EFI_GUID acpi_2 = ACPI_20_TABLE_GUID;
    EFI_GUID acpi_1 = ACPI_TABLE_GUID;
    uint64_t old = 0;

    for (UINTN i = 0; i < firmware->NumberOfTableEntries; i++) {
        EFI_CONFIGURATION_TABLE *entry = &firmware->ConfigurationTable[i];

        if (same_guid(&entry->VendorGuid, &acpi_2))
            return (uint64_t)(uintptr_t)entry->VendorTable;
        if (same_guid(&entry->VendorGuid, &acpi_1))
            old = (uint64_t)(uintptr_t)entry->VendorTable;
    }
    return old;
}

void gather_entropy(uint64_t *dst, size_t words)
{
    EFI_GUID rng_id = EFI_RNG_PROTOCOL_GUID;
    EFI_RNG_PROTOCOL *rng = NULL;

    if (EFI_ERROR(firmware->BootServices->LocateProtocol(&rng_id, NULL, (void **)&rng)) || !rng)
        return;
    if (EFI_ERROR(rng->GetRNG(rng, NULL, words * sizeof(*dst), (UINT8 *)dst)))
        memset(dst, 0, words * sizeof(*dst));
}

static bool in_virtual_machine(void)
{
    uint32_t eax = 1, ebx, ecx = 0, edx;

    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    return (ecx & CPUID_HYPERVISOR_BIT) != 0;
}

void power_off_failed(void)
{
    /* The debug-exit device takes a value at this port and ends the emulator; real machines are left alone. */
    if (in_virtual_machine())
        out8(DEBUG_EXIT_PORT, LOADER_EXIT_CODE);
    firmware->RuntimeServices->ResetSystem(EfiResetShutdown, EFI_LOAD_ERROR, 0, NULL);
    for (;;)
        __asm__ volatile("hlt");
}
