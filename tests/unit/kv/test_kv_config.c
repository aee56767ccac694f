/* Settings of the key-value server: environment, flags, ranges, and the width policy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "apps/kv/config.h"
#include "apps/kv/store.h"
#include "tests/unit/kv/kv_tests.h"

static char said[512];

static void note(const char *line)
{
    snprintf(said, sizeof(said), "%s", line);
}

static int try_env(struct config *c, const char *setting)
{
    char text[256];
    char *env[2] = {text, NULL};

    snprintf(text, sizeof(text), "%s", setting);
    said[0] = '\0';
    config_defaults(c);
    return config_env(c, env, note, note);
}

static void settings_defaults(void **state)
{
    struct config c;

    (void)state;
    config_defaults(&c);
    assert_int_equal(c.shards, 64);
    assert_int_equal(c.resp_port, 6379);
    assert_int_equal(c.mc_port, 11211);
    assert_int_equal(c.dispatch, DISPATCH_THREAD);
    assert_int_equal(c.policy, EVICT_NONE);
    assert_int_equal(c.stop_the_world, 0);
    assert_int_equal(config_check(&c, note), 0);
}

/* Every numeric setting: both ends of its range are taken, one beyond each is refused with the
 * variable, the value and the range in the message. */
static void settings_ranges(void **state)
{
    static const struct {
        const char *name, *low, *below, *high, *above;
    } t[] = {
        {"KV_SHARDS", "1", "0", "4096", "8192"},
        {"KV_MAX_WORKERS", "1", "0", "4096", "4097"},
        {"KV_MIN_WORKERS", "1", "0", "4096", "4097"},
        {"KV_MAX_CONNS", "1", "0", "1000000", "1000001"},
        {"KV_RESP_PORT", "0", "-1", "65535", "65536"},
        {"KV_MC_PORT", "0", "-1", "65535", "65536"},
        {"KV_MAX_VALUE", "1", "0", "536870912", "536870913"},
        {"KV_MAX_KEY", "1", "0", "512mb", "513mb"},
        {"KV_MC_MAX_VALUE", "1", "0", "536870912", "536870913"},
        {"KV_MAX_ARGS", "8", "7", "16777216", "16777217"},
        {"KV_MAX_LINE", "256", "255", "1mb", "1048577"},
        {"KV_MAX_QUERY", "16384", "16383", "1099511627776", "1099511627777"},
        {"KV_MAX_OUTPUT", "16384", "16383", "1099511627776", "1099511627777"},
        {"KV_PARTIAL_TIMEOUT", "0", "-1", "86400", "86401"},
        {"KV_IDLE_TIMEOUT", "0", "-1", "31536000", "31536001"},
        {"KV_LOCK_STATS", "0", "-1", "1", "2"},
        {"KV_DEBUG", "0", "-1", "1", "2"},
    };
    struct config c;
    char text[128];

    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        const char *good[] = {t[i].low, t[i].high},
                   *bad[] = {t[i].below, t[i].above, "x", "", "1x"};

        for (size_t j = 0; j < 2; j++) {
            snprintf(text, sizeof(text), "%s=%s", t[i].name, good[j]);
            assert_int_equal(try_env(&c, text), 0);
        }
        for (size_t j = 0; j < sizeof(bad) / sizeof(bad[0]); j++) {
            snprintf(text, sizeof(text), "%s=%s", t[i].name, bad[j]);
            assert_int_equal(try_env(&c, text), -1);
            snprintf(text, sizeof(text), "%s: '%s'", t[i].name, bad[j]);
            assert_non_null(strstr(said, text));
            assert_non_null(strstr(said, ".."));
        }
    }
    assert_int_equal(try_env(&c, "KV_SHARDS=3"), -1);
    assert_non_null(strstr(said, "power of two in 1..4096"));
}

