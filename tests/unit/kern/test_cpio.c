/* The reader of newc cpio archives. */
#include <string.h>

#include "core/kern/initrd.h"
#include "tests/unit/fake/cmocka_all.h"

struct archive {
    char data[8192];
    size_t size;
};

static void pad(struct archive *a)
{
    while (a->size % 4) {
        a->data[a->size++] = '\0';
    }
}

static void add(struct archive *a, const char *name, unsigned mode, const void *data, size_t n)
{
    a->size += (size_t)sprintf(a->data + a->size,
                               "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", 1, mode, 0, 0, 1, 0,
                               (unsigned)n, 0, 0, 0, 0, (unsigned)strlen(name) + 1, 0);
    memcpy(a->data + a->size, name, strlen(name) + 1);
    a->size += strlen(name) + 1;
    pad(a);
    memcpy(a->data + a->size, data, n);
    a->size += n;
    pad(a);
}

static void finish(struct archive *a)
{
    add(a, "TRAILER!!!", 0, "", 0);
    memset(a->data + a->size, 0, 512);
    a->size += 512;
}

static void entries_in_order(void **state)
{
    struct archive a = { .size = 0 };
    struct cpio_entry e;
    const char *why = NULL;
    u64 at = 0;
    (void)state;
    add(&a, ".", 040755, "", 0);
    add(&a, "kv", 0100755, "abcde", 5);
    add(&a, "dir/file", 0100644, "", 0);
    finish(&a);
    assert_int_equal(cpio_next(a.data, a.size, &at, &e, &why), 1);
    assert_string_equal(e.name, ".");
    assert_int_equal(cpio_next(a.data, a.size, &at, &e, &why), 1);
    assert_string_equal(e.name, "kv");
    assert_int_equal(e.size, 5);
    assert_memory_equal(e.data, "abcde", 5);
    assert_int_equal(e.mode, 0100755);
    assert_int_equal(cpio_next(a.data, a.size, &at, &e, &why), 1);
    assert_string_equal(e.name, "dir/file");
    assert_int_equal(cpio_next(a.data, a.size, &at, &e, &why), 0);
}

static void archives_may_follow_each_other(void **state)
{
    struct archive a = { .size = 0 };
    struct cpio_entry e;
    const char *why = NULL;
    u64 at = 0;
    (void)state;
    add(&a, "one", 0100644, "1", 1);
    finish(&a);
    add(&a, "two", 0100644, "2", 1);
    finish(&a);
    assert_int_equal(cpio_next(a.data, a.size, &at, &e, &why), 1);
    assert_int_equal(cpio_next(a.data, a.size, &at, &e, &why), 1);
    assert_string_equal(e.name, "two");
    assert_int_equal(cpio_next(a.data, a.size, &at, &e, &why), 0);
}

/* Reads all of a copy of exactly n bytes: 0 or the reason. */
static const char *read_all(const char *data, size_t n)
{
    char *copy = malloc(n ? n : 1);
    struct cpio_entry e;
    const char *why = NULL;
    u64 at = 0;
    int r;
    memcpy(copy, data, n);
    while ((r = cpio_next(copy, n, &at, &e, &why)) == 1) {
        /* Every byte that it points to is inside. */
        assert_true(strlen(e.name) < n);
        for (u64 i = 0; i < e.size; i++) {
            assert_true(((const volatile char *)e.data)[i] || true);
        }
    }
    free(copy);
    return r < 0 ? why : NULL;
}

static void damage_is_named(void **state)
{
    struct archive a = { .size = 0 };
    (void)state;
    add(&a, "kv", 0100755, "abcdefgh", 8);
    finish(&a);
    assert_null(read_all(a.data, a.size));
    assert_non_null(strstr(read_all(a.data, 60), "inside a header"));
    assert_non_null(strstr(read_all(a.data, 112), "name"));
    assert_non_null(strstr(read_all(a.data, 118), "cut short"));
    struct archive b = a;
    b.data[0] = 'x';
    assert_non_null(strstr(read_all(b.data, b.size), "magic"));
    b = a;
    b.data[60] = 'g'; /* inside the file size */
    assert_non_null(strstr(read_all(b.data, b.size), "hexadecimal"));
    b = a;
    memcpy(b.data + 54, "ffffffff", 8);
    assert_non_null(strstr(read_all(b.data, b.size), "cut short"));
    b = a;
    memcpy(b.data + 94, "00000000", 8);
    assert_non_null(strstr(read_all(b.data, b.size), "name"));
}

static void random_damage_does_no_harm(void **state)
{
    uint64_t seed = test_seed(0xc910);
    struct archive a = { .size = 0 };
    (void)state;
    add(&a, "first", 0100644, "0123456789", 10);
    add(&a, "second", 0100755, "abc", 3);
    finish(&a);
    for (int round = 0; round < 20000; round++) {
        struct archive b = a;
        for (uint64_t n = test_below(&seed, 5) + 1; n > 0; n--) {
            b.data[test_below(&seed, b.size)] = (char)test_random(&seed);
        }
        read_all(b.data, test_below(&seed, b.size + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_in_order),
        cmocka_unit_test(archives_may_follow_each_other),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(random_damage_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
