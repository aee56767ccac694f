#!/usr/bin/python3
"""The tail that a rehash under one mutex makes, and its two cures: many shards, and a rehash in small steps.

usage: tests/bench/tail.py [--time-ms N] [--rate N] [--only SERIES] [--json FILE]

In virtual time (1 ns/instruction): 32 connections write new keys at a fixed rate, each request timed from its intended start.
One shard with a stop-the-world rehash, 64 shards with the same, one shard and 64 with the incremental rehash (the default);
client's p50, p99, p99.9 and maximum beside the shard locks' hold and wait times. Exit status 1 if a claim was not shown.
"""
import sys

import experiment
import plan

POLICY, VCPUS, CONNS, KEYS, VALUE = "flow", 16, 32, 10000000, 32
# Requests/s: what one shard can do with room left, so that what is seen is the rehash and not saturation.
RATE = 400000
# The table doubles when it holds 2^n items: warming up for half of the measured time puts one doubling of the single shard,
# the largest, into the measured part whatever the rate: it spans a factor of three.
WARMUP_SHARE = 2
SERIES = (("1 stop", 1, "stop-the-world"), ("64 stop", 64, "stop-the-world"), ("1 incremental", 1, "incremental"),
          ("64 incremental", 64, "incremental"))

# A tail is this many medians; a cure leaves this share of the p99 and of the longest hold; the median stays this near.
TAIL, CURED, MEDIAN = 10, 0.5, 1.5


def boots(options):
    gen = f"--rate {options.rate} --gets 0 --keys {KEYS} --value {VALUE} --preload no --info locks"
    return [plan.Boot("weir", POLICY, VCPUS, (CONNS,), 1, group, time_ms=options.time_ms, slice_ms=0,
                      warmup_ms=options.time_ms // WARMUP_SHARE, gen_args=gen,
                      env=(("KV_SHARDS", str(shards)), ("KV_REHASH", rehash), ("KV_LOCK_STATS", "1")))
            for group, shards, rehash in SERIES]


COLUMNS = ("shards", "rehash", "krps", "p50 us", "p99 us", "p99.9 us", "max us", "lock held p50 us", "p99 us", "max us", "waited p50 us",
           "p99 us", "max us", "contended")


def us(p, name):
    return f"{p['info']['lock_' + name + '_ns'] / 1000:.1f}"


def row(p):
    shards, rehash = p["group"].split()
    info = p["info"]
    return (shards, rehash, f"{p['rps'] / 1000:.1f}", f"{p['p50_us']:.1f}", f"{p['p99_us']:.1f}", f"{p['p999_us']:.1f}",
            f"{p['max_us']:.1f}", us(p, "hold_p50"), us(p, "hold_p99"), us(p, "hold_max"), us(p, "wait_p50"), us(p, "wait_p99"),
            us(p, "wait_max"), f"{100 * info['lock_contended'] / info['lock_acquisitions']:.2f}%")


def claims(points):
    """[(claim, shown, evidence)]."""
    at = {p["group"]: p for p in points}
    found = []
    if "1 stop" not in at:
        return found
    bad = at["1 stop"]
    found.append(("one shard, stop-the-world: a flat median and a long tail", bad["p99_us"] >= TAIL * bad["p50_us"],
                  f"p50 {bad['p50_us']:.0f} us, p99 {bad['p99_us']:.0f} us"))
    held = bad["info"]["lock_hold_max_ns"] / 1000
    found.append(("the longest hold is the tail seen from outside", held <= bad["max_us"] and held >= bad["p99_us"] / 4,
                  f"held for {held:.0f} us, slowest request {bad['max_us']:.0f} us"))
    for group, what in (("64 stop", "64 shards"), ("1 incremental", "an incremental rehash"), ("64 incremental", "both")):
        if group in at:
            p = at[group]
            p99, hold = p["p99_us"] / bad["p99_us"], p["info"]["lock_hold_max_ns"] / bad["info"]["lock_hold_max_ns"]
            found.append((f"{what}: the tail is gone", p99 <= CURED and hold <= CURED,
                          f"p99 {p['p99_us']:.0f} us ({p99:.2f}x), longest hold {us(p, 'hold_max')} us ({hold:.3f}x)"))
            found.append((f"{what}: the median is unmoved", 1 / MEDIAN <= p["p50_us"] / bad["p50_us"] <= MEDIAN,
                          f"{p['p50_us']:.1f} us against {bad['p50_us']:.1f}"))
    return found


if __name__ == "__main__":
    sys.exit(experiment.main(__doc__, "tail", None, boots, COLUMNS, row, claims,
                             (("--time-ms", {"type": int, "default": 100, "help": "measured time (100)"}),
                              ("--rate", {"type": int, "default": RATE, "help": f"requests a second ({RATE})"}))))
