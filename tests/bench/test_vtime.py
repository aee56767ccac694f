"""The virtual-time plugin on the real emulator: its self-test, and what it refuses."""

import os
import subprocess

import emulator
import pytest
import selftest

pytestmark = pytest.mark.skipif(not os.path.exists(emulator.QEMU) or not os.path.exists(emulator.PLUGIN),
                                reason="no emulator with time control: make vtime")


def boot(options="", accel="tcg,thread=multi", extra=()):
    """Boots the self-test guest for a moment; (status, standard error)."""
    words = [emulator.QEMU, "-machine", "q35,hpet=on", "-cpu", "qemu64", "-accel", accel, "-smp", "2", "-m", "64",
             "-display", "none", "-nodefaults", "-serial", "null", "-no-reboot", "-rtc", "clock=vm",
             "-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-plugin", emulator.PLUGIN + options,
             "-kernel", selftest.GUEST, "-append", "n=2 spin=1000 pings=10", *extra]
    proc = subprocess.run(words, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)
    return proc.returncode, proc.stderr


def test_time_does_not_depend_on_the_number_of_busy_cpus():
    result = selftest.selftest(cpus=16, spin=1000000)
    assert result["good"], result["checks"]


def test_time_follows_the_charge_per_instruction():
    result = selftest.selftest(vtime=emulator.Vtime(ns1000=2000), cpus=2, spin=500000)
    assert result["checks"]["charge"]["good"], result["checks"]


def test_ipis_cost_what_they_are_charged():
    free = selftest.measure(2, 2, 1000, emulator.QEMU, emulator.Vtime(), gap=5000)
    dear = selftest.measure(2, 2, 1000, emulator.QEMU, emulator.Vtime(ipi_wake=3000), gap=5000)
    sent = selftest.measure(2, 2, 1000, emulator.QEMU, emulator.Vtime(ipi_send=3000), gap=5000)
    for charged in (dear, sent):
        extra = charged["ping"]["mean_ns"] - free["ping"]["mean_ns"]
        assert extra == pytest.approx(6000, rel=0.05)       # two a round trip


@pytest.mark.parametrize("mark", [0, 1])
def test_the_marker_ends_the_coarse_window(mark):
    machine = emulator.Machine(kernel=selftest.GUEST, smp=4, append=f"n=4 spin=1000000 pings=1 mark={mark}",
                               vtime=emulator.Vtime(coarse=100000000))
    outcome = emulator.run(machine, 120)
    # 2 ms of four CPUs in steps of at most 500 ns; in one coarse window nobody ever waits.
    assert outcome.status == selftest.EXIT_GOOD
    assert (outcome.vtime["waits"] > 1000) == bool(mark), outcome.vtime


@pytest.mark.parametrize("accel, says", [
    ("tcg,thread=single", "not multi-threaded"),
])
def test_an_accelerator_that_does_not_fit_is_refused(accel, says):
    status, err = boot(accel=accel)
    assert status != 0 and "vtime: refused" in err and says in err


def test_icount_is_refused():
    status, err = boot(accel="tcg", extra=("-icount", "shift=0"))
    assert status != 0 and "vtime: refused" in err


@pytest.mark.parametrize("options, says", [
    (",window=1", "outside 100"), (",quantum=x", "outside"), (",speed=3", "unknown option speed"),
    (",idlerate=0", "above 0"), (",window", "window"),
])
def test_bad_options_are_refused(options, says):
    status, err = boot(options)
    assert status != 0 and says in err


def test_the_limit_ends_a_guest_that_never_ends():
    status, err = boot(",limit=1000000")
    assert status == 3 and "limit of 0.001 virtual seconds" in err


def test_the_old_emulator_is_refused_by_version():
    try:
        have = emulator.version("/usr/bin/qemu-system-x86_64")
    except emulator.EmulatorError:
        pytest.skip("no distribution emulator")
    if tuple(map(int, have.split(".")[:2])) >= (9, 1):
        pytest.skip("the distribution's emulator is new enough")
    with pytest.raises(emulator.EmulatorError, match="no plugins with time control"):
        emulator.require_vtime("/usr/bin/qemu-system-x86_64")
