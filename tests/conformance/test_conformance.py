"""The public test suites of redis and memcached against the server, on Linux."""
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
SOURCES = os.path.join(TOP, "build", "conformance")
REDIS, MEMCACHED = os.path.join(SOURCES, "redis-7.0.15"), os.path.join(SOURCES, "memcached-1.6.18")
SERVER = os.path.join(TOP, "build", "host", "kv")
# Bound of one file of a suite in seconds.
LIMIT = 600
# Of redis' own tags: what the server has none of, and what takes long or much memory.
TAGS = "-needs:repl -needs:save -needs:pfdebug -slow -large-memory"


def lines(name):
    """The lines of a list without comments."""
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


def environment():
    return {k: v for k, v in os.environ.items() if not k.startswith("KV_")}


# ---- redis ----

def skips():
    """{unit: [pattern]}."""
    found = {}
    for line in lines("redis-skip.list"):
        unit, pattern, _ = (word.strip() for word in re.split(r"(?<!\\)\|", line))
        found.setdefault(unit, []).append(pattern.replace("\\|", "|"))
    return found


@pytest.fixture(scope="session")
def redis_tests(tmp_path_factory):
    """A copy of redis' tests whose harness does not insist on FUNCTION FLUSH before a unit."""
    copy = tmp_path_factory.mktemp("redis")
    shutil.copytree(os.path.join(REDIS, "tests"), copy / "tests")
    path = copy / "tests" / "support" / "server.tcl"
    text = path.read_text()
    assert text.count("    r function flush\n") == 1
    path.write_text(text.replace("    r function flush\n", "    catch {r function flush}\n"))
    return copy


@pytest.fixture
def server():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    process = subprocess.Popen([SERVER], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               env=dict(environment(), KV_BIND="127.0.0.1", KV_RESP_PORT=str(port), KV_MC_PORT="0", KV_DEBUG="1"))
    assert process.stdout.readline().startswith(b"kv: ready")
    yield port
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    process.stdout.close()


@pytest.mark.parametrize("unit", ["type/string", "type/incr", "expire", "multi", "keyspace", "scan", "quit", "protocol"])
def test_redis(redis_tests, server, unit, tmp_path):
    patterns = skips().get(unit, [])
    (tmp_path / "skip").write_text("".join(f"/{p}\n" for p in patterns))
    done = subprocess.run(["tclsh", "tests/test_helper.tcl", "--host", "127.0.0.1", "--port", str(server), "--singledb", "--clients",
                           "1", "--ignore-encoding", "--ignore-digest", "--tags", TAGS, "--skipfile", str(tmp_path / "skip"),
                           "--single", "unit/" + unit], capture_output=True, text=True, cwd=redis_tests, timeout=LIMIT, check=False,
                          env=environment())
    told = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    passed = re.findall(r"^\[ok\]: (.*) \(\d+ ms\)$", told, re.M)
    skipped = re.findall(r"^\[skip\]: (.*)$", told, re.M)
    assert done.returncode == 0 and passed, done.stdout[-3000:] + done.stderr[-1000:]
    for pattern in patterns:
        assert any(re.search(pattern, name) for name in skipped), f"no case of {unit} is called {pattern}"


# ---- memcached ----

@pytest.fixture(scope="session")
def memcached_tests(tmp_path_factory):
    """A copy of memcached's tests with what they start replaced."""
    copy = tmp_path_factory.mktemp("memcached")
    shutil.copytree(os.path.join(MEMCACHED, "t"), copy / "t")
    for name in ("memcached-debug", "timedrun"):
        shutil.copy(os.path.join(HERE, name), copy / name)
    shutil.copy(os.path.join(HERE, "KvAdaptor.pm"), copy / "t" / "lib" / "KvAdaptor.pm")
    return copy


@pytest.mark.parametrize("line", lines("memcached.list"), ids=lambda line: line.split()[0])
def test_memcached(memcached_tests, line):
    name, _, rest = line.partition(" ")
    numbers = rest.partition(" ")[0]
    last = int(numbers[2:]) if numbers.startswith("..") else None
    expected = set() if last else {int(n) for n in numbers.split(",") if n}
    done = subprocess.run(["perl", "-It/lib", "-MKvAdaptor", f"t/{name}.t"], capture_output=True, text=True, errors="replace",
                          cwd=memcached_tests, timeout=LIMIT, check=False, env=dict(environment(), KV_PROGRAM=SERVER))
    report = done.stdout[-2000:] + done.stderr[-3000:]
    passed = re.findall(r"^ok \d+", done.stdout, re.M)
    failed = {int(n) for n in re.findall(r"^not ok (\d+)", done.stdout, re.M)}
    plan = re.search(r"^1\.\.(\d+)", done.stdout, re.M)
    assert plan and (last or int(plan.group(1))) == len(passed) + len(failed) > 0, report
    assert failed == expected, report
