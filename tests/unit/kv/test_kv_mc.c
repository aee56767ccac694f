/* The memcached protocol, text and meta: requests and the exact replies. */
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

struct pair {
    const char *ask, *want;
};

static void expect(struct conn *c, const char *ask, const char *want)
{
    char *got = harness_ask(c, ask);

    if (strcmp(got, want) != 0) {
        fail_msg("%s\n   want %s\n   got  %s", ask, want, got);
    }
    free(got);
}

static void run(const struct pair *t, size_t n)
{
    config_defaults(&cfg);
    cfg.shards = 1; /* so that cas numbers are known */
    for (size_t i = 0; i < n; i++) {
        harness_start(&h, &cfg);
        expect(harness_conn(&h, &proto_mc), t[i].ask, t[i].want);
        harness_stop(&h);
    }
}

#define RUN(t) run(t, sizeof(t) / sizeof((t)[0]))
#define LINE   "CLIENT_ERROR bad command line format\r\n"

static void text(void **state)
{
    static const struct pair t[] = {
        {"get a\r\nset a 5 0 3\r\nabc\r\nget a\r\ngets a b\r\n",
         "END\r\nSTORED\r\nVALUE a 5 3\r\nabc\r\nEND\r\nVALUE a 5 3 1\r\nabc\r\nEND\r\n"},
        {"set a 0 0 0\r\n\r\nget a\r\n", "STORED\r\nVALUE a 0 0\r\n\r\nEND\r\n"},
        {"add a 0 0 1\r\n1\r\nadd a 0 0 1\r\n2\r\nreplace a 7 0 1\r\n3\r\nreplace b 0 0 "
         "1\r\n4\r\nget a\r\n",
         "STORED\r\nNOT_STORED\r\nSTORED\r\nNOT_STORED\r\nVALUE a 7 1\r\n3\r\nEND\r\n"},
        {"append a 0 0 1\r\nx\r\nset a 9 0 1\r\nb\r\nappend a 1 1 1\r\nc\r\nprepend a 1 1 "
         "1\r\na\r\nget a\r\n",
         "NOT_STORED\r\nSTORED\r\nSTORED\r\nSTORED\r\nVALUE a 9 3\r\nabc\r\nEND\r\n"},
        {"cas a 0 0 1 1\r\nx\r\nset a 0 0 1\r\ny\r\ncas a 0 0 1 1\r\nz\r\ncas a 0 0 1 "
         "1\r\nw\r\nget a\r\n",
         "NOT_FOUND\r\nSTORED\r\nSTORED\r\nEXISTS\r\nVALUE a 0 1\r\nz\r\nEND\r\n"},
        {"set a 0 0 2\r\n10\r\nincr a 5\r\ndecr a 6\r\nget a\r\ndecr a 100\r\nincr b 1\r\n",
         "STORED\r\n15\r\n9\r\nVALUE a 0 1\r\n9\r\nEND\r\n0\r\nNOT_FOUND\r\n"},
        {"set a 0 0 20\r\n18446744073709551615\r\nincr a 2\r\nincr a -1\r\nincr a x\r\n",
         "STORED\r\n1\r\nCLIENT_ERROR invalid numeric delta argument\r\n"
         "CLIENT_ERROR invalid numeric delta argument\r\n"},
        {"set a 0 0 1\r\nx\r\nincr a 1\r\n",
         "STORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n"},
        {"delete a\r\nset a 0 0 1\r\nx\r\ndelete a 0\r\ndelete a 1\r\n",
         "NOT_FOUND\r\nSTORED\r\nDELETED\r\n"
         "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"},
        {"touch a 1\r\nset a 0 0 1\r\nx\r\ntouch a 100\r\ntouch a x\r\nmg a t\r\n",
         "NOT_FOUND\r\nSTORED\r\nTOUCHED\r\nCLIENT_ERROR invalid exptime argument\r\nHD t100\r\n"},
        {"set a 0 0 1\r\nx\r\ngat 50 a b\r\ngats 60 a\r\nmg a t\r\ngat 1\r\ngat x a\r\n",
         "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\nVALUE a 0 1 1\r\nx\r\nEND\r\nHD t60\r\nEND\r\n"
         "CLIENT_ERROR invalid exptime argument\r\n"},
        {"set a 0 -1 1\r\nx\r\nget a\r\nset a 0 2592001 1\r\nx\r\nget a\r\nset a 0 2592000 "
         "1\r\nx\r\nmg a t\r\n",
         "STORED\r\nEND\r\nSTORED\r\nEND\r\nSTORED\r\nHD t2592000\r\n"},
        {"set a 0 0 1\r\nx\r\nflush_all\r\nget a\r\nflush_all x\r\nflush_all 0\r\n",
         "STORED\r\nOK\r\nEND\r\nCLIENT_ERROR invalid exptime argument\r\nOK\r\n"},
        {"version\r\nverbosity 1\r\nverbosity\r\nfoo\r\n\r\n",
         "VERSION " KV_MC_VERSION "\r\nOK\r\nERROR\r\nERROR\r\nERROR\r\n"},
        {"get a\nset a 0 0 1\nx\r\nget a\n", "END\r\nSTORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n"},
        {"  get   a  \r\nstats settings \r\nquit\r\nget a\r\n",
         "END\r\nSTAT maxbytes 0\r\nSTAT maxconns 10000\r\nSTAT tcpport 11211\r\nSTAT udpport 0\r\n"
         "STAT inter 0.0.0.0\r\nSTAT evictions off\r\nSTAT policy noeviction\r\nSTAT item_size_max "
         "1048576\r\n"
         "STAT cas_enabled yes\r\nSTAT flush_enabled yes\r\nSTAT auth_enabled_ascii no\r\n"
         "STAT hash_algorithm siphash13\r\nSTAT binding_protocol ascii\r\nSTAT dispatch thread\r\n"
         "STAT shards 1\r\nEND\r\n"},
    };

    (void)state;
    RUN(t);
}

