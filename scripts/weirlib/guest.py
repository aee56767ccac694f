"""The life of one guest: start, wait until it serves, shut down in order, tell its exit code."""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from . import backlog, machine, ports, tap
from .common import (EXIT_FORCED, EXIT_NOT_READY, EXIT_RESET, EXIT_SIGNALLED, GUEST_PORTS,
                     HOST_ADDRESS, KEPT_RUNS, POLL_INTERVAL, READY_TIMEOUT, RUN_DIR,
                     SHUTDOWN_TIMEOUT, WeirError, say)
from .qmp import Qmp, QmpClosed

# The guest listens to the power button only once it has booted: press it again this often (seconds).
BUTTON_INTERVAL = 2.0
# A socket's path has room for 107 bytes; a deep tree needs a shorter place.
LONGEST_SOCKET_PATH = 100
PR_SET_PDEATHSIG = 1
# What UEFI firmware sends to a terminal, and no reader wants.
ESCAPES = re.compile(r"\x1b\[[0-9;=?]*[A-Za-z]")
UNPRINTABLE = re.compile(r"[^\x20-\x7e\n\t\u00a0-\uffff]|\ufffd")
# How much of a console is shown with an error.
TAIL_BYTES = 16384
TAIL_COLUMNS = 200


def readable(data):
    """Console output fit for a terminal."""
    return UNPRINTABLE.sub("", ESCAPES.sub("", data.decode(errors="replace").replace("\r", "")))


def end_with_parent():
    """In the child before exec: a session of its own (no Ctrl-C), and no life without the parent."""
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def exit_code(status, reset, forced):
    """Exit code of the guest from QEMU's exit status; isa-debug-exit makes (code << 1) | 1 of code."""
    if forced:
        return EXIT_FORCED
    if status < 0:
        return EXIT_SIGNALLED - status
    if reset:
        return EXIT_RESET
    return status >> 1 if status & 1 else status


def forget_old_runs():
    """Removes the directories of the oldest ended runs and links to directories that are gone.

    Several guests may start at once, each doing the same: what one has looked at, another may have removed meanwhile.
    """
    runs = []
    for name in os.listdir(RUN_DIR):
        path = os.path.join(RUN_DIR, name)
        with contextlib.suppress(FileNotFoundError):
            if os.path.islink(path):
                if not os.path.exists(path):
                    os.unlink(path)
            elif os.path.isdir(path):
                runs.append((os.path.getmtime(path), path))
    for _, path in sorted(runs)[:-KEPT_RUNS]:
        if read_state(path).get("exit") is not None:
            shutil.rmtree(path, ignore_errors=True)


def link_pid(pid, run_dir):
    """Makes a run known by the pid of its process. The link of an older run, whose pid the system has given out again, goes."""
    new = os.path.join(run_dir, "link")
    os.symlink(os.path.basename(run_dir), new)
    os.replace(new, os.path.join(RUN_DIR, str(pid)))


