"""A guest behind a tap with several queues, in a network namespace of its own, and Linux as its peer."""

import contextlib
import ctypes
import errno
import hashlib
import os
import random
import select
import socket
import struct
import subprocess

import pytest

from weir_guest import REPLY_LIMIT, wait_until

QUEUES = 4
GUEST_OPTIONS = ["--smp", str(QUEUES), "--net", "tap", "--netns", "--queues", str(QUEUES)]
TAP = "weir0"
FLOWS = 64  # the chance that one of four queues gets none of them is below 1 in 10,000,000
VALUES, VALUE_BYTES = 8, 256 * 1024
RESETS = 30
REUSES = 10
CLIENT_PORT = 45678
SEED = 1
ETH_BROADCAST = b"\xff" * 6
STRANGER = bytes([2, 0, 0, 0, 0, 0x77])
TYPE_IP, TYPE_ARP = 0x0800, 0x0806
BURST = 1000  # connections that are opened at once
SPARE_FILES = 100  # of this process beside them


def why_no_tap():
    """What this host says when asked for a tap in a network namespace of its own; None if it gives one."""
    if os.geteuid() != 0:
        return "not root"
    asked = subprocess.run(["unshare", "--net", "ip", "tuntap", "add", "probe0", "mode", "tap", "multi_queue"],
                           capture_output=True, text=True, check=False)
    return None if asked.returncode == 0 else asked.stderr.strip() or f"status {asked.returncode}"


WHY_NO_TAP = why_no_tap()
pytestmark = pytest.mark.skipif(WHY_NO_TAP is not None, reason=f"needs a tap in a network namespace: {WHY_NO_TAP}")


@contextlib.contextmanager
def namespace_of(pid):
    """This thread in the network namespace of a process; sockets made here stay in it."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net", "rb") as home, open(f"/proc/{pid}/ns/net", "rb") as there:
        assert libc.setns(there.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
        try:
            yield
        finally:
            assert libc.setns(home.fileno(), 0) == 0, os.strerror(ctypes.get_errno())


@pytest.fixture(autouse=True)
def in_namespace(guest):
    """Every test runs where the guest can be reached."""
    with namespace_of(guest.pid):
        yield


def counter(guest, name):
    """A counter of every instance, by its index."""
    values = guest.metrics()
    return [values[f'weir_{name}{{net="0",queue="{i}"}}'] for i in range(QUEUES)]


def wait_above(guest, name, before):
    """Waits until the sum of a counter has passed a value."""
    wait_until(lambda: sum(counter(guest, name)) > before, f"{name} above {before}", limit=REPLY_LIMIT)


def read_exactly(sock, length):
    data = bytearray()
    while len(data) < length:
        part = sock.recv(length - len(data))
        assert part, f"closed after {len(data)} of {length} bytes"
        data += part
    return bytes(data)


def ping(sock):
    sock.sendall(b"PING\r\n")
    assert read_exactly(sock, 7) == b"+PONG\r\n"


def test_every_queue_receives(guest):
    before = counter(guest, "net_rx_packets_total")
    with contextlib.ExitStack() as stack:
        for sock in [stack.enter_context(guest.connect("resp")) for _ in range(FLOWS)]:
            ping(sock)
    after = counter(guest, "net_rx_packets_total")
    assert all(a > b for a, b in zip(after, before)), f"packets by queue: {before} then {after}"


def test_bulk_both_ways(guest):
    numbers = random.Random(SEED)
    with guest.connect("resp") as sock:
        for i in range(VALUES):
            value = numbers.randbytes(VALUE_BYTES)
            sock.sendall(b"*3\r\n$3\r\nSET\r\n$2\r\nb%d\r\n$%d\r\n%s\r\n" % (i, len(value), value))
            assert read_exactly(sock, 5) == b"+OK\r\n"
            sock.sendall(b"GET b%d\r\n" % i)
            head = b"$%d\r\n" % len(value)
            assert read_exactly(sock, len(head)) == head
            got = read_exactly(sock, len(value) + 2)[:-2]
            assert hashlib.sha256(got).digest() == hashlib.sha256(value).digest()


def test_half_open_close_is_answered(guest):
    with guest.connect("resp") as sock:
        sock.sendall(b"PING\r\n" * 100)
        sock.shutdown(socket.SHUT_WR)
        assert read_exactly(sock, 700) == b"+PONG\r\n" * 100
        assert sock.recv(1) == b""


def test_resets_in_mid_request(guest):
    before = sum(counter(guest, "net_tcp_active"))
    for _ in range(RESETS):
        sock = guest.connect("resp")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.sendall(b"*3\r\n$3\r\nSET\r\n$3\r\ncut\r\n$100\r\nhalf")
        sock.close()
    wait_until(lambda: sum(counter(guest, "net_tcp_active")) <= before, "reset connections are gone", limit=REPLY_LIMIT)
    assert guest.ask("resp", b"EXISTS cut\r\n", 4) == b":0\r\n"


def connect_from(guest, port):
    """A connection from a certain port; None while Linux still has the last one (its FIN is not acknowledged yet)."""
    sock = socket.socket()
    sock.settimeout(REPLY_LIMIT)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("", port))
    error = sock.connect_ex((guest.host, guest.info["resp"]))
    if error == 0:
        return sock
    sock.close()
    assert error == errno.EADDRNOTAVAIL, os.strerror(error)
    return None


def test_a_client_reuses_its_port(guest):
    """The guest closes first and keeps TIME_WAIT; the client's next SYN from the same port takes its place."""
    before = sum(counter(guest, "net_time_wait_reused_total"))
    for _ in range(REUSES):
        with wait_until(lambda: connect_from(guest, CLIENT_PORT), "the port is free", limit=REPLY_LIMIT) as sock:
            sock.sendall(b"QUIT\r\n")
            assert read_exactly(sock, 5) == b"+OK\r\n"
            assert sock.recv(1) == b""
    wait_above(guest, "net_time_wait_reused_total", before)


