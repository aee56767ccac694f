"""A tap interface in a network namespace of its own, for several queues and for real Linux peers.

The namespace belongs to the process that calls enter(): QEMU and the probes run in it, other programs enter it by
`nsenter -t PID -n PROGRAM`, and the kernel removes it, tap included, when its last process ends.
"""

import ctypes
import os
import socket
import subprocess

from .common import WeirError

CLONE_NEWNET = 0x40000000
# The host's end and the guest's, as in QEMU's user-mode network.
HOST_IP = "10.0.2.2"
PREFIX = 24


def run_ip(*words):
    """Runs ip(8); raises WeirError with its words."""
    try:
        proc = subprocess.run(["ip", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise WeirError("ip is missing: install the package iproute2") from error
    if proc.returncode:
        raise WeirError(f"ip {' '.join(words)}: {proc.stderr.strip()}")


def enter(interface, queues):
    """Moves this process into a new network namespace with a tap that has the host's address."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise WeirError(f"--netns: no network namespace may be made ({reason}): run as root, or make a tap yourself "
                        "and name it with --tap")
    if not os.path.exists("/dev/net/tun"):
        raise WeirError("--netns: no /dev/net/tun: load the kernel's tun module")
    run_ip("link", "set", "lo", "up")
    run_ip("tuntap", "add", "dev", interface, "mode", "tap", *(["multi_queue"] if queues > 1 else []))
    run_ip("addr", "add", f"{HOST_IP}/{PREFIX}", "dev", interface)
    run_ip("link", "set", interface, "up")


def need(interface):
    """Refuses an interface that does not exist; QEMU, run by root, would make one that leads nowhere."""
    if interface not in (name for _, name in socket.if_nameindex()):
        raise WeirError(f"no interface {interface}: make one (ip tuntap add dev {interface} mode tap multi_queue), or "
                        "use --netns")


def guest_words(guest_ip):
    """Command line of a guest behind the tap."""
    return f"net=static ip={guest_ip}/{PREFIX},gw={HOST_IP}"
