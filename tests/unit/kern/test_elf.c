/* Validation of ELF files: good ones, every bad field, and random damage (under the sanitizers). */
#include <string.h>

#include "core/kern/elf.h"
#include "core/kern/elf_format.h"
#include "tests/unit/fake/cmocka_all.h"

#define LOW 0x10000ull
#define HIGH 0x7ffffffff000ull
#define TEXT 0x400000ull

struct file {
    struct elf_header h;
    struct elf_phdr ph[4];
    struct elf_shdr sh[4];
    struct elf_sym sym[5];
    char names[64];
    unsigned char code[256];
};

static void good(struct file *f)
{
    memset(f, 0, sizeof(*f));
    memcpy(f->h.ident, "\177ELF\2\1\1", 7);
    f->h.type = ELF_TYPE_EXEC;
    f->h.machine = ELF_MACHINE_X86_64;
    f->h.version = 1;
    f->h.entry = TEXT + offsetof(struct file, code);
    f->h.phoff = offsetof(struct file, ph);
    f->h.phentsize = sizeof(struct elf_phdr);
    f->h.phnum = 4;
    f->h.ehsize = sizeof(f->h);
    f->ph[0] = (struct elf_phdr){ ELF_PT_LOAD, ELF_PF_R | ELF_PF_X, 0, TEXT, TEXT, sizeof(*f), sizeof(*f), 4096 };
    f->ph[1] = (struct elf_phdr){ ELF_PT_LOAD, ELF_PF_R | ELF_PF_W, 0x10, 0x402010, 0, 0x20, 0x5000, 4096 };
    f->ph[2] = (struct elf_phdr){ ELF_PT_TLS, ELF_PF_R, 0x10, 0x402010, 0, 8, 16, 8 };
    f->ph[3] = (struct elf_phdr){ ELF_PT_GNU_STACK, ELF_PF_R | ELF_PF_W, 0, 0, 0, 0, 0x20000, 16 };
}

static void good_symbols(struct file *f)
{
    good(f);
    f->h.shoff = offsetof(struct file, sh);
    f->h.shentsize = sizeof(struct elf_shdr);
    f->h.shnum = 3;
    f->sh[1] = (struct elf_shdr){ .type = ELF_SHT_SYMTAB, .offset = offsetof(struct file, sym), .size = sizeof(f->sym),
                                  .link = 2, .entsize = sizeof(struct elf_sym) };
    f->sh[2] = (struct elf_shdr){ .type = 3, .offset = offsetof(struct file, names), .size = sizeof(f->names) };
    memcpy(f->names, "\0first\0second\0data", 19);
    f->sym[1] = (struct elf_sym){ 1, ELF_STT_FUNC, 0, 1, 0x400100, 0x20 };
    f->sym[2] = (struct elf_sym){ 7, ELF_STT_FUNC, 0, 1, 0x400200, 0x20 };
    f->sym[3] = (struct elf_sym){ 14, 1 /* object */, 0, 1, 0x400210, 8 };
}

static const char *check(const struct file *f, struct elf_image *image)
{
    return elf_check(f, sizeof(*f), LOW, HIGH, image);
}

static void good_file_is_understood(void **state)
{
    struct file f;
    struct elf_image image;
    (void)state;
    good(&f);
    assert_null(check(&f, &image));
    assert_false(image.relocatable);
    assert_int_equal(image.num_segments, 2);
    assert_int_equal(image.segments[0].prot, 5);
    assert_int_equal(image.segments[1].prot, 3);
    assert_int_equal(image.low, TEXT);
    assert_int_equal(image.high, 0x408000);
    assert_int_equal(image.phdr, TEXT + offsetof(struct file, ph));
    assert_int_equal(image.tls_size, 16);
    assert_int_equal(image.stack_size, 0x20000);
}

static void pie_is_relocatable(void **state)
{
    struct file f;
    struct elf_image image;
    (void)state;
    good(&f);
    f.h.type = ELF_TYPE_DYN;
    f.h.entry -= TEXT;
    f.ph[0].vaddr = 0;
    f.ph[1].vaddr -= TEXT;
    assert_null(check(&f, &image));
    assert_true(image.relocatable);
    assert_int_equal(image.low, 0);
    f.h.type = ELF_TYPE_EXEC; /* at a fixed address it would cover the null page */
    assert_string_equal(check(&f, &image), "a segment lies below the lowest address");
}

#define REFUSED(change, why)                                                                       \
    do {                                                                                           \
        struct file f;                                                                             \
        struct elf_image image;                                                                    \
        good(&f);                                                                                  \
        change;                                                                                    \
        const char *got = check(&f, &image);                                                       \
        assert_non_null(got);                                                                      \
        assert_non_null(strstr(got, why));                                                         \
    } while (0)

