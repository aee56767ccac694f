/* Parts of the load generator and of spread that need no socket. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "apps/load/hist.h"
#include "apps/load/keys.h"
#include "apps/load/options.h"
#include "apps/load/proto.h"
#include "apps/load/rng.h"
#include "apps/spread/spread.h"

/* ---- histogram -------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Against sorted values, over magnitudes from 1 to 2^40. */
static void test_hist_quantiles_are_exact_within_a_step(void **state)
{
    enum { N = 20000 };
    static uint64_t values[N];
    static struct hist h;
    uint64_t rng = 7;

    (void)state;
    hist_reset(&h);
    for (int i = 0; i < N; i++) {
        values[i] = rng_next(&rng) >> (24 + rng_below(&rng, 39));
        hist_add(&h, values[i]);
    }
    qsort(values, N, sizeof(values[0]), by_value);
    for (int i = 1; i <= 1000; i++) {
        uint64_t exact = values[(size_t)(i * (N / 1000)) - 1];
        uint64_t told = hist_quantile(&h, i / 1000.0);

        assert_true(told >= exact);
        assert_true((double)told <= (double)exact * (1.0 + 1.0 / HIST_SUB) + 1.0);
    }
    assert_int_equal(h.count, N);
    assert_int_equal(h.max, values[N - 1]);
    assert_int_equal(h.min, values[0]);
    assert_int_equal(h.clamped, 0);
}

static void test_hist_edges(void **state)
{
    static struct hist h;

    (void)state;
    hist_reset(&h);
    assert_int_equal(hist_quantile(&h, 0.5), 0);
    assert_true(hist_mean(&h) == 0.0);
    hist_add(&h, 0);
    assert_int_equal(hist_quantile(&h, 0.0), 0);
    hist_add(&h, UINT64_MAX);           /* beyond the last bucket: clamped, but max is exact */
    assert_int_equal(h.clamped, 1);
    assert_int_equal(h.max, UINT64_MAX);
    assert_int_equal(hist_quantile(&h, 1.0), (1ull << (HIST_TOP_BIT + 1)) - 1);
    assert_int_equal(hist_quantile(&h, 7.0), hist_quantile(&h, 1.0));
}

static void test_hist_merge_equals_adding(void **state)
{
    static struct hist a, b, all;
    uint64_t rng = 3;

    (void)state;
    hist_reset(&a);
    hist_reset(&b);
    hist_reset(&all);
    for (int i = 0; i < 1000; i++) {
        uint64_t v = rng_below(&rng, 1000000);

        hist_add(i % 3 ? &a : &b, v);
        hist_add(&all, v);
    }
    hist_merge(&a, &b);
    assert_memory_equal(&a, &all, sizeof(a));
}

/* ---- keys and values -------------------------------------------------------------------- */

static void test_every_key_is_reached_and_zipf_is_skewed(void **state)
{
    enum { KEYS = 1000, DRAWS = 400000 };
    static uint32_t seen[KEYS], uniform_seen[KEYS];
    struct keyspace zipf, uniform;
    uint64_t rng = 11;
    uint32_t most = 0;
    double harmonic = 0;

    (void)state;
    assert_true(keyspace_init(&zipf, KEYS, 0.99, 100, 100));
    assert_true(keyspace_init(&uniform, KEYS, 0, 100, 100));
    for (int i = 0; i < DRAWS; i++) {
        seen[keyspace_pick(&zipf, &rng)]++;
        uniform_seen[keyspace_pick(&uniform, &rng)]++;
    }
    for (int k = 0; k < KEYS; k++) {
        harmonic += pow(k + 1, -0.99);
        most = seen[k] > most ? seen[k] : most;
        assert_true(seen[k] > 0);
        assert_in_range(uniform_seen[k], DRAWS / KEYS / 2, DRAWS / KEYS * 2);
    }
    /* The most popular key has its share, within 5%. */
    assert_true(fabs(most / (DRAWS / harmonic) - 1.0) < 0.05);
    keyspace_free(&zipf);
    keyspace_free(&uniform);
}

static void test_one_key_works(void **state)
{
    struct keyspace space;
    uint64_t rng = 1;

    (void)state;
    assert_true(keyspace_init(&space, 1, 1.2, 1, 1));
    assert_int_equal(keyspace_pick(&space, &rng), 0);
    keyspace_free(&space);
}

