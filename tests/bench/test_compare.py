"""scripts/weir compare: matching, spread, marks, refusals."""

import importlib.machinery
import importlib.util
import json
import os

import emulator
import pytest

PATH = os.path.join(emulator.TOP, "scripts", "weir-compare")
loader = importlib.machinery.SourceFileLoader("weir_compare", PATH)
compare = importlib.util.module_from_spec(importlib.util.spec_from_loader("weir_compare", loader))
loader.exec_module(compare)


def write(path, rates, policy="drain", clock="virtual", **more):
    points = [dict({"peer": "weir", "policy": policy, "vcpus": 16, "conns": c, "rep": i, "rps": r, "p99_us": 50.0}, **more)
              for c, reps in rates.items() for i, r in enumerate(reps)]
    path.write_text(json.dumps({"config": {"clock": clock}, "points": points}))
    return str(path)


def test_a_loss_outside_the_spread_is_marked(tmp_path, capsys):
    a = write(tmp_path / "a", {8: [100, 101, 102], 16: [100, 110, 120]})
    b = write(tmp_path / "b", {8: [90, 91, 92], 16: [105, 112, 118]})
    assert compare.main([a, b]) == 1
    out = capsys.readouterr().out
    assert "conns=8" in out and "WORSE" in out and "-9.9%" in out
    assert "conns=16" not in out and "2 points compared, 1 with a change" in out


def test_a_gain_is_no_failure(tmp_path, capsys):
    a, b = write(tmp_path / "a", {8: [100, 101]}), write(tmp_path / "b", {8: [200, 201]})
    assert compare.main([a, b]) == 0
    assert "better" in capsys.readouterr().out


def test_single_runs_are_not_judged(tmp_path, capsys):
    a, b = write(tmp_path / "a", {8: [100]}), write(tmp_path / "b", {8: [80]})
    assert compare.main([a, b]) == 0
    assert "?" in capsys.readouterr().out


def test_two_policies_of_one_file(tmp_path, capsys):
    a = write(tmp_path / "a", {32: [100, 101]}, policy="legacy")
    b = write(tmp_path / "b", {32: [180, 181]}, policy="drain")
    assert compare.main([a, b, "--policy", "legacy:drain"]) == 0
    assert "+79.6%" in capsys.readouterr().out


@pytest.mark.parametrize("change, says", [({"clock": "real"}, "different clocks"), ({"conns": 9}, "no point in common")])
def test_what_cannot_be_compared_is_refused(tmp_path, capsys, change, says):
    a = write(tmp_path / "a", {8: [100]})
    b = write(tmp_path / "b", {change.get("conns", 8): [100]}, clock=change.get("clock", "virtual"))
    assert compare.main([a, b]) == 2
    assert says in capsys.readouterr().err


def test_a_missing_file_is_one_line(tmp_path, capsys):
    assert compare.main([str(tmp_path / "none"), str(tmp_path / "none")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
