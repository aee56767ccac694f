"""Clients of other languages with typical use, and redis-cli at a terminal."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time

import pytest

from kv_server import PATIENCE, TOP, clean_env
from test_clients import run

CLIENTS = os.path.join(TOP, "tests", "kv", "clients")


def test_hiredis(kv):
    assert run([os.path.join(TOP, "build", "kv-clients", "hiredis"), kv.host, str(kv.resp)]) == "all good\n"


@pytest.mark.parametrize("name", ["redis", "ioredis", "memcached"])
def test_npm(kv, name, monkeypatch):
    monkeypatch.setenv("NODE_PATH", os.path.join(TOP, "build", "npm", "node_modules"))
    port = kv.mc if name == "memcached" else kv.resp
    assert run(["node", os.path.join(CLIENTS, name + ".js"), kv.host, str(port)]) == "all good\n"


class Terminal:
    """A program at a terminal of its own."""

    def __init__(self, words):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 24, 200, 0, 0))
        self.process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                        env=dict(clean_env(), TERM="xterm", HOME="/nonexistent"))
        os.close(slave)
        self.seen = b""

    def until(self, text):
        """Reads until text came; forgets what came up to it."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.seen:
            assert time.monotonic() < deadline, f"no {text!r} in {self.seen!r}"
            if select.select([self.master], [], [], 0.2)[0]:
                self.seen += os.read(self.master, 65536)
        self.seen = self.seen.partition(text)[2]

    def type(self, line):
        os.write(self.master, line + b"\r")

    def close(self):
        os.close(self.master)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)


@pytest.mark.parametrize("flags", [[], ["-3"]])
def test_redis_cli_at_a_terminal(kv, flags):
    prompt = f"{kv.host}:{kv.resp}> ".encode()
    terminal = Terminal(["redis-cli", "-h", kv.host, "-p", str(kv.resp), *flags])
    try:
        terminal.until(prompt)          # COMMAND DOCS has been asked for the hints
        for line, answer in [(b"set greeting \"hello there\"", b"OK"), (b"get greeting", b"\"hello there\""),
                             (b"incr n", b"(integer) 1"), (b"get none", b"(nil)"), (b"lpush l 1", b"(error) ERR unknown command"),
                             (b"mget greeting n", b"1) \"hello there\""), (b"help get", b"summary")]:
            terminal.type(line)
            terminal.until(b"\r\n")
            terminal.until(answer)
            terminal.until(prompt)
        terminal.type(b"multi")
        terminal.until(f"{kv.host}:{kv.resp}(TX)> ".encode())
        terminal.type(b"exec")
        terminal.until(b"(empty array)")
        terminal.until(prompt)
        terminal.type(b"quit")
        assert terminal.process.wait(PATIENCE) == 0
    finally:
        terminal.close()