static void test_keys_are_16_printable_bytes(void **state)
{
    char key[LOAD_KEY_BYTES + 1] = "";

    (void)state;
    key_format(key, 1234567);
    assert_string_equal(key, "key:000001234567");
}

static void test_any_harm_to_a_value_is_seen(void **state)
{
    static const uint32_t sizes[] = {1, 7, 8, 9, 15, 16, 17, 23, 24, 100, 1000};
    char value[1001];

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct keyspace space;
        uint32_t size = sizes[s];

        assert_true(keyspace_init(&space, 100, 0, size, size));
        value_fill(value, size, 42, 0x1234567890abcdefull);
        assert_true(value_check(&space, value, size, 42));
        assert_false(value_check(&space, value, size + 1, 42));
        assert_false(value_check(&space, value, size - 1, 42));
        assert_false(value_check(&space, value, size, 43));
        for (uint32_t at = 0; at < size; at++) {
            /* A value too short to hold a word that follows from the stamp cannot vouch for it. */
            if (size < 24 && at >= 8 && at < 16) {
                continue;
            }
            value[at] ^= 0x10;
            assert_false(value_check(&space, value, size, 42));
            value[at] ^= 0x10;
        }
        keyspace_free(&space);
    }
}

static void test_value_sizes_stay_in_range_and_reach_its_ends(void **state)
{
    struct keyspace space;
    uint32_t least = UINT32_MAX, most = 0;

    (void)state;
    assert_true(keyspace_init(&space, 10000, 0, 10, 20));
    for (uint64_t key = 0; key < 10000; key++) {
        uint32_t size = value_size(&space, key);

        least = size < least ? size : least;
        most = size > most ? size : most;
    }
    assert_int_equal(least, 10);
    assert_int_equal(most, 20);
    keyspace_free(&space);
}

/* ---- protocols -------------------------------------------------------------------------- */

struct reply_case {
    enum proto proto;
    bool is_get;
    const char *text;
    long length;            /* of the reply; -1 bad */
    enum reply_kind kind;
    const char *value;
};

static const struct reply_case reply_cases[] = {
    {PROTO_RESP, true, "$5\r\nhello\r\n", 11, REPLY_VALUE, "hello"},
    {PROTO_RESP, true, "$0\r\n\r\n", 6, REPLY_VALUE, ""},
    {PROTO_RESP, true, "$-1\r\n", 5, REPLY_MISS, NULL},
    {PROTO_RESP, true, "_\r\n", 3, REPLY_MISS, NULL},
    {PROTO_RESP, true, "-ERR no\r\n", 9, REPLY_ERROR, NULL},
    {PROTO_RESP, true, "+OK\r\n", -1, REPLY_ERROR, NULL},
    {PROTO_RESP, true, "$5\r\nhelloXX", -1, REPLY_ERROR, NULL},
    {PROTO_RESP, true, "$x\r\n", -1, REPLY_ERROR, NULL},
    {PROTO_RESP, true, "$9999999999\r\n", -1, REPLY_ERROR, NULL},
    {PROTO_RESP, true, "$5\nhello\r\n", -1, REPLY_ERROR, NULL},
    {PROTO_RESP, false, "+OK\r\n", 5, REPLY_STORED, NULL},
    {PROTO_RESP, false, "-OOM\r\n", 6, REPLY_ERROR, NULL},
    {PROTO_RESP, false, "$5\r\nhello\r\n", -1, REPLY_ERROR, NULL},
    {PROTO_MEMCACHE, true, "VALUE key:000000000001 0 5\r\nhello\r\nEND\r\n", 40, REPLY_VALUE, "hello"},
    {PROTO_MEMCACHE, true, "END\r\n", 5, REPLY_MISS, NULL},
    {PROTO_MEMCACHE, true, "SERVER_ERROR out of memory\r\n", 28, REPLY_ERROR, NULL},
    {PROTO_MEMCACHE, true, "ERROR\r\n", 7, REPLY_ERROR, NULL},
    {PROTO_MEMCACHE, true, "VALUE a 0 x\r\n", -1, REPLY_ERROR, NULL},
    {PROTO_MEMCACHE, true, "VALUE a 0 5\r\nhello\r\nXXX\r\n", -1, REPLY_ERROR, NULL},
    {PROTO_MEMCACHE, true, "STORED\r\n", -1, REPLY_ERROR, NULL},
    {PROTO_MEMCACHE, false, "STORED\r\n", 8, REPLY_STORED, NULL},
    {PROTO_MEMCACHE, false, "END\r\n", -1, REPLY_ERROR, NULL},
};

