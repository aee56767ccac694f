"""pool.py and tail.py: what they conclude from points, and that their machinery brings those points."""

import copy
import json

import experiment
import plan
import pool
import pytest
import tail


def pool_point(group, conns, rps, p99, idle, verdict):
    return {"group": group, "conns": conns, "rps": rps, "p99_us": p99, "idle_share": idle, "verdict": verdict, "evidence": "because"}


def pool_points():
    many = max(pool.BUSY_CONNS)
    return [pool_point("narrow", 4, 280e3, 20, 0.8, "client-bound"), pool_point("narrow", 16, 750e3, 30, 0.7, "concurrency-bound"),
            pool_point("narrow", 64, 770e3, 95, 0.66, "concurrency-bound"), pool_point("cure", 64, 1100e3, 190, 0.03, "core-bound"),
            pool_point("busy", many, 420e3, 2800, 0.0, "core-bound"), pool_point("busy wide", many, 420e3, 2800, 0.0, "core-bound"),
            pool_point("busy absurd", many, 265e3, 2000, 0.0, "core-bound")]


def failed(claims):
    return [text for text, held, _ in claims if not held]


def test_the_pool_claims_hold_for_what_was_measured():
    claims = pool.claims(pool_points())
    assert len(claims) == 7 and not failed(claims)
    assert all(evidence for _, _, evidence in claims)


@pytest.mark.parametrize("group, conns, change, fails", [
    ("narrow", 64, {"rps": 1500e3}, ["narrow pool: flat", f"{pool.CURE} workers cure it"]),
    ("narrow", 64, {"idle_share": 0.05}, ["narrow pool: at a quarter of the CPU"]),
    ("narrow", 64, {"verdict": "placement-bound"}, ["narrow pool: verdict"]),
    ("cure", 64, {"rps": 780e3}, [f"{pool.CURE} workers cure it"]),
    ("busy", 512, {"verdict": "client-bound"}, ["busy machine: verdict"]),
    ("busy wide", 512, {"rps": 600e3}, ["busy machine: wider brings nothing"]),
    ("busy absurd", 512, {"rps": 420e3}, ["an absurd width costs"]),
])
def test_a_pool_claim_that_is_not_so_is_not_shown(group, conns, change, fails):
    points = pool_points()
    next(p for p in points if (p["group"], p["conns"]) == (group, conns)).update(change)
    assert failed(pool.claims(points)) == fails


def test_a_series_left_out_is_not_claimed_about():
    assert [c[0] for c in pool.claims([p for p in pool_points() if p["group"] == "narrow"])] == [
        "narrow pool: flat", "narrow pool: at a quarter of the CPU", "narrow pool: verdict"]
    assert not tail.claims([])


def tail_point(group, p99, longest, hold_us):
    return {"group": group, "p50_us": 18.0, "p99_us": p99, "max_us": longest, "info": {"lock_hold_max_ns": hold_us * 1000}}


def tail_points():
    return [tail_point("1 stop", 635.0, 1216.0, 1066), tail_point("64 stop", 35.0, 90.0, 61),
            tail_point("1 incremental", 38.0, 90.0, 52), tail_point("64 incremental", 31.0, 80.0, 67)]


def test_the_tail_claims_hold_for_what_was_measured():
    claims = tail.claims(tail_points())
    assert len(claims) == 8 and not failed(claims)


@pytest.mark.parametrize("number, change, fails", [
    (0, {"p99_us": 60.0}, ["one shard, stop-the-world: a flat median and a long tail", "64 shards: the tail is gone",
                           "an incremental rehash: the tail is gone", "both: the tail is gone"]),
    (0, {"max_us": 700.0}, ["the longest hold is the tail seen from outside"]),
    (1, {"p99_us": 600.0}, ["64 shards: the tail is gone"]),
    (2, {"info": {"lock_hold_max_ns": 900000}}, ["an incremental rehash: the tail is gone"]),
    (3, {"p50_us": 40.0}, ["both: the median is unmoved"]),
])
def test_a_tail_claim_that_is_not_so_is_not_shown(number, change, fails):
    points = copy.deepcopy(tail_points())
    points[number].update(change)
    assert failed(tail.claims(points)) == fails


def test_the_result_says_which_claims_were_shown(tmp_path, capsys):
    path = tmp_path / "deep" / "x.json"
    assert experiment.finish(str(path), [], [("it works", True, "1"), ("it flies", False, "0")]) == 1
    assert "NOT shown it flies: 0" in capsys.readouterr().out
    record = json.loads(path.read_text())
    assert [c["shown"] for c in record["claims"]] == [True, False] and record["clock"].startswith("virtual")
    assert experiment.finish(str(path), [], [("it works", True, "1")]) == 0


def test_an_unknown_series_is_refused():
    with pytest.raises(SystemExit, match="no series is called nothing"):
        pool.experiment.main(pool.__doc__, "pool", ["--only", "nothing", "--time-ms", "1"], pool.boots, pool.COLUMNS, pool.row,
                             pool.claims, (("--time-ms", {"type": int}),))


def test_a_short_run_brings_locks_and_width():
    boot = plan.Boot("weir", "flow", 2, (4,), 1, "1 stop", time_ms=4, warmup_ms=1, gen_cpus=2, slice_ms=0,
                     gen_args="--rate 50000 --gets 0 --keys 100000 --value 32 --preload no --info locks",
                     env=(("KV_SHARDS", "1"), ("KV_LOCK_STATS", "1"), ("KV_DISPATCH", "pool"), ("KV_MAX_WORKERS", "2"),
                          ("KV_MIN_WORKERS", "1")))
    (point,) = experiment.run([boot])
    assert point["errors"] == 0 and point["dispatch_width"] == 2 and point["verdict"]
    info = point["info"]
    assert info["lock_stats"] == "on" and info["lock_acquisitions"] >= point["requests"] > 0
    assert info["lock_hold_max_ns"] >= info["lock_hold_p50_ns"]
    assert len(tail.row(point)) == len(tail.COLUMNS) and len(pool.row(point)) == len(pool.COLUMNS)
