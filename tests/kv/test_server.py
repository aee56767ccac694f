"""The process: settings, start, end; the pool; memory; time."""
import os
import signal
import socket
import subprocess
import threading

import pytest

from kv_server import PATIENCE, Server, binary, clean_env, encode, free_ports, wait_for


@pytest.fixture(autouse=True)
def own_server_only():
    if "KV_HOST" in os.environ:
        pytest.skip("needs a server of its own; KV_HOST points elsewhere")


def attempt(*flags, **env):
    """Starts the server; returns (exit code, stdout, stderr). It must end by itself."""
    ports = free_ports(2)
    defaults = {"KV_BIND": "127.0.0.1", "KV_RESP_PORT": str(ports[0]), "KV_MC_PORT": str(ports[1])}
    env = {**clean_env(), **defaults, **env}
    done = subprocess.run([binary("host-san"), *flags], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


# ---- settings ----

BAD = [
    ("KV_SHARDS", "3", "a power of two in 1..4096"), ("KV_SHARDS", "8192", "1..4096"), ("KV_SHARDS", "", "1..4096"),
    ("KV_DISPATCH", "fork", "thread, pool"), ("KV_MAX_WORKERS", "0", "1..4096"), ("KV_MAX_WORKERS", "4097", "1..4096"),
    ("KV_MIN_WORKERS", "0", "1..4096"), ("KV_MIN_WORKERS", "-5", "1..4096"), ("KV_RESP_PORT", "65536", "0..65535"),
    ("KV_POLICY", "fifo", "noeviction"), ("KV_REHASH", "x", "incremental, stop-the-world"),
    ("KV_MAX_MEMORY", "10parsecs", "bytes, or with kb, mb, gb"), ("KV_LOCK_STATS", "2", "0..1"),
    ("KV_MAX_CONNS", "0", "1..1000000"), ("KV_BIND", "nowhere", "not an IPv4 address"),
]


@pytest.mark.parametrize("name,value,accepted", BAD)
def test_bad_setting_stops_the_start(name, value, accepted):
    code, out, err = attempt(KV_MAX_CONNS="10", **{name: value}) if name != "KV_MAX_CONNS" else attempt(**{name: value})
    assert code == 1 and out == ""
    assert len(err.splitlines()) == 1 and name in err and f"'{value}'" in err and accepted in err


def test_min_above_max():
    code, _, err = attempt(KV_DISPATCH="pool", KV_MIN_WORKERS="8", KV_MAX_WORKERS="4")
    assert code == 1 and "KV_MIN_WORKERS: '8' exceeds KV_MAX_WORKERS '4'" in err and len(err.splitlines()) == 1


def test_flags():
    assert attempt("--version")[:2] == (0, "kv 1.0.0\n")
    code, out, _ = attempt("--help")
    assert code == 0 and "--shards" in out and "KV_SHARDS" in out
    for flags, text in ((["--nosuch"], "--nosuch: no such flag"), (["--shards"], "--shards: needs a value"),
                        (["--shards", "x"], "--shards: 'x'"), (["extra"], "extra: no such flag")):
        code, _, err = attempt(*flags)
        assert code == 1 and text in err and len(err.splitlines()) == 1


def test_port_in_use():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        code, _, err = attempt(KV_RESP_PORT=str(s.getsockname()[1]))
    assert code == 1 and "cannot listen on 127.0.0.1" in err and "KV_RESP_PORT" in err


def test_unknown_variable_is_told(start):
    server = start(KV_SHARD="4")
    assert "KV_SHARD: no such setting" in server.errors()


def test_one_protocol_only(start):
    server = start(KV_MC_PORT=0)
    assert server.ready == f"kv: ready resp={server.resp} mc=0 shards=64 dispatch=thread\n"
    with pytest.raises(OSError):
        server.raw("mc")
    assert server.info("server")["memcached_port"] == "0"


@pytest.mark.parametrize("shards", [1, 2, 64, 4096])
def test_shard_counts(start, shards):
    server = start(KV_SHARDS=shards)
    with server.raw() as c:
        c.send(b"".join(encode("SET", f"k{i}", i) for i in range(5000)))
        for _ in range(5000):
            assert c.reply() == "OK"
        assert c.command("DBSIZE") == 5000
        assert sorted(c.command("KEYS", "k1?")) == [b"k1%d" % i for i in range(10)]
        seen, cursor = set(), b"0"
        while True:
            cursor, keys = c.command("SCAN", cursor, "COUNT", 500)
            seen.update(keys)
            if cursor == b"0":
                break
        assert len(seen) == 5000
        c.send(b"MULTI\r\nDBSIZE\r\nFLUSHALL\r\nDBSIZE\r\nEXEC\r\n")
        assert [c.reply() for _ in range(5)][-1] == [5000, "OK", 0]


# ---- end ----

@pytest.mark.parametrize("mode", ["thread", "pool"])
@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_orderly_end(mode, sig):
    server = Server(KV_DISPATCH=mode)
    held = [server.raw() for _ in range(5)]
    assert held[0].ask("PING") == "PONG"
    server.proc.send_signal(sig)
    assert server.proc.wait(PATIENCE) == 0
    assert server.proc.stdout.read() == b"kv: stopped\n"
    for c in held:
        assert c.expect_close() == b""
    server.stop()


def test_shutdown_command():
    server = Server()
    with server.raw() as c:
        assert c.ask("SHUTDOWN now please") == "-ERR syntax error"
        c.send(b"SHUTDOWN NOSAVE\r\n")
        assert c.expect_close() == b""
    assert server.proc.wait(PATIENCE) == 0
    server.stop()


def test_clients_that_vanish_do_not_kill_it(start):
    """Writing to closed connections raises SIGPIPE elsewhere."""
    server = start()
    with server.raw() as c:
        assert c.command("SET", "k", b"v" * 100000) == "OK"
        for _ in range(50):
            s = server.raw()
            s.send(encode("GET", "k") * 20)
            s.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            s.close()  # a reset
        assert c.ask("PING") == "PONG"


# ---- the pool ----

def test_pool_width_policy(start):
    cpus = int(start().info("server")["cpus_granted"])
    d = start(KV_DISPATCH="pool").info("dispatch")
    assert d["dispatch_mode"] == "pool"
    assert int(d["workers_max"]) == min(max(cpus * 16, 64), 1024)
    assert int(d["workers_min"]) == max(4, cpus * 4)
    assert int(d["workers_width"]) >= int(d["workers_min"])
    d = start(KV_DISPATCH="pool", KV_MIN_WORKERS=2, KV_MAX_WORKERS=3).info("dispatch")
    assert (d["workers_min"], d["workers_max"]) == ("2", "3")
    d = start(KV_DISPATCH="pool", KV_MAX_WORKERS=1).info("dispatch")
    assert (d["workers_min"], d["workers_max"], d["workers_width"]) == ("1", "1", "1")


def test_narrow_pool_queues(start):
    """Requests that wait hold their worker: with all taken, others queue, and the counters say so."""
    server = start(KV_DISPATCH="pool", KV_MIN_WORKERS=2, KV_MAX_WORKERS=2, KV_DEBUG=1)
    sleepers = [server.raw() for _ in range(2)]
    waiting = [server.raw() for _ in range(6)]
    for c in sleepers:
        c.send(b"DEBUG SLEEP 1\r\n")
    for c in waiting:
        c.send(b"PING\r\n")
    for c in sleepers:
        assert c.reply() == "OK"
    for c in waiting:
        assert c.reply() == "PONG"
    d = server.info("dispatch")
    assert d["workers_width"] == "2" and int(d["queue_peak"]) >= 6 and float(d["queue_time_max_us"]) > 0
    for c in sleepers + waiting:
        c.close()


def test_wide_pool_grows(start):
    """The same with room to grow: nobody waits for the sleepers."""
    server = start(KV_DISPATCH="pool", KV_MIN_WORKERS=1, KV_MAX_WORKERS=16, KV_DEBUG=1)
    sleepers = [server.raw() for _ in range(8)]
    for c in sleepers:
        c.send(b"DEBUG SLEEP 2\r\n")
    with server.raw() as c:
        assert c.ask("PING") == "PONG"
    for c in sleepers:
        assert c.reply() == "OK"
        c.close()
    assert int(server.info("dispatch")["workers_width"]) > 8


# ---- memory ----

# What a few connections may take beyond the limit: their first buffers cannot be refused.
SLACK = 128 << 10

def fill(c, size, most):
    """SETs until refused; returns how many were stored."""
    for i in range(most):
        reply = c.command("SET", f"key:{i}", b"v" * size)
        if reply != "OK":
            assert reply == "-OOM command not allowed when used memory > 'maxmemory'."
            return i
    raise AssertionError("never refused")


def test_noeviction(start):
    server = start(KV_MAX_MEMORY="16mb")
    with server.raw() as c, server.raw("mc") as m:
        count = fill(c, 1000, 20000)
        assert count > 10000
        m.send(b"set other 0 0 1000\r\n%s\r\n" % (b"x" * 1000))
        m.expect(b"SERVER_ERROR out of memory storing object\r\n")
        for i in range(0, count, 97):
            assert c.command("STRLEN", f"key:{i}") == 1000
        info = server.info("memory", "stats")
        assert int(info["used_memory"]) <= (16 << 20) + SLACK and int(info["stores_refused_oom"]) >= 2
        # As much as the connections may have taken beyond the limit, and a little more.
        assert c.command("DEL", *[f"key:{i}" for i in range(150)]) == 150
        assert c.command("SET", "new", b"x" * 1000) == "OK"
        assert c.ask("FLUSHALL") == "OK"
        assert int(server.info("memory")["used_memory"]) < 1 << 20


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "lru"])
def test_eviction(start, policy):
    server = start(KV_MAX_MEMORY="16mb", KV_POLICY=policy)
    with server.raw() as c:
        for i in range(30000):
            c.send(encode("SET", f"key:{i}", b"v" * 1000))
            if i % 100 == 99:
                c.send(encode("GET", "key:0"))
                replies = [c.reply() for _ in range(101)]
                assert replies[:100] == ["OK"] * 100
        info = server.info("memory", "stats")
        assert int(info["evicted_keys"]) > 10000 and int(info["used_memory"]) <= (16 << 20) + SLACK
        assert c.command("STRLEN", "key:0") == 1000  # in use all the time
        assert c.command("STRLEN", "key:29999") == 1000