/* Each reply whole and followed by another, and every beginning of it, in buffers without slack
 * so that the sanitizer sees a byte read too far. */
static void test_replies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(reply_cases) / sizeof(reply_cases[0]); i++) {
        const struct reply_case *c = &reply_cases[i];
        size_t whole = strlen(c->text);

        for (size_t cut = 0; cut <= whole + 1; cut++) {
            char *buffer = malloc(cut ? cut : 1);
            struct reply reply;
            long used;

            memcpy(buffer, c->text, cut < whole ? cut : whole);
            if (cut > whole) {
                buffer[whole] = '+';
            }
            used = proto_reply(c->proto, c->is_get, buffer, cut, &reply);
            if (cut >= whole) {
                assert_int_equal(used, c->length);
            } else if (c->length >= 0) {
                assert_int_equal(used, 0);
            }
            if (cut >= whole && c->length >= 0) {
                assert_int_equal(reply.kind, c->kind);
            }
            if (cut >= whole && c->value) {
                assert_int_equal(reply.value_bytes, strlen(c->value));
                assert_memory_equal(reply.value, c->value, reply.value_bytes);
            }
            free(buffer);
        }
    }
}

static void test_an_endless_line_is_refused(void **state)
{
    static char line[4096];
    struct reply reply;

    (void)state;
    memset(line, 'x', sizeof(line));
    assert_int_equal(proto_reply(PROTO_RESP, true, line, sizeof(line), &reply), -1);
    assert_int_equal(proto_reply(PROTO_MEMCACHE, true, line, sizeof(line), &reply), -1);
}

static void test_requests(void **state)
{
    char buffer[512];
    size_t n;

    (void)state;
    n = proto_get(PROTO_RESP, buffer, 7);
    assert_memory_equal(buffer, "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000007\r\n", n);
    n = proto_get(PROTO_MEMCACHE, buffer, 7);
    assert_memory_equal(buffer, "get key:000000000007\r\n", n);
    n = proto_set(PROTO_RESP, buffer, 7, 100, 1);
    assert_memory_equal(buffer, "*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000007\r\n$100\r\n", 42);
    assert_int_equal(n, 42 + 100 + 2);
    assert_true(n <= 100 + PROTO_REQUEST_OVERHEAD);
    n = proto_set(PROTO_MEMCACHE, buffer, 7, 3, 1);
    assert_memory_equal(buffer, "set key:000000000007 0 0 3\r\n", 28);
    assert_memory_equal(buffer + n - 2, "\r\n", 2);
    assert_int_equal(n, 28 + 3 + 2);
}

/* ---- options ---------------------------------------------------------------------------- */

/* Options point into their arguments, so these outlive the call. */
static bool parse(struct options *o, const char *a, const char *b)
{
    static char program[] = "load", first[64], second[64];
    char *argv[] = {program, first, b ? second : NULL, NULL};
    bool help;

    strcpy(first, a);
    strcpy(second, b ? b : "");
    return options_parse(o, b ? 3 : 2, argv, &help);
}

static void test_options(void **state)
{
    struct options o;

    (void)state;
    assert_true(parse(&o, "--conns", "1,8,64"));
    assert_int_equal(o.conns_count, 3);
    assert_int_equal(o.conns[2], 64);
    assert_int_equal(o.port, 6379);
    assert_true(parse(&o, "--proto", "memcache"));
    assert_int_equal(o.port, 11211);
    assert_true(parse(&o, "--value", "10-20"));
    assert_int_equal(o.value_max, 20);
    assert_true(parse(&o, "--skew", "zipf:1.5"));
    assert_true(o.theta == 1.5);
}

