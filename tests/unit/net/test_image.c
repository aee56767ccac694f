/* The loader of the lwIP image: the real image many times, and broken ones. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/arch.h"
#include "net/stack/image.h"
#include "tests/unit/fake/cmocka_all.h"

enum { COPIES = 16 };

static u8 *file;
static size_t size;
static int fd;
static u64 shared_pages, private_pages, reserve_fails, map_budget = UINT64_MAX;

static u64 reserve(size_t bytes)
{
    void *p = reserve_fails != 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? 0 : (u64)(uintptr_t)p;
}

static int map_shared(u64 va, const void *from, size_t pages, bool exec)
{
    shared_pages += pages;
    void *p = mmap((void *)(uintptr_t)va, pages * PAGE_SIZE, PROT_READ | (exec ? PROT_EXEC : 0), MAP_SHARED | MAP_FIXED, fd,
                   (const u8 *)from - file);
    return p == MAP_FAILED ? -1 : 0;
}

static void *map_private(u64 va, bool write)
{
    (void)write;
    if (map_budget == 0) {
        return NULL;
    }
    map_budget -= map_budget != UINT64_MAX;
    private_pages++;
    void *p = mmap((void *)(uintptr_t)va, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void seal(u64 va, bool write)
{
    mprotect((void *)(uintptr_t)va, PAGE_SIZE, PROT_READ | (write ? PROT_WRITE : 0));
}

static const struct image_space space = { reserve, map_shared, map_private, seal };

static int set_up(void **state)
{
    struct stat st;
    (void)state;
    fd = open(STACK_IMAGE_FILE, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        return -1;
    }
    size = (size_t)st.st_size;
    file = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    return file == MAP_FAILED ? -1 : 0;
}

static void copies_share_code_and_nothing_else(void **state)
{
    (void)state;
    struct image image;
    const struct stack_ops *ops[COPIES];
    u64 bases[COPIES];
    assert_int_equal(image_parse(file, size, &image), 0);
    for (int i = 0; i < COPIES; i++) {
        stack_entry_fn entry;
        shared_pages = private_pages = 0;
        assert_int_equal(image_load(&image, &space, &bases[i], &entry), 0);
        ops[i] = entry();
        assert_int_equal(ops[i]->abi, STACK_ABI);
        assert_int_equal(ops[i]->size, sizeof(struct stack_ops));
        /* Every operation lies within this copy's own mapping. */
        u64 fn;
        memcpy(&fn, &ops[i]->start, sizeof(fn));
        assert_in_range(fn, bases[i], bases[i] + image.span);
        assert_true(shared_pages * 4 >= private_pages * 4 * 4); /* the shared part is the large one */
        assert_in_range(private_pages, 1, 8);
    }
    for (int i = 1; i < COPIES; i++) {
        assert_ptr_not_equal(ops[i], ops[i - 1]);
    }
}

