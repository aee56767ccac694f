"""Gives QEMU's forwarded ports a backlog that fits a server.

QEMU's user-mode network listens with a backlog of 1. When more clients connect at once than its main loop has accepted,
the host drops their SYN packets and they try again after 1, 3, 7 ... seconds: a benchmark with 50 connections then seems to
hang although the guest is idle. listen() on a socket that listens already changes its backlog, and a process may borrow
the sockets of its child (pidfd_getfd, Linux 5.6), so that is what happens here.
"""

import ctypes
import os
import re
import socket

SYS_PIDFD_OPEN = 434
SYS_PIDFD_GETFD = 438
BACKLOG = 4096  # Linux cuts it to net.core.somaxconn, which is 4096 by default


def listening_fds(usernet_text):
    """QEMU's descriptors of its forwarded ports, from the text of `info usernet`."""
    return [int(fd) for fd in re.findall(r"TCP\[HOST_FORWARD\]\s+(\d+)\s", usernet_text)]


def widen(pid, fds):
    """Widens the backlog of these descriptors of a child process. False: not possible here."""
    libc = ctypes.CDLL(None, use_errno=True)
    process = libc.syscall(SYS_PIDFD_OPEN, pid, 0)
    if process < 0:
        return False
    try:
        for fd in fds:
            own = libc.syscall(SYS_PIDFD_GETFD, process, fd, 0)
            if own < 0:
                return False
            with socket.socket(fileno=own) as sock:
                sock.listen(BACKLOG)
    except OSError:
        return False
    finally:
        os.close(process)
    return True
