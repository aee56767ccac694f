"""Real clients with typical use."""
import os
import re
import subprocess

import pymemcache.client.base
import pymemcache.client.hash
import pytest
import redis

from kv_server import PATIENCE, clean_env


def run(words, stdin=None, timeout=PATIENCE * 5):
    done = subprocess.run(words, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                          env=clean_env(), check=False)
    text = done.stdout.decode(errors="replace")
    assert done.returncode == 0, text
    return text


def cli(kv, *words, stdin=None):
    return run(["redis-cli", "-h", kv.host, "-p", str(kv.resp), *words], stdin)


# ---- redis-py ----

@pytest.fixture
def r(kv):
    client = redis.Redis(kv.host, kv.resp, client_name="tests", decode_responses=True)
    yield client
    client.close()


def test_redis_py_strings(r):
    assert r.set("a", "1", ex=100, nx=True) is True
    assert r.set("a", "2", nx=True) is None
    assert r.set("a", "3", get=True) == "1"
    assert r.mset({"b": "x", "c": "y"}) and r.mget("a", "b", "nosuch") == ["3", "x", None]
    assert r.incr("n") == 1 and r.incrby("n", 9) == 10 and r.decr("n", 5) == 5
    assert r.incrbyfloat("f", 1.5) == 1.5
    assert r.append("b", "yz") == 3 and r.getrange("b", 1, 2) == "yz" and r.setrange("b", 1, "YZ") == 3
    assert r.getdel("b") == "xYZ" and r.getex("a", ex=50) == "3" and r.ttl("a") == 50
    assert r.client_getname() == "tests"


def test_redis_py_keys(r):
    r.mset({f"key:{i}": i for i in range(500)})
    assert r.dbsize() == 500
    assert set(r.scan_iter("key:*", count=50)) == {f"key:{i}" for i in range(500)}
    assert sorted(r.keys("key:1?")) == [f"key:1{i}" for i in range(10)]
    assert r.expire("key:1", 100) and r.ttl("key:1") == 100 and r.persist("key:1") and r.ttl("key:1") == -1
    assert r.rename("key:1", "other") and r.exists("key:1", "other") == 1
    assert r.copy("other", "copy") and r.get("copy") == "1" and r.type("copy") == "string"
    assert r.delete("other", "copy", "nosuch") == 2 and r.unlink("key:2") == 1
    assert r.object("encoding", "key:3") == "int" and r.memory_usage("key:3") > 0
    assert r.randomkey().startswith("key:")


def test_redis_py_transactions(r):
    with r.pipeline() as p:  # MULTI/EXEC
        assert p.set("a", 1).incr("a").get("a").execute() == [True, 2, "2"]
    with r.pipeline() as p:
        p.watch("a")
        r.set("a", 5)
        p.multi()
        p.incr("a")
        with pytest.raises(redis.WatchError):
            p.execute()
    assert r.transaction(lambda p: p.multi() or p.set("b", p.connection is not None and "x"), "b") == [True]
    with r.pipeline(transaction=False) as p:
        for i in range(1000):
            p.set(f"p{i}", i)
        assert all(p.execute())


def test_redis_py_server(r):
    info = r.info()
    assert info["redis_mode"] == "standalone" and info["maxmemory_policy"] == "noeviction"
    assert r.ping() and r.echo("hi") == "hi" and len(r.time()) == 2
    assert r.config_get("maxmemory") == {"maxmemory": "0"}
    assert len(r.client_list()) >= 1 and r.client_id() > 0
    assert "get" in r.command()
    with pytest.raises(redis.ResponseError, match="unknown command"):
        r.execute_command("LPUSH", "l", 1)


# ---- pymemcache ----

def test_pymemcache(kv):
    m = pymemcache.client.base.Client((kv.host, kv.mc), timeout=PATIENCE)
    assert m.set("a", b"1", expire=100, noreply=False) and m.get("a") == b"1"
    assert m.set_many({"b": b"2", "c": b"3"}) == [] and m.get_many(["a", "b", "x"]) == {"a": b"1", "b": b"2"}
    value, cas = m.gets("a")
    assert value == b"1" and m.cas("a", b"4", cas, noreply=False) and m.cas("a", b"5", cas, noreply=False) is False
    assert m.add("a", b"6", noreply=False) is False and m.replace("a", b"7", noreply=False)
    assert m.append("a", b"8", noreply=False) and m.prepend("a", b"6", noreply=False) and m.get("a") == b"678"
    assert m.incr("a", 22) == 700 and m.decr("a", 1) == 699
    assert m.touch("a", 1000, noreply=False) and m.delete("a", noreply=False)
    assert m.delete("a", noreply=False) is False
    assert m.version().startswith(b"1.6") and m.stats()[b"curr_items"] == 2
    m.set("quiet", b"x")  # noreply by default
    assert m.get("quiet") == b"x"
    assert m.flush_all(noreply=False) and m.get("b") is None
    m.quit()


