/* The parser of HTTP requests. */
#include <string.h>

#include "core/kern/http_parse.h"
#include "tests/unit/fake/cmocka_all.h"

#define ROOM 1024

static struct http_request r;
static char buf[ROOM + 1];

static int parse(const char *text)
{
    size_t n = strlen(text);
    assert_true(n <= ROOM);
    memcpy(buf, text, n + 1);
    return http_parse(buf, n, ROOM, &r);
}

static void requests(void **state)
{
    (void)state;
    assert_int_equal(parse("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
    assert_int_equal(r.method, HTTP_GET);
    assert_string_equal(r.path, "/metrics");
    assert_int_equal(r.num_params, 0);
    assert_int_equal(parse("HEAD / HTTP/1.0\n\n"), 200);
    assert_int_equal(r.method, HTTP_HEAD);
    assert_int_equal(parse("DELETE /x HTTP/1.1\r\n\r\n"), 200);
    assert_int_equal(r.method, HTTP_OTHER);
    assert_int_equal(parse("GET /profile?seconds=2&mode=off%63pu&x HTTP/1.1\r\n\r\n"), 200);
    assert_string_equal(r.path, "/profile");
    assert_int_equal(r.num_params, 3);
    assert_string_equal(r.params[0].name, "seconds");
    assert_string_equal(r.params[0].value, "2");
    assert_string_equal(r.params[1].value, "offcpu");
    assert_string_equal(r.params[2].name, "x");
    assert_string_equal(r.params[2].value, "");
}

static void bodies(void **state)
{
    (void)state;
    assert_int_equal(parse("POST /sched HTTP/1.1\r\ncontent-LENGTH:  13 \r\n\r\npolicy=legacy"), 200);
    assert_int_equal(r.method, HTTP_POST);
    assert_int_equal(r.num_params, 1);
    assert_string_equal(r.params[0].name, "policy");
    assert_string_equal(r.params[0].value, "legacy");
    assert_int_equal(parse("POST /sched?interval_ms=5 HTTP/1.1\r\nContent-Length: 10\r\n\r\npolicy=a+b"), 200);
    assert_int_equal(r.num_params, 2);
    assert_string_equal(r.params[1].value, "a b");
    assert_int_equal(parse("POST /sched HTTP/1.1\r\nContent-Length: 14\r\n\r\npolicy=legacy"), 0);
    assert_int_equal(parse("POST /sched HTTP/1.1\r\nContent-Length: 99999\r\n\r\n"), 413);
    assert_int_equal(parse("POST /sched HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
    assert_int_equal(parse("POST /sched HTTP/1.1\r\nContent-Length: 3\r\ncontent-length: 3\r\n\r\na=b"), 200);
    assert_int_equal(parse("POST /sched HTTP/1.1\r\nContent-Length: 3\r\ncontent-length: 4\r\n\r\na=bc"), 400);
    assert_int_equal(parse("POST /sched HTTP/1.1\r\ntransfer-Encoding: chunked\r\n\r\n3\r\na=b\r\n0\r\n\r\n"), 411);
    assert_int_equal(parse("POST /sched HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"), 400);
}

static void incomplete(void **state)
{
    static const char text[] = "GET /metrics HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";
    (void)state;
    for (size_t n = 0; n < sizeof(text) - 1; n++) {
        memcpy(buf, text, n);
        assert_int_equal(http_parse(buf, n, ROOM, &r), 0);
    }
}

static void bad_requests(void **state)
{
    (void)state;
    assert_int_equal(parse("\r\n\r\n"), 400);
    assert_int_equal(parse("GET\r\n\r\n"), 400);
    assert_int_equal(parse("GET /\r\n\r\n"), 400);
    assert_int_equal(parse("GET metrics HTTP/1.1\r\n\r\n"), 400);
    assert_int_equal(parse(" / HTTP/1.1\r\n\r\n"), 400);
    assert_int_equal(parse("GET / HTTP/2.0\r\n\r\n"), 505);
    assert_int_equal(parse("GET / FTP\r\n\r\n"), 400);
    assert_int_equal(parse("GET /a?x=%4 HTTP/1.1\r\n\r\n"), 400);
    assert_int_equal(parse("GET /a?x=%zz HTTP/1.1\r\n\r\n"), 400);
    assert_int_equal(parse("GET /a?x=%00 HTTP/1.1\r\n\r\n"), 400);
    assert_int_equal(parse("GET /a?a&b&c&d&e&f&g&h&i HTTP/1.1\r\n\r\n"), 400);
}

static void limits(void **state)
{
    (void)state;
    char path[HTTP_MAX_PATH + 1];
    memset(path, 'p', sizeof(path));
    path[0] = '/';
    snprintf(buf, sizeof(buf), "GET %.*s HTTP/1.1\r\n\r\n", HTTP_MAX_PATH - 1, path);
    assert_int_equal(http_parse(buf, strlen(buf), ROOM, &r), 200);
    snprintf(buf, sizeof(buf), "GET %.*s HTTP/1.1\r\n\r\n", HTTP_MAX_PATH, path);
    assert_int_equal(http_parse(buf, strlen(buf), ROOM, &r), 414);
    memset(buf, 'a', ROOM);
    assert_int_equal(http_parse(buf, ROOM, ROOM, &r), 414);
    size_t n = (size_t)snprintf(buf, sizeof(buf), "GET / HTTP/1.1\r\n");
    while (n + 6 <= ROOM) {
        memcpy(buf + n, "A: b\r\n", 6);
        n += 6;
    }
    memset(buf + n, 'x', ROOM - n);
    assert_int_equal(http_parse(buf, ROOM, ROOM, &r), 431);
}

static void random_bytes_do_no_harm(void **state)
{
    static const char *const pieces[] = { "GET ", "POST ", "/", "?", "&", "=", "%41", "%", " HTTP/1.1", "\r\n", "\n",
                                          "Content-Length: ", "7", "0", "abc", "\r\n\r\n", ":" };
    uint64_t seed = test_seed(0x4177);
    (void)state;
    for (int round = 0; round < 30000; round++) {
        size_t n = 0, room = test_below(&seed, 120) + 1;
        char *data = malloc(room + 1);
        for (uint64_t count = test_below(&seed, 30); count > 0; count--) {
            const char *piece = pieces[test_below(&seed, sizeof(pieces) / sizeof(pieces[0]))];
            size_t len = strlen(piece);
            if (n + len > room) {
                break;
            }
            memcpy(data + n, piece, len);
            n += len;
        }
        int status = http_parse(data, n, room, &r);
        if (status == 200) {
            assert_true(r.length <= n);
            for (u32 i = 0; i < r.num_params; i++) {
                assert_true(strlen(r.params[i].name) <= n && strlen(r.params[i].value) <= n);
            }
        }
        free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),     cmocka_unit_test(bodies), cmocka_unit_test(incomplete),
        cmocka_unit_test(bad_requests), cmocka_unit_test(limits), cmocka_unit_test(random_bytes_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
