#!/usr/bin/python3
"""The dispatch pool too narrow, cured, wider than a busy machine can use, and absurdly wide.

usage: tests/bench/pool.py [--time-ms N] [--only SERIES] [--json FILE]

In virtual time (1 ns/instruction): throughput against connections for a pool of 4 workers on 16 CPUs (flat at a quarter of
the CPU), for the same machine with KV_MAX_WORKERS=64, and on 4 CPUs for the policy's width (64), 128 and 4,096 workers. Each point
with its verdict and evidence. Exit status 1 if one of the claims was not shown.
"""
import sys

import experiment
import plan

POLICY = "flow"
# Workers of the narrow pool: a quarter of the CPUs.
VCPUS, NARROW, CURE = 16, 4, 64
BUSY_VCPUS, BUSY_WIDTH, BUSY_WIDE, BUSY_ABSURD = 4, 64, 128, 4096
CONNS = (1, 4, 16, 64)
BUSY_CONNS = (1, 512)
GEN_CPUS_BUSY = 8

# What counts as flat, a cure, no gain, a cost; a quarter of the CPU, and how far from it: beside the workers'
# quarter the pollers, interrupts and packets have their part.
FLAT, CURED, NO_GAIN = 1.15, 1.3, 1.03
QUARTER, QUARTER_SLACK = NARROW / VCPUS, 0.13
COST_RPS, COST_P99 = 0.97, 1.25


def boots(options):
    def pool(group, vcpus, least, most, conns, gen):
        return plan.Boot("weir", POLICY, vcpus, conns, 1, group, time_ms=options.time_ms, warmup_ms=options.time_ms // 2,
                         gen_cpus=gen, slice_ms=0, env=(("KV_DISPATCH", "pool"), ("KV_MAX_WORKERS", str(most)),
                                                        ("KV_MIN_WORKERS", str(least))))
    return [pool("narrow", VCPUS, NARROW, NARROW, CONNS, plan.GEN_CPUS),
            pool("cure", VCPUS, NARROW, CURE, CONNS, plan.GEN_CPUS),
            pool("busy", BUSY_VCPUS, 16, BUSY_WIDTH, BUSY_CONNS, GEN_CPUS_BUSY),
            pool("busy wide", BUSY_VCPUS, 16, BUSY_WIDE, BUSY_CONNS, GEN_CPUS_BUSY),
            pool("busy absurd", BUSY_VCPUS, BUSY_ABSURD, BUSY_ABSURD, BUSY_CONNS, GEN_CPUS_BUSY)]


COLUMNS = ("series", "CPUs", "workers", "c", "krps", "p50 us", "p99 us", "CPU busy", "switches/request", "verdict", "evidence")


def row(p):
    per = p["switches"] / p["requests"] if p.get("switches") is not None and p["requests"] else 0
    return (p["group"], p["vcpus"], p["dispatch_width"], p["conns"], f"{p['rps'] / 1000:.1f}", f"{p['p50_us']:.1f}",
            f"{p['p99_us']:.1f}", f"{100 * (1 - p['idle_share']):.0f}%", f"{per:.2f}", p["verdict"], p["evidence"])


def claims(points):
    """[(claim, shown, evidence)]; a series that was left out is not claimed about."""
    at = {(p["group"], p["conns"]): p for p in points}
    most, busy = max(CONNS), max(BUSY_CONNS)
    found = []
    if ("narrow", most) in at:
        few, many = at["narrow", NARROW], at["narrow", most]
        used, ratio = 1 - many["idle_share"], many["rps"] / at["narrow", 16]["rps"]
        found.append(("narrow pool: flat", ratio <= FLAT,
                      f"c=16 {at['narrow', 16]['rps'] / 1000:.0f} krps, c={most} {many['rps'] / 1000:.0f} krps ({ratio:.2f}x); "
                      f"c={NARROW} {few['rps'] / 1000:.0f}"))
        found.append(("narrow pool: at a quarter of the CPU", abs(used - QUARTER) <= QUARTER_SLACK, f"{100 * used:.0f}% busy"))
        found.append(("narrow pool: verdict", many["verdict"] == "concurrency-bound", f"{many['verdict']}: {many['evidence']}"))
    if ("narrow", most) in at and ("cure", most) in at:
        ratio = at["cure", most]["rps"] / at["narrow", most]["rps"]
        found.append((f"{CURE} workers cure it", ratio >= CURED, f"{ratio:.2f}x at c={most}, p99 {at['cure', most]['p99_us']:.0f} us "
                      f"instead of {at['narrow', most]['p99_us']:.0f}; {at['cure', most]['verdict']}"))
    if ("busy", busy) in at:
        base = at["busy", busy]
        found.append(("busy machine: verdict", base["verdict"] == "core-bound", f"{base['verdict']}: {base['evidence']}"))
        if ("busy wide", busy) in at:
            ratio = at["busy wide", busy]["rps"] / base["rps"]
            found.append(("busy machine: wider brings nothing", ratio <= NO_GAIN, f"{ratio:.2f}x with {BUSY_WIDE} workers"))
        if ("busy absurd", busy) in at:
            absurd = at["busy absurd", busy]
            rps, tail = absurd["rps"] / base["rps"], absurd["p99_us"] / base["p99_us"]
            found.append(("an absurd width costs", rps <= COST_RPS or tail >= COST_P99,
                          f"{BUSY_ABSURD} workers: {rps:.2f}x the throughput, {tail:.2f}x the p99"))
    return found


if __name__ == "__main__":
    sys.exit(experiment.main(__doc__, "pool", None, boots, COLUMNS, row, claims,
                             (("--time-ms", {"type": int, "default": 20, "help": "measured time of a phase (20)"}),)))
