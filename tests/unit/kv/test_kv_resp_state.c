/* The Redis protocol where several requests or connections meet: transactions, watches, limits,
 * memory, time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/kv/kv_harness.h"
#include "tests/unit/kv/kv_tests.h"

static struct harness h;
static struct config cfg;

static void expect(struct conn *c, const char *ask, const char *want)
{
    char *got = harness_ask(c, ask);

    if (strcmp(got, want) != 0) {
        fail_msg("%s\n   want %s\n   got  %s", ask, want, got);
    }
    free(got);
}

/* Feeds SET key value with a value of n bytes. */
static char *set_value(struct conn *c, const char *key, size_t n)
{
    char *p = malloc(n + 256);
    size_t at, len;
    char *got;

    at = (size_t)sprintf(p, "*3\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$%zu\r\n", strlen(key), key, n);
    memset(p + at, 'v', n);
    memcpy(p + at + n, "\r\n", 2);
    harness_feed(c, p, at + n + 2);
    free(p);
    got = harness_take(c, &len);
    return got;
}

static void transactions(void **state)
{
    struct conn *c;

    (void)state;
    config_defaults(&cfg);
    harness_start(&h, &cfg);
    c = harness_conn(&h, &proto_resp);
    expect(c, "exec\r\ndiscard\r\n", "-ERR EXEC without MULTI\r\n-ERR DISCARD without MULTI\r\n");
    expect(c, "multi\r\nset a 1\r\nincr a\r\nget a\r\nexec\r\n",
           "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n:2\r\n$1\r\n2\r\n");
    expect(c, "multi\r\nset a x\r\nincr a\r\nexec\r\n",
           "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n-ERR value is not an integer or out of "
           "range\r\n");
    expect(c, "multi\r\nset b 1\r\nnosuch\r\nexec\r\nexists b\r\n",
           "+OK\r\n+QUEUED\r\n-ERR unknown command 'nosuch', with args beginning with: \r\n"
           "-EXECABORT Transaction discarded because of previous errors.\r\n:0\r\n");
    expect(c, "multi\r\nmulti\r\nwatch a\r\nexec\r\n",
           "+OK\r\n-ERR MULTI calls can not be nested\r\n-ERR WATCH inside MULTI is not "
           "allowed\r\n*0\r\n");
    expect(c,
           "multi\r\nflushall\r\nset k v\r\nkeys *\r\ndbsize\r\nrename k l\r\nmget k l\r\nexec\r\n",
           "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*6\r\n+OK\r\n+"
           "OK\r\n"
           "*1\r\n$1\r\nk\r\n:1\r\n+OK\r\n*2\r\n$-1\r\n$1\r\nv\r\n");
    expect(c, "multi\r\nset z 1\r\nreset\r\nexists z\r\nexec\r\n",
           "+OK\r\n+QUEUED\r\n+RESET\r\n:0\r\n-ERR EXEC without MULTI\r\n");
    harness_stop(&h);
}

static void watches(void **state)
{
    struct conn *a, *b;

    (void)state;
    config_defaults(&cfg);
    harness_start(&h, &cfg);
    a = harness_conn(&h, &proto_resp);
    b = harness_conn(&h, &proto_resp);
    /* Changed by another: abort. Read by another: not. */
    expect(a, "watch k\r\nmulti\r\nset k a\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n");
    expect(b, "set k b\r\n", "+OK\r\n");
    expect(a, "exec\r\nget k\r\n", "*-1\r\n$1\r\nb\r\n");
    expect(a, "watch k\r\nmulti\r\nset k a\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n");
    expect(b, "get k\r\nset other 1\r\n", "$1\r\nb\r\n+OK\r\n");
    expect(a, "exec\r\n", "*1\r\n+OK\r\n");
    /* A key that appears and vanishes in between has changed. */
    expect(a, "watch ghost\r\nmulti\r\nping\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n");
    expect(b, "set ghost 1\r\ndel ghost\r\n", "+OK\r\n:1\r\n");
    expect(a, "exec\r\n", "*-1\r\n");
    /* An expiry set by another, and one that passes. */
    expect(a, "watch k\r\nmulti\r\nping\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n");
    expect(b, "expire k 10\r\n", ":1\r\n");
    expect(a, "exec\r\nwatch k\r\nmulti\r\nping\r\n", "*-1\r\n+OK\r\n+OK\r\n+QUEUED\r\n");
    harness_now_ms += 10000;
    expect(a, "exec\r\n", "*-1\r\n");
    /* UNWATCH and DISCARD forget. */
    expect(a, "watch k\r\nunwatch\r\nmulti\r\nping\r\n", "+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n");
    expect(b, "set k c\r\n", "+OK\r\n");
    expect(a, "exec\r\n", "*1\r\n+PONG\r\n");
    expect(a, "watch k\r\nmulti\r\ndiscard\r\nmulti\r\nping\r\n",
           "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n");
    expect(b, "set k d\r\n", "+OK\r\n");
    expect(a, "exec\r\n", "*1\r\n+PONG\r\n");
    /* A connection that goes leaves nothing behind. */
    expect(a, "watch k l m\r\n", "+OK\r\n");
    harness_close(a);
    expect(b, "mset k 1 l 2 m 3\r\n", "+OK\r\n");
    harness_stop(&h);
}

