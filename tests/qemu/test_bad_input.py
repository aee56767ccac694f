"""Bad input: one clear line, then power-off with a code that is not zero. Nothing hangs."""

import os
import re
import socket
import struct
import subprocess

import pytest

from weir_guest import END_LIMIT, TOP, WEIR, Ended, command

# What scripts/weir hands over at most, characters.
COMMAND_LINE = 4094
# A guest that gives up before it serves has no use for ports.
OFF = ["--resp", "off", "--mc", "off", "--http", "off", "--smp", "2"]
KV = os.path.join(TOP, "build", "apps", "kv")
# Codes of scripts/weir that mean a hang or a crash rather than a refusal.
PANIC, RESET, FORCED, NOT_READY = 101, 102, 124, 125


def refused(ended, pattern):
    """The guest said why, in a line that matches, and ended itself."""
    assert ended.code not in (0, PANIC, RESET, FORCED, NOT_READY) and ended.code < 128, ended.why()
    assert re.search(pattern, ended.console, re.I), ended.why()


@pytest.mark.parametrize("append, pattern", [
    ("nosuch.key=1", r"nosuch\.key"),
    ("sched.policy=nosuch", r"(?s)nosuch.*drain:"),
    ("sched.interval_ms=0", r"sched\.interval_ms"),
    ("sched.interval_ms=abc", r"sched\.interval_ms"),
    ("http=99999", r"http"),
    ("ip=10.0.2.15/33", r"ip"),
    ("net=pigeon", r"net"),
    ("log=loud", r"log"),
])
def test_command_line(append, pattern):
    refused(Ended("bad-" + append, *OFF, append=append), pattern)


def end_of_segments(elf):
    """Where the last loaded byte of an ELF file lies in it."""
    phoff, phnum = struct.unpack_from("<Q", elf, 32)[0], struct.unpack_from("<H", elf, 56)[0]
    headers = [struct.unpack_from("<IIQQQQQQ", elf, phoff + i * 56) for i in range(phnum)]
    return max(offset + filesz for kind, _, offset, _, _, filesz, _, _ in headers if kind == 1)


def elf_variants(tmp_path):
    """Damaged applications made from a good one: {name: path}."""
    with open(KV, "rb") as file:
        good = file.read()
    phoff = struct.unpack_from("<Q", good, 32)[0]
    variants = {
        "text": b"this is no program\n",
        "empty-elf": good[:40],
        "cut-short": good[:end_of_segments(good) - 1],
        "wrong-machine": good[:18] + struct.pack("<H", 183) + good[20:],
        "32-bit": good[:4] + b"\x01" + good[5:],
        "headers-outside": good[:32] + struct.pack("<Q", 1 << 62) + good[40:],
        "segment-outside": good[:phoff + 8] + struct.pack("<Q", 1 << 61) + good[phoff + 16:],
        "entry-nowhere": good[:24] + struct.pack("<Q", 0x10) + good[32:],
    }
    paths = {}
    for name, content in variants.items():
        paths[name] = tmp_path / name
        paths[name].write_bytes(content)
    return paths


@pytest.mark.parametrize("name", ["text", "empty-elf", "cut-short", "wrong-machine", "32-bit", "headers-outside",
                                  "segment-outside", "entry-nowhere"])
def test_malformed_application(tmp_path, name):
    path = elf_variants(tmp_path)[name]
    refused(Ended(f"bad-elf-{name}", *OFF, "--app", str(path)), r"error: .*(elf|/app|application)")


def test_dynamic_application():
    refused(Ended("bad-elf-dynamic", *OFF, "--app", "/usr/bin/env"), r"static|interpreter|dynamic")


def test_no_application():
    refused(Ended("no-app", *OFF, "--no-app"), r"no application")


def test_no_network_device():
    refused(Ended("no-nic", "--net", "none", "--smp", "2"), r"network")


@pytest.mark.parametrize("mem", ["24M", "32M"])
def test_too_little_memory(mem):
    """Little memory: refused in words, or enough after all; never a crash."""
    ended = Ended(f"mem-{mem}", *OFF, "--mem", mem, "--app", "hello")
    if ended.code != 0:
        refused(ended, r"memory")


def weir(*options, env=None):
    """Exit code and standard error of scripts/weir run; it must refuse at once."""
    words = command(*options)
    proc = subprocess.run(words, capture_output=True, text=True, timeout=END_LIMIT, check=False, env=env)
    return proc.returncode, proc.stderr


@pytest.mark.parametrize("options, pattern", [
    (["--smp", "0"], "--smp 0"),
    (["--smp", "65"], "--smp 65"),
    (["--mem", "lots"], "--mem lots"),
    (["--mem", "8M"], "at least"),
    (["--mem", "16M"], "at least 21M"),
    (["--mem", "20M"], "at least 21M"),
    (["--timeout", "0"], "--timeout"),
    (["--append", "x=\udcff"], "not UTF-8"),
    (["--append", "env.A=" + "x" * COMMAND_LINE], "at most 4094"),
    (["--queues", "2"], "--net tap"),
    (["--app", "nosuchapp"], "nosuchapp"),
    (["--kernel", "/nonexistent/weir.elf"], "make"),
    (["--qemu", "/nonexistent/qemu"], "no emulator"),
    (["--net", "tap", "--tap", "nosuchtap0"], "nosuchtap0"),
    (["--netns"], "--net tap"),
])
def test_options(options, pattern):
    code, stderr = weir("--resp", "0", "--mc", "0", "--http", "0", *options)
    assert code == 2, stderr
    errors = [line for line in stderr.splitlines() if "error" in line]
    assert len(errors) == 1 and pattern in errors[0], stderr


def test_one_port_for_two_services():
    code, stderr = weir("--resp", "5000", "--mc", "5000", "--http", "0")
    assert code == 2 and "port 5000" in stderr and "--resp" in stderr and "--mc" in stderr, stderr
    assert stderr.count("\n") == 1, stderr


def test_longest_command_line():
    """Whole at the limit of scripts/weir; one that fills the kernel's buffer may have been cut, and is refused."""
    words = "net=none sched.policy=drain env.A="
    whole = Ended("cmdline-whole", *OFF, "--net", "none", "--app", "hello", append=words + "x" * (COMMAND_LINE - len(words)))
    assert whole.code == 0, whole.why()
    line = words + "x" * (COMMAND_LINE + 1 - len(words))
    cut = Ended("cmdline-cut", *OFF, "--net", "none", "--app", "hello", "--qemu-arg=-append", f"--qemu-arg={line}")
    refused(cut, r"command line: longer than 4094 characters")


@pytest.mark.parametrize("service", ["resp", "mc", "http"])
def test_port_in_use(service):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        options = {"resp": "0", "mc": "0", "http": "0", service: str(port)}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        for more in ([], ["--detach"]):
            code, stderr = weir(*words, *more)
            assert code == 2
            assert f"port {port}" in stderr and "in use" in stderr and f"--{service}" in stderr, stderr
            assert stderr.count("\n") == 1, stderr


def test_missing_package(tmp_path):
    """Without QEMU on PATH the error names the package."""
    env = dict(os.environ, PATH=str(tmp_path))
    code, stderr = weir("--resp", "0", "--mc", "0", "--http", "0", env=env)
    assert code == 2
    assert "qemu-system-x86" in stderr and stderr.count("\n") == 1, stderr


def test_unknown_subcommand():
    proc = subprocess.run([WEIR, "fly"], capture_output=True, text=True, timeout=END_LIMIT, check=False)
    assert proc.returncode == 2
    assert "fly" in proc.stderr
