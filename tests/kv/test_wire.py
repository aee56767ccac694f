"""Both protocols on the wire: reference replies, malformed input, pieces, large values."""
import pytest

from kv_server import encode

PROTOCOL_ERRORS = [
    (b"*1\r\n$-1\r\n", b"-ERR Protocol error: invalid bulk length\r\n"),
    (b"*1\r\n$536870913\r\n", b"-ERR Protocol error: invalid bulk length\r\n"),
    (b"*2147483648\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
    (b'set a "b\r\n', b"-ERR Protocol error: unbalanced quotes in request\r\n"),
    (b"a" * 70000, b"-ERR Protocol error: too big inline request\r\n"),
    (b"*1\r\n:1\r\n", b"-ERR Protocol error: expected '$', got ':'\r\n"),
    (b"*" + b"1" * 70000, b"-ERR Protocol error: too big mbulk count string\r\n"),
    (b"*1\r\n$" + b"1" * 70000, b"-ERR Protocol error: too big bulk count string\r\n"),
]


@pytest.mark.parametrize("sent,want", PROTOCOL_ERRORS)
def test_protocol_error_then_close(kv, sent, want):
    with kv.raw() as bystander, kv.raw() as c:
        assert bystander.ask("PING") == "PONG"
        c.send(sent)
        assert c.expect_close() == want
        assert bystander.ask("PING") == "PONG"


def test_ignored_input(kv):
    with kv.raw() as c:
        c.send(b"*-1\r\n*0\r\n\r\n\r\n")
        c.quiet()
        assert c.ask("PING") == "PONG"


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n"])
def test_http_is_closed_silently(kv, sent):
    with kv.raw() as c:
        c.send(sent)
        assert c.expect_close() == b""


def test_memcached_refused_lengths_keep_the_connection(kv):
    with kv.raw("mc") as c:
        for line in b"set k 0 0 -1", b"set k 0 0 3000000000", b"set k 0 0 x":
            c.send(line + b"\r\n")
            c.expect(b"CLIENT_ERROR bad command line format\r\n")
        c.send(b"set k 0 0 2\r\nok\r\nget k\r\n")
        c.expect(b"STORED\r\nVALUE k 0 2\r\nok\r\nEND\r\n")


def test_memcached_too_large_is_skipped(kv):
    size = (1 << 20) + 1
    with kv.raw("mc") as c:
        c.send(b"set k 0 0 %d\r\n" % size + b"x" * size + b"\r\nmn\r\n")
        c.expect(b"SERVER_ERROR object too large for cache\r\nMN\r\n")


@pytest.mark.parametrize("request_line, left", [
    (b"set k 0 0 %d\r\n", b"END\r\n"), (b"set k 0 0 %d noreply\r\n", b"END\r\n"), (b"ms k %d\r\n", b"END\r\n"),
    (b"ms k %d MS\r\n", b"END\r\n"), (b"add k 0 0 %d\r\n", None), (b"replace k 0 0 %d\r\n", None), (b"append k 0 0 %d\r\n", None),
    (b"ms k %d MR\r\n", None)])
def test_memcached_too_large_leaves_no_stale_value(kv, request_line, left):
    """What was to be replaced whatever it was is gone, as in memcached; a conditional store leaves it."""
    size = (1 << 20) + 1
    with kv.raw("mc") as c:
        c.send(b"set k 0 0 3\r\nold\r\n")
        c.expect(b"STORED\r\n")
        c.send(request_line % size + b"x" * size + b"\r\n")
        if b"noreply" not in request_line:
            c.expect(b"SERVER_ERROR object too large for cache\r\n")
        c.send(b"get k\r\n")
        c.expect(left or b"VALUE k 0 3\r\nold\r\nEND\r\n")


def test_bare_newlines(kv):
    with kv.raw() as c, kv.raw("mc") as m:
        c.send(b"set a b\nget a\n")
        c.expect(b"+OK\r\n$1\r\nb\r\n")
        m.send(b"get a\nmn\n")
        m.expect(b"VALUE a 0 1\r\nb\r\nEND\r\nMN\r\n")


def test_stats_with_trailing_space(kv):
    with kv.raw("mc") as c:
        c.send(b"stats \r\n")
        lines = []
        while not lines or lines[-1] != b"END":
            lines.append(c.line())
        names = {line.split()[1] for line in lines[:-1]}
        assert {b"pid", b"curr_connections", b"cmd_get", b"get_hits", b"curr_items", b"bytes", b"limit_maxbytes",
                b"evictions", b"threads"} <= names


def test_byte_by_byte(kv):
    with kv.raw() as c:
        for byte in encode("SET", "key", "a\r\nb") + encode("GET", "key") + b"get key\r\n":
            c.send(bytes([byte]))
        c.expect(b"+OK\r\n" + b"$4\r\na\r\nb\r\n" * 2)


@pytest.mark.parametrize("around", [0, 100, 1023, 4096, 16384, 32768, 65536, 1 << 20])
def test_values_of_every_size_round_trip(kv, around):
    with kv.raw() as c:
        for size in range(max(0, around - 4), around + 5):
            value = (b"%08d" % size) * (size // 8 + 1)
            value = value[:size]
            assert c.command("SET", "k", value) == "OK"
            assert c.command("GET", "k") == value
            assert c.command("STRLEN", "k") == size


def test_memcached_values_up_to_the_limit(kv):
    with kv.raw("mc") as c:
        for size in 0, 1, 2, 100, 65536, (1 << 20) - 1, 1 << 20:
            value = b"v" * size
            c.send(b"set k 7 0 %d\r\n%s\r\nget k\r\n" % (size, value))
            c.expect(b"STORED\r\nVALUE k 7 %d\r\n%s\r\nEND\r\n" % (size, value))


def test_large_value(kv):
    value = bytes(range(256)) * (48 << 12)  # 48 MB
    with kv.raw() as c:
        assert c.command("SET", "big", value) == "OK"
        assert c.command("GET", "big") == value
        assert c.command("DEL", "big") == 1


def test_pipeline_of_thousands(kv):
    count = 20000
    with kv.raw() as c:
        c.send(b"".join(encode("SET", f"k{i}", f"v{i}") for i in range(count)))
        c.expect(b"+OK\r\n" * count)
        c.send(b"".join(encode("GET", f"k{i}") for i in range(count)))
        c.expect(b"".join(b"$%d\r\nv%d\r\n" % (len(f"v{i}"), i) for i in range(count)))


def test_binary_keys_and_values(kv):
    every = bytes(range(256))
    with kv.raw() as c:
        assert c.command("SET", every, every) == "OK"
        assert c.command("GET", every) == every
        assert c.command("KEYS", "*") == [every]
        assert c.command("SET", b"", b"") == "OK"
        assert c.command("GET", b"") == b""
        assert c.command("RENAME", every, b"x\r\ny") == "OK"
        assert c.command("GET", b"x\r\ny") == every


def test_resp3_types(kv):
    with kv.raw() as c:
        hello = c.ask("HELLO 3")
        assert isinstance(hello, dict) and hello[b"proto"] == 3
        c.send(b"GET nosuch\r\n")
        c.expect(b"_\r\n")
        assert isinstance(c.ask("CONFIG GET maxmemory*"), dict)
        c.send(b"CLIENT INFO\r\n")
        assert c.line().startswith(b"=")
        assert c.line().startswith(b"txt:id=")
        assert c.ask("HELLO 2")[0] == b"server"


def test_help_texts(kv):
    with kv.raw() as c:
        for command in "OBJECT", "CLIENT", "CONFIG", "COMMAND", "MEMORY":
            lines = c.ask(command + " HELP")
            assert len(lines) > 3 and lines[0].startswith(command)
