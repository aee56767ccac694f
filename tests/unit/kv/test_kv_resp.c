/* The Redis protocol: requests and the exact replies, whole, byte by byte and in random pieces. */
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

static void start(void)
{
    struct config cfg;

    config_defaults(&cfg);
    harness_start(&h, &cfg);
}

/* One request (inline words, separated by ';' into several) and the whole reply. */
struct pair {
    const char *ask, *want;
};

static char *inline_form(const char *ask)
{
    size_t n = strlen(ask);
    char *text = malloc(2 * n + 3);
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        if (ask[i] == ';') {
            text[at++] = '\r';
            text[at++] = '\n';
        } else {
            text[at++] = ask[i];
        }
    }
    strcpy(text + at, "\r\n");
    return text;
}

static void run(const struct pair *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct conn *c = harness_conn(&h, &proto_resp);
        char *request = inline_form(t[i].ask), *got;

        free(harness_ask(c, "FLUSHALL\r\n"));
        got = harness_ask(c, request);
        if (strcmp(got, t[i].want) != 0) {
            fail_msg("%s\n   want %s\n   got  %s", t[i].ask, t[i].want, got);
        }
        free(got);
        free(request);
        harness_close(c);
    }
}

#define RUN(t) run(t, sizeof(t) / sizeof((t)[0]))

#define OK      "+OK\r\n"
#define NIL     "$-1\r\n"
#define SYNTAX  "-ERR syntax error\r\n"
#define NOT_INT "-ERR value is not an integer or out of range\r\n"

static void strings(void **state)
{
    static const struct pair t[] = {
        {"get a;set a b;get a", NIL OK "$1\r\nb\r\n"},
        {"set a b nx;set a c nx;set b c xx;set a d xx;get a", OK NIL NIL OK "$1\r\nd\r\n"},
        {"set a b get;set a c get;set a d nx get;get a", NIL "$1\r\nb\r\n$1\r\nc\r\n$1\r\nc\r\n"},
        {"set a b ex 10 px 10;set a b nx xx;set a b ex 1 keepttl;set a b foo",
         SYNTAX SYNTAX SYNTAX SYNTAX},
        {"set a b ex 0;set a b ex x", "-ERR invalid expire time in 'set' command\r\n" NOT_INT},
        {"set a b ex 100;ttl a;set a c keepttl;ttl a;set a d;ttl a",
         OK ":100\r\n" OK ":100\r\n" OK ":-1\r\n"},
        {"set a b pxat 1700000005000;pttl a;set a b exat 1;exists a", OK ":5000\r\n" OK ":0\r\n"},
        {"setnx a 1;setnx a 2;get a", ":1\r\n:0\r\n$1\r\n1\r\n"},
        {"setex a 10 b;ttl a;setex a 0 b;psetex a 10 b;pttl a",
         OK ":10\r\n-ERR invalid expire time in 'setex' command\r\n" OK ":10\r\n"},
        {"getset a b;getset a c;getdel a;getdel a", NIL "$1\r\nb\r\n$1\r\nc\r\n" NIL},
        {"set a b;getex a ex 10;ttl a;getex a persist;ttl a;getex a foo",
         OK "$1\r\nb\r\n:10\r\n$1\r\nb\r\n:-1\r\n" SYNTAX},
        {"mset a 1 b 2;mget a b c;mset a;msetnx b 1 c 2;msetnx c 3 d 4;mget c d", OK
         "*3\r\n$1\r\n1\r\n$1\r\n2\r\n" NIL "-ERR wrong number of arguments for 'mset' command\r\n"
         ":0\r\n:1\r\n*2\r\n$1\r\n3\r\n$1\r\n4\r\n"},
        {"append a bc;append a d;get a;strlen a;strlen x", ":2\r\n:3\r\n$3\r\nbcd\r\n:3\r\n:0\r\n"},
        {"setrange a 2 xy;strlen a;setrange a 0 \"\";setrange b 0 \"\";exists b;setrange a -1 x",
         ":4\r\n:4\r\n:4\r\n:0\r\n:0\r\n-ERR offset is out of range\r\n"},
        {"set a hello;getrange a 1 3;getrange a -3 -1;getrange a 3 1;getrange a 9 99;getrange a -9 "
         "99",
         OK "$3\r\nell\r\n$3\r\nllo\r\n$0\r\n\r\n$0\r\n\r\n$5\r\nhello\r\n"},
        {"incr a;incrby a 10;decr a;decrby a 20;get a",
         ":1\r\n:11\r\n:10\r\n:-10\r\n$3\r\n-10\r\n"},
        {"set a 9223372036854775807;incr a;decrby a -9223372036854775808;get a",
         OK "-ERR increment or decrement would overflow\r\n-ERR decrement would overflow\r\n"
            "$19\r\n9223372036854775807\r\n"},
        {"set a x;incr a;set a 01;incr a;set a \" 1\";incr a", OK NOT_INT OK NOT_INT OK NOT_INT},
        {"incrbyfloat a 0.1;incrbyfloat a 0.2;incrbyfloat a 5e3;incrbyfloat a x;incrbyfloat a inf",
         "$3\r\n0.1\r\n$3\r\n0.3\r\n$22\r\n5000.29999999999999982\r\n-ERR value is not a valid "
         "float\r\n"
         "-ERR increment would produce NaN or Infinity\r\n"},
    };

    (void)state;
    start();
    RUN(t);
    harness_stop(&h);
}

