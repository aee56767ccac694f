"""A small client of QEMU's machine protocol (QMP) over a local socket."""

import json
import socket
import time

from .common import POLL_INTERVAL

CONNECT_TIMEOUT = 30.0   # seconds until the emulator has opened its socket
ANSWER_TIMEOUT = 30.0    # seconds until it has answered a command


class QmpClosed(Exception):
    """The emulator is gone."""


class Qmp:
    """One connection. Events that arrive are kept in `events`."""

    def __init__(self, path, alive):
        """Connects; alive() tells whether the emulator still runs."""
        self.events = []
        self.buffer = b""
        self.closed = False
        deadline = time.monotonic() + CONNECT_TIMEOUT
        while True:
            self.sock = socket.socket(socket.AF_UNIX)
            try:
                self.sock.connect(path)
                break
            except OSError as error:
                self.sock.close()
                if not alive() or time.monotonic() > deadline:
                    raise QmpClosed("no QMP connection") from error
                time.sleep(POLL_INTERVAL)
        self.read_message(ANSWER_TIMEOUT)
        self.command("qmp_capabilities")

    def fileno(self):
        return self.sock.fileno()

    def read_message(self, timeout):
        """The next message within `timeout` seconds, None if there is none."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            self.sock.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                data = self.sock.recv(65536)
            except socket.timeout:
                return None
            except OSError as error:
                self.closed = True
                raise QmpClosed("QMP connection lost") from error
            if not data:
                self.closed = True
                raise QmpClosed("QMP connection closed")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def command(self, name, **arguments):
        """Runs a command; its return value. Raises QmpClosed if the emulator ends instead."""
        request = {"execute": name}
        if arguments:
            request["arguments"] = arguments
        try:
            self.sock.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            self.closed = True
            raise QmpClosed("QMP connection lost") from error
        deadline = time.monotonic() + ANSWER_TIMEOUT
        while time.monotonic() < deadline:
            message = self.read_message(deadline - time.monotonic())
            if message is None:
                break
            if "event" in message:
                self.events.append(message)
            elif "error" in message:
                raise RuntimeError(f"QMP {name}: {message['error'].get('desc')}")
            else:
                return message.get("return")
        raise QmpClosed(f"QMP {name}: no answer")

    def poll(self, timeout):
        """Takes in events for at most `timeout` seconds or until one has come."""
        if self.closed:
            return
        try:
            message = self.read_message(timeout)
            while message is not None:
                if "event" in message:
                    self.events.append(message)
                message = self.read_message(0.0) if b"\n" in self.buffer else None
        except QmpClosed:
            pass

    def reset_seen(self):
        """True if the guest reset itself instead of powering off."""
        return any(event["event"] == "SHUTDOWN" and
                   event.get("data", {}).get("reason") == "guest-reset" for event in self.events)
