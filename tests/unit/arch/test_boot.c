/* Memory map and command line as loaders hand them over. */
#include "tests/unit/fake/cmocka_all.h"

#include <string.h>

#include "arch/x86_64/boot_util.h"
#include "core/base/types.h"

#define KIB  1024ull
#define MIB  (1024 * KIB)
#define PAGE 4096ull

static struct boot_range range(u64 base, u64 size, u32 type)
{
    return (struct boot_range){.base = base, .size = size, .type = type};
}

static void merge_sorts_and_joins(void **state)
{
    struct boot_range r[] = {
        range(8 * MIB, MIB, BOOT_MEM_USABLE),
        range(0, MIB, BOOT_MEM_USABLE),
        range(MIB, MIB, BOOT_MEM_USABLE),
        range(5 * MIB, 0, BOOT_MEM_USABLE),
        range(8 * MIB + 1, 3 * MIB, BOOT_MEM_USABLE),
    };
    (void)state;
    assert_int_equal(boot_ranges_merge(r, 5), 2);
    assert_int_equal(r[0].base, 0);
    assert_int_equal(r[0].size, 2 * MIB);
    assert_int_equal(r[1].base, 8 * MIB);
    assert_int_equal(r[1].size, 3 * MIB + 1);
}

static void merge_of_a_contained_range(void **state)
{
    struct boot_range r[] = {range(0, 10 * MIB, BOOT_MEM_USABLE), range(MIB, MIB, BOOT_MEM_USABLE)};
    (void)state;
    assert_int_equal(boot_ranges_merge(r, 2), 1);
    assert_int_equal(r[0].size, 10 * MIB);
}

static void merge_stops_wrapping_ranges(void **state)
{
    struct boot_range r[] = {range(~0ull - 8 * PAGE, ~0ull, BOOT_MEM_USABLE)};
    (void)state;
    assert_int_equal(boot_ranges_merge(r, 1), 1);
    assert_true(r[0].base + r[0].size > r[0].base);
}

static void carve_splits(void **state)
{
    struct boot_range r[4] = {range(0, 10 * MIB, BOOT_MEM_USABLE)};
    u32 n = 1;
    (void)state;
    assert_int_equal(boot_ranges_carve(r, &n, 4, 4 * MIB + 1, 100), 0);
    assert_int_equal(n, 2);
    assert_int_equal(r[0].size, 4 * MIB);
    assert_int_equal(r[1].base, 4 * MIB + PAGE); /* whole pages */
    assert_int_equal(r[1].base + r[1].size, 10 * MIB);
}

static void carve_of_edges_and_all(void **state)
{
    struct boot_range r[4] = {range(MIB, MIB, BOOT_MEM_USABLE),
                              range(4 * MIB, MIB, BOOT_MEM_USABLE)};
    u32 n = 2;
    (void)state;
    boot_ranges_carve(r, &n, 4, 0, MIB + PAGE);
    assert_int_equal(r[0].base, MIB + PAGE);
    boot_ranges_carve(r, &n, 4, 2 * MIB - PAGE, 10 * PAGE);
    assert_int_equal(r[0].base + r[0].size, 2 * MIB - PAGE);
    boot_ranges_carve(r, &n, 4, 0, 3 * MIB);
    assert_int_equal(n, 1);
    assert_int_equal(r[0].base, 4 * MIB);
    boot_ranges_carve(r, &n, 4, 0, 0);
    assert_int_equal(n, 1);
}

static void carve_leaves_other_types(void **state)
{
    struct boot_range r[4] = {range(0, MIB, BOOT_MEM_RESERVED), range(0, MIB, BOOT_MEM_ACPI)};
    u32 n = 2;
    (void)state;
    boot_ranges_carve(r, &n, 4, 0, MIB);
    assert_int_equal(n, 2);
}

static void carve_without_room_loses_the_smaller_part(void **state)
{
    struct boot_range r[1] = {range(0, 10 * MIB, BOOT_MEM_USABLE)};
    u32 n = 1;
    (void)state;
    assert_int_equal(boot_ranges_carve(r, &n, 1, 2 * MIB, MIB), 2 * MIB);
    assert_int_equal(n, 1);
    assert_int_equal(r[0].base, 3 * MIB);
    assert_int_equal(r[0].size, 7 * MIB);
}

