"""Runs a guest under QEMU with the virtual-time plugin and reads its serial console.

Used by the harness (bench.py) and by the plugin's self-test (vtime/selftest.py).
"""

import dataclasses
import json
import os
import re
import resource
import signal
import subprocess
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, "build")
QEMU = os.path.join(BUILD, "qemu-vtime", "qemu-system-x86_64")
PLUGIN = os.path.join(BUILD, "vtime", "vtime.so")

# Versions whose accelerator table was compared with the plugin's by hand. On another one the
# plugin's own layout check and the self-test decide.
CHECKED_VERSIONS = ("10.0.2",)

# isa-debug-exit turns a value written by the guest into (value << 1) | 1.
DEBUG_EXIT_PORT = 0xF4

# Kept of the console, for the message about a run that failed.
TAIL_LINES = 25


class EmulatorError(Exception):
    """A run that failed, in one line; `tail` has the end of the console."""

    def __init__(self, message, tail=()):
        super().__init__(message)
        self.tail = list(tail)


@dataclasses.dataclass
class Vtime:
    """Options of the plugin (tests/bench/vtime/vtime.h); None means real time, no plugin."""

    quantum: int = 250
    window: int = 500
    crowd: int = 4
    ns1000: int = 1000
    coarse: int = 0
    ipi_send: int = 0
    ipi_wake: int = 0
    limit_s: float = 0.0

    def options(self):
        text = f"quantum={self.quantum},window={self.window},crowd={self.crowd},ns1000={self.ns1000}"
        if self.coarse:
            text += f",coarse={self.coarse}"
        if self.ipi_send or self.ipi_wake:
            text += f",ipi_send={self.ipi_send},ipi_wake={self.ipi_wake}"
        if self.limit_s:
            text += f",limit={int(self.limit_s * 1e9)}"
        return text


@dataclasses.dataclass
class Machine:
    """What to boot."""

    kernel: str
    append: str = ""
    initrd: str = ""
    smp: int = 1
    mem_mb: int = 64
    vtime: Vtime = None
    accel: str = "vtime"          # vtime, kvm or tcg
    qemu: str = QEMU
    plugin: str = PLUGIN

    def command(self):
        words = [self.qemu, "-machine", "q35,hpet=on"]
        if self.accel == "kvm":
            words += ["-cpu", "host", "-accel", "kvm"]
        else:
            words += ["-cpu", "qemu64,+rdrand", "-accel", "tcg,thread=multi"]
        words += ["-smp", str(self.smp), "-m", str(self.mem_mb), "-display", "none", "-nodefaults",
                  "-no-user-config", "-serial", "stdio", "-no-reboot", "-rtc", "clock=vm",
                  "-device", f"isa-debug-exit,iobase={DEBUG_EXIT_PORT:#x},iosize=4"]
        if self.accel == "vtime":
            words += ["-plugin", f"{self.plugin},{(self.vtime or Vtime()).options()}"]
        words += ["-kernel", self.kernel]
        if self.initrd:
            words += ["-initrd", self.initrd]
        if self.append:
            words += ["-append", self.append]
        return words


@dataclasses.dataclass
class Outcome:
    status: int                   # exit status of QEMU
    host_s: float
    cpu_s: float                  # of host CPU time, which a loaded host does not stretch
    vtime: dict                   # closing report of the plugin, {} without
    errors: list                  # lines of standard error
    tail: list                    # last lines of the console


def version(qemu=QEMU):
    """'10.0.2', or an EmulatorError that says what is missing."""
    try:
        text = subprocess.run([qemu, "--version"], capture_output=True, text=True, timeout=60,
                              check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise EmulatorError(f"no usable emulator at {qemu} ({error.__class__.__name__}): "
                            "run scripts/deps-qemu-vtime") from error
    match = re.search(r"version (\d+\.\d+\.\d+)", text)
    if not match:
        raise EmulatorError(f"{qemu} does not tell its version")
    return match.group(1)


def require_vtime(qemu=QEMU, plugin=PLUGIN):
    """Refuses an emulator that cannot do virtual time; returns its version."""
    have = version(qemu)
    if tuple(map(int, have.split(".")[:2])) < (9, 1):
        raise EmulatorError(f"QEMU {have} has no plugins with time control (needs 9.1): "
                            "run scripts/deps-qemu-vtime")
    if not os.path.exists(plugin):
        raise EmulatorError(f"no plugin at {os.path.relpath(plugin, TOP)}: run make vtime")
    return have


def _pump(stream, lines, on_line):
    for raw in stream:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        lines.append(line)
        if on_line:
            on_line(line)


def _child_cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _stop(process):
    """Ends an emulator of ours: politely, then not."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        process.send_signal(sig)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            continue


def run(machine, timeout_s, on_line=None, log=None):
    """Boots `machine` and waits for its end.

    on_line(line) is called for each console line, on a thread of its own; an EmulatorError that
    it raises ends the run. timeout_s bounds host time. `log` is a file that receives the whole
    console. Raises EmulatorError on a time-out, on the virtual-time limit and when QEMU refuses
    to start; the meaning of other exit statuses is the caller's.
    """
    console, errors, raised = [], [], []
    started, used = time.monotonic(), _child_cpu_s()
    process = subprocess.Popen(machine.command(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def guarded(line):
        if raised or not on_line:
            return
        try:
            on_line(line)
        except EmulatorError as error:
            raised.append(error)
            process.terminate()

    threads = [threading.Thread(target=_pump, args=(process.stdout, console, guarded)),
               threading.Thread(target=_pump, args=(process.stderr, errors, None))]
    for thread in threads:
        thread.start()
    try:
        process.wait(timeout_s)
        timed_out = False
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        _stop(process)
        for thread in threads:
            thread.join()
        if log:
            with open(log, "w", encoding="utf-8") as file:
                file.write("\n".join(["$ " + " ".join(machine.command())] + console + errors))
    host_s = time.monotonic() - started
    tail = console[-TAIL_LINES:]
    refusal = next((e for e in errors if e.startswith("vtime: refused")), None)
    limit = next((e for e in errors if e.startswith("vtime: limit")), None)
    if raised:
        raised[0].tail = raised[0].tail or tail
        raise raised[0]
    if refusal:
        raise EmulatorError(refusal, errors)
    if limit:
        raise EmulatorError(f"the guest did not end by itself: {limit}", tail)
    if timed_out:
        raise EmulatorError(f"no end within {timeout_s:.0f} s of host time", tail)
    if process.returncode == 1 and not console:
        raise EmulatorError("the emulator did not start: " + (errors[-1] if errors else "no reason given"))
    report = next((e for e in errors if e.startswith("vtime: {")), None)
    return Outcome(process.returncode, host_s, _child_cpu_s() - used, json.loads(report[7:]) if report else {}, errors, tail)
