"""Fixtures: one guest for all tests of a module (see tests/qemu/weir_guest.py)."""

import os
import sys
import threading

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "qemu"))
from weir_guest import Guest  # noqa: E402


@pytest.fixture(scope="module")
def guest(request):
    """The module's guest; it must end in order. A module sets GUEST_OPTIONS and GUEST_APPEND."""
    name = "obs-" + request.module.__name__
    with Guest(name, *request.module.GUEST_OPTIONS, append=request.module.GUEST_APPEND) as running:
        yield running
        code = running.stop()
        assert code == 0, f"the guest of {name} ended with code {code}; console: {running.log}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Adds the guest's command and log to a failed test's report."""
    outcome = yield
    report = outcome.get_result()
    running = item.funcargs.get("guest") if hasattr(item, "funcargs") else None
    if report.failed and running is not None:
        report.sections.append(("guest", f"{' '.join(running.words)}\nconsole: {running.log}"))
    del call


def write_load(guest, stop, requests):
    """SETs to changing keys over one connection until told to stop; requests[0] counts them."""
    with guest.connect("resp") as sock:
        i = 0
        while not stop.is_set():
            i += 1
            sock.sendall(b"SET key:%d:%d %s\r\n" % (id(sock) % 1000, i, b"v" * 100))
            if not sock.recv(4096):
                return
            requests[0] += 1


@pytest.fixture
def load(guest):
    """Four connections that write as fast as they can, while the test runs."""
    stop, requests = threading.Event(), [0]
    threads = [threading.Thread(target=write_load, args=(guest, stop, requests), daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    yield requests
    stop.set()
    for thread in threads:
        thread.join(timeout=300)
