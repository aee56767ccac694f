/* The pure parts of the key-value server: hash, numbers, patterns, base64, histograms, settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "apps/kv/base64.h"
#include "apps/kv/buf.h"
#include "apps/kv/command.h"
#include "apps/kv/hist.h"
#include "apps/kv/num.h"
#include "apps/kv/siphash.h"
#include "apps/kv/store.h"
#include "tests/unit/kv/kv_tests.h"

/* ---- SipHash: an independent form with the numbers of rounds as parameters ---- */

static uint64_t rot(uint64_t x, int b)
{
    return x << b | x >> (64 - b);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rot(v[1], 13) ^ v[0];
    v[0] = rot(v[0], 32);
    v[2] += v[3];
    v[3] = rot(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rot(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rot(v[1], 17) ^ v[2];
    v[2] = rot(v[2], 32);
}

static uint64_t sip_model(const unsigned char *p, size_t n, const uint64_t k[2], int c, int d)
{
    uint64_t v[4] = {k[0] ^ 0x736f6d6570736575, k[1] ^ 0x646f72616e646f6d,
                     k[0] ^ 0x6c7967656e657261, k[1] ^ 0x7465646279746573};

    for (size_t at = 0; at <= n; at += 8) {
        uint64_t m = 0;

        for (size_t i = 0; i < 8; i++) {
            if (at + i < n) {
                m |= (uint64_t)p[at + i] << (8 * i);
            } else if (i == 7 && at + 8 > n) {
                m |= (uint64_t)n << 56;
            }
        }
        v[3] ^= m;
        for (int i = 0; i < c; i++) {
            sip_round(v);
        }
        v[0] ^= m;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < d; i++) {
        sip_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static void siphash_vectors(void **state)
{
    static const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
    unsigned char data[64];

    (void)state;
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (unsigned char)i;
    }
    /* The paper's test value for SipHash-2-4 and 15 bytes shows that the model is right. */
    assert_true(sip_model(data, 15, key, 2, 4) == 0xa129ca6149be45e5);
    for (size_t n = 0; n <= sizeof(data); n++) {
        assert_true(siphash13(data, n, key) == sip_model(data, n, key, 1, 3));
    }
}

static void siphash_is_keyed(void **state)
{
    static const uint64_t a[2] = {1, 2}, b[2] = {1, 3};

    (void)state;
    assert_true(siphash13("x", 1, a) != siphash13("x", 1, b));
}

/* ---- numbers ---- */

static void numbers_round_trip(void **state)
{
    static const int64_t values[] = {0,    1,  9,   10,        99,        100,      999,
                                     1000, -1, -10, 123456789, INT64_MAX, INT64_MIN};
    char text[NUM_MAX + 1], want[32];
    int64_t back;

    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        size_t n = num_put_i64(text, values[i]);

        text[n] = '\0';
        snprintf(want, sizeof(want), "%lld", (long long)values[i]);
        assert_string_equal(text, want);
        assert_true(num_get_i64(text, n, &back));
        assert_true(back == values[i]);
    }
    assert_int_equal(num_put_u64(text, UINT64_MAX), 20);
    assert_memory_equal(text, "18446744073709551615", 20);
}

static void numbers_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "-",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "01",
                                      "-0",
                                      "-01",
                                      "1e3",
                                      "0x1",
                                      "--1",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999"};
    int64_t v;
    uint64_t u;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(num_get_i64(bad[i], strlen(bad[i]), &v));
    }
    assert_true(num_get_u64("18446744073709551615", 20, &u) && u == UINT64_MAX);
    assert_false(num_get_u64("18446744073709551616", 20, &u));
    assert_true(num_get_u64("007", 3, &u) && u == 7);
    assert_false(num_get_u64("-1", 2, &u));
    assert_false(num_get_u64("", 0, &u));
}

/* ---- patterns ---- */

static void patterns(void **state)
{
    static const struct {
        const char *pat, *text;
        bool match;
    } t[] = {
        {"*", "", true},        {"*", "abc", true},       {"", "", true},
        {"", "a", false},       {"?", "a", true},         {"?", "", false},
        {"a*c", "abbbc", true}, {"a*c", "abbbd", false},  {"a*b*c", "axbxbxc", true},
        {"[abc]x", "bx", true}, {"[^abc]x", "bx", false}, {"[^abc]x", "dx", true},
        {"[a-c]", "b", true},   {"[c-a]", "b", true},     {"[a-c]", "d", false},
        {"\\*", "*", true},     {"\\*", "a", false},      {"[\\]]", "]", true},
        {"[abc", "a", true},    {"[abc", "d", false},     {"a\\", "a\\", true},
        {"**a", "xxa", true},   {"h?llo", "hello", true}, {"h[ae]llo", "hillo", false},
        {"[", "[", false},      {"[]", "a", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        if (glob_match(t[i].pat, strlen(t[i].pat), t[i].text, strlen(t[i].text)) != t[i].match) {
            fail_msg("pattern '%s' on '%s'", t[i].pat, t[i].text);
        }
    }
}

/* The pattern that makes a recursive matcher take 2^n steps must be done in n x m. */
static void patterns_do_not_explode(void **state)
{
    char pat[4001], text[2000];

    (void)state;
    for (size_t i = 0; i + 2 < sizeof(pat); i += 2) {
        pat[i] = 'a';
        pat[i + 1] = '*';
    }
    pat[sizeof(pat) - 1] = 'b';
    memset(text, 'a', sizeof(text));
    assert_false(glob_match(pat, sizeof(pat), text, sizeof(text)));
}

/* ---- base64 ---- */

static void base64_round_trip(void **state)
{
    unsigned char data[64], back[64];
    char text[BASE64_LEN(sizeof(data))];

    (void)state;
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (unsigned char)(i * 7 + 3);
    }
    for (size_t n = 1; n <= 48; n++) {
        size_t len = base64_encode(data, n, text);

        assert_int_equal(base64_decode(text, len, back), (long)n);
        assert_memory_equal(back, data, n);
    }
    assert_int_equal(base64_encode("foob", 4, text), 8);
    assert_memory_equal(text, "Zm9vYg==", 8);
}

