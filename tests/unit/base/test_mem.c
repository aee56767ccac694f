/* The kernel's memory and string functions, under names of their own, against byte loops. */
#include "core/base/string.h"
#include "core/base/types.h"
#include "tests/unit/fake/cmocka_all.h"

#define SPACE 1200
#define STEPS 30000

static u8 a[SPACE], b[SPACE], want[SPACE];

static size_t some_size(u64 *rng)
{
    switch (test_below(rng, 3)) {
    case 0:
        return test_below(rng, 20);
    case 1:
        return test_below(rng, 300);
    default:
        return test_below(rng, 600);
    }
}

static void fill_random(u8 *p, u64 *rng)
{
    for (u32 i = 0; i < SPACE; i++) {
        p[i] = (u8)test_random(rng);
    }
}

static void compare(const u8 *have)
{
    for (u32 i = 0; i < SPACE; i++) {
        assert_int_equal(have[i], want[i]);
    }
}

static void copies(void **state __unused)
{
    u64 rng = test_seed(21);
    fill_random(a, &rng);
    for (u32 step = 0; step < STEPS; step++) {
        size_t n = some_size(&rng), from = test_below(&rng, SPACE - n),
               to = test_below(&rng, SPACE - n);
        if (step % 64 == 0) {
            fill_random(b, &rng);
        }
        for (u32 i = 0; i < SPACE; i++) {
            want[i] = b[i];
        }
        for (size_t i = 0; i < n; i++) {
            want[to + i] = a[from + i];
        }
        assert_ptr_equal(memcpy(b + to, a + from, n), b + to);
        compare(b);
    }
}

static void overlapping_moves(void **state __unused)
{
    u64 rng = test_seed(22);
    for (u32 step = 0; step < STEPS; step++) {
        size_t n = some_size(&rng), from = test_below(&rng, SPACE - n),
               to = test_below(&rng, SPACE - n);
        if (step % 2 == 0) { /* near each other */
            to = from + test_below(&rng, 20);
            to = to > 10 && to - 10 + n <= SPACE ? to - 10 : from;
        }
        fill_random(b, &rng);
        for (u32 i = 0; i < SPACE; i++) {
            want[i] = b[i];
        }
        for (size_t i = 0; i < n; i++) {
            want[to + i] = b[from + i];
        }
        memmove(b + to, b + from, n);
        compare(b);
    }
}

static void sets(void **state __unused)
{
    u64 rng = test_seed(23);
    for (u32 step = 0; step < STEPS; step++) {
        size_t n = some_size(&rng), at = test_below(&rng, SPACE - n);
        int c = (int)test_random(&rng);
        for (u32 i = 0; i < SPACE; i++) {
            want[i] = i >= at && i < at + n ? (u8)c : b[i];
        }
        assert_ptr_equal(memset(b + at, c, n), b + at);
        compare(b);
    }
}

static void compares(void **state __unused)
{
    u64 rng = test_seed(24);
    for (u32 step = 0; step < STEPS; step++) {
        size_t n = some_size(&rng), at = test_below(&rng, SPACE - n),
               at2 = test_below(&rng, SPACE - n);
        for (size_t i = 0; i < n; i++) {
            a[at + i] = b[at2 + i] = (u8)test_below(&rng, 256);
        }
        assert_int_equal(memcmp(a + at, b + at2, n), 0);
        if (n > 0) {
            size_t k = test_below(&rng, n), later = k + test_below(&rng, n - k);
            a[at + later] ^= 0x55; /* what follows the first difference must not matter */
            a[at + k] = (u8)(b[at2 + k] + 1 + test_below(&rng, 255));
            int have = memcmp(a + at, b + at2, n);
            assert_int_not_equal(have, 0);
            assert_int_equal(have > 0, a[at + k] > b[at2 + k]);
            assert_ptr_equal(memchr(b + at2, b[at2], n), b + at2);
        }
    }
    assert_null(memchr("abc", 'd', 3));
    assert_null(memchr("abc", 'c', 2));
}

static void strings(void **state __unused)
{
    assert_int_equal(strlen(""), 0);
    assert_int_equal(strlen("abc"), 3);
    assert_int_equal(strnlen("abc", 2), 2);
    assert_int_equal(strnlen("abc", 9), 3);
    assert_int_equal(strcmp("abc", "abc"), 0);
    assert_true(strcmp("abc", "abd") < 0 && strcmp("abc", "ab") > 0 && strcmp("\x80", "a") > 0);
    assert_int_equal(strncmp("abc", "abd", 2), 0);
    assert_true(strncmp("abc", "abd", 3) < 0);
    assert_int_equal(strncmp("ab", "ab", 9), 0);
    const char *text = "a=b=c";
    assert_ptr_equal(strchr(text, '='), text + 1);
    assert_ptr_equal(strchr(text, '\0'), text + 5);
    assert_null(strchr(text, 'x'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies),   cmocka_unit_test(overlapping_moves), cmocka_unit_test(sets),
        cmocka_unit_test(compares), cmocka_unit_test(strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
