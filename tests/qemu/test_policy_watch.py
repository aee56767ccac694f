"""Policies that misbehave are replaced by drain, with one log line and a counter. They exist in debug kernels only."""

import os
import re

import pytest

from weir_guest import TOP, Ended

APP = os.path.join(TOP, "build", "apps", "guest-tests")
OFF = ["--resp", "off", "--mc", "off", "--http", "off", "--smp", "4", "--build", "debug", "--app", APP]


@pytest.mark.parametrize("policy, why", [
    ("bad-loop", "did not come back"),
    # All its answers are bad: which of them is the last one that is borne depends on who asks when.
    ("bad-answer", "chose a CPU that is not allowed|planned (more moves than allowed|a move of or to something that does not exist)"
                   "|pulls from a CPU that does not exist"),
])
def test_replaced(policy, why):
    ended = Ended("watch-" + policy, *OFF, append=f"net=none sched.policy={policy} test=thread")
    assert ended.code == 0, ended.why()
    lines = re.findall(rf"policy {policy} .*: replaced by drain", ended.console)
    assert len(lines) == 1 and re.search(why, lines[0]), ended.why()
    assert re.search(r"^[1-9]\d* passed, 0 failed", ended.console, re.M), ended.why()