static void noreply(void **state)
{
    static const struct pair t[] = {
        {"set a 0 0 1 noreply\r\n1\r\nadd a 0 0 1 noreply\r\n2\r\nreplace a 0 0 1 noreply\r\n3\r\n"
         "append a 0 0 1 noreply\r\n4\r\nprepend a 0 0 1 noreply\r\n2\r\nincr a 1 noreply\r\ndecr "
         "a 2 noreply\r\n"
         "get a\r\ntouch a 0 noreply\r\ncas a 0 0 1 99 noreply\r\n5\r\ndelete a noreply\r\nget "
         "a\r\n"
         "verbosity 1 noreply\r\nflush_all noreply\r\nmn\r\n",
         "VALUE a 0 3\r\n233\r\nEND\r\nEND\r\nMN\r\n"},
    };

    (void)state;
    RUN(t);
}

static void malformed(void **state)
{
    static const struct pair t[] = {
        {"set a 0 0 -1\r\nget b\r\n", LINE "END\r\n"},
        {"set a 0 0 3000000000\r\nget b\r\n", LINE "END\r\n"},
        {"set a 0 0 x\r\n", LINE},
        {"set a x 0 1\r\n", LINE},
        {"set a 4294967296 0 1\r\n", LINE},
        {"set a 0 x 1\r\n", LINE},
        {"set a 0 0\r\n", "ERROR\r\n"},
        {"set a 0 0 3\r\nabcdef\r\nget a\r\n", "CLIENT_ERROR bad data chunk\r\nERROR\r\nEND\r\n"},
        {"set a 0 0 3\r\nab\r\nX\r\nget a\r\n", "CLIENT_ERROR bad data chunk\r\nERROR\r\nEND\r\n"},
        {"get\r\n", "ERROR\r\n"},
        {"gets \r\n", "ERROR\r\n"},
        {"delete\r\n", "ERROR\r\n"},
        {"incr a\r\n", "ERROR\r\n"},
        {"touch\r\n", "ERROR\r\n"},
        {"cas a 0 0 1\r\n", "ERROR\r\n"},
        {"cas a 0 0 1 x\r\n", LINE},
    };

    (void)state;
    RUN(t);
}