static void watch_limit(void **state)
{
    struct conn *c;
    char text[64];

    (void)state;
    config_defaults(&cfg);
    harness_start(&h, &cfg);
    c = harness_conn(&h, &proto_resp);
    for (unsigned i = 0; i < KV_WATCH_MAX; i++) {
        snprintf(text, sizeof(text), "watch key:%u\r\n", i);
        expect(c, text, "+OK\r\n");
    }
    expect(c, "watch key:0\r\n", "+OK\r\n"); /* known already */
    expect(c, "watch one:more\r\n", "-ERR more than 1024 watched keys\r\n");
    assert_int_equal(h.srv.count.over_watch, 1);
    harness_stop(&h);
}

/* Each limit: at it, and one past it with the error and the counter. */
static void limits(void **state)
{
    struct conn *c;
    char *got, *line;

    (void)state;
    config_defaults(&cfg);
    cfg.max_key = 10;
    cfg.max_value = 1000;
    cfg.max_args = 16;
    cfg.max_line = 300;
    harness_start(&h, &cfg);
    c = harness_conn(&h, &proto_resp);
    expect(c, "set 1234567890 v\r\nset 12345678901 v\r\nget 12345678901\r\nmget a 12345678901\r\n",
           "+OK\r\n-ERR key exceeds the limit of 10 bytes\r\n-ERR key exceeds the limit of 10 "
           "bytes\r\n"
           "-ERR key exceeds the limit of 10 bytes\r\n");
    assert_int_equal(h.srv.count.over_key, 3);
    got = set_value(c, "a", 1000);
    assert_string_equal(got, "+OK\r\n");
    free(got);
    got = set_value(c, "a", 1001);
    assert_string_equal(got, "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n");
    free(got);
    expect(c, "append a x\r\nstrlen a\r\nsetrange a 999 y\r\nsetrange a 1000 y\r\n",
           "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n:1000\r\n:1000\r\n"
           "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n");
    assert_int_equal(h.srv.count.over_value, 3);
    expect(
        c,
        "*16\r\n$3\r\nDEL\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$"
        "1\r\na\r\n"
        "$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n$1\r\na\r\n",
        ":1\r\n");
    expect(c, "*17\r\n", "-ERR Protocol error: invalid multibulk length\r\n");
    assert_true(c->closing);
    assert_int_equal(h.srv.count.over_args, 1);
    c = harness_conn(&h, &proto_resp);
    line = malloc(400);
    sprintf(line, "ping %0295d\r\n", 0); /* 300 bytes and a line end, of which CR counts */
    line[299] = '\r';
    line[300] = '\n';
    line[301] = '\0';
    got = harness_ask(c, line);
    assert_memory_equal(got, "$294\r\n", 6);
    free(got);
    sprintf(line, "ping %0297d", 0); /* no end in sight */
    expect(c, line, "-ERR Protocol error: too big inline request\r\n");
    assert_true(c->closing);
    assert_int_equal(h.srv.count.over_line, 1);
    free(line);
    harness_stop(&h);
}

static void connection_limit(void **state)
{
    struct conn *c[4];

    (void)state;
    config_defaults(&cfg);
    cfg.max_conns = 3;
    harness_start(&h, &cfg);
    for (int i = 0; i < 3; i++) {
        c[i] = harness_conn(&h, i ? &proto_mc : &proto_resp);
        assert_non_null(c[i]);
    }
    assert_null(harness_conn(&h, &proto_resp));
    assert_null(harness_conn(&h, &proto_mc));
    assert_int_equal(h.srv.count.refused_limit, 2);
    expect(c[0], "ping\r\n", "+PONG\r\n"); /* the older ones are untouched */
    expect(c[1], "mn\r\n", "MN\r\n");
    harness_close(c[2]);
    c[3] = harness_conn(&h, &proto_resp);
    assert_non_null(c[3]);
    harness_stop(&h);
}

