"""`weir run` and `weir stop`."""

import json
import os
import signal
import sys
import time

from .common import (EXIT_USAGE, GUEST_PORTS, POLL_INTERVAL, RUN_DIR, SHUTDOWN_TIMEOUT, WeirError,
                     say)
from . import cluster, grant
from .observe import fetch
from .guest import Guest, not_ready_code, read_state

# The supervisor needs this much longer than the guest may take (seconds).
STOP_MARGIN = 30


def supervise(guest, on_ready):
    """Runs a guest to its end. on_ready(summary) is called once all its services answer (of a paused one: at once).
    Returns its exit code."""
    for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signo, guest.on_signal)
    guest.start()
    try:
        if guest.options.gdb is not None:
            say(f"paused, waiting for a debugger on port {guest.options.gdb}")
            if guest.options.detach:
                on_ready(guest.summary())  # it cannot serve before the debugger lets it
        elif guest.wait_ready():
            on_ready(guest.summary())
        return guest.wait_end()
    except WeirError as error:
        return not_ready_code(guest, error)
    except BaseException:
        guest.end()
        raise


def announce(summary):
    """Foreground: one line that says where the services are."""
    parts = [f"{name} {summary[key]}" for key, name in
             (("resp", "RESP"), ("mc", "memcached"), ("http", "HTTP")) if summary[key]]
    if parts:
        say("ready: " + ", ".join(parts) + " (Ctrl-C stops)")


def explain(guest, code):
    """One line about an end that was not a good one."""
    if code and guest.code is not None:
        say(f"the guest ended with code {code}; log: {guest.shown_log}")


def run_foreground(options):
    guest = Guest(options)
    code = supervise(guest, announce)
    explain(guest, code)
    return code


def run_detached(options):
    """Starts the guest below a process of its own; returns once it serves."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    if os.fork() == 0:
        os.close(reader)
        os._exit(detached_child(options, writer))
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        message = pipe.readline()
    if not message:
        say("the supervisor of the guest ended without a word")
        return EXIT_USAGE
    answer = json.loads(message)
    if "code" in answer:
        return answer["code"]
    print(json.dumps(answer), flush=True)
    return 0


def detached_child(options, writer):
    """The supervisor of a detached guest; answers through the pipe exactly once."""
    os.setsid()
    told = []

    def tell(answer):
        if not told:
            told.append(True)
            sys.stderr.flush()
            os.write(writer, (json.dumps(answer) + "\n").encode())
            os.close(writer)

    def on_ready(summary):
        # Nobody who waits for the end of our output may wait for the guest's end.
        quiet = os.open(os.path.join(guest.dir, "supervisor.log"),
                        os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        null = os.open(os.devnull, os.O_RDONLY)
        for target, source in ((0, null), (1, quiet), (2, quiet)):
            os.dup2(source, target)
        tell(summary)

    try:
        options.echo = False
        guest = Guest(options)
        code = supervise(guest, on_ready)
        if not told:
            if guest.code is not None and code not in (0,):
                for line in guest.console_tail(5):
                    say(f"| {line}")
            say(f"the guest ended with code {code} before it served; log: {guest.shown_log}")
            tell({"code": code or EXIT_USAGE})
        return code
    except WeirError as error:
        say(f"error: {error}")
        tell({"code": EXIT_USAGE})
        return EXIT_USAGE
    except BrokenPipeError:
        return EXIT_USAGE  # whoever asked for the guest is gone; it has been ended


def run(options):
    """`weir run`."""
    # Ports that only the key-value server opens are not waited for with another application.
    serves = options.app in (None, "kv") and not options.initrd
    for service in GUEST_PORTS:
        if getattr(options, service) is None:
            default_on = service == "http" or serves
            usable = options.net != "none" and default_on
            setattr(options, service, GUEST_PORTS[service] if usable else "off")
    if options.net == "none":
        for service in GUEST_PORTS:
            setattr(options, service, "off")
    return run_detached(options) if options.detach else run_foreground(options)


def alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False
    except PermissionError:
        return True


def state_of(pid):
    """The state of a guest that this tree started."""
    state = read_state(os.path.join(RUN_DIR, str(pid)))
    if not state:
        raise WeirError(f"no guest with pid {pid} was started from this tree")
    return state


def update_grant(options):
    """`weir grant PID`."""
    state = state_of(options.pid)
    if state["exit"] is not None or not alive(state["pid"]):
        raise WeirError(f"guest {options.pid} has ended")
    if not state["services"].get("http"):
        raise WeirError(f"guest {options.pid} has no HTTP port")
    return grant.update(options, state, fetch)


def stop(options):
    """`weir stop PID`: orderly shutdown; the guest's exit code."""
    link = os.path.join(RUN_DIR, str(options.pid))
    state = read_state(link)
    if not state:
        raise WeirError(f"no guest with pid {options.pid} was started from this tree")
    if "cluster" in state:
        return state["exit"] if state["exit"] is not None else cluster.stop(state, link)
    if state["exit"] is None:
        try:
            os.kill(state["supervisor"], signal.SIGTERM)
        except ProcessLookupError as error:
            raise WeirError(f"the supervisor of guest {options.pid} is gone, the guest with it") from error
    deadline = time.monotonic() + SHUTDOWN_TIMEOUT + STOP_MARGIN
    while state["exit"] is None and time.monotonic() < deadline and alive(state["supervisor"]):
        time.sleep(POLL_INTERVAL)
        state = read_state(link)
    state = read_state(link)
    if state["exit"] is None:
        raise WeirError(f"guest {options.pid} did not end; its log: {state['log']}")
    return state["exit"]