/* At each limit, and one past it. */
static void limits(void **state)
{
    struct conn *c;
    char *p = malloc(10000), *got;
    size_t before, n;

    (void)state;
    config_defaults(&cfg);
    cfg.mc_max_value = 1000;
    cfg.max_line = 4000;
    harness_start(&h, &cfg);
    c = harness_conn(&h, &proto_mc);
    sprintf(p,
            "set %0250d 0 0 1\r\nx\r\nget %0250d\r\nset %0251d 0 0 1\r\nx\r\nget %0251d\r\nmn\r\n",
            0, 0, 0, 0);
    got = harness_ask(c, p);
    assert_memory_equal(got, "STORED\r\nVALUE 000", 17);
    assert_non_null(
        strstr(got, "x\r\nEND\r\n" LINE LINE "MN\r\n")); /* the refused block is skipped */
    free(got);
    assert_int_equal(h.srv.count.over_key, 2);
    sprintf(p, "set a 0 0 1000\r\n%01000d\r\nset a 0 0 1001\r\n%01001d\r\nmn\r\n", 0, 0);
    expect(c, p, "STORED\r\nSERVER_ERROR object too large for cache\r\nMN\r\n");
    expect(c, "get a\r\n", "END\r\n"); /* the value that was to be replaced is gone */
    sprintf(p, "set a 0 0 1000\r\n%01000d\r\n", 0);
    expect(c, p, "STORED\r\n");
    expect(c, "append a 0 0 1\r\nx\r\nmg a s\r\n",
           "SERVER_ERROR object too large for cache\r\nHD s1000\r\n");
    assert_int_equal(h.srv.count.over_value, 1);
    /* A promise of 2 GB makes the server hold nothing. */
    before = atomic_load(&h.srv.store.mem.used);
    expect(c, "set a 0 0 2147483645\r\nabc", "SERVER_ERROR object too large for cache\r\n");
    assert_true(atomic_load(&h.srv.store.mem.used) - before < 4096);
    harness_close(c);
    /* Lines: 2048 bytes, for lists of keys max_line. */
    c = harness_conn(&h, &proto_mc);
    n = (size_t)sprintf(p, "get");
    while (n < 3990) {
        n += (size_t)sprintf(p + n, " k%04zu", n);
    }
    strcpy(p + n, "\r\n");
    expect(c, p, "END\r\n");
    strcpy(p + n, " 123456789\r\n");
    expect(c, p, "CLIENT_ERROR line too long\r\n");
    assert_true(c->closing);
    c = harness_conn(&h, &proto_mc);
    sprintf(p, "incr b %02040d\r\n", 1); /* 2,048 bytes without the LF */
    expect(c, p, "NOT_FOUND\r\n");
    sprintf(p, "incr b %02041d\r\n", 1);
    expect(c, p, "CLIENT_ERROR line too long\r\n");
    assert_true(c->closing);
    assert_int_equal(h.srv.count.over_line, 2);
    free(p);
    harness_stop(&h);
}

static void meta(void **state)
{
    static const struct pair t[] = {
        {"mn\r\nmg a\r\nmg a v k Oxy\r\nmg a v q\r\n", "MN\r\nEN\r\nEN ka Oxy\r\n"},
        {"ms a 3 F9 T100 c\r\nabc\r\nmg a v f s t c k h l Oq\r\nmg a h\r\nmg a\r\n",
         "HD c1\r\nVA 3 f9 s3 t100 c1 ka h0 l0 Oq\r\nabc\r\nHD h1\r\nHD\r\n"},
        {"ms a 1 q\r\nx\r\nms a 1 ME\r\ny\r\nms b 1 MR\r\ny\r\nms a 1 MA\r\ny\r\nms a 1 "
         "MP\r\nw\r\nmg a v\r\n",
         "NS\r\nNS\r\nHD\r\nHD\r\nVA 3\r\nwxy\r\n"},
        {"ms a 1 MX\r\nx\r\nms a 1 MAA\r\nx\r\nms a 1 Tx\r\nx\r\nms a 1 ?\r\nx\r\nms a 1 c "
         "c\r\nx\r\nmn\r\n",
         "CLIENT_ERROR invalid mode for ms M token\r\nCLIENT_ERROR incorrect length for M token\r\n"
         "CLIENT_ERROR bad token in command line format\r\nCLIENT_ERROR invalid flag\r\n"
         "CLIENT_ERROR duplicate flag\r\nMN\r\n"},
        {"ms a 1 C5\r\nx\r\nms a 1\r\nx\r\nms a 1 C9\r\ny\r\nms a 1 C1\r\nz\r\nmg a v\r\n",
         "NF\r\nHD\r\nEX\r\nHD\r\nVA 1\r\nz\r\n"},
        {"ms YWJj 1 b k\r\nx\r\nget abc\r\nmg YWJj b k v\r\nmg !!! b\r\n",
         "HD b kYWJj\r\nVALUE abc 0 1\r\nx\r\nEND\r\nVA 1 b kYWJj\r\nx\r\nCLIENT_ERROR error "
         "decoding key\r\n"},
        {"md a\r\nms a 1\r\nx\r\nmd a q\r\nmg a\r\nms a 1\r\nx\r\nmd a C9\r\nmd a k Oz\r\n",
         "NF\r\nHD\r\nEN\r\nHD\r\nEX\r\nHD ka Oz\r\n"},
        {"ms a 1\r\nx\r\nmd a I T30\r\nmg a v t\r\nmg a v\r\nms a 1\r\ny\r\nmg a v\r\n",
         "HD\r\nHD\r\nVA 1 t30 X W\r\nx\r\nVA 1 Z X\r\nx\r\nHD\r\nVA 1\r\ny\r\n"},
        {"mg a v N30 t\r\nmg a v N30\r\nms a 1 T100\r\nx\r\nmg a t R200\r\nmg a R200\r\nms a 1 "
         "T100\r\nx\r\nmg a R50\r\n",
         "VA 0 t30 W\r\n\r\nVA 0 Z\r\n\r\nHD\r\nHD t100 W\r\nHD Z\r\nHD\r\nHD\r\n"},
        {"ma n\r\nma n N0 J5 v\r\nma n v\r\nma n D10 v t\r\nma n MD D3 v\r\nma n M- D99 v\r\nma n "
         "q\r\nma n MX\r\n",
         "NF\r\nVA 1\r\n5\r\nVA 1\r\n6\r\nVA 2 t-1\r\n16\r\nVA 2\r\n13\r\nVA 1\r\n0\r\n"
         "CLIENT_ERROR invalid mode for ma M token\r\n"},
        {"ms n 1\r\nx\r\nma n\r\nme n\r\nme nosuch\r\n",
         "HD\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
         "ME n exp=-1 la=0 cas=1 fetch=no cls=0 size=64\r\nEN\r\n"},
        {"ms a\r\nms a x\r\nms a 1 T1\r\nab\r\nmg\r\nmd\r\nma\r\nme\r\nmz a\r\n", LINE LINE
         "CLIENT_ERROR bad data chunk\r\nERROR\r\nERROR\r\nERROR\r\nERROR\r\n" LINE "ERROR\r\n"},
    };

    (void)state;
    RUN(t);
}

