"""The kernel's HTTP port: pages, formats, what it refuses."""

import json
import os
import random
import re
import socket
import subprocess
import threading
import urllib.error

import pytest

from weir_guest import END_LIMIT, REPLY_LIMIT, TOP, WEIR

GUEST_APPEND = "http.write=1"
SWITCHES = 300
REPLAY = os.path.join(TOP, "build", "weir-replay")
SAMPLE = re.compile(r'^[a-zA-Z_:][a-zA-Z0-9_:]*(\{[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\.)*"'
                    r'(,[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\.)*")*\})? [-+]?([0-9.]+(e[-+]?[0-9]+)?|NaN|Inf)$')


def test_metrics_are_prometheus_text(guest):
    """Each sample is well formed, of a declared type, and given once."""
    types, seen = {}, set()
    for line in guest.http("/metrics").splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in ("counter", "gauge", "histogram", "summary", "untyped"), line
            assert name not in types, f"declared twice: {line}"
            types[name] = kind
        elif not line.startswith("#"):
            assert SAMPLE.match(line), line
            key = line.rsplit(" ", 1)[0]
            assert key not in seen, f"given twice: {line}"
            seen.add(key)
            assert key.split("{")[0] in types, f"no type: {line}"
    assert len(seen) > 50


def test_counters_only_rise(guest):
    before = guest.metrics()
    guest.ask("resp", b"PING\r\n", 7)
    after = guest.metrics()
    for name, value in before.items():
        if name.split("{")[0].endswith("_total"):
            assert after[name] >= value, name
    assert sum(v for n, v in after.items() if n.startswith("weir_net_rx_packets_total")) > \
        sum(v for n, v in before.items() if n.startswith("weir_net_rx_packets_total"))


def test_sched_switches_policy(guest):
    first = json.loads(guest.http("/sched"))["policy"]
    for policy in ("legacy", "none", first):
        guest.http("/sched", data=f"policy={policy}".encode())
        assert json.loads(guest.http("/sched"))["policy"] == policy


LOAD_CONNECTIONS = 24
LOAD_BATCH = 200
RECORDINGS = 8  # of one second each, until one has every kind of call


def load(guest, done):
    """Keeps connections busy, several at a time: batches of requests on each, answers read later."""
    sockets = [guest.connect("resp") for _ in range(LOAD_CONNECTIONS)]
    try:
        while not done.is_set():
            for sock in sockets:
                sock.sendall(b"PING\r\n" * LOAD_BATCH)
            for sock in sockets:
                left = 7 * LOAD_BATCH
                while left:
                    part = sock.recv(left)
                    if not part:
                        return  # the guest has ended: the test's own questions will tell
                    left -= len(part)
    finally:
        for sock in sockets:
            sock.close()


def test_policy_is_switched_under_load(guest):
    """A CPU that has just seen a policy with a function must not call it in one without."""
    done, names = threading.Event(), random.Random(1)
    clients = [threading.Thread(target=load, args=(guest, done)) for _ in range(2)]
    for client in clients:
        client.start()
    for _ in range(SWITCHES):
        name = names.choice(["none", "flow", "flow"])
        assert json.loads(guest.http("/sched", data=b"policy=" + name.encode()))["policy"] == name
    done.set()
    for client in clients:
        client.join()
    assert guest.ask("resp", b"PING\r\n", 7) == b"+PONG\r\n"
    assert json.loads(guest.http("/sched", data=b"policy=drain"))["policy"] == "drain"


