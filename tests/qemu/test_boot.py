"""Every way to boot, on 1 to 16 vCPUs: the guest serves, and powers off when asked."""

import subprocess

import pytest

from weir_guest import END_LIMIT, WEIR, Ended, Guest


@pytest.mark.parametrize("smp", [1, 2, 4, 16])
@pytest.mark.parametrize("boot", ["direct", "uefi", "image"])
def test_boots_and_serves(boot, smp):
    with Guest(f"boot-{boot}-{smp}", "--boot", boot, "--smp", str(smp)) as guest:
        assert guest.ask("resp", b"PING\r\n", 7) == b"+PONG\r\n"
        assert guest.ask("mc", b"version\r\n", 8).startswith(b"VERSION ")
        assert guest.http("/metrics").startswith("#")
        cpus = [name for name in guest.metrics() if name.startswith("weir_cpu_idle_seconds_total{")]
        assert len(cpus) == smp, f"{len(cpus)} CPUs in /metrics, {smp} given\n{guest.console()[-2000:]}"
        assert guest.stop() == 0, guest.console()[-2000:]


def test_stop_tells_the_code_again():
    with Guest("stop-twice", "--smp", "1") as guest:
        assert guest.stop() == 0
        assert guest.stop() == 0


def test_stop_of_an_unknown_guest():
    proc = subprocess.run([WEIR, "stop", "1"], capture_output=True, text=True, timeout=END_LIMIT, check=False)
    assert proc.returncode == 2
    assert proc.stderr.count("\n") == 1
    assert "no guest with pid 1" in proc.stderr


@pytest.mark.parametrize("mem", ["128M", "4G"])
def test_serves_in(mem):
    with Guest(f"mem-{mem}", "--smp", "2", "--mem", mem) as guest:
        assert guest.ask("resp", b"PING\r\n", 7) == b"+PONG\r\n"
        assert guest.stop() == 0


def test_command_line_beside_the_loader_wins():
    """weir.cmd on the disk replaces the command line inside the image: the policy it names is in force."""
    with Guest("image-cmdline", "--boot", "image", "--smp", "2", "--policy", "legacy") as guest:
        assert "legacy" in guest.http("/sched")
        assert guest.stop() == 0


def test_application_beside_the_loader_wins():
    """weir.app on the disk replaces the application inside the image."""
    ended = Ended("image-app", "--boot", "image", "--smp", "1", "--app", "hello", "--http", "off")
    assert ended.code == 0, ended.why()
    assert "hello" in ended.console.lower(), ended.why()