static void base64_refused(void **state)
{
    static const char *const bad[] = {
        "Zg=", "Zg", "Zh==", "Zm9=", "====", "Z===", "!!!!", "Zm9v Zm9", "=Zm9"};
    char back[16];

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(base64_decode(bad[i], strlen(bad[i]), back), -1);
    }
}

/* ---- histograms ---- */

static void quantiles(void **state)
{
    struct hist h, sum;

    (void)state;
    memset(&h, 0, sizeof(h));
    memset(&sum, 0, sizeof(sum));
    assert_true(hist_quantile(&h, 500) == 0);
    for (uint64_t i = 1; i <= 1000; i++) {
        hist_add(&h, i);
    }
    hist_merge(&sum, &h);
    assert_true(sum.n == 1000 && sum.max == 1000 && sum.sum == 500500);
    /* Buckets are a quarter of a doubling wide: at most 25% above, never below. */
    assert_in_range(hist_quantile(&sum, 500), 500, 625);
    assert_in_range(hist_quantile(&sum, 990), 990, 1000);
    assert_int_equal(hist_quantile(&sum, 1000), 1000);
    hist_add(&h, UINT64_MAX);
    assert_true(hist_quantile(&h, 1000) <= UINT64_MAX && h.max == UINT64_MAX);
}

/* ---- buffers ---- */

static void buffers_grow_within_limits(void **state)
{
    struct mem m = {0};
    struct buf b = {0};

    (void)state;
    assert_true(buf_reserve(&b, 1, 100000, &m));
    assert_int_equal(b.cap, KV_BUF_MIN);
    b.len = b.cap;
    assert_true(buf_reserve(&b, 100000 - b.len, 100000, &m));
    assert_int_equal(b.cap, 100000);
    assert_false(buf_reserve(&b, 100000 - b.len + 1, 100000, &m));
    assert_false(buf_reserve(&b, SIZE_MAX, 100000, &m));
    assert_int_equal(atomic_load(&m.used), 100000);
    /* Used for a while, then not: the space is given back. */
    b.len = 0;
    buf_relax(&b, KV_BUF_KEEP + 1, &m);
    for (unsigned i = 0; i < KV_BUF_SHRINK_BATCHES; i++) {
        buf_relax(&b, 10, &m);
    }
    assert_int_equal(b.cap, KV_BUF_KEEP);
    assert_int_equal(atomic_load(&m.used), KV_BUF_KEEP);
    buf_free(&b, &m);
    assert_int_equal(atomic_load(&m.used), 0);
}

static void large_buffers_need_memory(void **state)
{
    struct mem m = {.limit = 200000};
    struct buf b = {0};

    (void)state;
    assert_true(buf_reserve(&b, KV_BUF_FREE_CHARGE, 1 << 20, &m));
    b.len = b.cap;
    assert_true(buf_reserve(&b, 1, 1 << 20, &m));
    b.len = b.cap;
    assert_false(buf_reserve(&b, 1, 1 << 20, &m)); /* 256 KB would exceed the limit */
    assert_int_equal(b.cap, 2 * KV_BUF_FREE_CHARGE);
    buf_free(&b, &m);
    assert_int_equal(atomic_load(&m.used), 0);
}

/* ---- commands ---- */

static void commands_are_found(void **state)
{
    (void)state;
    command_init();
    for (size_t i = 0; i < command_count(); i++) {
        const struct command *cmd = command_at(i);
        char upper[32];
        size_t n = strlen(cmd->name);

        assert_ptr_equal(command_find(cmd->name, n), cmd);
        for (size_t j = 0; j < n; j++) {
            upper[j] = cmd->name[j] >= 'a' ? (char)(cmd->name[j] - 32) : cmd->name[j];
        }
        assert_ptr_equal(command_find(upper, n), cmd);
        assert_null(command_find(cmd->name, n - 1) == cmd ? cmd : NULL);
    }
    assert_null(command_find("nosuch", 6));
    assert_null(command_find("", 0));
    assert_null(command_find("getgetgetgetgetget", 18));
    assert_null(command_find("ge\x00", 3));
}

int kv_base_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siphash_vectors),
        cmocka_unit_test(siphash_is_keyed),
        cmocka_unit_test(numbers_round_trip),
        cmocka_unit_test(numbers_refused),
        cmocka_unit_test(patterns),
        cmocka_unit_test(patterns_do_not_explode),
        cmocka_unit_test(base64_round_trip),
        cmocka_unit_test(base64_refused),
        cmocka_unit_test(quantiles),

        cmocka_unit_test(buffers_grow_within_limits),
        cmocka_unit_test(large_buffers_need_memory),
        cmocka_unit_test(commands_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
