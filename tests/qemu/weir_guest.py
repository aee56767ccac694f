"""Boots guests with scripts/weir for the tests, and talks to them."""

import json
import os
import shlex
import socket
import subprocess
import time
import urllib.request

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WEIR = os.path.join(TOP, "scripts", "weir")
LOGS = os.path.join(TOP, "build", "test-logs")

# Bounds in seconds; none is a measure of speed. The host may have two cores for sixteen vCPUs.
BOOT_LIMIT = 240
END_LIMIT = 240
REPLY_LIMIT = 240


def log_path(name):
    """Where the console of a named test's guest is kept."""
    os.makedirs(LOGS, exist_ok=True)
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
    return os.path.join(LOGS, safe + ".log")


def command(*options):
    """scripts/weir run with options: emulated, the debug kernel where the options do not say otherwise."""
    words = [WEIR, "run", "--accel", os.environ.get("WEIR_TEST_ACCEL", "tcg")]
    if not {"--build", "--kernel", "--image", "--boot"}.intersection(options):
        words += ["--build", os.environ.get("WEIR_TEST_BUILD", "debug")]
    elif "--build" not in options:
        words += ["--build", "release"]
    return [*words, *options]


def explain(words, log):
    """How to see a failure again, for an assertion's message."""
    return f"command: {shlex.join(words)}\nconsole: {log}"


# Between two looks at a condition, seconds: a look costs the guest a request.
POLL_S = 0.05


def wait_until(condition, what, limit=END_LIMIT):
    """Looks until condition() is true and returns its value; fails after a generous bound of seconds."""
    deadline = time.monotonic() + limit
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not in {limit} s: {what}"
        time.sleep(POLL_S)
    return value


class Guest:
    """A detached guest that serves; `with` or stop() ends it in order."""

    def __init__(self, name, *options, append=""):
        self.log = log_path(name)
        words = command("--detach", "--resp", "0", "--mc", "0", "--http", "0", "--log", self.log, *options)
        if append:
            words += ["--append", append]
        self.words = words
        proc = subprocess.run(words, capture_output=True, text=True, timeout=BOOT_LIMIT, check=False)
        assert proc.returncode == 0, f"no guest: {proc.stderr}\n{explain(words, self.log)}"
        self.stderr = proc.stderr
        lines = proc.stdout.splitlines()
        assert len(lines) == 1, f"not one line: {proc.stdout!r}"
        self.info = json.loads(lines[0])
        self.pid = self.info["pid"]
        self.host = self.info.get("host", "127.0.0.1")
        self.stopped = False

    def stop(self):
        """Exit code of `scripts/weir stop`."""
        self.stopped = True
        return subprocess.run([WEIR, "stop", str(self.pid)], capture_output=True, text=True,
                              timeout=END_LIMIT, check=False).returncode

    def console(self):
        """Everything the console has received."""
        return read_log(self.log)

    def connect(self, service):
        """A connected socket to a service (resp, mc, http)."""
        return socket.create_connection((self.host, self.info[service]), timeout=REPLY_LIMIT)

    def ask(self, service, request, length):
        """Sends bytes and returns the first `length` bytes of the answer (fewer if it closes)."""
        with self.connect(service) as sock:
            sock.sendall(request)
            data = b""
            while len(data) < length:
                part = sock.recv(65536)
                if not part:
                    break
                data += part
            return data[:length]

    def http_bytes(self, path, data=None):
        """Body of a page of the guest's HTTP server, as it comes."""
        url = f"http://{self.host}:{self.info['http']}{path}"
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(url, data=data, timeout=REPLY_LIMIT) as answer:
            return answer.read()

    def http(self, path, data=None):
        """Body of a page of the guest's HTTP server."""
        return self.http_bytes(path, data).decode()

    def metrics(self):
        """{name with labels: value} of /metrics."""
        values = {}
        for line in self.http("/metrics").splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        return values

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.stopped:
            self.stop()


def read_log(path):
    """A console log as text."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class Ended:
    """A guest that was run to its end in the foreground."""

    def __init__(self, name, *options, append=""):
        self.log = log_path(name)
        self.words = command("--quiet", "--log", self.log, *options)
        if append:
            self.words += ["--append", append]
        proc = subprocess.run(self.words, capture_output=True, text=True, timeout=END_LIMIT,
                              stdin=subprocess.DEVNULL, check=False)
        self.code = proc.returncode
        self.stderr = proc.stderr
        self.console = read_log(self.log) if os.path.exists(self.log) else ""

    def why(self):
        """For an assertion's message."""
        return f"code {self.code}\n{self.stderr}\n{self.console[-2000:]}\n{explain(self.words, self.log)}"