static void usable_loses_to_anything_else(void **state)
{
    const struct boot_range in[] = {
        range(16 * MIB, 16 * MIB, BOOT_MEM_USABLE), range(20 * MIB + 5, 10, BOOT_MEM_RESERVED),
        range(100, 640 * KIB, BOOT_MEM_USABLE),     range(30 * MIB, 8 * MIB, BOOT_MEM_ACPI),
        range(16 * MIB, PAGE, BOOT_MEM_USABLE),
    };
    struct boot_range out[BOOT_MAX_RANGES];
    u64 lost;
    (void)state;
    u32 n = boot_ranges_usable(in, 5, out, BOOT_MAX_RANGES, &lost);
    assert_int_equal(lost, 0);
    assert_int_equal(n, 3);
    assert_int_equal(out[0].base, PAGE);
    assert_int_equal(out[0].base + out[0].size, 640 * KIB);
    assert_int_equal(out[1].base, 16 * MIB);
    assert_int_equal(out[1].size, 4 * MIB);
    assert_int_equal(out[2].base, 20 * MIB + PAGE);
    assert_int_equal(out[2].base + out[2].size, 30 * MIB);
}

#define MODEL_PAGES 512

/* Random maps against a page-by-page model. */
static void usable_equals_model(void **state)
{
    u64 rng = test_seed(20261130);
    (void)state;
    for (u32 round = 0; round < 3000; round++) {
        bool model[MODEL_PAGES] = {false}, got[MODEL_PAGES] = {false};
        struct boot_range in[24], out[64];
        u32 n = 1 + (u32)test_below(&rng, 24);
        for (u32 i = 0; i < n; i++) {
            in[i] = range(test_below(&rng, MODEL_PAGES * PAGE), test_below(&rng, 60 * PAGE),
                          1 + (u32)test_below(&rng, 3));
            if (in[i].base + in[i].size > MODEL_PAGES * PAGE) {
                in[i].size = MODEL_PAGES * PAGE - in[i].base;
            }
        }
        for (u32 pass = 0; pass < 2; pass++) { /* usable first, then what takes away */
            for (u32 i = 0; i < n; i++) {
                bool usable = in[i].type == BOOT_MEM_USABLE;
                u64 end = in[i].base + in[i].size;
                if (usable != (pass == 0) || in[i].size == 0) {
                    continue;
                }
                u64 from = usable ? (in[i].base + PAGE - 1) / PAGE : in[i].base / PAGE;
                u64 to = usable ? end / PAGE : (end + PAGE - 1) / PAGE;
                for (u64 p = from; p < to; p++) {
                    model[p] = usable;
                }
            }
        }
        u64 lost;
        u32 count = boot_ranges_usable(in, n, out, 64, &lost);
        assert_int_equal(lost, 0);
        for (u32 i = 0; i < count; i++) {
            assert_true(i == 0 || out[i].base > out[i - 1].base + out[i - 1].size);
            for (u64 p = out[i].base / PAGE; p < (out[i].base + out[i].size) / PAGE; p++) {
                got[p] = true;
            }
        }
        assert_memory_equal(model, got, sizeof(model));
    }
}

static void cmdline_is_copied_and_cleaned(void **state)
{
    char text[32];
    (void)state;
    assert_true(boot_copy_cmdline(text, sizeof(text), "a=1\tb\n\x7f c", 64));
    assert_string_equal(text, "a=1 b   c");
    assert_true(boot_copy_cmdline(text, sizeof(text), "", 1));
    assert_string_equal(text, "");
}

static void cmdline_too_long_is_cut(void **state)
{
    char text[5];
    (void)state;
    assert_true(boot_copy_cmdline(text, sizeof(text), "abcd", 64));
    assert_string_equal(text, "abcd");
    assert_false(boot_copy_cmdline(text, sizeof(text), "abcde", 64));
    assert_string_equal(text, "abcd");
}

static void cmdline_without_end(void **state)
{
    char *source = malloc(3), text[16]; /* the sanitizer watches what lies behind */
    (void)state;
    memcpy(source, "abc", 3);
    assert_true(boot_copy_cmdline(text, sizeof(text), source, 3));
    assert_string_equal(text, "abc");
    free(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_sorts_and_joins),
        cmocka_unit_test(merge_of_a_contained_range),
        cmocka_unit_test(merge_stops_wrapping_ranges),
        cmocka_unit_test(carve_splits),
        cmocka_unit_test(carve_of_edges_and_all),
        cmocka_unit_test(carve_leaves_other_types),
        cmocka_unit_test(carve_without_room_loses_the_smaller_part),
        cmocka_unit_test(usable_loses_to_anything_else),
        cmocka_unit_test(usable_equals_model),
        cmocka_unit_test(cmdline_is_copied_and_cleaned),
        cmocka_unit_test(cmdline_too_long_is_cut),
        cmocka_unit_test(cmdline_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