static void buffer_limits(void **state)
{
    struct conn *c;
    char *got;

    (void)state;
    config_defaults(&cfg);
    cfg.max_query = 65536;
    cfg.max_output = 65536;
    harness_start(&h, &cfg);
    c = harness_conn(&h, &proto_resp);
    got = set_value(c, "a", 60000);
    assert_string_equal(got, "+OK\r\n");
    free(got);
    got = set_value(c, "a", 70000);
    assert_string_equal(
        got, "-ERR Protocol error: request exceeds the query buffer or the memory limit\r\n");
    free(got);
    assert_true(c->closing);
    c = harness_conn(&h, &proto_resp);
    got = harness_ask(c, "get a\r\n");
    assert_int_equal(strlen(got), 60000 + 10);
    free(got);
    expect(c, "mget a a\r\n", ""); /* 120,000 bytes of reply: dropped */
    assert_true(c->dropping);
    assert_int_equal(h.srv.count.over_output, 1);
    harness_stop(&h);
}

/* noeviction: refused with -OOM, nothing lost, half a MSET never happens. */
static void out_of_memory(void **state)
{
    struct conn *c;
    char *got = NULL;
    char key[32];
    int n = 0;

    (void)state;
    config_defaults(&cfg);
    cfg.max_memory = 4u << 20;
    harness_start(&h, &cfg);
    c = harness_conn(&h, &proto_resp);
    do {
        free(got);
        snprintf(key, sizeof(key), "key:%d", n++);
        got = set_value(c, key, 2000);
    } while (strcmp(got, "+OK\r\n") == 0);
    assert_string_equal(got, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    free(got);
    assert_true(n > 1500);
    for (int i = 0; i < n - 1; i++) {
        char ask[64];

        snprintf(ask, sizeof(ask), "strlen key:%d\r\n", i);
        expect(c, ask, ":2000\r\n");
    }
    /* Room for one of the two values only. */
    expect(c, "del key:0 key:1\r\n", ":2\r\n");
    got = malloc(12000);
    sprintf(got, "mset x %03000d y %04000d\r\n", 1, 2);
    expect(c, got, "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    free(got);
    expect(c, "exists x y\r\n", ":0\r\n");
    harness_stop(&h);
}

static void eviction_by_config(void **state)
{
    struct conn *c;
    char key[32], *got;

    (void)state;
    config_defaults(&cfg);
    harness_start(&h, &cfg);
    c = harness_conn(&h, &proto_resp);
    expect(c, "config set maxmemory 4mb maxmemory-policy allkeys-lru\r\n", "+OK\r\n");
    for (int i = 0; i < 5000; i++) {
        harness_now_ms++;
        snprintf(key, sizeof(key), "key:%d", i);
        got = set_value(c, key, 2000);
        assert_string_equal(got, "+OK\r\n");
        free(got);
    }
    expect(c, "strlen key:4999\r\nexists key:0\r\n", ":2000\r\n:0\r\n");
    harness_stop(&h);
}

static void info_tells(void **state)
{
    static const char *const want[] = {
        "redis_version:",
        "connected_clients:1",
        "used_memory:",
        "maxmemory_policy:noeviction",
        "total_commands_processed:",
        "keyspace_hits:1",
        "keyspace_misses:1",
        "dispatch_mode:thread",
        "workers_max:",
        "queue_length:0",
        "requests_in_flight:",
        "lock_stats:on",
        "lock_acquisitions:",
        "lock_wait_p99_ns:",
        "lock_hold_max_ns:",
        "db0:keys=1,expires=0",
        "loading:0",
    };
    struct conn *c;
    char *got;

    (void)state;
    config_defaults(&cfg);
    cfg.lock_stats = 1;
    harness_start(&h, &cfg);
    c = harness_conn(&h, &proto_resp);
    free(harness_ask(c, "set a b\r\nget a\r\nget x\r\n"));
    got = harness_ask(c, "info\r\n");
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        if (!strstr(got, want[i])) {
            fail_msg("INFO lacks %s:\n%s", want[i], got);
        }
    }
    free(got);
    got = harness_ask(c, "info commandstats shards\r\n");
    assert_non_null(strstr(got, "cmdstat_get:calls=2"));
    assert_non_null(strstr(got, "shard63:keys="));
    assert_null(strstr(got, "redis_version"));
    free(got);
    harness_stop(&h);
}

int kv_resp_state_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transactions),     cmocka_unit_test(watches),
        cmocka_unit_test(watch_limit),      cmocka_unit_test(limits),
        cmocka_unit_test(connection_limit), cmocka_unit_test(buffer_limits),
        cmocka_unit_test(out_of_memory),    cmocka_unit_test(eviction_by_config),
        cmocka_unit_test(info_tells),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