/* A flush with a delay is due at its time, not before; a later flush_all 0 replaces it. */
static void delayed_flush(void **state)
{
    struct conn *c;

    (void)state;
    config_defaults(&cfg);
    harness_start(&h, &cfg);
    c = harness_conn(&h, &proto_mc);
    expect(c, "set a 0 0 1\r\nx\r\nflush_all 10\r\nget a\r\n",
           "STORED\r\nOK\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
    assert_true(atomic_load(&h.srv.store.flush_at_ms) == atomic_load(&harness_now_ms) + 10000);
    expect(c, "flush_all\r\nget a\r\n", "OK\r\nEND\r\n");
    assert_int_equal(atomic_load(&h.srv.store.flush_at_ms), 0);
    harness_stop(&h);
}

/* Pieces of any size give the same replies as the whole. */
static void pieces_change_nothing(void **state)
{
    static const char requests[] = "set a 5 0 3\r\nabc\r\nget a b c\r\nms b 4 T0 k\r\nx\r\ny\r\nmg "
                                   "b v k\r\nset c 0 0 2 noreply\r\nhi\r\n"
                                   "gets c\r\nset d 0 0 2000000\r\nincr a 1\r\n";
    struct conn *c;
    char *want, *got;
    size_t len;
    uint64_t seed = 7;

    (void)state;
    config_defaults(&cfg);
    cfg.shards = 1;
    harness_start(&h, &cfg);
    want = harness_ask(harness_conn(&h, &proto_mc), requests);
    harness_stop(&h);
    for (int round = 0; round < 300; round++) {
        harness_start(&h, &cfg);
        c = harness_conn(&h, &proto_mc);
        for (size_t at = 0; at < sizeof(requests) - 1;) {
            size_t part;

            seed = seed * 6364136223846793005ull + 1442695040888963407ull;
            part = round == 0 ? 1 : (size_t)(seed >> 33) % (size_t)(round % 30 + 1) + 1;
            part = part < sizeof(requests) - 1 - at ? part : sizeof(requests) - 1 - at;
            harness_feed(c, requests + at, part);
            at += part;
        }
        got = harness_take(c, &len);
        assert_string_equal(got, want);
        free(got);
        harness_stop(&h);
    }
    free(want);
}

/* Both protocols see one store. */
static void one_store(void **state)
{
    struct conn *mc, *resp;

    (void)state;
    config_defaults(&cfg);
    harness_start(&h, &cfg);
    mc = harness_conn(&h, &proto_mc);
    resp = harness_conn(&h, &proto_resp);
    expect(mc, "set n 3 100 2\r\n10\r\n", "STORED\r\n");
    expect(resp, "decr n\r\nttl n\r\nstrlen n\r\n", ":9\r\n:100\r\n:1\r\n");
    expect(mc, "get n\r\nincr n 1\r\n", "VALUE n 3 1\r\n9\r\nEND\r\n10\r\n");
    expect(resp, "set n \"a b\"\r\n", "+OK\r\n");
    expect(mc, "get n\r\nstats reset\r\n", "VALUE n 0 3\r\na b\r\nEND\r\nRESET\r\n");
    harness_stop(&h);
}

int kv_mc_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text),
        cmocka_unit_test(noreply),
        cmocka_unit_test(malformed),
        cmocka_unit_test(limits),
        cmocka_unit_test(meta),
        cmocka_unit_test(delayed_flush),
        cmocka_unit_test(pieces_change_nothing),
        cmocka_unit_test(one_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
