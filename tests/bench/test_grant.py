"""The kernel's quota and parking in virtual time: enforcement within 1%, and what many threads cost under one CPU's grant."""

import json

import pytest

import emulator
import grant

VCPUS = 16
RUN_LIMIT = 240
# Of one CPU: long enough that a slice of 4 ms for each of 32 threads is little of it.
WORK_MS = 1600


def record(words, arguments):
    """(what apps/quota measured, /proc/weir/grant at its end)."""
    lines = []
    machine = emulator.Machine(kernel=grant.KERNEL, initrd=grant.APP, smp=VCPUS, mem_mb=256,
                               append=f'net=none app="/app {arguments}" {words}',
                               vtime=emulator.Vtime(quantum=grant.QUANTUM, window=grant.WINDOW, limit_s=grant.GUEST_LIMIT_S))
    emulator.run(machine, RUN_LIMIT, on_line=lines.append)
    mark = "/proc/weir/grant: "
    state = next(line[line.index(mark) + len(mark):] for line in lines if mark in line)
    return grant.quota_line(lines), json.loads(state)


@pytest.mark.parametrize("words, cpus", [("grant.cpus=1.5 grant.park=0", 1.5), ("grant.cpus=0.25", 0.25)])
def test_enforcement_within_one_percent_of_a_second(words, cpus):
    measured, state = record(words, f"--threads 16 --for-ms 1000 --rounds-per-ms {grant.ROUNDS_PER_MS}")
    assert abs(measured["rate"] - cpus) <= 0.01 * cpus
    assert measured["nr_periods"] >= 10 and measured["nr_throttled"] >= 9
    assert measured["throttled_us"] > 0
    # In virtual time the host takes nothing away, and nothing is seen to be taken.
    assert sum(cpu["samples"] for cpu in state["delivered"]) > 0
    assert all(cpu["hits"] == 0 and cpu["share"] == 1024 for cpu in state["delivered"])


def test_many_threads_sized_by_the_grant():
    arguments = f"--work-ms {WORK_MS} --rounds-per-ms {grant.ROUNDS_PER_MS}"
    one, _ = record("grant.cpus=1", f"--threads 1 {arguments}")
    many, state = record("grant.cpus=1", f"--threads 32 {arguments}")
    assert (state["cpus_seen"], state["cpus_active"], many["nproc"]) == (VCPUS, 1, 1)
    assert many["elapsed_us"] <= grant.ELAPSED_GOAL * one["elapsed_us"]
    assert many["slowest_us"] <= grant.SPREAD_GOAL * many["fastest_us"]
