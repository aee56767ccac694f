"""The parts of scripts/weir that need no guest."""

import os
import shutil
import socket
import struct
import subprocess

import pytest

from conftest import TOP
from weirlib import accel, backlog, guest, ports

PROBE_LIMIT = 120  # seconds; the emulator needs a fraction of one


@pytest.mark.parametrize("status, reset, forced, code", [
    (0, False, False, 0),          # powered off by ACPI
    (1, False, False, 0),          # debug exit 0
    (3, False, False, 1),
    ((101 << 1) | 1, False, False, 101),
    (255, False, False, 127),
    (0, True, False, 102),         # a reset is no good end
    (0, False, True, 124),
    (-9, False, False, 137),
])
def test_exit_codes(status, reset, forced, code):
    assert guest.exit_code(status, reset, forced) == code


def test_port_options():
    assert ports.parse("off") == "off"
    assert ports.parse("0") == 0
    assert ports.parse("65535") == 65535
    for bad in ("65536", "-1", "http", ""):
        with pytest.raises(ValueError):
            ports.parse(bad)


def test_forwarded_ports_are_read_from_qemu():
    text = """Hub -1 (net0):
  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ
  TCP[HOST_FORWARD]   3       127.0.0.1 46589       10.0.2.15  6379     0     0
  TCP[ESTABLISHED]   11       127.0.0.1 46589       10.0.2.15  6379     0     0
  TCP[HOST_FORWARD]   4       127.0.0.1  9100       10.0.2.15  9100     0     0
"""
    assert ports.forwarded(text, {"resp": 6379, "http": 9100}) == {"resp": 46589, "http": 9100}


def test_probe_tells_a_wrong_server_from_the_right_one():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        # Accepted by the kernel, never answered: as QEMU does for a guest that does not listen yet.
        assert not ports.answers(server.getsockname(), "resp", 0.1)


def test_kvm_probe_is_a_real_machine():
    """The probe's code runs under TCG too, where it must reach its debug exit."""
    words = accel.probe_command(shutil.which("qemu-system-x86_64"), "tcg", "max")
    with accel.probe_rom() as rom:
        proc = subprocess.run([*words, "-bios", rom.name], stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=PROBE_LIMIT, check=False)
    assert proc.returncode == accel.PROBE_STATUS, proc.stderr


def sent_again(sock):
    """Segments that the system had to send twice: tcpi_total_retrans of struct tcp_info in <linux/tcp.h>."""
    return struct.unpack_from("I", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 100)[0]


def test_backlog_of_a_child_is_widened():
    """A child listens with a backlog of 1 and never accepts; once widened, twenty connections open at once."""
    code = ("import socket, sys; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(1); "
            "print(s.fileno(), s.getsockname()[1], flush=True); sys.stdin.read()")
    with subprocess.Popen(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as child:
        fd, port = map(int, child.stdout.readline().split())
        text = f"  TCP[HOST_FORWARD]   {fd}       127.0.0.1 {port}       10.0.2.15  6379     0     0\n"
        assert backlog.listening_fds(text) == [fd]
        assert backlog.widen(child.pid, [fd])
        socks = [socket.create_connection(("127.0.0.1", port), timeout=PROBE_LIMIT) for _ in range(20)]
        for sock in socks:
            with sock:
                assert sent_again(sock) == 0, "a SYN was dropped"
        child.stdin.close()


def test_backlog_of_no_process():
    assert backlog.widen(2**22 + 1, [3]) is False


def test_old_runs_that_another_guest_removes_at_the_same_time(tmp_path, monkeypatch):
    """Guests that start together all tidy up: a run that has just gone is no error, and the youngest stay."""
    ended = guest.KEPT_RUNS + 10
    for i in range(ended):
        run = tmp_path / f"guest-{i:03}"
        run.mkdir()
        (run / "state.json").write_text('{"exit": 0}')
        os.utime(run, (i, i))
        (tmp_path / str(i)).symlink_to(run.name)
    (tmp_path / "gone").symlink_to("nowhere")
    real, looked = os.path.getmtime, []

    def others_are_at_it(path):
        looked.append(path)
        if len(looked) % 4 == 0:
            shutil.rmtree(path)
        return real(path)

    monkeypatch.setattr(guest, "RUN_DIR", str(tmp_path))
    monkeypatch.setattr(os.path, "getmtime", others_are_at_it)
    guest.forget_old_runs()
    left = sorted(path.name for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink())
    assert len(looked) == ended and len(left) == ended - ended // 4, "fewer than are kept are left: none more goes"
    assert not (tmp_path / "gone").is_symlink()
    monkeypatch.setattr(os.path, "getmtime", real)
    monkeypatch.setattr(guest, "KEPT_RUNS", 5)
    guest.forget_old_runs()
    assert sorted(path.name for path in tmp_path.iterdir() if not path.is_symlink()) == left[-5:]


def test_a_pid_that_is_given_out_again(tmp_path, monkeypatch):
    """The system wraps its pids round while old runs are kept: the newer run takes the name over."""
    monkeypatch.setattr(guest, "RUN_DIR", str(tmp_path))
    for name in ("older", "newer"):
        run = tmp_path / name
        run.mkdir()
        guest.link_pid(4711, str(run))
        assert (tmp_path / "4711").resolve() == run
    assert sorted(os.listdir(tmp_path)) == ["4711", "newer", "older"] and not os.listdir(tmp_path / "newer")


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two CPUs, one of which is not granted")
def test_affinity_is_handed_over(tmp_path):
    """Bound to one CPU, `weir run` says so and gives the emulator a quota of one CPU for its guest."""
    emulator = tmp_path / "emulator"
    emulator.write_text("#!/bin/sh\necho \"$@\" >&2\nexit 1\n")
    emulator.chmod(0o755)
    cpu = min(os.sched_getaffinity(0))
    proc = subprocess.run([os.path.join(TOP, "scripts", "weir"), "run", "--qemu", str(emulator), "--kernel", "/bin/true",
                           "--app", "/bin/true", "--accel", "tcg", "--resp", "off", "--mc", "off", "--http", "off"],
                          preexec_fn=lambda: os.sched_setaffinity(0, {cpu}), capture_output=True, text=True,
                          timeout=PROBE_LIMIT, check=False)
    assert proc.returncode == 2
    assert "1 CPUs by affinity" in proc.stderr
    assert "quota_us=100000 period_us=100000" in proc.stderr
