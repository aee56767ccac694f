"""Starts the key-value server for tests, and talks to it byte by byte."""
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Bounds of waiting for a condition, in seconds; generous, since the machine may be busy.
PATIENCE = 240
# Where an answer is expected not to come: how long its absence is watched.
QUIET = 0.3


def binary(variant):
    """Path of a build of the server: host, host-san (ASan, UBSan), host-tsan, apps (musl)."""
    return os.path.join(TOP, "build", variant, "kv")


def clean_env():
    """The environment without settings of the server, which tests give explicitly."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("KV_")}
    env["TSAN_OPTIONS"] = "suppressions=" + os.path.join(TOP, "tests", "kv", "tsan.supp")
    return env


def free_ports(count):
    """Ports that are free now."""
    held = [socket.socket() for _ in range(count)]
    for s in held:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def wait_for(condition, what):
    """Polls until condition() is true; returns its value."""
    end = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {PATIENCE} s: {what}")
        time.sleep(0.02)


class Server:
    """A server process of our own."""

    def __init__(self, variant="host-san", **settings):
        self.host = "127.0.0.1"
        self.log = tempfile.TemporaryFile()
        for _ in range(5):  # another process may take a port between the choice and the start
            self.resp, self.mc = free_ports(2)
            env = dict(clean_env(), KV_BIND=self.host, KV_RESP_PORT=str(self.resp), KV_MC_PORT=str(self.mc))
            env.update({name: str(value) for name, value in settings.items()})
            self.proc = subprocess.Popen([binary(variant)], env=env, stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, stderr=self.log)
            self.ready = self.proc.stdout.readline().decode()
            if self.ready.startswith("kv: ready"):
                return
            self.proc.wait(PATIENCE)
            if "Address already in use" not in self.errors():
                break
        raise AssertionError(f"the server did not start: {self.ready}{self.errors()}")

    def errors(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def stop(self):
        """Orderly end; fails on any complaint of a sanitizer."""
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
        try:
            code = self.proc.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
            raise AssertionError("the server did not stop on SIGTERM: " + self.errors()) from None
        self.proc.stdout.close()
        text = self.errors()
        assert code == 0, f"exit code {code}: {text}"
        assert "Sanitizer" not in text and "runtime error" not in text, text

    def raw(self, protocol="resp"):
        return Raw(self.host, self.resp if protocol == "resp" else self.mc)

    def info(self, *sections):
        """INFO as a dict of strings."""
        with self.raw() as c:
            return parse_info(c.ask("INFO " + " ".join(sections)))


class Raw:
    """A connection that sends and receives bytes."""

    def __init__(self, host, port):
        self.sock = socket.create_connection((host, port), timeout=PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def read(self, count):
        """Exactly count bytes."""
        parts = []
        while count:
            part = self.sock.recv(min(count, 1 << 20))
            assert part, "closed early after %r" % b"".join(parts)[-200:]
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def expect(self, want):
        got = b""
        while len(got) < len(want) and want.startswith(got):
            part = self.sock.recv(len(want) - len(got))
            assert part, f"closed after {got!r}, expected {want!r}"
            got += part
        assert got == want

    def expect_close(self):
        """The server closes; returns what came before."""
        got = b""
        while True:
            try:
                part = self.sock.recv(65536)
            except ConnectionResetError:
                return got
            if not part:
                return got
            got += part

    def quiet(self):
        """Nothing comes, and the connection is open."""
        self.sock.settimeout(QUIET)
        try:
            got = self.sock.recv(100)
        except socket.timeout:
            got = None
        self.sock.settimeout(PATIENCE)
        assert got is None, f"unexpected {got!r}"

    def line(self):
        got = b""
        while not got.endswith(b"\r\n"):
            part = self.sock.recv(1)
            assert part, f"closed after {got!r}"
            got += part
        return got[:-2]

    def reply(self):
        """One reply of the Redis protocol as a Python value; errors as strings with their '-'."""
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return line.decode()
        if kind == b":":
            return int(rest)
        if kind in b"$=":
            size = int(rest)
            if size < 0:
                return None
            data = self.read(size + 2)[:-2]
            return data[4:] if kind == b"=" else data
        if kind == b"_":
            return None
        if kind in b"*~":
            return None if int(rest) < 0 else [self.reply() for _ in range(int(rest))]
        if kind == b"%":
            return {self.reply(): self.reply() for _ in range(int(rest))}
        raise AssertionError(f"not a reply: {line!r}")

    def ask(self, text):
        """An inline command and its reply."""
        self.send(text.encode() + b"\r\n")
        return self.reply()

    def command(self, *words):
        self.send(encode(*words))
        return self.reply()


def encode(*words):
    """A command as the Redis protocol sends it."""
    data = [b"*%d\r\n" % len(words)]
    for w in words:
        w = w if isinstance(w, bytes) else str(w).encode()
        data.append(b"$%d\r\n%s\r\n" % (len(w), w))
    return b"".join(data)


def parse_info(text):
    return dict(re.findall(r"^(\w+):(.*?)\r?$", text.decode(), re.M))
