#!/usr/bin/python3
"""Tests of the simulator and, in it, of the policies.

usage: tests/sim/test_sim.py [--only NAME] [--list]      (run by make test-sim, T=NAME)

Only counts, ratios and simulated times are asserted, never the host's. The last line is "N passed, N failed".
"""
import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import traceback
import xml.dom.minidom

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIM = os.path.join(TOP, "build", "sim", "weir-sim")
TIMEOUT = 600  # a run takes seconds at most; a busy host may take longer
TESTS = {}


def test(fn):
    TESTS[fn.__name__] = fn
    return fn


def run(*args, status=0):
    """Runs weir-sim; returns (stdout, stderr)."""
    done = subprocess.run([SIM, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT,
                          check=False)
    assert done.returncode == status, f"weir-sim {' '.join(map(str, args))}: status {done.returncode}, not {status}\n{done.stderr}"
    return done.stdout, done.stderr


def points(*args):
    """The points of a run, as written to its JSON file."""
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "out.json")
        run(*args, "--json", path)
        with open(path, encoding="utf-8") as f:
            return json.load(f)["points"]


def by_policy(rows):
    return {(r["policy"], r["conns"]): r for r in rows}


def at_most(value, limit, what):
    assert value <= limit, f"{what}: {value}, limit {limit}"


def at_least(value, limit, what):
    assert value >= limit, f"{what}: {value}, at least {limit}"


@test
def same_seed_same_run():
    args = ("--policy", "flow", "--workload", "server", "--conns", 16, "--seed", 7)
    assert points(*args) == points(*args)
    other = points(*args[:-1], 8)
    assert other != points(*args), "another seed gave the same run"


@test
def contract_of_the_json():
    row = points("--policy", "drain", "--workload", "spinners")[-1]
    for key in ("policy cpus workload conns seed rps fraction_of_ideal wakeup_p50_us wakeup_p99_us migrations migrations_needed "
                "pingpong idle_overloaded_share longest_violation_us convergence_passes jain").split():
        assert key in row, f"no {key}"


