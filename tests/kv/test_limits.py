"""Limits: at each, and one past it, with the error, the counter, and no harm to others."""
import glob
import resource
import socket
import threading
import time

import pytest

from kv_server import PATIENCE, encode, wait_for

MODES = ["thread", "pool"]


@pytest.mark.parametrize("mode", MODES)
def test_connection_limit(start, mode):
    server = start(KV_DISPATCH=mode, KV_MAX_CONNS=10)
    held = [server.raw() for _ in range(5)] + [server.raw("mc") for _ in range(5)]
    for c in held[:5]:
        assert c.ask("PING") == "PONG"
    for c in held[5:]:
        c.send(b"mn\r\n")
        c.expect(b"MN\r\n")
    with server.raw() as c:
        assert c.expect_close() == b"-ERR max number of clients reached\r\n"
    with server.raw("mc") as c:
        assert c.expect_close() == b"ERROR Too many open connections\r\n"
    for c in held[:5]:
        assert c.ask("SET a b") == "OK"  # older ones are untouched
    info = held[0].ask("INFO stats").decode()
    assert "rejected_connections:2" in info
    held.pop().close()

    def served():
        with server.raw() as c:
            c.send(b"PING\r\n")
            return c.line() == b"+PONG"

    wait_for(served, "a free place is used again")
    for c in held:
        c.close()


@pytest.mark.parametrize("mode", MODES)
def test_partial_request_times_out(start, mode):
    server = start(KV_DISPATCH=mode, KV_PARTIAL_TIMEOUT=1)
    with server.raw() as idle, server.raw() as c, server.raw("mc") as m, server.raw() as drip:
        assert idle.ask("PING") == "PONG"
        c.send(b"*2\r\n$3\r\nGET\r\n$5\r\nab")
        m.send(b"set k 0 0 10\r\nabc")
        # One byte now and then does not extend it: the clock starts with the request.
        stop = threading.Event()

        def feed():
            try:
                drip.send(b"*1\r\n$1000\r\n")
                while not stop.wait(0.1):
                    drip.send(b"x")
            except OSError:
                pass

        feeder = threading.Thread(target=feed)
        feeder.start()
        assert c.expect_close() == b""
        assert m.expect_close() == b""
        assert drip.expect_close() == b""
        stop.set()
        feeder.join(PATIENCE)
        assert idle.ask("PING") == "PONG"  # no request has begun: no time-out
        assert "closed_partial_timeout:3" in idle.ask("INFO stats").decode()


@pytest.mark.parametrize("mode", MODES)
def test_idle_timeout(start, mode):
    server = start(KV_DISPATCH=mode, KV_IDLE_TIMEOUT=1)
    with server.raw() as c, server.raw("mc") as m:
        assert c.ask("PING") == "PONG"
        assert c.expect_close() == b""
        assert m.expect_close() == b""
    assert server.info("stats")["closed_idle_timeout"] == "2"


@pytest.mark.parametrize("mode", MODES)
def test_query_limit(start, mode):
    server = start(KV_DISPATCH=mode, KV_MAX_QUERY=65536)
    with server.raw() as c:
        assert c.command("SET", "k", b"v" * 65000) == "OK"
        try:
            c.send(encode("SET", "k", b"v" * 70000))
        except OSError:
            pass  # closed before all was sent
        got = c.expect_close()
        assert got in (b"", b"-ERR Protocol error: request exceeds the query buffer or the memory limit\r\n")
    assert server.info("stats")["closed_query_limit"] == "1"


@pytest.mark.parametrize("mode", MODES)
def test_output_limit(start, mode):
    server = start(KV_DISPATCH=mode, KV_MAX_OUTPUT="1mb")
    with server.raw() as c:
        assert c.command("SET", "k", b"v" * 500000) == "OK"
        assert c.command("MGET", "k", "k") == [b"v" * 500000] * 2
        c.send(encode("MGET", "k", "k", "k"))
        assert c.expect_close() == b""
    assert server.info("stats")["closed_output_limit"] == "1"