static void test_bad_options_are_refused(void **state)
{
    static const char *const bad[][2] = {
        {"--conns", "0"}, {"--conns", "1,"}, {"--conns", "20001"}, {"--conns", "x"}, {"--conns", ""},
        {"--conns", "99999999999999999999"}, {"--value", "20-10"}, {"--value", "0"}, {"--gets", "101"},
        {"--skew", "zipf:"}, {"--skew", "zipf:-1"}, {"--pin", "maybe"}, {"--proto", "http"},
        {"--port", "65536"}, {"--name", "a b"}, {"--seed", "-1"}, {"--nonsense", "1"}, {"conns", "1"},
    };
    struct options o;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(parse(&o, bad[i][0], bad[i][1]));
    }
    assert_false(parse(&o, "--conns", NULL));
}

static void test_environment_gives_way_to_the_command_line(void **state)
{
    struct options o;

    (void)state;
    setenv("LOAD_TIME_MS", "77", 1);
    assert_true(parse(&o, "--conns", "2"));
    assert_int_equal(o.time_ms, 77);
    assert_true(parse(&o, "--time-ms", "88"));
    assert_int_equal(o.time_ms, 88);
    setenv("LOAD_TIME_MS", "soon", 1);
    assert_false(parse(&o, "--conns", "2"));
    unsetenv("LOAD_TIME_MS");
}

/* ---- spread's timeline ------------------------------------------------------------------ */

static void test_timeline(void **state)
{
    static bool allowed[SPREAD_MAX_CPUS];
    static struct spread_thread threads[4];
    struct move moves[4][2] = {
        {{10, 0}}, {{20, 1}}, {{30, 0}, {500, 1}}, {{15, 0}, {900, 0}},
    };
    struct timeline t;

    (void)state;
    allowed[0] = allowed[1] = true;
    for (int i = 0; i < 4; i++) {
        threads[i].moves = moves[i];
        threads[i].nmoves = i < 2 ? 1 : 2;
    }
    assert_true(timeline_build(&t, threads, 4, 0, allowed));
    assert_int_equal(t.cpus_reachable, 2);
    assert_int_equal(t.cpus_used, 2);
    assert_int_equal(t.all_used_ns, 20);
    assert_int_equal(t.balanced_ns, 500);
    assert_int_equal(t.most_at_end, 2);
    assert_int_equal(t.least_at_end, 2);
}

static void test_timeline_of_threads_that_stay(void **state)
{
    static bool allowed[SPREAD_MAX_CPUS];
    static struct spread_thread threads[3];
    struct timeline t;

    (void)state;
    allowed[0] = allowed[1] = allowed[2] = true;
    assert_true(timeline_build(&t, threads, 3, 1, allowed));
    assert_true(t.all_used_ns == UINT64_MAX && t.balanced_ns == UINT64_MAX);
    assert_int_equal(t.most_at_end, 3);
    assert_int_equal(t.least_at_end, 0);
}

static void test_latencies(void **state)
{
    static struct spread_thread threads[2];
    uint64_t a[] = {5, 1}, b[] = {9};
    struct latencies l;

    (void)state;
    assert_true(latencies_build(&l, threads, 2));
    assert_int_equal(l.max, 0);
    threads[0].latency = a;
    threads[0].nsamples = 2;
    threads[1].latency = b;
    threads[1].nsamples = 1;
    assert_true(latencies_build(&l, threads, 2));
    assert_int_equal(l.p50, 5);
    assert_int_equal(l.max, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hist_quantiles_are_exact_within_a_step),
        cmocka_unit_test(test_hist_edges),
        cmocka_unit_test(test_hist_merge_equals_adding),
        cmocka_unit_test(test_every_key_is_reached_and_zipf_is_skewed),
        cmocka_unit_test(test_one_key_works),
        cmocka_unit_test(test_keys_are_16_printable_bytes),
        cmocka_unit_test(test_any_harm_to_a_value_is_seen),
        cmocka_unit_test(test_value_sizes_stay_in_range_and_reach_its_ends),
        cmocka_unit_test(test_replies),
        cmocka_unit_test(test_an_endless_line_is_refused),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_bad_options_are_refused),
        cmocka_unit_test(test_environment_gives_way_to_the_command_line),
        cmocka_unit_test(test_timeline),
        cmocka_unit_test(test_timeline_of_threads_that_stay),
        cmocka_unit_test(test_latencies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
