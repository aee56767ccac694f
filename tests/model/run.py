#!/usr/bin/python3
"""Checks the SPIN models and that each mutant of them is caught.

usage: tests/model/run.py [--only NAME] [--nightly] [--jobs N] [--list]

A model must be searched completely without an error; a mutant must end in one. The last line is
"N passed, N failed"; a failure shows how to repeat it and leaves the counterexample in build/model/NAME.
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "model")
SAFETY = ["-DSAFETY", "-DCOLLAPSE"]
# Memory of one search in MB, its depth, its time in seconds (a search takes seconds; the machine may be busy).
MEMORY, DEPTH, MUTANT_DEPTH, TIMEOUT = 3500, 2000000, 300000, 900
# The bit-state search of the nightly run: more than 300 s of CPU time.
NIGHTLY_TIMEOUT = 7200

FULL = "-DNT=2 -DMIGRATE -DDEVICE"
LIVE = "-DNT=2 -DMIGRATE -DLIVE"


class Case:
    """One search: a model with options, and whether it must find an error."""

    def __init__(self, name, model, options, broken=False, live=False, bitstate=False):
        self.name, self.model, self.options = name, model, options.split()
        self.broken, self.live, self.bitstate = broken, live, bitstate


def cases(nightly):
    out = [
        Case("wake-3-threads", "wake.pml", "-DNT=3 -DMIGRATE"),
        Case("wake-2-threads-batches", "wake.pml", FULL),
        Case("wake-3-cpus", "wake.pml", "-DNT=2 -DNC=3"),
        Case("wake-live", "wake.pml", LIVE, live=True),
        Case("drain", "drain.pml", ""),
        Case("drain-overlapping", "drain.pml", "-DOVERLAP"),
        Case("flow", "flow.pml", ""),
        Case("flow-pulls-alone", "flow.pml", "-DSTRONG"),
        Case("idle-last-look", "idle.pml", ""),
    ]
    out += [Case(f"wake-mutant-{m}", "wake.pml", f"{FULL} -DMUTANT={m}", broken=True) for m in range(1, 16)]
    out += [Case("wake-mutant-16", "wake.pml", f"{LIVE} -DMUTANT=16", broken=True, live=True)]
    out += [Case(f"drain-mutant-{m}", "drain.pml", f"-DMUTANT={m}", broken=True) for m in (1, 2, 3)]
    out += [Case("drain-mutant-4", "drain.pml", "-DOVERLAP -DMUTANT=4", broken=True)]
    out += [Case(f"flow-mutant-{m}", "flow.pml", f"-DMUTANT={m}", broken=True) for m in (1, 2, 3)]
    out += [Case(f"flow-mutant-{m}", "flow.pml", f"-DSTRONG -DMUTANT={m}", broken=True) for m in (4, 5)]
    out += [Case(f"idle-mutant-{m}", "idle.pml", f"-DMUTANT={m}", broken=True) for m in (1, 2, 3, 4)]
    if nightly:
        out += [
            Case("wake-3-cpus-migrate", "wake.pml", "-DNT=2 -DNC=3 -DMIGRATE"),
            Case("wake-3-cpus-3-threads", "wake.pml", "-DNT=3 -DNC=3 -DMIGRATE -DDEVICE", bitstate=True),
        ]
    return out


def run(command, cwd, timeout):
    return subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout,
                          check=False)


def check(case):
    """Returns (passed, what was seen)."""
    cwd = os.path.join(OUT, case.name)
    shutil.rmtree(cwd, ignore_errors=True)
    os.makedirs(cwd)
    shutil.copy(os.path.join(HERE, case.model), cwd)
    start = time.monotonic()
    try:
        made = run(["spin", "-a", *case.options, case.model], cwd, TIMEOUT)
        if made.returncode or "Error" in made.stdout:
            return False, "spin: " + made.stdout.strip()[:300]
        flags = ["-DBITSTATE", "-DSAFETY"] if case.bitstate else ["-DCOLLAPSE", "-DNFAIR=3"] if case.live else SAFETY
        # A mutant's search is short: compiling it well would take longer than running it.
        made = run(["gcc", "-w", "-O0" if case.broken else "-O1", *flags, f"-DMEMLIM={MEMORY}", "-o", "pan", "pan.c"], cwd, TIMEOUT)
        if made.returncode:
            return False, "gcc: " + made.stdout.strip()[:300]
        search = ["./pan", f"-m{MUTANT_DEPTH if case.broken or case.bitstate else DEPTH}"]
        search += ["-a", "-f"] if case.live else []
        search += ["-w30"] if case.bitstate else []
        seen = run(search, cwd, NIGHTLY_TIMEOUT if case.bitstate else TIMEOUT).stdout
    except subprocess.TimeoutExpired as error:
        return False, f"not done after {error.timeout} s"
    errors = re.search(r"errors: (\d+)", seen)
    states = re.search(r"(\d+(?:\.\d+e\+\d+)?) states, stored", seen)
    why = re.search(r"pan:\d+: (.*)", seen)
    what = why.group(1)[:60] if why else "no error"
    summary = f"{what}, {states.group(1) if states else '?'} states, {time.monotonic() - start:.0f} s"
    complete = "Search not completed" not in seen and "out of memory" not in seen and "max search depth too small" not in seen
    if errors is None:
        return False, "pan: " + seen.strip()[:300]
    if case.broken:
        return errors.group(1) != "0" and why is not None, summary
    return errors.group(1) == "0" and (complete or case.bitstate), summary if complete else summary + ", incomplete"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--nightly", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    todo = cases(args.nightly or bool(args.only))
    if args.list:
        print("\n".join(c.name for c in todo))
        return 0
    if args.only:
        todo = [c for c in todo if c.name == args.only]
        if not todo:
            print(f"no model named {args.only}; there are: {' '.join(c.name for c in cases(True))}", file=sys.stderr)
            return 1
    if shutil.which("spin") is None:
        print("tests/model: spin is not installed (make deps)\n0 passed, 1 failed")
        return 1
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for case, (passed, what) in zip(todo, pool.map(check, todo)):
            print(f"{'ok' if passed else 'FAILED'}: {case.name}: {what}", flush=True)
            if not passed:
                failed += 1
                print(f"  repeat: make test-model T={case.name}; trail: cd build/model/{case.name} && "
                      f"spin -t -p -g {' '.join(case.options)} {case.model}")
            else:
                shutil.rmtree(os.path.join(OUT, case.name), ignore_errors=True)
    print(f"{len(todo) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
