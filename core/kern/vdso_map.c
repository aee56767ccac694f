/* Maps the vDSO: its data page and its image, once for all processes. */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/kern/start.h"
#include "core/kern/vdso/vdso_data.h"
#include "core/mm/mm.h"

extern const u8 vdso_image_start[], vdso_image_end[];

static u64 address;
static char vdso_owner; /* belongs to no process: it stays */

int vdso_init(void)
{
    struct vdso_data data = { .wall_base_ns = arch_wall_base_ns() };
    size_t bytes = (size_t)(vdso_image_end - vdso_image_start);
    size_t span = PAGE_SIZE + ALIGN_UP(bytes, (size_t)PAGE_SIZE);
    if (!arch_clock_params(&data.base_counter, &data.base_ns, &data.mult, &data.shift)) {
        return 0; /* the clock can only be read by the kernel: no vDSO, applications make the system call */
    }
    i64 at = mm_map(0, span, MM_READ | MM_WRITE, MM_POPULATE, &vdso_owner);
    if (at < 0) {
        return (int)at;
    }
    u64 image = (u64)at + PAGE_SIZE;
    if (!arch_copy_to_app((u64)at, &data, sizeof(data)) ||
        !arch_copy_to_app(image, vdso_image_start, bytes)) {
        return -ENOMEM;
    }
    int error = mm_protect((u64)at, PAGE_SIZE, MM_READ);
    if (!error) {
        error = mm_protect(image, span - PAGE_SIZE, MM_READ | MM_EXEC);
    }
    if (!error) {
        address = image;
    }
    return error;
}

u64 vdso_address(void)
{
    return address;
}
