"""Real clients against a guest: the everyday ones, as they come."""

import os
import re
import shutil
import subprocess

import pymemcache.client.base as pymemcache
import pytest
import redis

from weir_guest import REPLY_LIMIT, TOP

# Bound of one client program in seconds; the guest is emulated.
CLIENT_LIMIT = 300
SHORT_CONNECTIONS = 5000
AT_ONCE = 300
REDIS_COMMANDS = "ping,set,get,incr,mset"
BENCH_CLIENTS, BENCH_REQUESTS, BENCH_PIPELINE = 50, 100000, 16


def run(*words, data=None):
    """Standard output of a client program that must succeed."""
    if shutil.which(words[0]) is None:
        pytest.fail(f"{words[0]} is missing: run scripts/deps")
    proc = subprocess.run(words, capture_output=True, text=True, input=data, timeout=CLIENT_LIMIT, check=False)
    assert proc.returncode == 0, f"{words}: {proc.stdout}\n{proc.stderr}"
    return proc.stdout


def test_redis_cli(guest):
    base = ["redis-cli", "-h", guest.host, "-p", str(guest.info["resp"])]
    assert run(*base, "ping") == "PONG\n"
    assert run(*base, "set", "cli", "1") == "OK\n"
    assert run(*base, "incr", "cli") == "2\n"
    assert "cli" in run(*base, "--scan").split()
    assert "redis_version" in run(*base, "info")


def test_redis_cli_pipe(guest):
    commands = "".join(f"SET pipe:{i} {i}\r\n" for i in range(1000))
    output = run("redis-cli", "-h", guest.host, "-p", str(guest.info["resp"]), "--pipe", data=commands)
    assert "errors: 0, replies: 1000" in output, output


def test_redis_benchmark(guest):
    output = run("redis-benchmark", "-h", guest.host, "-p", str(guest.info["resp"]), "-t", REDIS_COMMANDS, "-q",
                 "-c", str(BENCH_CLIENTS), "-n", str(BENCH_REQUESTS), "-P", str(BENCH_PIPELINE))
    for name in ("PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET"):
        assert re.search(name + r".*requests per second", output), output
    assert "error" not in output.lower(), output


def test_python_redis(guest):
    client = redis.Redis(host=guest.host, port=guest.info["resp"], socket_timeout=REPLY_LIMIT)
    value = bytes(range(256)) * 40
    assert client.set("python", value)
    assert client.get("python") == value
    assert client.mset({f"m{i}": str(i) for i in range(100)})
    assert client.mget([f"m{i}" for i in range(100)]) == [str(i).encode() for i in range(100)]
    with client.pipeline(transaction=False) as pipe:
        for i in range(500):
            pipe.incrby("sum", i)
        assert pipe.execute()[-1] == sum(range(500))
    assert client.delete("python") == 1
    assert client.get("python") is None
    client.close()


def test_python_memcached(guest):
    client = pymemcache.Client((guest.host, guest.info["mc"]), timeout=REPLY_LIMIT)
    value = bytes(range(256)) * 40
    assert client.set("mc", value, noreply=False)
    assert client.get("mc") == value
    assert client.set("n", b"41", noreply=False)
    assert client.incr("n", 1) == 42
    _, cas = client.gets("mc")
    assert client.cas("mc", b"new", cas)
    assert client.cas("mc", b"late", cas) is False
    assert client.get_many(["mc", "n", "none"]) == {"mc": b"new", "n": b"42"}
    assert client.delete("mc", noreply=False)
    client.close()


def test_both_protocols_see_one_store(guest):
    client = pymemcache.Client((guest.host, guest.info["mc"]), timeout=REPLY_LIMIT)
    client.set("shared", b"from memcached", noreply=False)
    assert run("redis-cli", "-h", guest.host, "-p", str(guest.info["resp"]), "get", "shared") == "from memcached\n"
    client.close()


def test_memccapable(guest):
    output = run("memccapable", "-a", "-h", guest.host, "-p", str(guest.info["mc"]))
    assert "FAIL" not in output, output
    assert len(re.findall(r"\[pass\]", output)) >= 20, output


def test_short_connections(guest):
    for _ in range(SHORT_CONNECTIONS):
        assert guest.ask("resp", b"PING\r\n", 7) == b"+PONG\r\n"


def test_many_at_once(guest):
    socks = []
    try:
        for i in range(AT_ONCE):
            sock = guest.connect("resp")
            sock.sendall(b"SET at:%d %d\r\n" % (i, i))
            socks.append(sock)
        for sock in socks:
            assert sock.recv(5) == b"+OK\r\n"
        # All are still open: each answers again.
        for i, sock in enumerate(socks):
            sock.sendall(b"GET at:%d\r\n" % i)
        for i, sock in enumerate(socks):
            expected = b"$%d\r\n%d\r\n" % (len(str(i)), i)
            assert read_exactly(sock, len(expected)) == expected
    finally:
        for sock in socks:
            sock.close()


def read_exactly(sock, length):
    data = b""
    while len(data) < length:
        part = sock.recv(length - len(data))
        if not part:
            break
        data += part
    return data


def test_unknown_command(guest):
    assert guest.ask("resp", b"NOSUCHCOMMAND\r\n", 4).startswith(b"-ERR")


def test_kv_suite(guest):
    """The server's own suite (tests/kv), pointed at the guest."""
    folder = os.path.join(TOP, "tests", "kv")
    env = dict(os.environ, KV_HOST=guest.host, KV_RESP_PORT=str(guest.info["resp"]),
               KV_MC_PORT=str(guest.info["mc"]), PYTHONDONTWRITEBYTECODE="1")
    proc = subprocess.run(["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", folder],
                          capture_output=True, text=True, env=env, cwd=TOP, timeout=4 * CLIENT_LIMIT, check=False)
    assert proc.returncode == 0, proc.stdout[-6000:] + proc.stderr[-2000:]


def test_http_is_read_only_unless_asked(guest):
    answer = guest.ask("http", b"POST /sched HTTP/1.1\r\nContent-Length: 11\r\n\r\npolicy=none", 12)
    assert answer == b"HTTP/1.1 403"
