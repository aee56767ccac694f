#!/usr/bin/python3
"""Threads that only compute, all released from CPU 0: how long until every CPU has its share, by policy. In the guest (apps/spread),
in virtual time (1 ns/instruction), without a network.

usage: tests/bench/spread.py [--vcpus N] [--threads N] [--policies "legacy drain flow"] [--time-ms N] [--json FILE]

Prints one table; exit status 1 if a run failed. legacy moves one thread in 100 ms: to see 32 threads spread over 16 CPUs takes
--time-ms 3500, and some minutes of the host.
"""
import argparse
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import emulator  # noqa: E402

TOP = emulator.TOP
KERNEL = os.path.join(TOP, "build", "weir.elf")
APP = os.path.join(TOP, "build", "apps", "spread")
# Seconds of the host for one run; the threads share nothing that a finer window would show (see grant.py).
RUN_LIMIT = 3600
QUANTUM, WINDOW = 5000, 10000
# Guest time beside the measured one: boot, start of the threads.
SLACK_S = 5


def record(policy, vcpus, threads, time_ms, words="", limit=RUN_LIMIT):
    """What apps/spread printed."""
    lines = []
    arguments = f"--threads {threads} --from-cpu 0 --time-ms {time_ms} --list no"
    machine = emulator.Machine(kernel=KERNEL, initrd=APP, smp=vcpus, mem_mb=256,
                               append=f'net=none app="/app {arguments}" sched.policy={policy} {words}'.rstrip(),
                               vtime=emulator.Vtime(quantum=QUANTUM, window=WINDOW, limit_s=SLACK_S + time_ms // 1000))
    emulator.run(machine, limit, on_line=lines.append)
    for line in lines:
        if '{"spread": 1' in line:
            return json.loads(line[line.index("{"):])
    raise emulator.EmulatorError("the program printed no record", lines[-10:])


def milliseconds(us):
    return "never" if us is None else f"{us / 1000:.1f} ms"


def row(policy, r):
    return (f"| {policy} | {r['cpus_used']} of {r['cpus_reachable']} | {milliseconds(r['all_cpus_used_us'])} | "
            f"{milliseconds(r['balanced_us'])} | {r['least_per_cpu']}..{r['most_per_cpu']} | {r['migrations']} | {r['jain']:.3f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vcpus", type=int, default=16)
    parser.add_argument("--threads", type=int, default=32)
    parser.add_argument("--policies", default="legacy drain flow")
    parser.add_argument("--time-ms", type=int, default=100)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    print(f"{options.threads} threads released from CPU 0 of {options.vcpus}, {options.time_ms} ms of virtual time")
    print("| policy | CPUs used | all used after | balanced after | threads per CPU at the end | migrations | Jain |")
    print("|---|---|---|---|---|---|---|")
    records = {}
    for policy in options.policies.split():
        try:
            records[policy] = record(policy, options.vcpus, options.threads, options.time_ms)
        except emulator.EmulatorError as error:
            print(f"spread: {policy}: {error}", file=sys.stderr)
            return 1
        print(row(policy, records[policy]), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(records, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