@pytest.mark.parametrize("policy, wanted", [
    ("drain", {"balance"}),
    ("flow", {"place_wake", "idle_pull"}),
])
def test_recorded_policy_calls_replay(guest, tmp_path, policy, wanted):
    """What the policy answered under load is what the same policy answers on this host, given the same view."""
    before = json.loads(guest.http("/sched"))["policy"]
    guest.http("/sched", data=f"policy={policy}".encode())
    done = threading.Event()
    client = threading.Thread(target=load, args=(guest, done))
    client.start()
    seen = {}
    try:
        for i in range(RECORDINGS):
            file = tmp_path / f"{policy}{i}.plans"
            file.write_bytes(guest.http_bytes("/policy-record?seconds=1&kb=4096"))
            ended = subprocess.run([REPLAY, file], capture_output=True, text=True, timeout=END_LIMIT, check=False)
            assert ended.returncode == 0, ended.stdout + ended.stderr
            assert ": 0 differ" in ended.stdout, ended.stdout
            for kind, count in re.findall(r"(\w+) (\d+)[,: ]", ended.stdout.split(": ", 1)[1]):
                seen[kind] = seen.get(kind, 0) + int(count)
            if all(seen[kind] for kind in wanted):
                break
    finally:
        done.set()
        client.join(END_LIMIT)
        guest.http("/sched", data=f"policy={before}".encode())
    assert all(seen[kind] for kind in wanted), seen


@pytest.mark.parametrize("query", ["seconds=0", "seconds=9999", "kb=1", "kb=99999999", "kb=x", "color=blue"])
def test_policy_record_refuses(guest, query):
    with pytest.raises(urllib.error.HTTPError) as caught:
        guest.http(f"/policy-record?{query}")
    assert caught.value.code == 400 and caught.value.read()


def test_threads_have_states_and_stacks(guest):
    text = guest.http("/threads")
    assert "state=" in text and "kv-accept" in text
    assert re.search(r"#0 0x[0-9a-f]+ \w+\+0x", text)


@pytest.mark.parametrize("path, data, code", [
    ("/nosuchpage", None, 404),
    ("/metrics", b"a=b", 405),
    ("/sched", b"policy=nosuch", 400),
    ("/sched", b"interval_ms=0", 400),
    ("/sched", b"color=blue", 400),
    ("/sched", b"policy=drain&policy=flow", 400),
    ("/grant", b"cpus=1&cpus=2", 400),
])
def test_refused(guest, path, data, code):
    with pytest.raises(urllib.error.HTTPError) as caught:
        guest.http(path, data=data)
    assert caught.value.code == code
    assert caught.value.read(), "an error says why"


@pytest.mark.parametrize("request_bytes", [
    b"\x00\x01\x02\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10000 + b"\r\n",
    b"POST /sched HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST /sched HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
])
def test_garbage(guest, request_bytes):
    """An error answer or a closed connection; the port serves on."""
    with guest.connect("http") as sock:
        try:
            sock.sendall(request_bytes)
            answer = sock.recv(65536)
        except (ConnectionResetError, BrokenPipeError):
            answer = b""
    assert answer == b"" or re.match(rb"HTTP/1\.[01] (4|5)\d\d ", answer), answer[:100]
    assert guest.http("/metrics")


def test_a_slow_client_does_not_hold_the_others(guest):
    with socket.create_connection((guest.host, guest.info["http"]), timeout=REPLY_LIMIT) as slow:
        slow.sendall(b"GET /metr")
        assert guest.http("/metrics")


def test_top(guest):
    proc = subprocess.run([WEIR, "top", "--http", str(guest.info["http"]), "--count", "1", "--interval", "0.2"],
                          capture_output=True, text=True, timeout=END_LIMIT, check=False)
    assert proc.returncode == 0, proc.stderr
    rows = [line for line in proc.stdout.splitlines() if re.match(r" *\d+ \[", line)]
    assert len(rows) == 4, proc.stdout


def test_many_at_once_are_answered_or_refused(guest):
    """Far more clients than are served at once: none is left without a word."""
    socks = [guest.connect("http") for _ in range(300)]
    try:
        for sock in socks:
            sock.sendall(b"GET /grant HTTP/1.0\r\n\r\n")
        answers = [sock.recv(12) for sock in socks]
    finally:
        for sock in socks:
            sock.close()
    assert set(answers) <= {b"HTTP/1.1 200", b"HTTP/1.1 503"}, set(answers)
    assert b"HTTP/1.1 200" in answers
    assert guest.metrics()["weir_net_syn_dropped_backlog_total{net=\"0\",queue=\"0\"}"] == 0
