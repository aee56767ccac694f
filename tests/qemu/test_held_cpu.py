"""A virtual CPU that the host holds back: it is noticed, its threads leave, and it is tried again."""

import contextlib
import glob
import json
import os
import subprocess
import sys

import pytest

from weir_guest import Guest, wait_until

HOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hold_thread.py")
HELD, OFF_MS, ON_MS = 1, 180, 20      # a tenth is delivered, less than the quarter at which a CPU is given a rest
THREADS, PROGRAM_MS = 4, 3000000  # longer than all bounds of the test together


def thread_of_cpu(pid, cpu):
    """Thread id of a virtual CPU of the emulator."""
    for path in glob.glob(f"/proc/{pid}/task/*/comm"):
        with open(path, encoding="ascii") as file:
            if file.read().strip() == f"CPU {cpu}/TCG":
                return int(path.split("/")[-2])
    raise AssertionError(f"no thread of CPU {cpu} in {pid}")


def emulator_of(guest):
    """The emulator's pid: a child of the process that stands for the guest, or that process."""
    for path in [f"/proc/{guest.pid}/comm", *glob.glob("/proc/[0-9]*/comm")]:
        pid = path.split("/")[2]
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read()
            if b"qemu-system" in words.split(b"\0")[0] and guest.log.encode() in words or int(pid) == guest.pid and b"qemu" in words:
                return int(pid)
    raise AssertionError("no emulator")


@contextlib.contextmanager
def held_back(tid):
    with subprocess.Popen([sys.executable, HOLDER, str(tid), str(OFF_MS), str(ON_MS)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as holder:
        if holder.stdout.readline() != "held\n":
            holder.wait()
            pytest.skip(f"this host does not let a thread be held: {holder.stderr.read().strip()}")
        yield
        holder.stdin.close()
        holder.stdin = None
        holder.wait()


def delivered(guest):
    return json.loads(guest.http("/grant"))["delivered"]


def threads_on(guest, cpu):
    """The program's threads that are on a CPU."""
    threads = json.loads(guest.http("/threads?format=json"))["threads"]
    return sum(t["process"] != "kernel" and t["cpu"] == cpu and t["state"] in ("running", "runnable") for t in threads)


def test_a_cpu_that_is_held_back_loses_its_threads():
    with Guest("held-cpu", "--smp", "2", "--grant", "off", "--app", "spread", f"--args=--threads {THREADS} --time-ms {PROGRAM_MS} --list no",
               "--resp", "off", "--mc", "off", "--qemu-arg=-name", "--qemu-arg=weir,debug-threads=on",
               append="grant.delivered=1") as guest:
        wait_until(lambda: threads_on(guest, HELD), "the program uses both CPUs")
        with held_back(thread_of_cpu(emulator_of(guest), HELD)):
            def resting():
                cpus = delivered(guest)
                one = cpus[HELD]
                return cpus if one["held"] and one["rests"] and one["capacity"] == 0 else None

            cpus = wait_until(resting, "the CPU that is held back is given a rest")
            assert cpus[HELD]["share"] <= 256
            assert cpus[1 - HELD]["capacity"] > 0 and cpus[1 - HELD]["share"] > cpus[HELD]["share"]
            assert cpus[HELD]["longest_us"] >= OFF_MS * 1000 / 2
            wait_until(lambda: delivered(guest)[HELD]["held"] and threads_on(guest, HELD) == 0, "its threads have left")
        # Nobody holds it any more: after its rest it is tried, and gets threads again.
        wait_until(lambda: threads_on(guest, HELD) and not delivered(guest)[HELD]["held"], "it is tried again")
        assert guest.stop() == 0
