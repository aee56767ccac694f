/* str_* helpers, bit operations. */
#include "core/base/bitops.h"
#include "core/base/errno.h"
#include "core/base/string.h"
#include "tests/unit/fake/cmocka_all.h"

static int parse(const char *s, u64 *v)
{
    return str_parse_u64(s, strlen(s), v);
}

static void parses_numbers(void **state __unused)
{
    u64 v = 77;
    assert_int_equal(parse("0", &v), 0);
    assert_int_equal(v, 0);
    assert_int_equal(parse("18446744073709551615", &v), 0);
    assert_int_equal(v, UINT64_MAX);
    assert_int_equal(parse("0xFFFFffffFFFFffff", &v), 0);
    assert_int_equal(v, UINT64_MAX);
    assert_int_equal(parse("0X1f", &v), 0);
    assert_int_equal(v, 31);
    assert_int_equal(parse("007", &v), 0);
    assert_int_equal(v, 7);
    assert_int_equal(str_parse_u64("123456", 3, &v), 0); /* not NUL-terminated */
    assert_int_equal(v, 123);
}

static void refuses_rubbish(void **state __unused)
{
    static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "1k", "0x", "0xg", "12a", "a"};
    u64 v = 77;
    for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_int_equal(parse(bad[i], &v), -EINVAL);
    }
    assert_int_equal(parse("18446744073709551616", &v), -ERANGE);
    assert_int_equal(parse("99999999999999999999999", &v), -ERANGE);
    assert_int_equal(parse("0x10000000000000000", &v), -ERANGE);
    assert_int_equal(parse("99999999999999999999999x", &v), -EINVAL); /* rubbish before size */
    assert_int_equal(v, 77);
}

static void copies(void **state __unused)
{
    char buf[4] = "###";
    assert_true(str_copy(buf, "abc", sizeof(buf)));
    assert_string_equal(buf, "abc");
    assert_false(str_copy(buf, "abcd", sizeof(buf)));
    assert_string_equal(buf, "abc");
    assert_false(str_copy(buf, "", 0));
    assert_true(str_copy(buf, "", 1));
    assert_string_equal(buf, "");
    assert_true(str_starts_with("env.X", "env."));
    assert_true(str_starts_with("x", ""));
    assert_false(str_starts_with("en", "env."));
}

static void bits(void **state __unused)
{
    u64 rng = test_seed(31);
    for (u32 i = 0; i < 10000; i++) {
        u64 v = test_random(&rng) >> test_below(&rng, 64);
        assert_int_equal(bit_count(v), __builtin_popcountll(v));
        u64 seen = 0;
        for_each_bit(bit, v)
        {
            assert_true((seen >> bit) == 0); /* ascending */
            seen |= BIT(bit);
        }
        assert_true(seen == v);
    }
    assert_int_equal(order_for(1), 0);
    assert_int_equal(order_for(2), 1);
    assert_int_equal(order_for(3), 2);
    assert_int_equal(order_for(1024), 10);
    assert_int_equal(order_for(1025), 11);
    assert_true(cpumask_first(0) == 0 && cpumask_first(3) == 7 && cpumask_first(64) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_numbers),
        cmocka_unit_test(refuses_rubbish),
        cmocka_unit_test(copies),
        cmocka_unit_test(bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
