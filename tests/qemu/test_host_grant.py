"""A guest inside a control group of the host, made by hand: it is told what is granted, and told again when that changes."""

import contextlib
import json
import os
import subprocess

import pytest

from weir_guest import END_LIMIT, WEIR, Guest
from weirlib import grant

PERIOD_US = 100000
MIB = 1 << 20
MEMORY = 384 * MIB


class Groups:
    """Groups of one name for CPU time and memory, of version 1 or 2, with this process inside while `with` lasts."""

    def __init__(self):
        self.name = f"weir-test-{os.getpid()}"
        self.mounts = {key: mount for key, (mount, root) in grant.mounts(grant.Files()).items() if root == "/"}
        self.version = 1 if {"cpu", "memory"} <= set(self.mounts) else 2
        self.homes = grant.own_groups(grant.Files())
        self.made = []

    def directory(self, controller):
        return os.path.join(self.mounts[controller if self.version == 1 else ""], self.name)

    def write(self, directory, file, value):
        with open(os.path.join(directory, file), "w", encoding="ascii") as out:
            out.write(str(value))

    def set_cpus(self, cpus):
        quota = int(cpus * PERIOD_US)
        if self.version == 1:
            self.write(self.directory("cpu"), "cpu.cfs_quota_us", quota)
        else:
            self.write(self.directory(""), "cpu.max", f"{quota} {PERIOD_US}")

    def __enter__(self):
        """OSError where this host does not let groups be made."""
        for controller in ("cpu", "memory") if self.version == 1 else ("",):
            directory = self.directory(controller)
            os.mkdir(directory)
            self.made.append((controller, directory))
        self.set_cpus(1)
        self.write(self.directory("memory"), "memory.limit_in_bytes" if self.version == 1 else "memory.max", MEMORY)
        for _, directory in self.made:
            self.write(directory, "cgroup.procs", os.getpid())
        return self

    def __exit__(self, *_):
        for controller, directory in self.made:
            home = self.mounts[controller] + self.homes[controller]
            with contextlib.suppress(OSError):
                self.write(home, "cgroup.procs", os.getpid())
            with contextlib.suppress(OSError):     # a guest that did not end keeps it
                os.rmdir(directory)


@pytest.fixture
def groups():
    with contextlib.ExitStack() as stack:
        made = Groups()
        stack.push(made.__exit__)
        try:
            made.__enter__()
        except (OSError, KeyError) as error:
            pytest.skip(f"no control group with CPU time and memory can be made here: {error}")
        yield made


def test_a_guest_in_a_group_of_the_host(groups):
    with Guest("host-grant", "--smp", "4", "--mem", "512M", append="http.write=1") as guest:
        assert "the host grants 1 CPUs by quota" in guest.stderr and "384 MiB of memory" in guest.stderr, guest.stderr
        told = json.loads(guest.http("/grant"))
        assert (told["cpus_seen"], told["cpus_granted"], told["cpus_active"]) == (4, 1, 1)
        assert (told["quota_us"], told["period_us"], told["memory_max"]) == (PERIOD_US, PERIOD_US, MEMORY)
        groups.set_cpus(2.5)
        proc = subprocess.run([WEIR, "grant", str(guest.pid)], capture_output=True, text=True, timeout=END_LIMIT, check=False)
        assert proc.returncode == 0, proc.stderr
        told = json.loads(proc.stdout)
        assert (told["quota_us"], told["cpus_granted"], told["cpus_active"], told["memory_max"]) == (250000, 3, 3, MEMORY)
        assert guest.ask("resp", b"PING\r\n", 7) == b"+PONG\r\n"
        assert guest.stop() == 0