static void settings_choices(void **state)
{
    struct config c;

    (void)state;
    assert_int_equal(try_env(&c, "KV_DISPATCH=pool"), 0);
    assert_int_equal(c.dispatch, DISPATCH_POOL);
    assert_int_equal(try_env(&c, "KV_DISPATCH=fork"), -1);
    assert_string_equal(said, "KV_DISPATCH: 'fork' is not one of: thread, pool");
    assert_int_equal(try_env(&c, "KV_REHASH=stop-the-world"), 0);
    assert_int_equal(c.stop_the_world, 1);
    assert_int_equal(try_env(&c, "KV_REHASH=never"), -1);
    assert_int_equal(try_env(&c, "KV_POLICY=lru"), 0);
    assert_int_equal(c.policy, EVICT_ALL_LRU);
    assert_int_equal(try_env(&c, "KV_POLICY=volatile-lfu"), 0);
    assert_int_equal(c.policy, EVICT_VOLATILE_LFU);
    assert_int_equal(try_env(&c, "KV_POLICY=fifo"), -1);
    assert_int_equal(try_env(&c, "KV_NOSUCH=1"), 0);
    assert_string_equal(said, "KV_NOSUCH: no such setting, ignored (see --help)");
    assert_int_equal(try_env(&c, "KV_MAX_MEMORY=64mb"), 0);
    assert_true(c.max_memory == 64u << 20);
    assert_int_equal(try_env(&c, "KV_MAX_MEMORY=64xb"), -1);
    assert_int_equal(try_env(&c, "KV_MAX_MEMORY=99999999999gb"), -1);
}

static int try_args(struct config *c, char *a, char *b)
{
    char prog[] = "kv";
    char *argv[] = {prog, a, b, NULL};

    said[0] = '\0';
    config_defaults(c);
    return config_args(c, b ? 3 : 2, argv, note);
}

static void settings_flags(void **state)
{
    struct config c;
    char eq[] = "--shards=8", name[] = "--shards", value[] = "16", odd[] = "--shard=1",
         word[] = "x";

    (void)state;
    assert_int_equal(try_args(&c, eq, NULL), 0);
    assert_int_equal(c.shards, 8);
    assert_int_equal(try_args(&c, name, value), 0);
    assert_int_equal(c.shards, 16);
    assert_int_equal(try_args(&c, name, NULL), -1);
    assert_string_equal(said, "--shards: needs a value");
    assert_int_equal(try_args(&c, odd, NULL), -1);
    assert_int_equal(try_args(&c, word, NULL), -1);
    assert_int_equal(try_args(&c, name, word), -1);
    assert_non_null(strstr(said, "--shards: 'x'"));
}

static void settings_relations(void **state)
{
    struct config c;

    (void)state;
    config_defaults(&c);
    c.resp_port = 0;
    assert_int_equal(config_check(&c, note), 0);
    c.mc_port = 0;
    assert_int_equal(config_check(&c, note), -1);
    config_defaults(&c);
    c.mc_port = c.resp_port;
    assert_int_equal(config_check(&c, note), -1);
    config_defaults(&c);
    c.min_workers = 9;
    c.max_workers = 8;
    assert_int_equal(config_check(&c, note), -1);
    assert_non_null(strstr(said, "KV_MIN_WORKERS: '9' exceeds KV_MAX_WORKERS '8'"));
    c.min_workers = 8;
    assert_int_equal(config_check(&c, note), 0);
}

/* CPUs x 16 within 64..1024; floor max(4, CPUs x 4); overrides. */
static void width_policy(void **state)
{
    static const struct {
        unsigned cpus, max_env, min_env, min, max;
    } t[] = {
        {1, 0, 0, 4, 64},      {2, 0, 0, 8, 64},         {4, 0, 0, 16, 64},
        {5, 0, 0, 20, 80},     {16, 0, 0, 64, 256},      {64, 0, 0, 256, 1024},
        {65, 0, 0, 260, 1024}, {4, 1, 1, 1, 1},          {4, 4096, 4096, 4096, 4096},
        {4, 2, 0, 2, 2},       {4, 0, 2000, 2000, 2000}, {4, 100, 10, 10, 100},
    };
    struct config c;

    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct width w;

        config_defaults(&c);
        c.max_workers = t[i].max_env;
        c.min_workers = t[i].min_env;
        w = config_width(&c, t[i].cpus);
        assert_int_equal(w.min, t[i].min);
        assert_int_equal(w.max, t[i].max);
    }
}

int kv_config_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_defaults),  cmocka_unit_test(settings_ranges),
        cmocka_unit_test(settings_choices),   cmocka_unit_test(settings_flags),
        cmocka_unit_test(settings_relations), cmocka_unit_test(width_policy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
