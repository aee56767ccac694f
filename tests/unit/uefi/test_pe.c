/* Sections of a PE image by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/x86_64/uefi/loader.h"

#define PE_AT 0x80
#define OPTIONAL_BYTES 240
#define SECTIONS_AT (PE_AT + 24 + OPTIONAL_BYTES)
#define IMAGE_BYTES 0x3000
#define FIRST_AT 0x1000
#define SECOND_AT 0x2000

static void put32(uint8_t *p, uint32_t value)
{
    memcpy(p, &value, sizeof(value));
}

static void put_section(uint8_t *image, uint32_t i, const char *name, uint32_t address, uint32_t size)
{
    uint8_t *section = image + SECTIONS_AT + i * 40;

    memcpy(section, name, strlen(name));
    put32(section + 8, size);
    put32(section + 12, address);
}

static uint8_t *new_image(void)
{
    uint8_t *image = calloc(1, IMAGE_BYTES);

    put32(image + 0x3c, PE_AT);
    memcpy(image + PE_AT, "PE\0", 4);
    image[PE_AT + 6] = 2;
    image[PE_AT + 20] = OPTIONAL_BYTES;
    put_section(image, 0, ".text", FIRST_AT, 100);
    put_section(image, 1, ".weirknl", SECOND_AT, IMAGE_BYTES - SECOND_AT);
    return image;
}

static void test_find(void **state)
{
    uint8_t *image = new_image();
    struct blob found = pe_section(image, IMAGE_BYTES, ".weirknl");

    (void)state;
    assert_ptr_equal(found.data, image + SECOND_AT);
    assert_int_equal(found.size, IMAGE_BYTES - SECOND_AT);
    found = pe_section(image, IMAGE_BYTES, ".text");
    assert_ptr_equal(found.data, image + FIRST_AT);
    assert_int_equal(found.size, 100);
    assert_null(pe_section(image, IMAGE_BYTES, ".weirapp").data);
    assert_null(pe_section(image, IMAGE_BYTES, ".tex").data);
    assert_null(pe_section(image, IMAGE_BYTES, ".texts").data);
    free(image);
}

static void test_section_outside_the_image(void **state)
{
    uint8_t *image = new_image();

    (void)state;
    put_section(image, 0, ".text", IMAGE_BYTES - 10, 11);
    assert_null(pe_section(image, IMAGE_BYTES, ".text").data);
    put_section(image, 0, ".text", UINT32_MAX, UINT32_MAX);
    assert_null(pe_section(image, IMAGE_BYTES, ".text").data);
    put_section(image, 0, ".text", FIRST_AT, 0);
    assert_null(pe_section(image, IMAGE_BYTES, ".text").data);
    free(image);
}

/* Every truncation, on a copy of exactly that size, is answered without a read past the end. */
static void test_truncated(void **state)
{
    uint8_t *image = new_image();

    (void)state;
    for (size_t bytes = 0; bytes < SECTIONS_AT + 100; bytes++) {
        uint8_t *copy = malloc(bytes ? bytes : 1);

        memcpy(copy, image, bytes);
        assert_null(pe_section(copy, bytes, ".weirknl").data);
        free(copy);
    }
    free(image);
}

static void test_not_a_pe(void **state)
{
    uint8_t *image = new_image();

    (void)state;
    image[PE_AT] = 'X';
    assert_null(pe_section(image, IMAGE_BYTES, ".text").data);
    image[PE_AT] = 'P';
    put32(image + 0x3c, UINT32_MAX);
    assert_null(pe_section(image, IMAGE_BYTES, ".text").data);
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_section_outside_the_image),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_not_a_pe),
    };

    return cmocka_run_group_tests_name("uefi_pe", tests, NULL, NULL);
}