def test_large_buffers_count(start):
    """A limit of 16 MB refuses a request of 20 MB, whoever sends it, and the server goes on."""
    server = start(KV_MAX_MEMORY="16mb")
    with server.raw() as c, server.raw() as other:
        try:
            c.send(encode("SET", "k", b"v" * (20 << 20)))
            c.expect_close()
        except OSError:
            pass
        assert other.command("SET", "k", "v") == "OK"
    assert server.info("stats")["closed_query_limit"] == "1"


# ---- time ----

def test_expiry(kv_own):
    with kv_own.raw() as c:
        assert c.ask("SET a 1 PX 50") == "OK"
        assert c.ask("SET b 1 PX 100000") == "OK"
        wait_for(lambda: c.ask("GET a") is None, "a expires")
        assert c.ask("GET b") == b"1"


def test_active_expiry(kv_own):
    """Keys that nobody asks for go as well."""
    with kv_own.raw() as c:
        c.send(b"".join(encode("SET", f"k{i}", i, "PX", 100) for i in range(5000)))
        for _ in range(5000):
            assert c.reply() == "OK"
        assert c.ask("SET stay 1") == "OK"
        wait_for(lambda: c.ask("DBSIZE") == 1, "all but one have expired")
        assert int(kv_own.info("stats")["expired_keys"]) == 5000


