/* The loader's ELF checks: a good kernel is planned and copied, every damaged one is refused with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <elf.h>

#include "arch/x86_64/uefi/loader.h"

#define BASE 0x1000000ull
#define VIRT 0xffffffff81000000ull
#define TEXT_BYTES 96 /* no padding behind it: every byte of the image counts */
#define BSS_BYTES 50

struct image {
    Elf64_Ehdr header;
    Elf64_Phdr segments[2];
    uint8_t text[TEXT_BYTES];
};

static struct image good_image(void)
{
    struct image image = {.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                                     .e_type = ET_EXEC,
                                     .e_machine = EM_X86_64,
                                     .e_entry = VIRT + 0x10,
                                     .e_phoff = offsetof(struct image, segments),
                                     .e_phentsize = sizeof(Elf64_Phdr),
                                     .e_phnum = 2}};

    image.segments[0] = (Elf64_Phdr){.p_type = PT_LOAD,
                                     .p_offset = offsetof(struct image, text),
                                     .p_vaddr = VIRT,
                                     .p_paddr = BASE,
                                     .p_filesz = TEXT_BYTES,
                                     .p_memsz = TEXT_BYTES + BSS_BYTES};
    image.segments[1] = (Elf64_Phdr){.p_type = PT_NOTE};
    for (size_t i = 0; i < TEXT_BYTES; i++)
        image.text[i] = (uint8_t)(i + 1);
    return image;
}

/* Checks a copy on the heap, so that the sanitizer sees any read past its end. */
static const char *plan_bytes(const void *data, size_t bytes, struct elf_plan *plan)
{
    uint8_t *copy = malloc(bytes ? bytes : 1);
    const char *wrong;

    memcpy(copy, data, bytes);
    wrong = elf_plan_kernel((struct blob){copy, bytes}, plan);
    free(copy);
    return wrong;
}

static const char *plan_image(const struct image *image)
{
    struct elf_plan plan;

    return plan_bytes(image, sizeof(*image), &plan);
}

static void test_good(void **state)
{
    struct image image = good_image();
    struct blob file = {(const uint8_t *)&image, sizeof(image)};
    struct elf_plan plan;
    uint8_t memory[TEXT_BYTES + BSS_BYTES];

    (void)state;
    assert_null(elf_plan_kernel(file, &plan));
    assert_int_equal(plan.phys_start, BASE);
    assert_int_equal(plan.phys_end, BASE + sizeof(memory));
    assert_int_equal(plan.entry_phys, BASE + 0x10);
    memset(memory, 0xee, sizeof(memory));
    elf_copy_segments(file, &plan, memory);
    assert_memory_equal(memory, image.text, TEXT_BYTES);
    for (size_t i = TEXT_BYTES; i < sizeof(memory); i++)
        assert_int_equal(memory[i], 0);
}

static void test_every_truncation_is_refused(void **state)
{
    struct image image = good_image();
    struct elf_plan plan;

    (void)state;
    for (size_t bytes = 0; bytes < sizeof(image); bytes++)
        assert_non_null(plan_bytes(&image, bytes, &plan));
}

#define assert_refused(change, reason)                                                                                 \
    do {                                                                                                               \
        struct image image = good_image();                                                                             \
        image.change;                                                                                                  \
        const char *wrong = plan_image(&image);                                                                        \
        assert_non_null(wrong);                                                                                        \
        assert_string_equal(wrong, reason);                                                                            \
    } while (0)

static void test_damage_has_its_reason(void **state)
{
    (void)state;
    assert_refused(header.e_ident[0] = 0, "not an ELF file");
    assert_refused(header.e_ident[EI_CLASS] = ELFCLASS32, "not for x86-64");
    assert_refused(header.e_machine = EM_AARCH64, "not for x86-64");
    assert_refused(header.e_type = ET_DYN, "not an executable");
    assert_refused(header.e_phnum = 0, "bad program header table");
    assert_refused(header.e_phentsize = 32, "bad program header table");
    assert_refused(header.e_phnum = 65, "bad program header table");
    assert_refused(header.e_phoff = UINT64_MAX - 8, "program headers lie outside the file");
    assert_refused(segments[0].p_filesz = TEXT_BYTES + BSS_BYTES + 1, "segment larger in the file than in memory");
    assert_refused(segments[0].p_offset = UINT64_MAX, "segment lies outside the file");
    assert_refused(segments[0].p_offset += 1, "segment lies outside the file");
    assert_refused(segments[0].p_memsz = UINT64_MAX, "segment too large or above 4 GiB");
    assert_refused(segments[0].p_paddr = 1ull << 32, "segment too large or above 4 GiB");
    assert_refused(segments[0].p_type = PT_NULL, "nothing to load");
    assert_refused(header.e_entry = VIRT - 1, "entry point outside the segments");
    assert_refused(header.e_entry = VIRT + TEXT_BYTES + BSS_BYTES, "entry point outside the segments");
    assert_refused(segments[0].p_paddr = BASE + 4096, "not aligned to 2 MiB");
}

static void test_far_apart_segments_are_refused(void **state)
{
    struct image image = good_image();

    (void)state;
    image.segments[1] = image.segments[0];
    image.segments[1].p_paddr = BASE + LOADER_MAX_KERNEL;
    assert_string_equal(plan_image(&image), "larger than 64 MiB in memory");
}

/* Any single changed byte gives a verdict without a read outside the file, and what passes can be copied. */
static void test_any_byte_changed(void **state)
{
    (void)state;
    for (size_t at = 0; at < offsetof(struct image, text); at++) {
        for (int bit = 0; bit < 8; bit++) {
            struct image image = good_image();
            struct elf_plan plan;

            ((uint8_t *)&image)[at] ^= (uint8_t)(1 << bit);
            if (plan_bytes(&image, sizeof(image), &plan))
                continue;
            uint8_t *memory = malloc(plan.phys_end - plan.phys_start);

            assert_non_null(memory);
            elf_copy_segments((struct blob){(const uint8_t *)&image, sizeof(image)}, &plan, memory);
            free(memory);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_every_truncation_is_refused),
        cmocka_unit_test(test_damage_has_its_reason),
        cmocka_unit_test(test_far_apart_segments_are_refused),
        cmocka_unit_test(test_any_byte_changed),
    };

    return cmocka_run_group_tests_name("uefi_elf", tests, NULL, NULL);
}
