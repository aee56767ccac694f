"""The pages that record, against one guest with the key-value server under write load: 1 shard, lock statistics on."""

import http.client
import json
import os
import re
import socket
import subprocess
import urllib.error

import pytest

import chrome_trace
import prometheus
from weirlib import placement
from weir_guest import REPLY_LIMIT, TOP, wait_until

SIM = os.path.join(TOP, "build", "sim", "weir-sim")
CPUS = 4
GUEST_OPTIONS = ["--smp", str(CPUS)]
GUEST_APPEND = "env.KV_SHARDS=1 env.KV_LOCK_STATS=1"
# A recording of a loaded guest, and its text, take this long at most (seconds, host time).
PAGE_LIMIT = 240
FOLDED = re.compile(r"^\S+/\S+(;\S+)+ [1-9][0-9]*$")


def fetch(guest, path):
    """(status, body) of a page, however long it takes within the limit."""
    connection = http.client.HTTPConnection(guest.host, guest.info["http"], timeout=PAGE_LIMIT)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def page(guest, path):
    status, body = fetch(guest, path)
    assert status == 200, body[:500]
    return body


def stacks(text):
    """{(frame, frame, ...): value} of folded stacks, each line checked."""
    found = {}
    for line in text.splitlines():
        if line.startswith("# "):
            continue
        assert FOLDED.match(line), line
        stack, _, value = line.rpartition(" ")
        key = tuple(stack.split(";"))
        assert key not in found, f"twice: {line}"
        found[key] = int(value)
    return found


# ---- trace ----

def test_trace(guest, load):
    wait_until(lambda: load[0] > 20, "requests")
    trace = json.loads(page(guest, "/trace?seconds=0.3"))
    arrows = chrome_trace.check(trace, CPUS)
    assert arrows > 0
    about = trace["otherData"]
    assert about["recorded"] >= about["exported"] > 0 and about["policy"] == "drain"
    names = {e["name"] for e in trace["traceEvents"]}
    assert {"running", "runnable", "blocked: socket", "idle", "kv-conn", "receive", "send", "wake"} <= names, sorted(names)
    assert not any(name.startswith("thread ") for name in names)


