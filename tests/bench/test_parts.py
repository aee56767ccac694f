"""Parts of the harness: verdicts, goals, drawing, archives, results, progress."""

import io
import os
import shutil
import subprocess
import xml.etree.ElementTree as xml

import cpio
import goals
import peer
import plan
import progress
import pytest
import report
import results
import svg
import verdict


def make(conns=32, **fields):
    point = {"peer": "weir", "policy": "drain", "vcpus": 16, "conns": conns, "rep": 1, "group": "sweep", "mode": "vtime",
             "rps": 1000.0, "p50_us": 40.0, "mean_us": 40.0, "p99_us": 80.0, "p999_us": 90.0, "max_us": 99.0, "idle_share": 0.5,
             "cpus_used": 16, "migrations": 10, "ipis": 5, "switches": 100, "requests": 100, "client_bound": False}
    point.update(fields)
    return point


@pytest.mark.parametrize("fields, unloaded, expected", [
    ({"idle_share": 0.03}, 10.0, "core-bound"),
    ({"client_bound": True, "client_busy_mean": 0.95}, 10.0, "client-bound"),
    ({"conns": 1, "idle_share": 0.95, "mean_us": 10.0}, 10.0, "client-bound"),
    ({"dispatch_width": 4}, 10.0, "concurrency-bound"),
    ({"dispatch_width": 64, "cpus_used": 4}, 10.0, "placement-bound"),
    ({"cpus_used": 4}, 10.0, "placement-bound"),
    ({"cpus_used": None}, 10.0, "placement-bound"),
    ({"busy_share": [0.1] * 15 + [1.0]}, 10.0, "placement-bound"),
    ({"mean_us": None}, 10.0, "placement-bound"),
    ({"idle_share": None}, 10.0, "unmeasured"),
])
def test_verdicts(fields, unloaded, expected):
    name, evidence = verdict.classify(make(**fields), unloaded)
    assert name == expected and evidence


def test_a_series_without_an_unloaded_point_borrows_the_sweep():
    points = [make(1, mean_us=10.0), make(64, group="scaling", mean_us=40.0, cpus_used=4)]
    verdict.annotate(points)
    assert points[1]["verdict"] == "placement-bound" and "4.0 times" in points[1]["evidence"]


def rows_of(points):
    verdict.annotate(points)
    return results.summary(points)


def test_summary_takes_medians_and_spread():
    (row,) = rows_of([make(rep=r, rps=v) for r, v in ((1, 90.0), (2, 100.0), (3, 104.0))])
    assert row["rps"] == 100.0 and row["reps"] == 3 and row["rps_spread"] == pytest.approx(0.07)


def test_goals_tell_reached_and_not():
    points = [make(c, policy=p, rps=r) for p, r in (("legacy", 100.0), ("drain", 180.0)) for c in (8, 16)]
    points += [make(16, peer="linux-kv", policy="cfs", rps=100.0, p99_us=90.0)]
    told = {name: ok for name, ok, _ in goals.check(rows_of(points))}
    assert told["drain >= 1.7x legacy before it converges, c >= 16"] is True
    assert told["drain >= Linux with the same server, everywhere"] is True
    assert told["drain >= 2.0x Linux, c >= 16"] is False
    assert told["p99 of drain <= 0.5x Linux's"] is False


def test_goals_need_their_points():
    assert goals.check([]) == []


@pytest.mark.parametrize("drawing", [
    svg.line_chart("a & b", [("x<y", "drain", "circle", [(1, 5), (16, 80), (4, None)])], "c", "y"),
    svg.line_chart("log", [("x", "flow", "cross", [(1, 0.5), (2, 900)])], "c", "y", y_log=True),
    svg.line_chart("one", [("x", "flow", "cross", [(1, 0)])], "c", "y"),
    svg.heat_map("m", [[0.1, 1.0, None], [0.5, 0.2, 0.0]], "CPU", "ms", 0.1),
    svg.stacked_bars("b", [("x", {"app": 0.5, "idle": 0.5})], report.TIME_KINDS),
])
def test_drawings_are_well_formed(drawing):
    assert xml.fromstring(drawing).tag.endswith("svg")


def test_nothing_to_draw_is_empty():
    assert svg.line_chart("t", [("x", "c", "circle", [])], "c", "y") == ""
    assert svg.heat_map("t", [], "CPU", "ms", 1) == ""


@pytest.mark.parametrize("low, high", [(0, 1), (0, 1234567), (3, 3), (0.001, 0.002)])
def test_ticks_cover_the_range(low, high):
    ticks = svg.nice_ticks(low, high)
    assert ticks[0] <= low and ticks[-1] >= high * 0.999 and 2 <= len(ticks) <= 8


@pytest.mark.parametrize("low, high", [(1, 1), (9.9, 1100), (0.3, 0.4), (20, 3000000)])
def test_decade_ticks_cover_the_range(low, high):
    ticks = svg.decade_ticks(low, high)
    assert ticks[0] <= low and ticks[-1] >= high


def test_archive_is_read_by_cpio(tmp_path):
    busybox = os.path.join(peer.ROOT, "bin", "busybox")
    program = ["cpio"] if shutil.which("cpio") else [busybox, "cpio"]
    if program[0] == busybox and not os.path.exists(busybox):
        pytest.skip("no cpio on this machine, and the Linux peer is not fetched")
    archive = cpio.Archive()
    archive.file("sub/dir/a", b"hello", 0o600)
    archive.link("b", "sub/dir/a")
    subprocess.run(program + ["-i", "-d", "-m"], input=archive.data(), cwd=tmp_path, check=True, timeout=300)
    assert (tmp_path / "b").read_bytes() == b"hello"


def test_progress_learns_from_finished_boots():
    now = [0.0]
    boots = [plan.Boot("weir", "drain", 16, (32,), r, "sweep") for r in (1, 2, 3)]
    p = progress.Progress(boots, io.StringIO(), lambda: now[0])
    first = p.left()
    p.start(boots[0])
    now[0] += 2 * boots[0].estimate_s()
    p.end(boots[0])
    assert p.left() == pytest.approx(first * 2 / 3 * 2)


def test_a_slow_host_is_slow_for_the_other_kind_too():
    now = [0.0]
    boots = [plan.Boot("weir", "drain", 16, (1,), 1, "sweep"), plan.Boot("linux-kv", "cfs", 16, (1,), 1, "sweep")]
    p = progress.Progress(boots, io.StringIO(), lambda: now[0])
    p.start(boots[0])
    now[0] += 3 * boots[0].estimate_s()
    p.end(boots[0])
    assert p.left() == pytest.approx(3 * boots[1].estimate_s())


def test_a_broken_results_file_is_refused(tmp_path):
    for text, says in (("{", "not JSON"), ("[]", "no list of points"), ('{"points": [{}]}', "no rps")):
        path = tmp_path / "r.json"
        path.write_text(text)
        with pytest.raises(ValueError, match=says):
            results.load(path)