static void keys(void **state)
{
    static const struct pair t[] = {
        {"mset a 1 b 2;del a b c;exists a b;set a 1;exists a a;unlink a",
         OK ":2\r\n:0\r\n" OK ":2\r\n:1\r\n"},
        {"type a;set a 1;type a;touch a b;dbsize;flushall;dbsize",
         "+none\r\n" OK "+string\r\n:1\r\n:1\r\n" OK ":0\r\n"},
        {"set a 1;expire a 100;expire a 50 gt;expire a 200 gt;ttl a;expire a 300 nx;expire a 10 "
         "lt;ttl a;persist a;"
         "ttl a;expire a 10 xx;expire b 1",
         OK ":1\r\n:0\r\n:1\r\n:200\r\n:0\r\n:1\r\n:10\r\n:1\r\n:-1\r\n:0\r\n:0\r\n"},
        {"set a 1;expire a 1 nx gt;expire a 1 gt lt;expire a 1 foo;expire a x",
         OK "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n"
            "-ERR GT and LT options at the same time are not compatible\r\n-ERR Unsupported option "
            "foo\r\n" NOT_INT},
        {"set a 1;expireat a 1700000100;expiretime a;pexpiretime a;pexpireat a 1;exists a;ttl a",
         OK ":1\r\n:1700000100\r\n:1700000100000\r\n:1\r\n:0\r\n:-2\r\n"},
        {"set a 1;expire a 9223372036854775807",
         OK "-ERR invalid expire time in 'expire' command\r\n"},
        {"keys *;set foo 1;keys f?o;keys g*", "*0\r\n" OK "*1\r\n$3\r\nfoo\r\n*0\r\n"},
        {"scan 0;set a 1;scan 0 count 1000;scan 0 match b* count 1000;scan 0 type hash count 1000",
         "*2\r\n$1\r\n0\r\n*0\r\n" OK
         "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n*2\r\n$1\r\n0\r\n*0\r\n*2\r\n$1\r\n0\r\n*0\r\n"},
        {"scan x;scan 0 count 0;scan 0 count;scan 0 foo bar",
         "-ERR invalid cursor\r\n" SYNTAX SYNTAX SYNTAX},
        {"randomkey;set a 1;randomkey", NIL OK "$1\r\na\r\n"},
        {"rename a b;set a 1;expire a 100;rename a b;get b;ttl b;exists a;renamenx b c;set b "
         "2;renamenx b c;rename b b",
         "-ERR no such key\r\n" OK ":1\r\n" OK "$1\r\n1\r\n:100\r\n:0\r\n:1\r\n" OK ":0\r\n" OK},
        {"copy a b;set a 1;copy a b;copy a b;copy a b replace;copy a a;get b;copy a c db 1",
         ":0\r\n" OK
         ":1\r\n:0\r\n:1\r\n-ERR source and destination objects are the same\r\n$1\r\n1\r\n"
         "-ERR DB index is out of range\r\n"},
        {"set a 1;set b x;object encoding a;object encoding b;object refcount a;object idletime "
         "a;object encoding c;"
         "object foo a",
         OK OK "$3\r\nint\r\n$6\r\nembstr\r\n:1\r\n:0\r\n" NIL
               "-ERR unknown subcommand 'foo'. Try OBJECT HELP.\r\n"},
    };

    (void)state;
    start();
    RUN(t);
    harness_stop(&h);
}