static void every_bad_field_is_named(void **state)
{
    (void)state;
    REFUSED(f.h.ident[0] = 0, "no ELF");
    REFUSED(f.h.ident[4] = 1, "64-bit");
    REFUSED(f.h.ident[5] = 2, "little-endian");
    REFUSED(f.h.ident[6] = 9, "version");
    REFUSED(f.h.version = 2, "version");
    REFUSED(f.h.machine = 183, "x86-64");
    REFUSED(f.h.type = 1, "no executable");
    REFUSED(f.h.phentsize = 32, "program headers");
    REFUSED(f.h.phnum = 0, "no program headers");
    REFUSED(f.h.phoff = 1ull << 62, "outside the file");
    REFUSED(f.h.phnum = 65535, "outside the file");
    REFUSED(f.h.entry = 0x10, "entry point");
    REFUSED(f.h.entry = 0x402010, "entry point"); /* not executable */
    REFUSED(f.ph[2].type = ELF_PT_INTERP, "-static");
    REFUSED(f.ph[0].flags |= ELF_PF_W, "writable and executable");
    REFUSED(f.ph[3].flags |= ELF_PF_X, "executable stack");
    REFUSED(f.ph[0].offset = 1ull << 61, "outside the file");
    REFUSED(f.ph[0].filesz = sizeof(f) + 1; f.ph[0].memsz = sizeof(f) + 1, "outside the file");
    REFUSED(f.ph[1].filesz = 0x6000, "larger in the file");
    REFUSED(f.ph[1].memsz = UINT64_MAX, "address space");
    REFUSED(f.ph[1].vaddr = HIGH, "address space");
    REFUSED(f.ph[1].vaddr = 0x402018, "disagree");
    REFUSED(f.ph[1].vaddr = 0x400010, "overlap");
    REFUSED(f.ph[1].align = 3, "power of two");
    REFUSED(f.ph[2].filesz = 17, "TLS");
    REFUSED(f.ph[0].type = f.ph[1].type = 0, "nothing to load");
}

static void short_files_are_refused(void **state)
{
    struct file f;
    struct elf_image image;
    (void)state;
    good(&f);
    /* A copy of exactly n bytes, so that the sanitizer sees every byte too many. */
    for (size_t n = 0; n < sizeof(f); n += 7) {
        void *copy = malloc(n ? n : 1);
        memcpy(copy, &f, n);
        assert_non_null(elf_check(copy, n, LOW, HIGH, &image));
        free(copy);
    }
}

static void too_many_segments(void **state)
{
    enum { N = ELF_MAX_SEGMENTS + 1 };
    size_t bytes = sizeof(struct elf_header) + N * sizeof(struct elf_phdr);
    unsigned char *data = calloc(1, bytes);
    struct file f;
    struct elf_image image;
    (void)state;
    good(&f);
    f.h.phoff = sizeof(struct elf_header);
    f.h.phnum = N;
    memcpy(data, &f.h, sizeof(f.h));
    for (size_t i = 0; i < N; i++) {
        struct elf_phdr ph = { ELF_PT_LOAD, ELF_PF_R, 0, TEXT + i * 4096, 0, 0, 4096, 4096 };
        memcpy(data + sizeof(f.h) + i * sizeof(ph), &ph, sizeof(ph));
    }
    assert_string_equal(elf_check(data, bytes, LOW, HIGH, &image), "too many segments");
    free(data);
}

static void symbols_are_found(void **state)
{
    struct file f;
    u64 offset = 0;
    (void)state;
    good_symbols(&f);
    assert_string_equal(elf_symbol(&f, sizeof(f), 0x400104, &offset), "first");
    assert_int_equal(offset, 4);
    assert_string_equal(elf_symbol(&f, sizeof(f), 0x400210, &offset), "second");
    assert_null(elf_symbol(&f, sizeof(f), 0x400150, &offset)); /* behind the end of the function */
    assert_null(elf_symbol(&f, sizeof(f), 0x100, &offset));
    assert_null(elf_symbol(NULL, 0, 0x400104, &offset));
    f.h.shnum = 0; /* stripped */
    assert_null(elf_symbol(&f, sizeof(f), 0x400104, &offset));
}

/* Random damage: whatever happens, no byte outside the file is read (the sanitizer watches). */
static void damaged_files_do_no_harm(void **state)
{
    uint64_t seed = test_seed(0x5eed);
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct file *f = malloc(sizeof(*f));
        struct elf_image image;
        u64 offset;
        good_symbols(f);
        for (uint64_t n = test_below(&seed, 6) + 1; n > 0; n--) {
            size_t room = offsetof(struct file, code);
            ((unsigned char *)f)[test_below(&seed, room)] = (unsigned char)test_random(&seed);
        }
        const char *why = check(f, &image);
        if (!why) {
            assert_in_range(image.num_segments, 1, ELF_MAX_SEGMENTS);
            for (u32 i = 0; i < image.num_segments; i++) {
                const struct elf_segment *s = &image.segments[i];
                assert_true(s->offset <= sizeof(*f) && s->file_size <= sizeof(*f) - s->offset);
                assert_true(s->file_size <= s->mem_size && s->vaddr + s->mem_size <= HIGH);
                assert_int_not_equal(s->prot & 6, 6);
            }
        }
        elf_symbol(f, sizeof(*f), 0x400104 + test_below(&seed, 512), &offset);
        free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_file_is_understood),  cmocka_unit_test(pie_is_relocatable),
        cmocka_unit_test(every_bad_field_is_named), cmocka_unit_test(short_files_are_refused),
        cmocka_unit_test(too_many_segments),        cmocka_unit_test(symbols_are_found),
        cmocka_unit_test(damaged_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