@test
def convergence_equals_the_bound():
    for cpus, threads in ((16, 32), (4, 9), (64, 200), (1024, 2048)):
        rows = points("--policy", "drain,flow", "--cpus", cpus, "--workload", "spinners", "--conns", threads, "--measure", 100,
                      "--no-ideal")
        stay = -(-threads // cpus)
        bound = -(-(threads - stay) // cpus)
        for r in rows:
            assert r["convergence_passes"] == bound, f"{r['policy']}, {threads} on {cpus}: {r['convergence_passes']} passes, not {bound}"
            assert r["migrations"] == threads - stay, f"{r['policy']}: {r['migrations']} moves, not {threads - stay}"
            assert r["pingpong"] == 0


@test
def legacy_takes_one_pass_a_thread():
    row = points("--policy", "legacy", "--workload", "spinners", "--measure", 4000, "--no-ideal")[0]
    assert row["convergence_passes"] == 30, row["convergence_passes"]


@test
def report_collapse_and_cure():
    rows = by_policy(points("--policy", "none,legacy,drain", "--workload", "server", "--conns", "1,2,4,8,16,32,64", "--no-ideal"))
    for c in (16, 32, 64):
        at_least(rows["drain", c]["rps"] / rows["legacy", c]["rps"], 1.7, f"drain over legacy at {c} connections")
        assert rows["legacy", c]["cpus_used"] < 8 <= rows["drain", c]["cpus_used"]
    for c in (1, 2, 4, 8):
        at_least(rows["drain", c]["rps"] / rows["none", c]["rps"], 0.99, f"drain over none at {c} connections")


GUEST = os.path.join(TOP, "tests", "sim", "fixtures", "guest-sweep.json")
SEEDS = range(1, 6)
WITHIN, CLEAR = 0.10, 1.10   # of the guest's throughput; a ratio of two policies in the guest that ranks them


@test
def calibrated_against_the_guest():
    """--harness against the sweep of make bench: throughput within 10%, and policies that clearly differ rank alike."""
    with open(GUEST, encoding="utf-8") as f:
        guest = {(p["policy"], p["conns"]): p for p in json.load(f)["points"]}
    conns = sorted({c for _, c in guest})
    runs = [by_policy(points("--policy", "none,legacy,drain,flow", "--harness", "--conns", ",".join(map(str, conns)), "--no-ideal",
                             "--seed", seed)) for seed in SEEDS]
    here = {key: statistics.median(run[key]["rps"] / 1000 for run in runs) for key in guest}
    # A pass of legacy, every 100 ms, falls into some of the guest's phases and not into others: there it is another machine.
    still = [key for key, p in guest.items() if key[0] != "legacy" or p["cpus_used"] == 1]
    for key in still:
        assert abs(here[key] / guest[key]["krps"] - 1) <= WITHIN, f"{key}: {here[key]:.0f} krps, the guest {guest[key]['krps']:.0f}"
    for one, c in still:
        for other in ("none", "drain", "flow"):
            if guest[one, c]["krps"] > CLEAR * guest[other, c]["krps"]:
                assert here[one, c] > here[other, c], f"c = {c}: {one} is above {other} in the guest, not here"


@test
def flow_in_a_closed_loop():
    for cpus in (16, 64):
        rows = points("--policy", "flow", "--cpus", cpus, "--workload", "closed", "--warmup", 60, "--measure", 100)
        for r in (r for r in rows if r["policy"] == "flow"):
            where = f"{r['conns']} threads on {cpus} CPUs"
            at_least(r["fraction_of_ideal"], 0.95, "fraction of ideal, " + where)
            at_most(r["idle_overloaded_share"], 0.001, "idle while overloaded, " + where)
            at_most(r["migrations"], 1.5 * r["migrations_needed"], "migrations, " + where)
            at_most(r["pingpong"], 0.001 * r["migrations"], "ping-pong, " + where)


@test
def flow_in_an_open_loop():
    rows = points("--policy", "flow", "--workload", "open")
    share = {r["service_us"]: r["fraction_of_ideal"] for r in rows if r["policy"] == "flow"}
    at_least(share[10.0], 0.75, "share of the ideal's load, 10 us")
    at_least(share[25.0], 0.88, "share of the ideal's load, 25 us")


@test
def ideal_is_the_queue_of_the_books():
    """Closed, c = 2n, think = service: 94.3% for a central queue, 80.0% for an even static split (closed-form values)."""
    rows = by_policy(points("--policy", "drain", "--workload", "closed", "--conns", 32, "--measure", 2000))
    assert abs((1 - rows["ideal", 32]["idle_share"]) - 0.943) < 0.01, rows["ideal", 32]["idle_share"]
    # The drain equalises counts, never quite and not for nothing: the static split is what it cannot exceed by much.
    drain = rows["drain", 32]["fraction_of_ideal"] * 0.943
    assert 0.70 < drain < 0.83, drain


@test
def longest_wait_within_one_interval():
    for seed in range(1, 6):
        row = points("--policy", "drain", "--workload", "spinners", "--conns", 16, "--seed", seed, "--measure", 200, "--no-ideal")[0]
        at_most(row["longest_violation_us"], 11000, f"longest violation, --seed {seed}")


BUGS = {  # number: policies that fail it
    1: {"none", "legacy"}, 2: {"none", "legacy"}, 3: {"none", "legacy"}, 4: {"none", "legacy"}, 5: set(), 6: {"none", "legacy"},
    7: {"none", "legacy"}, 8: set(), 9: set(), 10: set(), 11: set(), 12: {"none", "legacy"},
}


@test
def bug_replays():
    rows = points("--policy", "none,legacy,drain,flow", "--workload", "bugs")
    assert len(rows) == 4 * len(BUGS)
    for r in rows:
        number = int(r["workload"].split(":")[1])
        assert r["pass"] == (r["policy"] not in BUGS[number]), f"bugs:{number}, {r['policy']}: {r['measured']} (--seed 1)"


@test
def faults_are_seen():
    for fault, number in (("drop-ipi", 8), ("drop-ipi", 11), ("no-slice", 5), ("early-run", 10)):
        row = points("--policy", "none", "--workload", f"bugs:{number}", "--fault", fault)[0]
        assert not row["pass"], f"bugs:{number} passed in spite of --fault {fault}: {row['measured']}"


@test
def balanced_pass_is_cheap():
    run("--pass-cost")


SCENARIO = """{
  "global": {"duration": 1},
  "tasks": {
    "spin": {"instance": 3, "run": 5000},
    "periodic": {"instance": 2, "cpus": [0, 1], "run": 1000, "timer": {"ref": "tick", "period": 10000}},
    "locked": {"instance": 2, "lock": "m", "run": 300, "unlock": "m", "sleep": 700},
    "staged": {"phases": {"a": {"loop": 3, "run": 1000, "sleep": 1000}, "b": {"run1": 500, "run2": 500, "sleep": 500}}}
  }
}"""


def with_file(text, *args, status=0):
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "w.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return run("--workload", "file:" + path, *args, status=status)


@test
def rt_app_file():
    out, _ = with_file(SCENARIO, "--cpus", 4, "--policy", "drain,flow")
    rows = [line.split() for line in out.splitlines() if line.startswith(("ideal", "drain", "flow"))]
    assert len(rows) == 3
    assert all(int(r[1]) == 8 and float(r[2]) > 0 for r in rows), out


@test
def bad_files_get_one_line():
    task = '{"tasks": {\n"a": {%s}}}'
    for text, line, words in (
            (task % '"run": 10, "walk": 5', 2, ("unknown key", "walk", "allowed", "sleep")),
            (task % '"run": -5', 2, ("from 0 to",)),
            (task % '"run": 5, "cpus": []', 2, ("allows no CPU",)),
            (task % '"run": 5, "cpus": [99]', 2, ("no CPU", "0 to 3")),
            (task % '"run": 5, "loop": 0', 2, ("loop", "-1")),
            (task % '"timer": {"ref": "x", "perod": 5}', 2, ("perod", "period")),
            (task % "", 2, ("no events",)),
            ('{"tasks": {}}', 1, ("no tasks",)),
            ('{"tusks": {}}', 1, ("tusks", "tasks")),
            ('{"tasks": {"a": {"run": 1}}, "global": {"duration": 0}}', 1, ("duration",)),
            ('{"tasks": {\n\n"a": {"run" 5}}}', 3, ("':'",)),
            ('{"tasks": ', 1, ("value",)),
    ):
        _, err = with_file(text, "--cpus", 4, status=2)
        assert err.count("\n") == 1 and f"w.json:{line}:" in err, f"{text}\n-> {err}"
        for word in words:
            assert word in err, f"{text}\n-> {err} (no {word!r})"


@test
def bad_arguments():
    for args in (("--cpus", 0), ("--cpus", 1025), ("--policy", "nope"), ("--workload", "nope"), ("--seed", "x"), ("--load", -1),
                 ("--cost", "switch_ns=-1"), ("--cost", "nope=1"), ("--queues", 17), ("--conns", "1,x"), ("--workload", "bugs:13"),
                 ("--workload", "file:/nonexistent"), ("--fault", "nope"), ("stray",)):
        _, err = run(*args, status=2)
        assert err, args


@test
def trace_is_replayed():
    with tempfile.TemporaryDirectory() as tmp:
        trace, svg, table = (os.path.join(tmp, n) for n in ("t.json", "m.svg", "t.csv"))
        run("--policy", "drain", "--workload", "closed", "--cpus", 4, "--conns", 8, "--warmup", 0, "--measure", 50, "--no-ideal",
            "--trace", trace, "--svg", svg, "--csv", table)
        xml.dom.minidom.parse(svg)
        with open(table, encoding="utf-8") as f:
            assert next(csv.DictReader(f))["policy"] == "drain"
        with open(trace, encoding="utf-8") as f:
            events = json.load(f)["traceEvents"]
        busy = sum(e["dur"] for e in events if e["ph"] == "X")
        row = points("--policy", "flow", "--workload", "trace:" + trace, "--cpus", 4, "--no-ideal")[0]
        assert row["conns"] == 8
        replayed = (1 - row["idle_share"]) * 4 * 50000
        assert 0.85 * busy < replayed < 1.15 * busy + 5000, f"{busy:.0f} us of work recorded, {replayed:.0f} replayed"


@test
def wide_machines():
    row = points("--policy", "drain", "--cpus", 1024, "--conns", 4096, "--workload", "spinners", "--no-ideal")[0]
    assert row["cpus_used"] == 1024 and row["convergence_passes"] == 4


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    if args.list:
        print("\n".join(TESTS))
        return 0
    if args.only and args.only not in TESTS:
        print(f"no simulator test named {args.only}; there are: {' '.join(TESTS)}", file=sys.stderr)
        return 1
    failed = 0
    todo = [args.only] if args.only else list(TESTS)
    for name in todo:
        try:
            TESTS[name]()
            print(f"ok: {name}", flush=True)
        except Exception as error:  # whatever it is, the test has failed
            failed += 1
            print(f"FAILED: {name}: {error}\n  repeat: make test-sim T={name}", flush=True)
            if not isinstance(error, AssertionError):
                traceback.print_exc()
    print(f"{len(todo) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