def test_slow_readers_do_not_harm_others(kv):
    """Clients that ask for much and read nothing; the others are served."""
    slow = []
    with kv.raw() as c:
        assert c.command("SET", "k", b"v" * (1 << 20)) == "OK"
        for _ in range(8):
            slow.append(kv.raw())
            slow[-1].send(encode("GET", "k") * 20)
        for _ in range(200):
            assert c.ask("PING") == "PONG"
            assert c.command("STRLEN", "k") == 1 << 20
        # And they get everything once they read.
        s = slow.pop()
        for _ in range(20):
            assert s.reply() == b"v" * (1 << 20)
        s.close()
    for s in slow:
        s.close()


def test_promises_cost_nothing(kv):
    """A hundred headers that announce 512 MB each."""
    def used():
        return int(kv.info("memory")["used_memory"])

    before = used()
    held = [kv.raw() for _ in range(100)]
    for c in held:
        c.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\nabc")
    wait_for(lambda: int(kv.info("clients")["connected_clients"]) >= 100, "all are connected")
    assert used() - before < 100 * 32768
    for c in held:
        c.close()
    wait_for(lambda: used() - before < 65536, "the memory is given back")


def test_watch_limit_counts(kv):
    with kv.raw() as c:
        assert c.command("WATCH", *[f"k{i}" for i in range(1024)]) == "OK"
        assert c.command("WATCH", "more") == "-ERR more than 1024 watched keys"
        assert c.command("UNWATCH") == "OK"
        assert c.command("WATCH", "more") == "OK"


def test_refused_descriptors(start):
    """The system refuses descriptors: clients wait or are closed, the server lives and recovers."""
    server = start(KV_MAX_CONNS=100)
    resource.prlimit(server.proc.pid, resource.RLIMIT_NOFILE, (20, 132))
    held = []
    for _ in range(40):
        held.append(socket.create_connection((server.host, server.resp), timeout=PATIENCE))
    held[0].sendall(b"PING\r\n")
    assert held[0].recv(7) == b"+PONG\r\n"

    def counted():
        held[0].sendall(b"INFO stats\r\n")
        text = b""
        while b"rehashing_shards" not in text:
            text += held[0].recv(65536)
        return b"refused_by_system:0" not in text

    wait_for(counted, "the refusal is counted")
    resource.prlimit(server.proc.pid, resource.RLIMIT_NOFILE, (132, 132))
    for s in held:
        s.close()
    assert wait_for(lambda: server.info("clients")["connected_clients"] == "1", "all are gone")


def test_many_short_connections(kv):
    for i in range(5000):
        with kv.raw() as c:
            c.send(b"PING\r\n" if i % 2 else b"*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n")
            c.expect(b"+PONG\r\n" if i % 2 else b"$2\r\nhi\r\n")


def test_three_hundred_at_once(kv):
    held = [kv.raw("resp" if i % 2 else "mc") for i in range(300)]
    for i, c in enumerate(held):
        c.send(b"INCR n\r\n" if i % 2 else b"mn\r\n")
    replies = []
    for i, c in enumerate(held):
        if i % 2:
            replies.append(c.reply())
        else:
            c.expect(b"MN\r\n")
    assert sorted(replies) == list(range(1, 151))
    for c in held:
        c.close()


@pytest.mark.descriptors(2200)
def test_connections_cost_little(start):
    """2,000 idle ones under 100 KB each, by the server's own count and by the system's."""
    count = 2000
    server = start(variant="host", KV_MAX_CONNS=count + 10)

    def rss():
        return int(server.info("memory")["used_memory_rss"])

    before = rss()
    held = []
    for _ in range(count):
        c = server.raw()
        c.send(b"SET k v\r\n")
        c.expect(b"+OK\r\n")
        held.append(c)
    assert (rss() - before) / count < 100 * 1024
    assert int(server.info("memory")["used_memory"]) / count < 100 * 1024
    for c in held:
        c.close()
    wait_for(lambda: int(server.info("clients")["connected_clients"]) == 1, "all are gone")


def test_idle_server_uses_no_cpu(start):
    """Connections that are open but silent cost no CPU time: nothing polls."""
    server = start(variant="host")
    held = [server.raw() for _ in range(50)]
    for c in held:
        assert c.ask("PING") == "PONG"

    def switches():
        total = 0
        for path in glob.glob(f"/proc/{server.proc.pid}/task/*/status"):
            with open(path, encoding="ascii") as f:
                total += sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)
        return total

    def settled():
        first = switches()
        time.sleep(0.3)
        return switches() == first

    wait_for(settled, "no thread runs while nothing is asked")
    for c in held:
        c.close()
