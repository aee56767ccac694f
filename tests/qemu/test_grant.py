"""What is granted, not what is seen: words of the grant, changes at run time, what programs are told, memory levels."""

import json
import re
import subprocess
import urllib.error

import pytest

from weir_guest import END_LIMIT, WEIR, Ended, Guest

OFF = ["--resp", "off", "--mc", "off", "--http", "off", "--smp", "4", "--grant", "off"]
# Keys of a batch, bytes of a value.
BATCH, VALUE = 200, 4000
MIB = 1 << 20


def shown(name, append):
    """What an unmodified static program sees: {what: text}."""
    ended = Ended(name, *OFF, "--app", "quota", "--args=--show", append=append)
    assert ended.code == 0, ended.why()
    seen = {}
    for line in ended.console.splitlines():
        match = re.match(r"(nproc|affinity|cpuinfo|/[a-z0-9/._-]+): (.*)", line)
        if match:
            seen.setdefault(match.group(1), match.group(2))
    return seen, ended


def test_a_program_sees_what_is_granted():
    seen, _ = shown("grant-show", "grant.cpus=1.5 grant.memory=96M grant.memory_high=64M grant.memory_low=8M")
    assert (seen["nproc"], seen["affinity"], seen["cpuinfo"]) == ("2", "2", "2")
    assert seen["/sys/devices/system/cpu/online"] == "0-1"
    assert seen["/sys/fs/cgroup/cpu.max"] == "150000 100000"
    assert seen["/sys/fs/cgroup/cpu.stat"].startswith("usage_usec ")
    assert seen["/sys/fs/cgroup/memory.max"] == str(96 * MIB)
    assert seen["/sys/fs/cgroup/memory.high"] == str(64 * MIB)
    assert seen["/sys/fs/cgroup/memory.low"] == str(8 * MIB)


def test_a_program_sees_all_if_asked():
    seen, _ = shown("grant-show-all", "grant.cpus=1 grant.show=all")
    assert (seen["nproc"], seen["affinity"], seen["cpuinfo"]) == ("4", "4", "4")
    assert seen["/sys/devices/system/cpu/online"] == "0-3"
    assert seen["/sys/fs/cgroup/cpu.max"] == "100000 100000"


@pytest.mark.parametrize("append, pattern, cpu_max", [
    ("grant.cpus=banana", r"grant\.cpus=banana is not a number of CPUs", "max 100000"),
    ("grant.cpus=1 grant.period_us=0", r"grant\.period_us=0 is not from 1000 to 1000000: 100000 is used", "100000 100000"),
    ("grant.cpus=1 grant.quota_us=50000", r"the smaller is used", "50000 100000"),
    ("grant.memory=64M grant.memory_high=65M", r"grant\.memory_high=68157440 is above grant\.memory=67108864", "max 100000"),
])
def test_bad_words_get_one_line_and_a_safe_choice(append, pattern, cpu_max):
    seen, ended = shown("grant-bad-" + append, append)
    lines = [line for line in ended.console.splitlines() if "weir: grant: " in line]
    assert len(lines) == 1 and re.search(pattern, lines[0]), ended.why()
    assert seen["/sys/fs/cgroup/cpu.max"] == cpu_max


def test_memory_below_what_the_kernel_needs():
    ended = Ended("grant-memory-tiny", *OFF, "--app", "hello", append="grant.memory=1M")
    assert ended.code not in (0, 101, 102, 124, 125), ended.why()
    assert re.search(r"memory limit of 1048576 bytes is below the \d+ bytes that the kernel needs", ended.console), ended.why()


def test_unknown_word():
    ended = Ended("grant-unknown", *OFF, "--app", "hello", append="grant.color=blue")
    assert ended.code != 0 and "unknown key grant.color" in ended.console, ended.why()


def post(guest, body):
    return json.loads(guest.http("/grant", data=body.encode()))


def test_changes_at_run_time():
    """POST /grant: parking, quota and what is shown follow; contradictions with the host's grant are answered safely."""
    with Guest("grant-run-time", "--smp", "4", "--grant", "off",
               "--qemu-arg=-fw_cfg", "--qemu-arg=name=opt/weir/grant,string=quota_us=300000 period_us=100000",
               append="http.write=1") as guest:
        grant = json.loads(guest.http("/grant"))
        assert (grant["cpus_seen"], grant["cpus_granted"], grant["cpus_active"]) == (4, 3, 3)
        assert len(grant["delivered"]) == 4
        grant = post(guest, "cpus=1")
        assert (grant["cpus_granted"], grant["cpus_active"], grant["quota_us"]) == (1, 1, 100000)
        assert guest.metrics()["weir_grant_cpus_active"] == 1
        assert [guest.metrics()[f'weir_cpu_capacity{{cpu="{cpu}"}}'] for cpu in (1, 2, 3)] == [0, 0, 0]
        assert guest.ask("resp", b"PING\r\n", 7) == b"+PONG\r\n"
        grant = post(guest, "park=0&show=all")
        assert (grant["cpus_granted"], grant["cpus_active"], grant["cpus_shown"]) == (1, 4, 4)
        grant = post(guest, "park=1&cpus=4")
        assert (grant["cpus_granted"], grant["cpus_active"], grant["complaints"]) == (3, 3, 1)
        assert guest.console().count("more than the host's 300000 us in 100000 us") == 1
        grant = post(guest, "from=host&quota_us=max")
        assert (grant["cpus_granted"], grant["cpus_active"]) == (4, 4)
        for body, code in (("cpus=abc", 400), ("cpus=1&colour=blue", 400), ("park=2", 400), ("show=some", 400), ("", 400),
                           ("memory=64K", 409)):
            with pytest.raises(urllib.error.HTTPError) as caught:
                guest.http("/grant", data=body.encode())
            assert caught.value.code == code, body
            assert caught.value.read(), "an error says why"
        assert json.loads(guest.http("/grant"))["memory_max"] == 0
        assert guest.ask("resp", b"PING\r\n", 7) == b"+PONG\r\n"
        proc = subprocess.run([WEIR, "grant", str(guest.pid)], capture_output=True, text=True, timeout=END_LIMIT, check=False)
        assert proc.returncode == 0 and json.loads(proc.stdout)["cpus_seen"] == 4, proc.stderr
        assert guest.stop() == 0