/* A copy of the image that a test may spoil. */
static u8 *spoiled(void)
{
    static u8 *copy;
    if (copy == NULL) {
        copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    memcpy(copy, file, size);
    return copy;
}

static void refuses(const u8 *bytes, size_t n, const char *why)
{
    struct image image;
    assert_int_equal(image_parse(bytes, n, &image), -EINVAL);
    assert_string_equal(image.error, why);
}

static u64 get64(const u8 *p)
{
    u64 v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static void put64(u8 *p, u64 v)
{
    memcpy(p, &v, sizeof(v));
}

/* Program header i of the copy; offsets of its fields: flags 4, offset 8, vaddr 16, filesz 32, memsz 40. */
static u8 *segment(u8 *copy, u32 i)
{
    return copy + get64(copy + 32) + i * 56;
}

static void broken_images_are_refused(void **state)
{
    (void)state;
    u8 *c = spoiled();
    refuses(c, 10, "bad size or alignment");
    c[0] = 'X';
    refuses(c, size, "not a position-independent x86-64 ELF image");
    c = spoiled();
    c[16] = 2; /* ET_EXEC */
    refuses(c, size, "not a position-independent x86-64 ELF image");
    c = spoiled();
    put64(c + 32, size); /* program headers outside */
    refuses(c, size, "not a position-independent x86-64 ELF image");
    c = spoiled();
    segment(c, 0)[4] = 7; /* RWX */
    refuses(c, size, "segment both writable and executable");
    c = spoiled();
    put64(segment(c, 1) + 8, size); /* offset */
    refuses(c, size, "segment outside the file");
    c = spoiled();
    put64(segment(c, 1) + 32, UINT64_MAX); /* file size */
    refuses(c, size, "segment outside the file");
    c = spoiled();
    put64(segment(c, 1) + 16, get64(segment(c, 1) + 16) + 8);
    refuses(c, size, "segment not page-aligned");
    c = spoiled();
    put64(segment(c, 1) + 16, 0);
    refuses(c, size, "segments overlap or are not in order");
    c = spoiled();
    put64(segment(c, 3) + 40, 1u << 20); /* memory size of the last one, the data */
    refuses(c, size, "too much data");
    c = spoiled();
    put64(c + 24, get64(segment(c, 3) + 16)); /* entry point in the data */
    refuses(c, size, "entry point outside the code");
    refuses(spoiled(), 4096, "segment outside the file");
}

/* Where the image's relocations lie in the file. */
static u8 *first_relocation(u8 *copy)
{
    struct image image;
    assert_int_equal(image_parse(copy, size, &image), 0);
    assert_true(image.num_rela > 10);
    return copy + image.rela_offset;
}

static void bad_relocations_are_refused(void **state)
{
    (void)state;
    u8 *c = spoiled(), *r = first_relocation(c);
    put64(r, 0x1000); /* in the code */
    refuses(c, size, "relocation outside the data");
    c = spoiled();
    put64(first_relocation(c), UINT64_MAX - 4);
    refuses(c, size, "relocation outside the data");
    c = spoiled();
    r = first_relocation(c);
    put64(r, get64(r) + 1);
    refuses(c, size, "relocation not aligned");
    c = spoiled();
    put64(first_relocation(c) + 8, 6); /* R_X86_64_GLOB_DAT */
    refuses(c, size, "relocation other than a relative one");
    c = spoiled();
    put64(first_relocation(c) + 16, 1ull << 40);
    refuses(c, size, "relocation to outside the image");
}

static void no_memory(void **state)
{
    (void)state;
    struct image image;
    u64 base;
    stack_entry_fn entry;
    assert_int_equal(image_parse(file, size, &image), 0);
    reserve_fails = 1;
    assert_int_equal(image_load(&image, &space, &base, &entry), -ENOMEM);
    reserve_fails = 0;
    for (u64 pages = 0; pages < 3; pages++) {
        map_budget = pages;
        assert_int_equal(image_load(&image, &space, &base, &entry), -ENOMEM);
    }
    map_budget = UINT64_MAX;
}

/* Random damage: parsed or refused, and what is parsed can be loaded; the sanitizers watch. */
static void random_damage(void **state)
{
    (void)state;
    u64 seed = test_seed(5), relocations = (u64)(first_relocation(spoiled()) - spoiled());
    u32 refused = 0;
    for (u32 i = 0; i < 3000; i++) {
        u8 *c = spoiled();
        for (u64 n = 1 + test_below(&seed, 3); n > 0; n--) {
            c[test_below(&seed, 2) == 0 ? test_below(&seed, 400) : relocations + test_below(&seed, 0x800)] = (u8)test_random(&seed);
        }
        struct image image;
        refused += image_parse(c, size, &image) != 0;
    }
    assert_true(refused > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_share_code_and_nothing_else),
        cmocka_unit_test(broken_images_are_refused),
        cmocka_unit_test(bad_relocations_are_refused),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(random_damage),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