def test_trace_replays_in_the_simulator(guest, load, tmp_path):
    """weir-sim --workload trace: takes a guest's own trace; the same threads run there, about as much."""
    wait_until(lambda: load[0] > 20, "requests")
    path, table = tmp_path / "trace.json", tmp_path / "points.json"
    path.write_text(page(guest, "/trace?seconds=0.3"))
    runs = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X" and "thread" in e.get("args", {})]
    span = max(e["ts"] + e["dur"] for e in runs) - min(e["ts"] for e in runs)
    busy = sum(e["dur"] for e in runs) / (CPUS * span)
    done = subprocess.run([SIM, "--workload", f"trace:{path}", "--cpus", str(CPUS), "--policy", "drain,flow", "--json", str(table)],
                          capture_output=True, text=True, timeout=PAGE_LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    points = {p["policy"]: p for p in json.loads(table.read_text())["points"]}
    assert {"ideal", "drain", "flow"} <= set(points)
    assert points["flow"]["conns"] == len({e["args"]["thread"] for e in runs})
    figures = placement.read(path)
    assert figures["cpus"] == CPUS and figures["wakeups"] > 0 and 0 <= figures["idle_overloaded_share"] <= 1
    assert figures["runs_per_second"] * span / 1e6 == pytest.approx(len(runs), rel=0.5)
    # What a thread waited for a CPU in the guest it need not wait there, so that it may come round more often.
    assert busy / 2 < 1 - points["ideal"]["idle_share"] < 2 * busy + 0.05


def test_trace_by_category(guest, load):
    wait_until(lambda: load[0] > 20, "requests")
    trace = json.loads(page(guest, "/trace?seconds=0.1&cat=net,ipi"))
    chrome_trace.check_shape(trace)
    names = {e["name"] for e in trace["traceEvents"] if e["ph"] not in "MsfC"}
    assert "receive" in names and names <= {"receive", "send", "IPI", "IPI: network", "interrupt"}, names
    assert trace["otherData"]["categories"] == "ipi,net"


@pytest.mark.parametrize("full", ["stop", "overwrite"])
def test_trace_that_overflows_stays_whole(guest, load, full):
    """However short the rings, what is exported is consistent, and what is not is counted."""
    wait_until(lambda: load[0] > 20, "requests")
    trace = json.loads(page(guest, f"/trace?seconds=1&full={full}"))
    chrome_trace.check(trace, CPUS)
    about = trace["otherData"]
    assert about["to_ns"] > about["from_ns"]
    assert about["lost"] >= 0 and about["exported"] <= about["recorded"]


# ---- profiles ----

def test_oncpu_profile(guest, load):
    wait_until(lambda: load[0] > 20, "requests")
    found = stacks(page(guest, "/profile?seconds=1&hz=500"))
    deep = [s for s in found if s[0].endswith("/kv-conn")]
    assert deep, list(found)[:5]
    frames = {frame for stack in deep for frame in stack}
    assert "conn_batch" in frames, frames                      # the application's own
    assert "upcall_syscall_[k]" in frames, frames              # the kernel's
    assert any(s[0] == "kernel/idle" for s in found) or sum(found.values()) > 0
    busy = stacks(page(guest, "/profile?seconds=0.3&idle=0"))
    assert not any(s[0] == "kernel/idle" for s in busy)


def test_offcpu_profile_names_cause_and_waker(guest, load):
    wait_until(lambda: load[0] > 20, "requests")
    found = stacks(page(guest, "/profile?seconds=1&mode=offcpu"))
    causes = {re.sub(r"_0x[0-9a-f]+", "", stack[-2]) for stack in found}
    assert "[socket]" in causes and "[poll]" in causes, causes
    assert all(re.match(r"\[(by_.+|not_over)\]$", stack[-1]) for stack in found)
    accept = [s for s in found if s[0].endswith("/kv-accept")]
    assert any("accept_loop" in s for s in accept), accept
    only = stacks(page(guest, "/profile?seconds=0.3&mode=offcpu&wait=poll"))
    assert only and all(stack[-2] == "[poll]" for stack in only), list(only)


def test_one_shard_is_found(guest, load):
    """REQUIREMENTS section 4: the off-CPU profile, the futex call sites and the lock's hold time all point at the index."""
    wait_until(lambda: load[0] > 50, "requests")

    def seen():
        found = stacks(page(guest, "/profile?seconds=1&mode=offcpu&wait=futex"))
        return any("lockstat_lock" in stack and "process" in stack for stack in found)
    wait_until(seen, "a wait for the shard's mutex in the off-CPU profile")

    def site():
        return any("slept" in line and "lockstat_lock" in line for line in page(guest, "/futex?seconds=1").splitlines())
    wait_until(site, "a call site that waits for the shard's mutex")
    rows = json.loads(page(guest, "/locks?seconds=0.2&format=json"))["locks"]
    shard = [row for row in rows if row["lock"] == "shard*"]
    assert len(shard) == 1 and shard[0]["acquired"] >= 50 and shard[0]["contended"] > 0, shard
    hold = shard[0]["hold_ns"]
    assert 0 < hold["p50"] <= hold["p99"] <= hold["max"] <= hold["sum"]


def test_locks_of_the_kernel(guest, load):
    wait_until(lambda: load[0] > 20, "requests")
    rows = {row["lock"]: row for row in json.loads(page(guest, "/locks?seconds=0.5&format=json"))["locks"]
            if row["owner"] == "kernel"}
    assert rows["runq"]["acquired"] > 0 and rows["net_instance"]["acquired"] > 0
    for row in rows.values():
        for kind in ("wait_ns", "hold_ns"):
            assert row[kind]["p50"] <= row[kind]["p99"] <= row[kind]["max"], row
    text = page(guest, "/locks?seconds=0.1")
    assert re.search(r"^kernel +runq ", text, re.M) and text.startswith("owner")


# ---- who is where ----

def test_placement(guest, load):
    wait_until(lambda: load[0] > 20, "requests")
    found = json.loads(page(guest, "/placement?seconds=0.5&period_us=5000&format=json"))
    assert found["cpus"] == CPUS and len(found["samples"]) == 101
    times = [sample["us"] for sample in found["samples"]]
    assert times == sorted(times)
    known = {thread["id"] for thread in found["threads"]}
    for sample in found["samples"]:
        assert len(sample["run"]) == len(sample["queued"]) == CPUS
        running = [t for t in sample["run"] if t]
        assert len(running) == len(set(running)) and set(running) <= known, sample
    assert {t["name"] for t in found["threads"]} >= {"kv-conn"}
    summary = found["summary"]
    assert 1 <= summary["cpus_used"] <= CPUS
    assert 0 <= summary["idle_overloaded_seconds"] <= 1 and set(summary["rejected"]) >= {"gone", "affinity"}
    text = page(guest, "/placement?seconds=0.2")
    assert len(re.findall(r"^cpu +\d+ \|.*\| busy ", text, re.M)) == CPUS


def test_threads(guest, load):
    wait_until(lambda: load[0] > 5, "requests")

    def with_idle_acceptor():
        """The dump, once the load's connections have all been accepted."""
        dump = json.loads(page(guest, "/threads?format=json"))
        return dump if any(t["name"] == "kv-accept" and t["state"] == "blocked" for t in dump["threads"]) else None

    found = wait_until(with_idle_acceptor, "the thread that accepts waits")
    by_name = {t["name"]: t for t in found["threads"]}
    assert found["deadlocks"] == []
    assert {"main", "worker", "init", "kv-accept", "kv-maint"} <= set(by_name)
    assert len({t["id"] for t in found["threads"]}) == len(found["threads"])
    accept = by_name["kv-accept"]
    assert accept["state"] == "blocked" and accept["waits_for"]["kind"] == "socket" and accept["affinity"] == f"0-{CPUS - 1}"
    functions = [frame["function"] for frame in accept["stack"]]
    assert functions.index("sys_accept4") < functions.index("accept_loop"), functions
    text = page(guest, "/threads")
    assert re.search(r'^thread \d+ "kv-accept" .* waits-for=socket:0x[0-9a-f]+ ', text, re.M)


def test_metrics_pass_a_strict_parser(guest, load):
    wait_until(lambda: load[0] > 5, "requests")
    samples = prometheus.parse(page(guest, "/metrics"))
    assert len(samples) > 100
    assert samples["weir_switches_total", (("cpu", "0"),)] > 0


# ---- what goes wrong ----

@pytest.mark.parametrize("path, code, words", [
    ("/trace?seconds=0", 400, "seconds=0.001..60"),
    ("/trace?seconds=61", 400, "seconds=0.001..60"),
    ("/trace?cat=cpu", 400, "cat=sched,ipi"),
    ("/trace?full=never", 400, "full=stop|overwrite"),
    ("/profile?mode=both", 400, "mode=oncpu|offcpu"),
    ("/profile?hz=0", 400, "hz=1..10000"),
    ("/profile?hz=999999", 400, "hz=1..10000"),
    ("/profile?wait=lunch", 400, "wait=none,futex"),
    ("/profile?colour=red", 400, "no such parameter"),
    ("/placement?seconds=60&period_us=100", 400, "at most"),
    ("/placement?format=xml", 400, "format=text|json"),
    ("/threads?format=", 400, "format=text|json"),
    ("/locks?seconds=-1", 400, "seconds=0.001..60"),
    ("/futex?seconds=x", 400, "seconds=0.001..60"),
    ("/metrics?x=1", 400, "no parameter"),
    ("/tracing", 404, "/trace "),
])
def test_refused(guest, path, code, words):
    status, body = fetch(guest, path)
    assert status == code and words in body and len(body) < 4000, body


def test_two_profiles_at_once(guest):
    """The second is refused at once and told why; the first is not disturbed."""
    first = http.client.HTTPConnection(guest.host, guest.info["http"], timeout=PAGE_LIMIT)
    first.request("GET", "/profile?seconds=3&mode=offcpu")
    answer = first.getresponse()  # the head comes before the recording
    assert answer.status == 200
    for path in ("/profile?seconds=0.001", "/futex?seconds=0.001"):
        status, body = fetch(guest, path)
        assert status == 409 and "being recorded" in body, body
    assert stacks(answer.read().decode())
    first.close()
    wait_until(lambda: fetch(guest, "/profile?seconds=0.001")[0] == 200, "the profile is free again")


def test_a_reader_that_goes_away_frees_the_trace(guest, load):
    """Neither a slow reader nor a lost one holds the recorder for ever, nor the other pages."""
    wait_until(lambda: load[0] > 20, "requests")
    slow = socket.create_connection((guest.host, guest.info["http"]), timeout=REPLY_LIMIT)
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.sendall(b"GET /trace?seconds=0.5 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert page(guest, "/metrics")
    slow.close()
    wait_until(lambda: fetch(guest, "/trace?seconds=0.01")[0] == 200, "the trace is free again")


def test_protocol_versions(guest):
    """A body in chunks for HTTP/1.1, up to the end of the connection for 1.0, none for HEAD; then all is free again."""
    raw = guest.ask("http", b"GET /threads HTTP/1.0\r\n\r\n", 1 << 22)
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"chunked" not in head and body.startswith(b"%d threads" % int(body.split()[0]))
    raw = guest.ask("http", b"GET /threads HTTP/1.1\r\nHost: x\r\n\r\n", 1 << 22)
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head and body.endswith(b"0\r\n\r\n")
    raw = guest.ask("http", b"HEAD /profile?seconds=0.01 HTTP/1.1\r\nHost: x\r\n\r\n", 1 << 22)
    assert raw.startswith(b"HTTP/1.1 200 ") and raw.endswith(b"\r\n\r\n")
    assert fetch(guest, "/profile?seconds=0.01")[0] == 200


def test_posts_are_refused(guest):
    with pytest.raises(urllib.error.HTTPError) as caught:
        guest.http("/trace", data=b"seconds=1")
    assert caught.value.code == 405