static void session(void **state)
{
    static const struct pair t[] = {
        {"ping;ping x;ping x y;echo x;select 0;select 1;select x",
         "+PONG\r\n$1\r\nx\r\n-ERR wrong number of arguments for 'ping' command\r\n$1\r\nx\r\n" OK
         "-ERR DB index is out of range\r\n" NOT_INT},
        {"foo a b;get;GET a b", "-ERR unknown command 'foo', with args beginning with: 'a' 'b' \r\n"
                                "-ERR wrong number of arguments for 'get' command\r\n-ERR wrong "
                                "number of arguments for 'get' command\r\n"},
        {"debug sleep 0",
         "-ERR unknown command 'debug', with args beginning with: 'sleep' '0' \r\n"},
        {"hello 4;hello x;hello 2 foo", "-NOPROTO unsupported protocol version\r\n"
                                        "-ERR Protocol version is not an integer or out of "
                                        "range\r\n-ERR Syntax error in HELLO option 'foo'\r\n"},
        {"auth x;auth a b",
         "-ERR AUTH <password> called without any password configured for the default user. "
         "Are you sure your configuration is correct?\r\n-WRONGPASS invalid username-password pair "
         "or user is disabled.\r\n"},
        {"client setname x;client getname;reset;client getname", OK "$1\r\nx\r\n+RESET\r\n" NIL},
        {"client reply off;ping;client reply on;client reply skip;ping;ping", OK "+PONG\r\n"},
        {"config get appendonly;config get nosuch;config set maxmemory 100mb;config get "
         "maxmemory;config set save x",
         "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n*0\r\n" OK
         "*2\r\n$9\r\nmaxmemory\r\n$9\r\n104857600\r\n"
         "-ERR CONFIG SET failed (possibly related to argument 'save') - can't set immutable "
         "config\r\n"},
        /* All or nothing: an unknown name, one that cannot be set, a bad value, the same name twice. */
        {"config set maxmemory 100mb;config set maxmemory 50mb nosuch 1;config set maxmemory 50mb save x;"
         "config set maxmemory 50mb timeout 7 maxclients none;config set maxmemory 50mb maxmemory 60mb;"
         "config get maxmemory timeout",
         OK "-ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'\r\n"
         "-ERR CONFIG SET failed (possibly related to argument 'save') - can't set immutable config\r\n"
         "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument is out of range or malformed\r\n"
         "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - duplicate parameter\r\n"
         "*4\r\n$9\r\nmaxmemory\r\n$9\r\n104857600\r\n$7\r\ntimeout\r\n$1\r\n0\r\n"},
        {"command getkeys mset a 1 b 2;command info nosuch;command getkeys ping",
         "*2\r\n$1\r\na\r\n$1\r\nb\r\n*1\r\n" NIL "-ERR The command has no key arguments\r\n"},
        {"quit;ping", OK},
    };
    struct conn *c;
    char want[1024], *got;

    (void)state;
    start();
    RUN(t);
    c = harness_conn(&h, &proto_resp);
    snprintf(
        want, sizeof(want),
        "%%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n%s\r\n$5\r\nproto\r\n:3\r\n"
        "$2\r\nid\r\n:%llu\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"
        "$7\r\nmodules\r\n*0\r\n_\r\n*1\r\n_\r\n",
        KV_REDIS_VERSION, (unsigned long long)c->id);
    got = harness_ask(c, "hello 3\r\nget nosuch\r\nmget x\r\n");
    assert_string_equal(got, want);
    free(got);
    harness_stop(&h);
}

/* ---- malformed input ---- */

static void protocol_errors(void **state)
{
    static const struct {
        const char *send, *want;
        bool closes;
    } t[] = {
        {"*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length\r\n", true},
        {"*1\r\n$536870913\r\n", "-ERR Protocol error: invalid bulk length\r\n", true},
        {"*1\r\n$x\r\n", "-ERR Protocol error: invalid bulk length\r\n", true},
        {"*1\r\n$\r\n", "-ERR Protocol error: invalid bulk length\r\n", true},
        {"*2147483648\r\n", "-ERR Protocol error: invalid multibulk length\r\n", true},
        {"*x\r\n", "-ERR Protocol error: invalid multibulk length\r\n", true},
        {"*99999999999999999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n", true},
        {"*01\r\n$4\r\nping\r\n", "-ERR Protocol error: invalid multibulk length\r\n", true},
        {"*1\r\nping\r\n", "-ERR Protocol error: expected '$', got 'p'\r\n", true},
        {"set a \"b\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n", true},
        {"set a \"b\"c\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n", true},
        {"*-1\r\n*0\r\n\r\n\r\nping\r\n", "+PONG\r\n", false},
        {"set a \"\\x41\\n\\\"\"\r\nget a\r\n", "+OK\r\n$3\r\nA\n\"\r\n", false},
        {"set a 'b\\'c'\nget a\n", "+OK\r\n$3\r\nb'c\r\n", false},
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "", true},
        {"POST / HTTP/1.1\r\n", "", true},
        {"ping\r\n*1\r\n$-1\r\nping\r\n", "+PONG\r\n-ERR Protocol error: invalid bulk length\r\n",
         true},
    };

    (void)state;
    start();
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct conn *c = harness_conn(&h, &proto_resp);
        char *got = harness_ask(c, t[i].send);

        assert_string_equal(got, t[i].want);
        assert_int_equal(c->closing || c->dropping, t[i].closes);
        free(got);
        harness_close(c);
    }
    assert_true(h.srv.count.proto_errors >= 13);
    harness_stop(&h);
}

