"""Figures of placement from a trace: each against what a small trace made by hand must give."""

import json
import os
import subprocess

import pytest

from conftest import TOP
from weirlib import placement

CPUS, APP = 5000000, 9
LIMIT = 60


def process(pid, name):
    return {"ph": "M", "pid": pid, "tid": pid, "name": "process_name", "args": {"name": name}}


def track(pid, tid, name):
    return {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}


def span(pid, tid, begin, end, name):
    return {"ph": "X", "pid": pid, "tid": tid, "ts": begin, "dur": end - begin, "name": name, "args": {}}


def move(tid, at, reason, source, target):
    return {"ph": "i", "pid": APP, "tid": tid, "ts": at, "s": "t", "name": f"migrate: {reason}", "args": {"from": source, "to": target}}


HEAD = [process(CPUS, "CPUs"), track(CPUS, 1, "CPU 0"), track(CPUS, 2, "CPU 1"), process(APP, "app"), track(APP, 11, "a"),
        track(APP, 12, "b")]
# b wakes at 20 behind a, is fetched at 50 by CPU 1, which was idle from 0 to 30 and polled from 30 to 50; goes back at 60 and again.
TRACE = HEAD + [
    span(APP, 11, 0, 100, "running"), span(APP, 12, 0, 20, "blocked: socket"), span(APP, 12, 20, 50, "runnable"),
    span(APP, 12, 50, 70, "running"), span(APP, 12, 70, 90, "runnable"), span(APP, 12, 90, 100, "running"),
    span(CPUS, 2, 0, 30, "idle"), span(CPUS, 2, 30, 50, "waiting for work"),
    move(12, 50, "pull", 0, 1), move(12, 60, "wake", 1, 0), move(12, 65, "balance", 0, 1),
]


def test_figures_of_a_small_trace():
    found = placement.figures(TRACE)
    assert (found["cpus"], found["threads"], found["duration_us"]) == (2, 2, 100)
    assert found["wakeups"] == 1 and found["wakeup_p50_us"] == found["wakeup_max_us"] == 30, "preempted is not woken"
    assert found["queue_wait_mean_us"] == 25
    assert found["migrations_by_reason"] == {"balance": 1, "pull": 1, "wake": 1} and found["pingpong"] == 2
    assert found["idle_overloaded_share"] == pytest.approx(30 / 200), "CPU 1 was idle for 30 us beside b"
    assert found["longest_violation_us"] == 30, "a CPU that polls is idle too"
    assert found["jain"] == pytest.approx((100 + 30) ** 2 / (2 * (100 ** 2 + 30 ** 2)))
    assert found["runs_per_second"] == pytest.approx(3 / 100e-6)


def test_moves_long_after_are_no_pingpong():
    late = placement.PINGPONG_US + 1
    assert placement.figures(HEAD + [move(11, 0, "wake", 0, 1), move(11, late, "wake", 1, 0)])["pingpong"] == 0
    assert placement.figures(HEAD + [move(11, 0, "wake", 0, 1), move(11, late - 1, "wake", 1, 0)])["pingpong"] == 1


def test_an_empty_trace_has_figures_too():
    found = placement.figures(HEAD)
    assert found["wakeups"] == found["migrations"] == 0 and found["jain"] == 1.0


@pytest.mark.parametrize("values, q, expected", [([], 0.5, 0.0), ([7], 0.99, 7), ([1, 2, 3, 4], 0.5, 2), ([1, 2, 3, 4], 0.99, 4)])
def test_quantiles(values, q, expected):
    assert placement.quantile(values, q) == expected


@pytest.mark.parametrize("content", ["", "{", "[]", '{"traceEvents": 5}', '{"events": []}', '{"traceEvents": [{"ph": "X"}]}'])
def test_what_is_no_trace_is_one_line(tmp_path, content):
    path = tmp_path / "t.json"
    path.write_text(content)
    done = subprocess.run([os.path.join(TOP, "scripts", "weir-placement"), str(path)], capture_output=True, text=True, timeout=LIMIT,
                          check=False)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "t.json" in done.stderr, done.stderr


def test_command_writes_json(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": TRACE}))
    done = subprocess.run([os.path.join(TOP, "scripts", "weir-placement"), str(path), "--json"], capture_output=True, text=True,
                          timeout=LIMIT, check=True)
    assert json.loads(done.stdout)["migrations"] == 3
