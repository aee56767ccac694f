"""Threads released from one CPU, in the guest and in virtual time: how soon the machine is balanced, by policy."""

import spread

VCPUS, THREADS = 16, 32
PASS_US = 10000
RUN_LIMIT = 240


def test_drain_spreads_32_threads_in_two_passes():
    r = spread.record("drain", VCPUS, THREADS, time_ms=40, limit=RUN_LIMIT)
    assert r["cpus_used"] == VCPUS
    assert r["balanced_us"] is not None and r["balanced_us"] <= 2 * PASS_US, r
    # Each thread but the two that stay moves once.
    assert r["migrations"] == THREADS - THREADS // VCPUS, r


def test_flow_wakes_them_on_idle_cpus():
    r = spread.record("flow", VCPUS, THREADS, time_ms=40, limit=RUN_LIMIT)
    assert r["all_cpus_used_us"] < PASS_US, r
    assert r["balanced_us"] is not None and r["balanced_us"] <= 2 * PASS_US, r


def test_legacy_does_not_in_four():
    r = spread.record("legacy", VCPUS, THREADS, time_ms=40, limit=RUN_LIMIT)
    assert (r["cpus_used"], r["most_per_cpu"], r["migrations"]) == (1, THREADS, 0), r
