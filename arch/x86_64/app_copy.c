#include "arch/x86_64/internal.h"
#include "core/base/errno.h"
#include "core/base/string.h"

/* app_access.S: 0, or nonzero after a fault. */
int app_copy_bytes(void *dst, const void *src, size_t n);
int app_zero_bytes(void *dst, size_t n);
int app_load_word(u32 *value, const u32 *addr);
int app_cmpxchg_word(u32 *addr, u32 expected, u32 desired, u32 *old);
int app_copy_string(char *dst, const char *src, size_t max);

static bool in_app(u64 addr, size_t bytes)
{
    return addr >= APP_MIN && addr <= APP_MAX && bytes <= APP_MAX - addr;
}

bool arch_copy_from_app(void *dst, u64 src, size_t bytes)
{
    return in_app(src, bytes) && app_copy_bytes(dst, (const void *)(uintptr_t)src, bytes) == 0;
}

bool arch_copy_to_app(u64 dst, const void *src, size_t bytes)
{
    return in_app(dst, bytes) && app_copy_bytes((void *)(uintptr_t)dst, src, bytes) == 0;
}

i64 arch_copy_string_from_app(char *dst, u64 src, size_t max)
{
    if (src < APP_MIN || src >= APP_MAX) {
        return -EFAULT;
    }
    size_t readable = MIN(max, APP_MAX - src);
    int result = app_copy_string(dst, (const char *)(uintptr_t)src, readable);
    if (result == 1 || (result == 2 && readable < max)) {
        return -EFAULT;
    }
    return result == 2 ? -ENAMETOOLONG : (i64)strlen(dst);
}

bool arch_zero_app(u64 dst, size_t bytes)
{
    return in_app(dst, bytes) && app_zero_bytes((void *)(uintptr_t)dst, bytes) == 0;
}

bool arch_cmpxchg_app(u64 addr, u32 expected, u32 desired, u32 *old)
{
    return in_app(addr, sizeof(u32)) && IS_ALIGNED(addr, sizeof(u32)) &&
           app_cmpxchg_word((u32 *)(uintptr_t)addr, expected, desired, old) == 0;
}

bool arch_load_app(u64 addr, u32 *value)
{
    return in_app(addr, sizeof(u32)) && IS_ALIGNED(addr, sizeof(u32)) &&
           app_load_word(value, (const u32 *)(uintptr_t)addr) == 0;
}
