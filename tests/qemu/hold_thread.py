#!/usr/bin/python3
"""Takes the CPU away from one thread for a part of the time, as a busy host does: hold_thread.py TID OFF_MS ON_MS

By ptrace(2): the thread is stopped for OFF_MS and runs for ON_MS, in turn, until standard input ends. Signals that reach it meanwhile
are passed on. Prints "held" after the first stop. Exit status 3 if this host does not allow it.
"""
import ctypes
import os
import select
import signal
import sys
import time

PTRACE_CONT, PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 7, 17, 0x4206, 0x4207
PTRACE_EVENT_STOP = 128
WALL = 0x40000000
POLL_S = 0.001
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long] * 4


def ptrace(request, tid, data=0):
    if LIBC.ptrace(request, tid, 0, data) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def stopped_by(status):
    """The signal to pass on, 0 for a stop of our own making."""
    return 0 if status >> 16 == PTRACE_EVENT_STOP or not os.WIFSTOPPED(status) else os.WSTOPSIG(status)


def run_for(tid, seconds):
    """Lets the thread run; a signal that stops it on the way goes on to it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(tid, WALL | os.WNOHANG)
        if pid and os.WIFSTOPPED(status):
            ptrace(PTRACE_CONT, tid, stopped_by(status))
        time.sleep(POLL_S)


def stop(tid):
    """Stops it; returns once it stands."""
    ptrace(PTRACE_INTERRUPT, tid)
    while True:
        _, status = os.waitpid(tid, WALL)
        if not os.WIFSTOPPED(status):
            raise ProcessLookupError
        if not stopped_by(status):
            return
        ptrace(PTRACE_CONT, tid, stopped_by(status))


def main():
    tid, off_s, on_s = int(sys.argv[1]), int(sys.argv[2]) / 1000, int(sys.argv[3]) / 1000
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ptrace(PTRACE_SEIZE, tid)
    except PermissionError as error:
        print(error, file=sys.stderr)
        return 3
    first = True
    try:
        while not select.select([sys.stdin], [], [], 0)[0]:
            stop(tid)
            if first:
                print("held", flush=True)
                first = False
            time.sleep(off_s)
            ptrace(PTRACE_CONT, tid)
            run_for(tid, on_s)
        stop(tid)
        ptrace(PTRACE_DETACH, tid)
    except ProcessLookupError:
        pass    # the emulator has ended
    return 0


if __name__ == "__main__":
    sys.exit(main())
