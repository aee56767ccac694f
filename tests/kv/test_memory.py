"""Memory per small item, beside memcached's: both filled with the same items on this machine."""
import os
import shutil
import socket
import subprocess

import pytest

from kv_server import PATIENCE, Raw, Server, free_ports, wait_for

ITEMS, VALUE, BATCH = 200000, b"x" * 100, 1000
# What an item may take more than memcached's.
MOST = 1.10


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


def grown_by(pid, port):
    """Bytes of resident memory an item that the server grows by."""
    before = resident(pid)
    with_items = Raw("127.0.0.1", port)
    for first in range(0, ITEMS, BATCH):
        with_items.send(b"".join(b"set key:%012d 0 0 100 noreply\r\n%s\r\n" % (i, VALUE) for i in range(first, first + BATCH)))
    for i in (0, ITEMS - 1):
        with_items.send(b"get key:%012d\r\n" % i)
        with_items.expect(b"VALUE key:%012d 0 100\r\n%s\r\nEND\r\n" % (i, VALUE))
    size = (resident(pid) - before) / ITEMS
    with_items.close()
    return size


@pytest.fixture
def memcached():
    """(process, port) of Debian's memcached."""
    program = shutil.which("memcached", path=os.environ.get("PATH", "") + ":/usr/bin:/usr/sbin")
    assert program, "memcached is missing: run scripts/deps test"
    (port,) = free_ports(1)
    process = subprocess.Popen([program, "-u", "root", "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-m", "512"], stdin=subprocess.DEVNULL)

    def listens():
        assert process.poll() is None
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", port)) == 0
    wait_for(listens, "memcached")
    yield process, port
    process.terminate()
    process.wait(PATIENCE)


def test_an_item_takes_no_more_than_memcacheds(memcached):
    if "KV_HOST" in os.environ:
        pytest.skip("needs a server of its own; KV_HOST points elsewhere")
    process, port = memcached
    theirs = grown_by(process.pid, port)
    server = Server("host")
    try:
        ours = grown_by(server.proc.pid, server.mc)
    finally:
        server.stop()
    assert ours <= MOST * theirs, f"{ours:.1f} bytes an item, memcached {theirs:.1f}"