/* The headers that promise much must not make the server hold more than what was sent. */
static void headers_allocate_nothing(void **state)
{
    struct conn *c;
    size_t before;

    (void)state;
    start();
    before = atomic_load(&h.srv.store.mem.used);
    c = harness_conn(&h, &proto_resp);
    free(harness_ask(c, "*1000000\r\n$536870912\r\nx"));
    assert_true(atomic_load(&h.srv.store.mem.used) - before < 32768);
    assert_false(c->closing);
    harness_close(c);
    assert_int_equal(atomic_load(&h.srv.store.mem.used), before);
    harness_stop(&h);
}

/* ---- pieces ---- */

static char *binary_requests(size_t *n)
{
    char *p = malloc(100000), *at = p;

    at += sprintf(
        at,
        "PING\r\n*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\na\r\nb\r\n*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
    at += sprintf(at, "set inline \"two words\"\r\nget inline\r\n*0\r\n\r\n*-1\r\n");
    at += sprintf(at, "*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$3000\r\n");
    memset(at, 'B', 3000);
    at += 3000;
    at += sprintf(at, "\r\n*2\r\n$6\r\nSTRLEN\r\n$3\r\nbig\r\n*1\r\n$5\r\nMULTI\r\nincr "
                      "n\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\nexec\r\n");
    at += sprintf(at, "*24\r\n$4\r\nMGET\r\n");
    for (int i = 0; i < 23; i++) {
        at += sprintf(at, "$%d\r\nk%0*d\r\n", i + 1, i, 0);
    }
    at += sprintf(at, "*2\r\n$0\r\n\r\n$0\r\n\r\nnosuch\r\n*1\r\n$4\r\nQUIT\r\nPING\r\n");
    *n = (size_t)(at - p);
    return p;
}

static char *in_pieces(const char *p, size_t n, unsigned most, uint64_t seed, size_t *len)
{
    struct conn *c = harness_conn(&h, &proto_resp);
    char *got;

    free(harness_ask(c, "FLUSHALL\r\n"));
    for (size_t at = 0; at < n;) {
        size_t part;

        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        part = (size_t)(seed >> 33) % most + 1;
        part = part < n - at ? part : n - at;
        if (!harness_feed(c, p + at, part)) {
            break;
        }
        at += part;
    }
    got = harness_take(c, len);
    harness_close(c);
    return got;
}

static void pieces_change_nothing(void **state)
{
    size_t n, want_len, len;
    char *p = binary_requests(&n), *want, *got;
    struct conn *c;

    (void)state;
    start();
    c = harness_conn(&h, &proto_resp);
    free(harness_ask(c, "FLUSHALL\r\n"));
    harness_feed(c, p, n);
    want = harness_take(c, &want_len);
    harness_close(c);
    for (uint64_t seed = 0; seed < 300; seed++) {
        unsigned most = seed == 0 ? 1 : (unsigned)(seed % 40 + 1);

        got = in_pieces(p, n, most, seed, &len);
        if (len != want_len || memcmp(got, want, len) != 0) {
            fail_msg("seed %llu, pieces up to %u: replies differ", (unsigned long long)seed, most);
        }
        free(got);
    }
    free(want);
    free(p);
    harness_stop(&h);
}

int kv_resp_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings),
        cmocka_unit_test(keys),
        cmocka_unit_test(session),
        cmocka_unit_test(protocol_errors),
        cmocka_unit_test(headers_allocate_nothing),
        cmocka_unit_test(pieces_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