def read_state(run_dir):
    """state.json of a run, {} if there is none."""
    try:
        with open(os.path.join(run_dir, "state.json"), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


class Guest:
    """A running QEMU with its QMP connection, its log and its entry below build/run."""

    def __init__(self, options):
        self.options = options
        self.stop_asked = 0
        self.forced = False
        self.code = None
        os.makedirs(RUN_DIR, exist_ok=True)
        forget_old_runs()
        self.dir = tempfile.mkdtemp(prefix="guest-", dir=RUN_DIR)
        self.log = os.path.join(self.dir, "console.log")
        self.echo_position = 0
        if options.log:
            # The log the user named is the file itself; the run's directory links to it.
            path = os.path.abspath(options.log)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb"):
                pass
            os.symlink(path, self.log)
            self.shown_log = path
        else:
            self.shown_log = self.log

    def wanted_forwards(self):
        """{service: host port or 0} of what is to be reachable."""
        chosen = {s: getattr(self.options, s) for s in GUEST_PORTS}
        return {s: p for s, p in chosen.items() if p != "off"}

    def start(self):
        """Starts QEMU, paused; raises WeirError with its own words if it refuses."""
        forwards = self.wanted_forwards()
        machine.check(self.options)
        if self.options.netns:
            tap.enter(self.options.tap, self.options.queues)
        elif self.options.net == "tap":
            tap.need(self.options.tap)
        if self.options.net == "user":
            ports.check_different(forwards)
            for service, port in forwards.items():
                if port:
                    ports.check_free(service, port)
        command = machine.qemu_command(self.options, forwards, self.dir)
        with tempfile.TemporaryDirectory(prefix="weir-") as short:
            path = os.path.join(self.dir, "qmp.sock")
            if len(path) > LONGEST_SOCKET_PATH:
                path = os.path.join(short, "qmp.sock")
            command += ["-qmp", f"unix:{path},server=on,wait=off"]
            with open(os.path.join(self.dir, "command"), "w", encoding="utf-8") as file:
                file.write(" ".join(command) + "\n")
            with open(os.path.join(self.dir, "qemu.log"), "wb") as errors:
                self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors,
                                                stderr=errors, preexec_fn=end_with_parent)
            try:
                self.qmp = Qmp(path, lambda: self.process.poll() is None)
                self.services = self.find_services(forwards)
            except (QmpClosed, RuntimeError) as error:
                self.process.kill()
                self.process.wait()
                raise WeirError(f"QEMU did not start: {self.qemu_words()}") from error
        self.write_state()
        link_pid(self.process.pid, self.dir)

    def qemu_words(self):
        """The last thing QEMU wrote to its standard error, in one line."""
        with open(os.path.join(self.dir, "qemu.log"), encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
        return lines[-1] if lines else "no message; see " + self.dir

    def find_services(self, forwards):
        """{service: port} where the services are reached, once QEMU has chosen free ports."""
        if self.options.net == "user" and forwards:
            text = self.qmp.command("human-monitor-command", **{"command-line": "info usernet"})
            if not backlog.widen(self.process.pid, backlog.listening_fds(text)):
                say("QEMU's ports keep their backlog of 1: many connections at once may be slow to open")
            return ports.forwarded(text, {s: GUEST_PORTS[s] for s in forwards})
        if self.options.net == "tap":
            return {service: GUEST_PORTS[service] for service in forwards}
        return {}

    def host(self):
        """Address under which the services are reached."""
        if self.options.net == "tap":
            return self.options.guest_ip
        return HOST_ADDRESS

    def write_state(self):
        """Leaves word of this run for `weir stop`."""
        state = {"pid": self.process.pid, "supervisor": os.getpid(), "services": self.services,
                 "machine": {"smp": self.options.smp, "memory": machine.memory_bytes(self.options.mem)},
                 "log": self.shown_log, "exit": self.code}
        path = os.path.join(self.dir, "state.json")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(state, file)
        os.replace(path + ".new", path)

    def summary(self):
        """What --detach prints."""
        line = {"pid": self.process.pid}
        line.update({s: self.services.get(s) for s in GUEST_PORTS})
        line["log"] = self.shown_log
        if self.options.net == "tap":
            line["host"] = self.host()
        return line

    def on_signal(self, _signo, _frame):
        self.stop_asked += 1

    def console_tail(self, count):
        """The last lines of the console."""
        with open(self.log, "rb") as file:
            file.seek(max(0, os.path.getsize(self.log) - TAIL_BYTES))
            lines = readable(file.read()).splitlines()
        return [line.rstrip()[:TAIL_COLUMNS] for line in lines if line.strip()][-count:]

    def echo_console(self):
        """Passes on what the console has received since the last call."""
        if not self.options.echo:
            return
        try:
            with open(self.log, "rb") as file:
                file.seek(self.echo_position)
                data = file.read()
        except OSError:
            return
        if data:
            self.echo_position += len(data)
            sys.stdout.write(readable(data))
            sys.stdout.flush()

    def ended(self):
        return self.process.poll() is not None

    def step(self):
        """One turn of waiting: events, console. Bounded by POLL_INTERVAL."""
        if self.qmp.closed:
            time.sleep(POLL_INTERVAL)
        self.qmp.poll(POLL_INTERVAL)
        self.echo_console()

    def wait_ready(self):
        """True once all services answer; False if the guest ends or a stop is asked before.
        Raises WeirError after the time-out."""
        self.qmp_try("cont")
        prober = ports.Prober(self.host(), self.services)
        prober.start()
        deadline = time.monotonic() + (self.options.timeout or READY_TIMEOUT)
        try:
            while not prober.done.is_set():
                if self.ended() or self.stop_asked:
                    return False
                if time.monotonic() > deadline:
                    raise WeirError("the guest does not answer on " +
                                    ", ".join(f"{s} (port {p})" for s, p in prober.waiting.items()))
                self.step()
        finally:
            prober.ended.set()
        return not self.ended()

    def qmp_try(self, command):
        """Sends a command; a guest that ends meanwhile is no error."""
        try:
            self.qmp.command(command)
        except QmpClosed:
            pass

    def never_ran(self):
        """True for a guest that its debugger has not let go yet."""
        try:
            return self.qmp.command("query-status")["status"] == "prelaunch"
        except QmpClosed:
            return False

    def wait_end(self):
        """Waits until the guest has ended; a stop that was asked for is carried out in order."""
        deadline = button = None
        while not self.ended():
            now = time.monotonic()
            if self.stop_asked and deadline is None and self.never_ran():
                self.qmp_try("quit")  # there is nothing in it yet to shut down
            if self.stop_asked and deadline is None:
                deadline = now + SHUTDOWN_TIMEOUT
                button = now
            if button is not None and now >= button:
                self.qmp_try("system_powerdown")
                button = now + BUTTON_INTERVAL
            if deadline is not None and (now > deadline or self.stop_asked > 1) and not self.forced:
                self.forced = True
                say("the guest did not power off when asked: ended")
                self.qmp_try("quit")
            self.step()
        return self.finish()

    def end(self):
        """Ends QEMU without asking the guest."""
        self.forced = True
        self.process.kill()
        self.finish()

    def finish(self):
        """Records the exit code and returns it."""
        status = self.process.wait()
        self.qmp.poll(POLL_INTERVAL)
        self.echo_console()
        self.code = exit_code(status, self.qmp.reset_seen(), self.forced)
        self.write_state()
        return self.code


def not_ready_code(guest, error):
    """Ends a guest that does not serve; says so with the end of its console."""
    for line in guest.console_tail(10):
        say(f"| {line}")
    guest.end()
    guest.code = EXIT_NOT_READY
    guest.write_state()
    say(f"{error}; log: {guest.shown_log}")
    return EXIT_NOT_READY
