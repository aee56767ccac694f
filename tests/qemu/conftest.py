"""Fixtures: guests that the tests of a module share."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from weir_guest import Guest  # noqa: E402

# vCPUs of the shared guest: more than the host has, few enough to be quick.
SHARED_SMP = "4"


@pytest.fixture(scope="module")
def guest(request):
    """One guest with the key-value server for all tests of a module; it must end in order.

    A module may set GUEST_OPTIONS (words for scripts/weir run) and GUEST_APPEND."""
    name = request.module.__name__
    options = getattr(request.module, "GUEST_OPTIONS", ["--smp", SHARED_SMP])
    with Guest(name, *options, append=getattr(request.module, "GUEST_APPEND", "")) as running:
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
