/* Command lines from load options and files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/x86_64/uefi/loader.h"

/* Load options made of a C string, with or without the closing NUL, on the heap. */
static bool from_options(const char *text, bool with_nul, char *dst, size_t max)
{
    size_t n = strlen(text) + (with_nul ? 1 : 0);
    uint16_t *wide = malloc(n ? n * sizeof(*wide) : 1);
    bool found;

    for (size_t i = 0; i < n; i++)
        wide[i] = (uint8_t)text[i];
    found = text_from_load_options(wide, n * sizeof(*wide), dst, max);
    free(wide);
    return found;
}

static void expect_options(const char *text, const char *expected)
{
    char dst[100];

    for (int with_nul = 0; with_nul < 2; with_nul++) {
        assert_int_equal(from_options(text, with_nul, dst, sizeof(dst)), expected != NULL);
        assert_string_equal(dst, expected ? expected : "");
    }
}

static void test_options(void **state)
{
    (void)state;
    expect_options("", NULL);
    expect_options("   ", NULL);
    expect_options("http=9100 log=debug", "http=9100 log=debug");
    expect_options("  a  b  ", "a  b");
    expect_options("weir.efi http=9100", "http=9100");
    expect_options("\\EFI\\BOOT\\BOOTX64.EFI", NULL);
    expect_options(".efi x", ".efi x"); /* no name before it */
    expect_options("http=9100 initrd=initrd", "http=9100");
    expect_options("initrd=initrd", NULL);
    expect_options("a initrd=x b", "a  b");
    expect_options("myinitrd=x", "myinitrd=x");
}

static void test_binary_options_are_ignored(void **state)
{
    static const uint16_t rubbish[] = {0xac4e, 0x2a3f, 0x1e8f, 0x4a16, 0x9b89, 0x6f3e, 0x0001, 0x8000};
    char dst[100];

    (void)state;
    assert_false(text_from_load_options(rubbish, sizeof(rubbish), dst, sizeof(dst)));
    assert_string_equal(dst, "");
    assert_false(text_from_load_options(NULL, 100, dst, sizeof(dst)));
    assert_false(text_from_load_options(rubbish, 1, dst, sizeof(dst)));
}

static void test_too_long_options_are_ignored(void **state)
{
    char dst[8];

    (void)state;
    assert_true(from_options("1234567", true, dst, sizeof(dst)));
    assert_string_equal(dst, "1234567");
    assert_false(from_options("12345678", true, dst, sizeof(dst)));
    assert_string_equal(dst, "");
}

static bool from_file(const char *text, size_t n, char *dst, size_t max)
{
    uint8_t *copy = malloc(n ? n : 1);
    bool good;

    memcpy(copy, text, n);
    good = text_from_file((struct blob){copy, n}, dst, max);
    free(copy);
    return good;
}

static void test_file(void **state)
{
    char dst[16];

    (void)state;
    assert_true(from_file("a=1\r\nb=2\n", 9, dst, sizeof(dst)));
    assert_string_equal(dst, "a=1  b=2");
    assert_true(from_file("", 0, dst, sizeof(dst)));
    assert_string_equal(dst, "");
    assert_true(from_file("a\0\xff", 3, dst, sizeof(dst)));
    assert_string_equal(dst, "a");
    assert_false(from_file("a\xff", 2, dst, sizeof(dst)));
    assert_false(from_file("0123456789abcdef", 16, dst, sizeof(dst)));
    assert_true(from_file("0123456789abcde", 15, dst, sizeof(dst)));
    assert_string_equal(dst, "0123456789abcde");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_binary_options_are_ignored),
        cmocka_unit_test(test_too_long_options_are_ignored),
        cmocka_unit_test(test_file),
    };

    return cmocka_run_group_tests_name("uefi_text", tests, NULL, NULL);
}
