/* The firmware's memory map as ranges: sorted, merged, nothing usable that is not, no overrun. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/x86_64/uefi/loader.h"

/* EFI_MEMORY_TYPE */
#define RESERVED 0
#define LOADER_DATA 2
#define BOOT_CODE 3
#define RUNTIME_CODE 5
#define CONVENTIONAL 7
#define ACPI_RECLAIM 9
#define MMIO 11
/* Firmware may use larger descriptors than the structure that is known. */
#define STRIDE 48
#define PAGE LOADER_PAGE_SIZE

struct entry {
    uint32_t type;
    uint64_t base, pages;
};

static uint32_t convert(const struct entry *entries, size_t count, struct boot_info *info)
{
    uint8_t *map = calloc(count ? count : 1, STRIDE);
    uint32_t lost;

    for (size_t i = 0; i < count; i++) {
        memcpy(map + i * STRIDE, &entries[i].type, sizeof(entries[i].type));
        memcpy(map + i * STRIDE + 8, &entries[i].base, sizeof(entries[i].base));
        memcpy(map + i * STRIDE + 24, &entries[i].pages, sizeof(entries[i].pages));
    }
    lost = memmap_to_ranges(map, count * STRIDE, STRIDE, info);
    free(map);
    return lost;
}

static void expect_range(const struct boot_info *info, uint32_t i, uint64_t base, uint64_t pages, uint32_t type)
{
    assert_int_equal(info->ranges[i].base, base);
    assert_int_equal(info->ranges[i].size, pages * PAGE);
    assert_int_equal(info->ranges[i].type, type);
}

static void test_types_order_and_merging(void **state)
{
    static const struct entry map[] = {
        {CONVENTIONAL, 100 * PAGE, 10},
        {RUNTIME_CODE, 110 * PAGE, 5},
        {LOADER_DATA, 0, 40},
        {BOOT_CODE, 60 * PAGE, 40},
        {CONVENTIONAL, 40 * PAGE, 20}, /* joins its two neighbours and the first entry */
        {ACPI_RECLAIM, 200 * PAGE, 1},
        {MMIO, 300 * PAGE, 1},
        {CONVENTIONAL, 400 * PAGE, 0},
        {RESERVED, 115 * PAGE, 5},
    };
    struct boot_info info;

    (void)state;
    assert_int_equal(convert(map, sizeof(map) / sizeof(map[0]), &info), 0);
    assert_int_equal(info.num_ranges, 3);
    expect_range(&info, 0, 0, 110, BOOT_MEM_USABLE);
    expect_range(&info, 1, 110 * PAGE, 10, BOOT_MEM_RESERVED);
    expect_range(&info, 2, 200 * PAGE, 1, BOOT_MEM_ACPI);
}

static void test_empty(void **state)
{
    struct boot_info info;

    (void)state;
    assert_int_equal(convert(NULL, 0, &info), 0);
    assert_int_equal(info.num_ranges, 0);
}

static void test_overflow_loses_usable_memory_only(void **state)
{
    struct entry map[BOOT_MAX_RANGES + 10];
    struct boot_info info;
    uint32_t kept = 0;

    (void)state;
    for (uint32_t i = 0; i < BOOT_MAX_RANGES + 10; i++) /* gaps, so that nothing merges */
        map[i] = (struct entry){i % 8 == 7 ? ACPI_RECLAIM : CONVENTIONAL, i * 2 * PAGE, 1};
    assert_int_equal(convert(map, BOOT_MAX_RANGES + 10, &info), 10);
    assert_int_equal(info.num_ranges, BOOT_MAX_RANGES);
    for (uint32_t i = 0; i < info.num_ranges; i++) {
        kept += info.ranges[i].type == BOOT_MEM_ACPI;
        if (i > 0)
            assert_true(info.ranges[i].base >= info.ranges[i - 1].base + info.ranges[i - 1].size);
    }
    assert_int_equal(kept, (BOOT_MAX_RANGES + 10) / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_order_and_merging),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_overflow_loses_usable_memory_only),
    };

    return cmocka_run_group_tests_name("uefi_memmap", tests, NULL, NULL);
}
