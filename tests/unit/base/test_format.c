/* str_format against the C library's snprintf. */
#include "core/base/string.h"
#include "core/base/types.h"
#include "tests/unit/fake/cmocka_all.h"

#define STEPS 50000

/* Same result, same return value, at every buffer size. */
#define SAME(...)                                                                                  \
    do {                                                                                           \
        char want[256], have[256];                                                                 \
        for (size_t size_ = 0; size_ < 40; size_++) {                                              \
            memset(want, '#', sizeof(want));                                                       \
            memset(have, '#', sizeof(have));                                                       \
            int n_ = snprintf(want, size_, __VA_ARGS__);                                           \
            assert_int_equal(str_format(have, size_, __VA_ARGS__), n_);                            \
            assert_memory_equal(have, want, size_);                                                \
            assert_int_equal(have[size_], '#');                                                    \
        }                                                                                          \
    } while (0)

#pragma GCC diagnostic ignored "-Wformat-truncation"
#pragma GCC diagnostic ignored "-Wformat-zero-length"

static void conversions(void **state __unused)
{
    SAME("plain");
    SAME("");
    SAME("%d %i %u", -5, 7, 3000000000u);
    SAME("%d %d", INT32_MIN, INT32_MAX);
    SAME("%ld %lu %zu", INT64_MIN, UINT64_MAX, SIZE_MAX);
    SAME("%lld %llu", (long long)-1, (unsigned long long)-1);
    SAME("%hd %hhu %hhd", (short)-3, (unsigned char)200, (signed char)-100);
    SAME("%x %X %lx", 0xbeefu, 0xBEEFu, 0xdeadbeefcafeul);
    SAME("%p", (void *)0x1234);
    SAME("[%5d] [%-5d] [%05d]", 42, 42, 42);
    SAME("[%5d] [%-5d] [%05d]", -42, -42, -42);
    SAME("[%3lu.%06lu]", 1ul, 2345ul);
    SAME("[%8s] [%-8s] [%.3s] [%6.2s]", "abc", "abc", "abcdef", "abcdef");
    SAME("[%*d] [%-*d] [%*d]", 6, 1, 6, 2, -6, 3);
    SAME("[%.*s]", 2, "abcdef");
    SAME("[%.3d] [%6.3d] [%.0d]", 5, 5, 0);
    SAME("%c%c%c%%", 'a', 'b', 'c');
    SAME("%5c|%-5c|", 'x', 'y');
    SAME("%016lx", 0xffffffff80001234ul);
}

static void null_string(void **state __unused)
{
    char buf[16];
    const char *volatile nothing = NULL;
    str_format(buf, sizeof(buf), "%s", nothing);
    assert_string_equal(buf, "(null)");
}

static void precision_bounds_reading(void **state __unused)
{
    char unterminated[3] = {'a', 'b', 'c'}, buf[16];
    str_format(buf, sizeof(buf), "%.3s", unterminated);
    assert_string_equal(buf, "abc");
}

static void random_numbers(void **state __unused)
{
    u64 rng = test_seed(11);
    for (u32 i = 0; i < STEPS; i++) {
        u64 v = test_random(&rng) >> test_below(&rng, 64);
        int width = (int)test_below(&rng, 30);
        char want[128], have[128];
        str_format(have, sizeof(have), "%*ld|%-*lu|%*lx", width, (i64)(v - (v << 1)), width, v,
                   width, v);
        snprintf(want, sizeof(want), "%*ld|%-*lu|%*lx", width, (i64)(v - (v << 1)), width, v, width,
                 v);
        assert_string_equal(have, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conversions),
        cmocka_unit_test(null_string),
        cmocka_unit_test(precision_bounds_reading),
        cmocka_unit_test(random_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
