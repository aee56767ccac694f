/* The identity map: every address below the end resolves to itself, none above does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/x86_64/uefi/loader.h"

#define GIB (1ull << 30)
#define ADDRESS_MASK 0x000ffffffffff000ull
#define NOT_MAPPED UINT64_MAX

/* Walks the tables as the CPU does (4 KiB pages are not expected). */
static uint64_t walk(uint64_t top, uint64_t address)
{
    const uint64_t *table = (const uint64_t *)top;

    for (int shift = 39; shift >= 21; shift -= 9) {
        uint64_t entry = table[(address >> shift) & 511];

        if (!(entry & 1))
            return NOT_MAPPED;
        if (entry & 0x80) {
            assert_int_equal(shift, 21);
            return (entry & ADDRESS_MASK) + (address & (LOADER_LARGE_PAGE - 1));
        }
        table = (const uint64_t *)(entry & ADDRESS_MASK);
    }
    fail_msg("no leaf for %lx", address);
    return NOT_MAPPED;
}

static void check(uint64_t end)
{
    size_t bytes = paging_table_bytes(end);
    uint8_t *tables = aligned_alloc(LOADER_PAGE_SIZE, bytes);
    uint64_t top;

    assert_non_null(tables);
    memset(tables, 0xff, bytes);
    top = paging_build(tables, end);
    for (uint64_t address = 0; address < end; address += 509 * LOADER_LARGE_PAGE / 7)
        assert_int_equal(walk(top, address), address);
    assert_int_equal(walk(top, end - 1), end - 1);
    assert_int_equal(walk(top, (end + GIB - 1) / GIB * GIB), NOT_MAPPED);
    free(tables);
}

static void test_sizes(void **state)
{
    (void)state;
    check(4 * GIB);
    check(4 * GIB + LOADER_LARGE_PAGE);
    check(64 * GIB);
    check(513 * GIB);
    check(1025 * GIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
    };

    return cmocka_run_group_tests_name("uefi_paging", tests, NULL, NULL);
}