def test_pymemcache_hash_client(kv):
    m = pymemcache.client.hash.HashClient([(kv.host, kv.mc)], timeout=PATIENCE)
    assert m.set_many({f"k{i}": b"v" for i in range(100)}) == []
    assert len(m.get_many([f"k{i}" for i in range(100)])) == 100


# ---- Debian's tools ----

def test_memccapable(kv):
    text = run(["memccapable", "-a", "-h", kv.host, "-p", str(kv.mc)])
    assert text.count("[pass]") == 27 and "FAIL" not in text and "All tests passed" in text


def test_redis_cli(kv):
    assert cli(kv, "set", "a", "b") == "OK\n" and cli(kv, "get", "a") == "b\n"
    assert "redis_version" in cli(kv, "info") and cli(kv, "-3", "get", "a") == "b\n"
    # Interactive: reads commands from its input; asks for COMMAND DOCS first.
    assert cli(kv, stdin=b"ping\nincr n\nincr n\n").split() == ["PONG", "1", "2"]


def test_redis_cli_pipe(kv):
    count = 30000
    data = b"".join(b"*3\r\n$3\r\nSET\r\n$%d\r\nk%d\r\n$3\r\nabc\r\n" % (len(str(i)) + 1, i) for i in range(count))
    text = cli(kv, "--pipe", stdin=data)
    assert f"errors: 0, replies: {count}" in text
    assert cli(kv, "dbsize") == f"{count}\n"


def test_redis_cli_scans(kv):
    cli(kv, "mset", *sum(([f"key:{i}", "v" * i] for i in range(1, 300)), []))
    assert len(cli(kv, "--scan", "--pattern", "key:*").split()) == 299
    text = cli(kv, "--bigkeys")
    assert re.search(r"Biggest string found '?\"?key:299", text) and "Sampled 299 keys" in text
    assert "Sampled 299 keys" in cli(kv, "--memkeys")


def test_redis_cli_stat(kv):
    done = subprocess.Popen(["redis-cli", "-h", kv.host, "-p", str(kv.resp), "--stat", "-i", "0.05"],
                            stdout=subprocess.PIPE, env=clean_env())
    lines = [done.stdout.readline().decode() for _ in range(5)]
    done.kill()
    done.wait()
    done.stdout.close()
    assert "keys" in lines[1] and len(lines[3].split()) >= 6


def test_redis_cli_latency(kv):
    done = subprocess.Popen(["redis-cli", "-h", kv.host, "-p", str(kv.resp), "--raw", "--latency", "-i", "0.2"],
                            stdout=subprocess.PIPE, env=clean_env())
    line = done.stdout.readline().decode().split()  # min max avg samples
    done.kill()
    done.wait()
    done.stdout.close()
    assert len(line) == 4 and float(line[2]) >= 0 and int(line[3]) > 0


@pytest.mark.parametrize("flags", [["-P", "16"], ["-3", "-P", "4"], ["-P", "1", "--threads", "2"]])
def test_redis_benchmark(kv, flags):
    text = run(["redis-benchmark", "-h", kv.host, "-p", str(kv.resp), "-t", "ping,set,get,incr,mset", "-c", "50", "-n",
                "5000", "-d", "100", "-r", "1000", "--csv", *flags])
    assert "rror" not in text
    for name in "PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET (10 keys)":
        assert f'"{name}"' in text


def test_binary_echo(kv):
    """What `redis-cli --pipe` ends with: an ECHO of 20 random bytes."""
    with kv.raw() as c:
        for _ in range(50):
            data = os.urandom(20)
            assert c.command("ECHO", data) == data


def test_libmemcached_tools(kv, tmp_path):
    at = f"--servers={kv.host}:{kv.mc}"
    (tmp_path / "blob").write_bytes(b"content\r\n\0")
    run(["memccp", at, str(tmp_path / "blob")])
    assert run(["memccat", at, "blob"]).startswith("content")
    assert "curr_items: 1" in run(["memcstat", at])
    run(["memcrm", at, "blob"])
    run(["memcflush", at])
