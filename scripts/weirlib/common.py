"""Paths, tunables and the error type shared by the modules of scripts/weir."""

import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, "build")
RUN_DIR = os.path.join(BUILD, "run")

# Guest ports of the key-value server and of the kernel's HTTP server.
GUEST_PORTS = {"resp": 6379, "mc": 11211, "http": 9100}
HOST_ADDRESS = "127.0.0.1"

# Exit codes of scripts/weir itself. The guest's own codes are 0..127 with 101 for a panic.
EXIT_USAGE = 2           # bad options, something missing on the host
EXIT_RESET = 102         # the guest reset itself (a triple fault)
EXIT_FORCED = 124        # it did not power off when asked, and was ended
EXIT_NOT_READY = 125     # it did not answer in time
EXIT_SIGNALLED = 128     # plus the number of the signal that ended QEMU

# Seconds. All generous: the host may have few cores and the guest many vCPUs, emulated.
READY_TIMEOUT = 180      # from start to the first answer
SHUTDOWN_TIMEOUT = 60    # from the power button to power-off
KVM_PROBE_TIMEOUT = 10   # a CPU that runs needs 0.1
POLL_INTERVAL = 0.02     # between looks at a condition

# Run directories kept under build/run, the oldest ended ones go first.
KEPT_RUNS = 50


class WeirError(Exception):
    """Something the user can do something about; the message is one line."""


def say(text):
    """One line about what happens, apart from the console's output."""
    print(f"weir: {text}", file=sys.stderr, flush=True)


def build_file(name, flavour):
    """Path of a built file in the release or debug tree."""
    parts = [BUILD] if flavour == "release" else [BUILD, flavour]
    return os.path.join(*parts, name)


def shown(path):
    """A path as the user sees it: relative to the tree if it lies inside."""
    relative = os.path.relpath(path, TOP)
    return path if relative.startswith("..") else relative
