/* QEMU's firmware-configuration device, port interface (QEMU, docs/specs/fw_cfg.rst). */
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"
#include "core/base/errno.h"
#include "core/base/string.h"

enum { FW_CFG_SELECT = 0x510, FW_CFG_DATA = 0x511 };
enum { ITEM_SIGNATURE = 0x00, ITEM_FILE_DIRECTORY = 0x19 };
#define MAX_FILES 1024 /* a count beyond this is not a directory */

struct fw_cfg_file { /* big endian */
    u32 size;
    u16 select;
    u16 reserved;
    char name[56];
};

static u32 lock;

static void select_item(u16 item, void *buf, size_t n)
{
    outw(FW_CFG_SELECT, item);
    in_bytes(FW_CFG_DATA, buf, n);
}

static bool signature_ok(void)
{
    char signature[4];
    select_item(ITEM_SIGNATURE, signature, sizeof(signature));
    return memcmp(signature, "QEMU", 4) == 0;
}

bool fw_cfg_present(void)
{
    irqflags_t flags = raw_lock(&lock);
    bool present = signature_ok();
    raw_unlock(&lock, flags);
    return present;
}

static i64 read_file(const char *name, void *buf, size_t max)
{
    u32 count;
    struct fw_cfg_file file;
    if (!signature_ok()) {
        return -ENODEV;
    }
    select_item(ITEM_FILE_DIRECTORY, &count, sizeof(count));
    count = __builtin_bswap32(count);
    for (u32 i = 0; i < MIN(count, (u32)MAX_FILES); i++) {
        in_bytes(FW_CFG_DATA, &file, sizeof(file));
        if (strncmp(file.name, name, sizeof(file.name)) == 0) {
            size_t bytes = MIN((size_t)__builtin_bswap32(file.size), max);
            select_item(__builtin_bswap16(file.select), buf, bytes);
            return (i64)bytes;
        }
    }
    return -ENOENT;
}

i64 arch_fw_cfg_read(const char *name, void *buf, size_t max)
{
    irqflags_t flags = raw_lock(&lock);
    i64 result = read_file(name, buf, max);
    raw_unlock(&lock, flags);
    return result;
}