def send_frame(kind, payload):
    """A frame from a stranger on the guest's network."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind((TAP, 0))
        raw.send(ETH_BROADCAST + STRANGER + struct.pack(">H", kind) + payload)


def ip_header(guest, first, fragment, protocol):
    return struct.pack(">BBHHHBBH4s4s", first, 0, 60, 7, fragment, 64, protocol, 0, socket.inet_aton("10.0.2.99"),
                       socket.inet_aton(guest.host))


def open_at_once(guest):
    """BURST connections, opened together; each is answered while all are open."""
    with contextlib.ExitStack() as stack:
        waiting = {}
        for _ in range(BURST):
            sock = stack.enter_context(socket.socket())
            sock.setblocking(False)
            assert sock.connect_ex((guest.host, guest.info["resp"])) in (0, errno.EINPROGRESS)
            waiting[sock.fileno()] = sock
        socks = list(waiting.values())
        poll = select.poll()
        for fd in waiting:
            poll.register(fd, select.POLLOUT)
        while waiting:
            ready = poll.poll(REPLY_LIMIT * 1000)
            assert ready, f"{len(waiting)} of {BURST} connections do not open"
            for fd, _ in ready:
                assert waiting.pop(fd).getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
                poll.unregister(fd)
        for sock in socks:
            sock.settimeout(REPLY_LIMIT)
            ping(sock)


@pytest.mark.descriptors(BURST + SPARE_FILES)
@pytest.mark.parametrize("burst", range(3))
def test_a_burst_of_connections(guest, burst):
    """Far more at once than the queues have buffers: the device runs out of them and goes on, again and again."""
    open_at_once(guest)
    assert guest.ask("resp", b"PING\r\n", 7) == b"+PONG\r\n"


def test_tcp_fragments_are_dropped(guest):
    before = sum(counter(guest, "net_fragments_dropped_total"))
    send_frame(TYPE_IP, ip_header(guest, 0x45, 0x2000, socket.IPPROTO_TCP) + bytes(40))
    wait_above(guest, "net_fragments_dropped_total", before)


def test_malformed_headers_are_counted(guest):
    before = sum(counter(guest, "net_ip_errors_total"))
    # A header that says 60 bytes in a frame that ends before.
    send_frame(TYPE_IP, ip_header(guest, 0x4f, 0, socket.IPPROTO_TCP) + bytes(26))
    wait_above(guest, "net_ip_errors_total", before)


def test_a_claim_of_our_address_is_counted(guest):
    before = sum(counter(guest, "net_arp_spoofs_total"))
    address = socket.inet_aton(guest.host)
    send_frame(TYPE_ARP, struct.pack(">HHBBH6s4s6s4s", 1, TYPE_IP, 6, 4, 2, STRANGER, address, bytes(6), address))
    wait_above(guest, "net_arp_spoofs_total", before)
    assert guest.ask("resp", b"PING\r\n", 7) == b"+PONG\r\n"