def value_of(number):
    return (b"%08d" % number) * (VALUE // 8)


def fill(guest, keys):
    """Sets keys in batches over one connection: numbers of those stored, replies to the others."""
    stored, refused = [], []
    with guest.connect("resp") as sock, sock.makefile("rb") as replies:
        for first in range(0, keys, BATCH):
            batch = range(first, first + BATCH)
            sock.sendall(b"".join(b"*3\r\n$3\r\nSET\r\n$8\r\nk%07d\r\n$%d\r\n%s\r\n" % (i, VALUE, value_of(i)) for i in batch))
            for i in batch:
                line = replies.readline()
                if line == b"+OK\r\n":
                    stored.append(i)
                else:
                    refused.append(line)
            if len(refused) >= BATCH:
                break
    return stored, refused


def memory_info(guest):
    """{name: number} of INFO memory."""
    with guest.connect("resp") as sock, sock.makefile("rb") as replies:
        sock.sendall(b"INFO memory\r\n")
        text = replies.read(int(replies.readline()[1:])).decode()
    return {name: int(value) for name, value in re.findall(r"^(\w+):(\d+)\r?$", text, re.M)}


def intact(guest, stored):
    """Are all stored values what was set?"""
    with guest.connect("resp") as sock, sock.makefile("rb") as replies:
        for first in range(0, len(stored), BATCH):
            batch = stored[first:first + BATCH]
            sock.sendall(b"".join(b"*2\r\n$3\r\nGET\r\n$8\r\nk%07d\r\n" % i for i in batch))
            for i in batch:
                assert replies.readline() == b"$%d\r\n" % VALUE, i
                assert replies.read(VALUE + 2) == value_of(i) + b"\r\n", i


def test_a_store_that_may_evict_stays_below_high():
    """The server hears of memory.high: it evicts before the kernel has to slow it down for good, and refuses nothing."""
    with Guest("grant-memory-lru", "--smp", "2", "--mem", "512M", "--grant", "off",
               append="grant.memory_high=40M grant.memory=64M env.KV_POLICY=allkeys-lru") as guest:
        stored, refused = fill(guest, 20000)
        assert not refused and len(stored) == 20000
        info = memory_info(guest)
        assert 0 < info["soft_memory"] < 40 * MIB and info["soft_evictions"] > 0 and info["refused_reservations"] == 0
        metrics = guest.metrics()
        assert sum(v for n, v in metrics.items() if n.startswith("weir_memory_used_bytes")) <= 44 * MIB
        assert metrics["weir_memory_max_events_total"] == 0
        assert guest.stop() == 0


def test_memory_levels():
    """Above high the server is slowed down and refuses nothing; at max it refuses, keeps every value, and goes on."""
    with Guest("grant-memory", "--smp", "2", "--mem", "512M", "--grant", "off",
               append="grant.memory_high=40M grant.memory=64M") as guest:
        # 40 MiB of values are above high and below max together with what the server holds itself.
        below, refused = fill(guest, 8000)
        assert not refused and len(below) == 8000
        metrics = guest.metrics()
        assert metrics["weir_memory_high_events_total"] == 0 and metrics["weir_memory_slowed_total"] == 0
        above, refused = fill(guest, 11000)
        assert not refused and len(above) == 11000
        metrics = guest.metrics()
        assert metrics["weir_memory_high_events_total"] > 0
        assert metrics["weir_memory_slowed_total"] > 0 and metrics["weir_memory_stalled_seconds_total"] > 0
        stored, refused = fill(guest, 40000)
        assert refused and all(line.startswith(b"-OOM ") for line in refused), refused[:3]
        metrics = guest.metrics()
        assert 0 < metrics["weir_memory_max_events_total"] <= metrics["weir_memory_oom_events_total"]
        assert sum(v for n, v in metrics.items() if n.startswith("weir_memory_used_bytes")) <= 64 * MIB
        intact(guest, stored)
        assert max(metrics[f'weir_memory_pressure_ratio{{seconds="{s}"}}'] for s in (10, 60, 300)) > 0
        assert re.search(r"stalled of the last 10 s: \d+\.\d\d%, 60 s: \d+\.\d\d%, 300 s: \d", guest.http("/memory"))
        assert "slowed down" in guest.http("/memory") and "max 65536 KiB" in guest.http("/memory")
        assert guest.stop() == 0
