"""Ports on the host: free ones, taken ones, and whether a server answers behind them."""

import re
import socket
import threading
import time

from .common import HOST_ADDRESS, WeirError

# What to send, and how the answer must begin.
PROBES = {
    "resp": (b"PING\r\n", b"+PONG"),
    "mc": (b"version\r\n", b"VERSION"),
    "proxy-resp": (b"*1\r\n$4\r\nPING\r\n", b"+PONG"),      # no inline commands either
    "proxy-mc": (b"get weir:probe\r\n", b"END"),     # nutcracker has no version
    "http": (b"GET /metrics HTTP/1.0\r\n\r\n", b"HTTP/1."),
}
# An attempt waits this long for its answer (seconds), each longer than the one before: QEMU accepts
# a connection before the guest does and may hold it for ever.
FIRST_WAIT = 0.25
WAIT_GROWTH = 1.5
LONGEST_WAIT = 5.0
PAUSE = 0.05


def parse(text):
    """A port option: 'off', or 0..65535."""
    if text == "off":
        return text
    if not text.isdigit() or int(text) > 65535:
        raise ValueError(f"'{text}' is not a port (0..65535, or off)")
    return int(text)


def check_different(forwards):
    """Refuses one host port for two services."""
    taken = {}
    for service, port in forwards.items():
        if port and port in taken:
            raise WeirError(f"port {port} is asked for twice, by --{taken[port]} and by --{service}")
        taken[port] = service


def check_free(service, port):
    """Refuses a host port that another program listens on."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((HOST_ADDRESS, port))
        except PermissionError as error:
            raise WeirError(f"port {port} may not be used by this user; choose another with "
                            f"--{service} PORT") from error
        except OSError as error:
            raise WeirError(f"port {port} on {HOST_ADDRESS} is in use; choose another with "
                            f"--{service} PORT (0: any free one)") from error


def forwarded(usernet_text, guest_ports):
    """{service: host port} from the text of QEMU's `info usernet`."""
    found = {}
    for match in re.finditer(r"TCP\[HOST_FORWARD\]\s+\S+\s+\S+\s+(\d+)\s+\S+\s+(\d+)", usernet_text):
        for service, guest_port in guest_ports.items():
            if int(match.group(2)) == guest_port:
                found[service] = int(match.group(1))
    return found


def answers(address, service, wait):
    """True if the service answers its probe within `wait` seconds."""
    request, expected = PROBES[service]
    try:
        with socket.create_connection(address, timeout=wait) as sock:
            sock.settimeout(wait)
            sock.sendall(request)
            data = b""
            while len(data) < len(expected):
                part = sock.recv(4096)
                if not part:
                    return False
                data += part
            return data.startswith(expected)
    except OSError:
        return False


class Prober(threading.Thread):
    """Asks services one after another until each has answered; then `done` is set."""

    def __init__(self, host, services):
        super().__init__(daemon=True)
        self.host = host
        self.waiting = dict(services)
        self.done = threading.Event()
        self.ended = threading.Event()

    def run(self):
        wait = FIRST_WAIT
        while self.waiting and not self.ended.is_set():
            for service, port in list(self.waiting.items()):
                if answers((self.host, port), service, wait):
                    del self.waiting[service]
            wait = min(wait * WAIT_GROWTH, LONGEST_WAIT)
            time.sleep(PAUSE if self.waiting else 0)
        if not self.waiting:
            self.done.set()
