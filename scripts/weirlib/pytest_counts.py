"""pytest plug-in: ends the output in "N passed, N failed" and says how to repeat a failed test.

Also raises the limit of file descriptors as far as it goes and knows the mark descriptors(n). Loaded with `-p weirlib.pytest_counts`. WEIR_TIER names the make target (test-NAME) in the hint.
"""

import os

import pytest

from weirlib import descriptors


class Counts:
    """What the run had, filled as reports come in."""

    def __init__(self):
        self.passed = 0
        self.failed = 0


COUNTS = Counts()


def pytest_runtest_logreport(report):
    """A test that fails in any phase counts once; a skipped one counts as neither, and is listed."""
    if report.failed:
        COUNTS.failed += 1
        tier = os.environ.get("WEIR_TIER", "qemu")
        name = report.nodeid.split("/")[-1]
        report.sections.append(("repeat", f"make test-{tier} T='{name}'"))
    elif report.when == "call" and report.passed:
        COUNTS.passed += 1


def pytest_configure(config):
    config.addinivalue_line("markers", "descriptors(n): skipped where a process may not have so many")
    descriptors.raise_to_hard()


def pytest_runtest_setup(item):
    for mark in item.iter_markers("descriptors"):
        if not descriptors.allowed(mark.args[0]):
            pytest.skip(f"needs {mark.args[0]} file descriptors, more than this process may have")


def pytest_collectreport(report):
    """A file that cannot be read is a failed test."""
    if report.failed:
        COUNTS.failed += 1


def pytest_unconfigure(config):
    """The last line, after pytest's own summary."""
    del config
    print(f"{COUNTS.passed} passed, {COUNTS.failed} failed", flush=True)
