#!/usr/bin/python3
"""A profile of the key-value server in virtual time: what each CPU does, where threads run or wait, with no host noise in it.

usage: tests/obs/vprofile.py [--policy NAME] [--vcpus N] [--conns N] [--mode oncpu|offcpu|HZ] [--append WORDS] [-o FILE]

Boots server and generator (as tests/obs/overhead.py), profiles the whole run from boot, prints the phase's figures and the
server's hottest stacks, and writes folded stacks to FILE and a flame graph to FILE.svg.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(TOP, "scripts"))
import overhead  # noqa: E402
from weirlib import flame  # noqa: E402

HOTTEST = 8
MARK = "#profile "


def split(console):
    """(folded stacks, phase record of the kernel, of the generator) from a console log."""
    folded, stat, load = [], {}, {}
    for line in console.splitlines():
        if line.startswith(MARK):
            folded.append(line[len(MARK):])
        elif "#stat {" in line and '"phase":"c=' in line:
            stat = json.loads(line[line.index("{"):])
        elif '{"phase": "c=' in line:
            load = json.loads(line[line.index("{"):])
    return folded, stat, load


def report(folded, stat, load):
    shares = stat["busy_share"]
    print(f"policy {stat['policy']}: {load['rps']:.0f} requests/s, p50 {load['p50_us']} us, p99 {load['p99_us']} us; "
          f"idle {100 * stat['idle_share']:.1f}%, {stat['cpus_used']} of {stat['cpus']} CPUs used, "
          f"{stat['migrations']} migrations, {stat['ipis']} IPIs")
    print("busy, % by CPU: " + " ".join(f"{100 * share:.0f}" for share in shares))
    rows = []
    for line in folded:
        stack, _, value = line.rpartition(" ")
        if not line.startswith("#") and stack.split("/")[0] not in ("load", "kernel"):
            rows.append((int(value), stack))
    whole = sum(value for value, _ in rows) or 1
    for value, stack in sorted(rows, reverse=True)[:HOTTEST]:
        print(f"{100 * value / whole:5.1f}%  {stack}")
    for line in folded:
        if line.startswith("#"):
            print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--policy", default="drain")
    parser.add_argument("--vcpus", type=int, default=16)
    parser.add_argument("--gen", type=int, default=20, help="CPUs of the generator")
    parser.add_argument("--conns", type=int, default=32)
    parser.add_argument("--time-ms", type=int, default=40)
    parser.add_argument("--warmup-ms", type=int, default=20)
    parser.add_argument("--mode", default="oncpu", help="oncpu, offcpu, or a sampling rate in Hz")
    parser.add_argument("--append", default="", help="more words for the kernel's command line")
    parser.add_argument("-o", "--output", metavar="FILE", default=os.path.join(TOP, "build", "vprofile.folded"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        disk = overhead.build_disk(folder)
        words = f"profile={options.mode} sched.policy={options.policy} {options.append}"
        command = overhead.machine(options, overhead.KERNEL, words, 1, disk).command()
        proc = subprocess.run(command, capture_output=True, text=True, timeout=overhead.RUN_LIMIT, check=False)
    folded, stat, load = split(proc.stdout)
    if not folded or not stat or not load:
        sys.exit(f"vprofile: the run ended without a profile (status {proc.returncode}):\n" +
                 "\n".join((proc.stdout + proc.stderr).splitlines()[-15:]))
    report(folded, stat, load)
    with open(options.output, "w", encoding="utf-8") as file:
        file.write("\n".join(folded) + "\n")
    with open(options.output + ".svg", "w", encoding="utf-8") as file:
        file.write(flame.svg("\n".join(folded), f"Weir in virtual time, {options.policy}, {options.mode}",
                             "us asleep" if options.mode == "offcpu" else "samples"))
    print(f"{options.output}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
