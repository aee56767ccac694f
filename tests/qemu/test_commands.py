"""scripts/weir in the foreground."""

import os
import socket
import signal
import subprocess

from weir_guest import END_LIMIT, Ended, Guest, command, log_path, wait_until


def test_ctrl_c_shuts_down_in_order():
    words = command("--resp", "0", "--mc", "0", "--http", "0", "--smp", "2", "--log", log_path("ctrl-c"))
    proc = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        for line in proc.stderr:
            if "ready" in line:
                break
        proc.send_signal(signal.SIGINT)
        assert proc.wait(timeout=END_LIMIT) == 0
    finally:
        if proc.poll() is None:
            proc.kill()
            proc.wait()


def test_application_ends_the_guest():
    ended = Ended("hello", "--app", "hello", "--smp", "1", "--http", "off")
    assert ended.code == 0, ended.why()


def test_application_exit_code_is_seen_outside():
    ended = Ended("hello-7", "--app", "hello", "--args", "7 two words", "--smp", "1", "--http", "off")
    assert ended.code == 7, ended.why()
    assert "argv[2]=two" in ended.console, ended.why()


def test_a_migration_costs_what_is_charged():
    """20 moves at 1 ms: the time is a lower bound, so that a slow host cannot fail it."""
    ended = Ended("migration-charge", "--app", "guest-tests", "--smp", "2", "--http", "off",
                  append="test=sched_migration_back env.MIGRATION_NS=1000000 sched.migration_ns=1000000")
    assert ended.code == 0 and "1 passed, 0 failed" in ended.console, ended.why()


def test_quota_is_the_guests_grant():
    """With the words that scripts/weir makes of a host's quota of one CPU, four vCPUs count as one."""
    with Guest("quota", "--smp", "4", append="grant.quota_us=100000 grant.period_us=100000") as guest:
        assert guest.metrics()["weir_grant_cpus"] == 1
        assert guest.stop() == 0


def test_detached_guest_ends_if_nobody_waits_for_it():
    """The command that starts a guest is killed before the guest serves: nothing is left behind."""
    log = log_path("abandoned")
    words = command("--detach", "--resp", "0", "--mc", "0", "--http", "0", "--smp", "2", "--log", log)
    proc = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: emulators(log), "the emulator has started")
    proc.kill()
    proc.wait()
    wait_until(lambda: not emulators(log), "the emulator has ended")


def test_detached_guest_that_waits_for_a_debugger():
    """It is announced at once, it has not run, and stop ends it although nothing in it can shut down."""
    with Guest("paused", "--smp", "1", "--gdb", str(free_port())) as guest:
        assert guest.console() == ""
        assert guest.stop() == 0
        wait_until(lambda: not emulators(guest.log), "the emulator has ended")


def free_port():
    """A port of the loopback that nobody uses now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def emulators(log):
    """Pids of emulators whose console is this log (by the run's directory that links to it)."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        for word in words:
            if word.startswith("file,id=console,path=") and os.path.realpath(word.split("path=")[1]) == log:
                found.append(int(pid))
    return found
