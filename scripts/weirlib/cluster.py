"""`weir cluster N`: several guests behind nutcracker (twemproxy), keys spread by consistent hashing.

The cluster is known by the proxy's pid. Its entry below build/run names the guests, which are ordinary detached ones.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from . import ports
from .common import HOST_ADDRESS, POLL_INTERVAL, RUN_DIR, SHUTDOWN_TIMEOUT, TOP, WeirError, say
from .guest import link_pid

MOST_GUESTS = 64
# Milliseconds: what the proxy waits for a guest's answer, and how long a guest that failed is left out before it is tried again.
REPLY_TIMEOUT_MS = 5000
RETRY_MS = 10000
# Times that ports are chosen anew if another program takes one between the choice and the proxy's start.
PORT_ATTEMPTS = 5
# Bound of the proxy's start (seconds).
PROXY_TIMEOUT = 60
SERVICES = ("resp", "mc")

# One pool per protocol. ketama: a key's place on the ring depends on the guests' names alone, so that a guest that is lost (or
# comes back, on whatever port) moves only its own share. auto_eject_hosts: that share goes to the others, as misses.
POOL = """\
{name}:
  listen: {address}:{port}
  hash: murmur
  distribution: ketama
  redis: {redis}
  timeout: {timeout}
  auto_eject_hosts: true
  server_failure_limit: 1
  server_retry_timeout: {retry}
  servers:
{servers}
"""


def proxy_program():
    """Path of nutcracker; WeirError says how to get it."""
    path = shutil.which("nutcracker", path=os.environ.get("PATH", "") + ":/usr/sbin")
    if not path:
        raise WeirError("nutcracker is not installed: run scripts/deps cluster")
    return path


def configuration(listen, guests):
    """The proxy's configuration. listen: {service: port}; guests: {service: port} each."""
    pools = []
    for service in SERVICES:
        servers = "\n".join(f"   - {HOST_ADDRESS}:{guest[service]}:1 guest{i}" for i, guest in enumerate(guests))
        pools.append(POOL.format(name=service, address=HOST_ADDRESS, port=listen[service], redis="true" if service == "resp" else "false",
                                 timeout=REPLY_TIMEOUT_MS, retry=RETRY_MS, servers=servers))
    return "".join(pools)


def free_port():
    with socket.socket() as sock:
        sock.bind((HOST_ADDRESS, 0))
        return sock.getsockname()[1]


# ---- guests ----

def guest_command(options):
    words = [os.path.join(TOP, "scripts", "weir"), "run", "--detach", "--resp", "0", "--mc", "0", "--http", "0",
             "--smp", str(options.smp), "--mem", options.mem, "--accel", options.accel, "--build", options.build]
    for name in ("policy", "append"):
        if getattr(options, name):
            words += [f"--{name}", getattr(options, name)]
    return words


def stop_guest(pid):
    """Exit code of `weir stop`."""
    return subprocess.run([os.path.join(TOP, "scripts", "weir"), "stop", str(pid)], check=False, stdout=subprocess.DEVNULL).returncode


def stop_guests(pids):
    """Stops them one after another, in order; their exit codes."""
    return [stop_guest(pid) for pid in pids]


def start_guests(options):
    """Boots all at once; what each printed. WeirError if one does not serve (the others are stopped then)."""
    started = [subprocess.Popen(guest_command(options), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
               for _ in range(options.guests)]
    guests = []
    for proc in started:
        line, _ = proc.communicate()
        if proc.returncode == 0:
            guests.append(json.loads(line))
    if len(guests) < options.guests:
        stop_guests(g["pid"] for g in guests)
        raise WeirError(f"{options.guests - len(guests)} of {options.guests} guests did not start")
    return guests


# ---- the proxy ----

def start_proxy(program, directory, wanted, guests):
    """(process, {service: port}) of a proxy that answers."""
    log = os.path.join(directory, "nutcracker.log")
    config = os.path.join(directory, "nutcracker.yml")
    for _ in range(PORT_ATTEMPTS):
        listen = {s: wanted[s] or free_port() for s in SERVICES}
        with open(config, "w", encoding="utf-8") as file:
            file.write(configuration(listen, guests))
        with open(log, "ab") as output:
            process = subprocess.Popen([program, "-c", config, "-o", log, "-a", HOST_ADDRESS, "-s", str(free_port()),
                                        "-p", os.path.join(directory, "nutcracker.pid")],
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
        deadline = time.monotonic() + PROXY_TIMEOUT
        while process.poll() is None and time.monotonic() < deadline:
            if all(ports.answers((HOST_ADDRESS, listen[s]), f"proxy-{s}", ports.FIRST_WAIT) for s in SERVICES):
                return process, listen
            time.sleep(POLL_INTERVAL)
        if process.poll() is None:
            process.kill()
            process.wait()
            break
    raise WeirError(f"nutcracker does not answer: {last_line(log)}")


def last_line(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    return lines[-1] if lines else f"no message in {path}"


def write_state(directory, state):
    path = os.path.join(directory, "state.json")
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(state, file)
    os.replace(path + ".new", path)


def run(options):
    """`weir cluster N`: returns once the proxy answers, with one JSON line."""
    if not 1 <= options.guests <= MOST_GUESTS:
        raise WeirError(f"{options.guests} guests: 1..{MOST_GUESTS}")
    program = proxy_program()
    wanted = {s: getattr(options, s) for s in SERVICES}
    for service, port in wanted.items():
        if port == "off":
            raise WeirError(f"--{service} off: the proxy serves both protocols")
    for service, port in wanted.items():
        if port:
            ports.check_free(service, port)
    guests = start_guests(options)
    os.makedirs(RUN_DIR, exist_ok=True)
    directory = tempfile.mkdtemp(prefix="cluster-", dir=RUN_DIR)
    try:
        process, listen = start_proxy(program, directory, wanted, guests)
    except BaseException:
        stop_guests(g["pid"] for g in guests)
        raise
    answer = {"pid": process.pid, **listen, "guests": guests, "log": os.path.join(directory, "nutcracker.log")}
    write_state(directory, {"pid": process.pid, "cluster": [g["pid"] for g in guests], "log": answer["log"], "exit": None})
    link_pid(process.pid, directory)
    print(json.dumps(answer), flush=True)
    return 0


def is_proxy(pid):
    """Is that process ours still (its pid may have been given to another)?"""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"nutcracker" in file.read()
    except OSError:
        return False


def stop(state, link):
    """`weir stop` of a cluster: the proxy first, then the guests. The first code of a guest that was not 0."""
    deadline = time.monotonic() + SHUTDOWN_TIMEOUT
    if is_proxy(state["pid"]):
        os.kill(state["pid"], signal.SIGTERM)
    while is_proxy(state["pid"]):
        if time.monotonic() > deadline:
            os.kill(state["pid"], signal.SIGKILL)
            say("nutcracker did not end when asked: ended")
            break
        time.sleep(POLL_INTERVAL)
    codes = stop_guests(state["cluster"])
    state["exit"] = next((code for code in codes if code), 0)
    write_state(os.path.realpath(link), state)
    return state["exit"]
