#!/usr/bin/python3
"""Runs the fuzz targets of the key-value server for a fixed number of inputs from a fixed seed.

usage: smoke.py RUNS TARGET...

Prints one line per target, the finding and how to repeat it, and at the end "N passed, N failed".
"""
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
# Bound of one target, in seconds.
PATIENCE = 900


def run(target, runs):
    program = os.path.join(TOP, "build", "fuzz", "kv-" + target)
    seeds = os.path.join(TOP, "tests", "fuzz", "kv", "seeds", target)
    with tempfile.TemporaryDirectory() as found:
        words = [program, "-seed=1", f"-runs={runs}", "-max_len=2048", "-timeout=300", f"-artifact_prefix={found}/", found]
        if os.path.isdir(seeds):
            words.append(seeds)
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=PATIENCE, check=False)
        text = done.stdout.decode(errors="replace")
        good = done.returncode == 0
        print(f"fuzz kv-{target}: {'passed' if good else 'failed'} ({runs} runs, seed 1)", flush=True)
        if not good:
            print(text[-6000:])
            for name in os.listdir(found):
                if name.startswith(("crash-", "timeout-", "oom-", "leak-")):
                    keep = os.path.join(TOP, "build", "fuzz", f"{target}-{name}")
                    os.replace(os.path.join(found, name), keep)
                    print(f"repeat: {os.path.relpath(program, TOP)} {os.path.relpath(keep, TOP)}")
        return good


def main():
    results = [run(target, sys.argv[1]) for target in sys.argv[2:]]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