def test_delayed_flush(kv_own):
    with kv_own.raw("mc") as c:
        c.send(b"set a 0 0 1\r\nx\r\nflush_all 1\r\nget a\r\n")
        c.expect(b"STORED\r\nOK\r\nVALUE a 0 1\r\nx\r\nEND\r\n")

        def gone():
            c.send(b"mg a\r\n")
            return c.line() == b"EN"

        wait_for(gone, "the flush happens")


@pytest.fixture
def kv_own(start):
    return start()


# ---- locks and rehash ----

@pytest.mark.parametrize("rehash", ["incremental", "stop-the-world"])
def test_rehash_modes_and_lock_statistics(start, rehash):
    server = start(variant="host", KV_SHARDS=1, KV_REHASH=rehash, KV_LOCK_STATS=1)
    under_way = []

    def work(i):
        with server.raw() as c:
            for part in range(20):
                c.send(b"".join(encode("SET", f"key:{i}:{part}:{n}", n) for n in range(1000)))
                for _ in range(1000):
                    assert c.reply() == "OK"
                under_way.append(server.info("stats")["rehashing_shards"])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(PATIENCE * 2)
    info = server.info("stats", "locks", "keyspace")
    assert info["db0"].startswith("keys=80000,")
    assert int(info["rehashes"]) >= 10
    if rehash == "stop-the-world":
        assert set(under_way) == {"0"}
    assert info["lock_stats"] == "on" and int(info["lock_acquisitions"]) >= 80000
    assert int(info["lock_contended"]) >= 0
    assert 0 < int(info["lock_hold_p50_ns"]) <= int(info["lock_hold_p99_ns"]) <= int(info["lock_hold_max_ns"])
    with server.raw() as c:
        for i in range(4):
            assert c.command("GET", f"key:{i}:19:999") == b"999"


# ---- under ThreadSanitizer ----

@pytest.mark.parametrize("mode", ["thread", "pool"])
def test_no_data_race_with_clients(start, mode):
    server = start(variant="host-tsan", KV_DISPATCH=mode, KV_MAX_MEMORY="8mb", KV_POLICY="lru", KV_LOCK_STATS=1,
                   KV_IDLE_TIMEOUT=100)
    done = subprocess.run(["redis-benchmark", "-h", server.host, "-p", str(server.resp), "-t", "set,get,incr,mset", "-c",
                           "20", "-n", "4000", "-r", "10000", "-d", "500", "-P", "4", "-q"], env=clean_env(),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE * 5, check=False)
    assert done.returncode == 0, done.stdout
    with server.raw() as c, server.raw("mc") as m:
        for text in "INFO all", "CLIENT LIST", "FLUSHALL", "CONFIG RESETSTAT", "CLIENT KILL ID 999":
            c.ask(text)
        m.send(b"stats\r\nflush_all 1\r\nquit\r\n")
        m.expect_close()


def test_no_data_race_in_the_store():
    done = subprocess.run([os.path.join(os.path.dirname(binary("host-tsan")), "kv-stress")], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=PATIENCE * 10, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")
