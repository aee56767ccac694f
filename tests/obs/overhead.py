#!/usr/bin/python3
"""What looking costs: server CPU time per request with each kind of recording, in virtual time (1 ns/instruction).

usage: tests/obs/overhead.py [--vcpus N] [--conns N] [--reps N] [--time-ms N] [--only NAME,NAME] [--json FILE]

Each repetition boots the key-value server and the generator once per variant, in turn, with the same seed. Figures: CPU time
that the server's CPUs were not idle, per request (the generator's CPUs do not count), the requests served, and the difference
to recording nothing. One server CPU, the default, repeats within 0.3%; with more, CPUs wait for each other's locks, and which
packets are received together changes from run to run: the spread (column) is then larger than what is measured. "notrace" is the kernel without any event in it, built here: O=build/notrace, -DWEIR_NO_TRACE.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "bench"))
import cpio  # noqa: E402
import emulator  # noqa: E402

KERNEL = os.path.join(TOP, "build", "weir.elf")
NO_TRACE = os.path.join(TOP, "build", "notrace", "weir.elf")
# Name, kernel, words for its command line, what is asked of it (percent more CPU time per request; None: only shown).
VARIANTS = (
    ("off", KERNEL, "", None),
    ("notrace", NO_TRACE, "", None),
    ("sched", KERNEL, "trace=sched", 5.0),
    ("all", KERNEL, "trace=all", None),
    ("sample-1kHz", KERNEL, "profile=1000", 2.0),
    ("offcpu", KERNEL, "profile=offcpu", None),
    ("locks", KERNEL, "locks=1", None),
)
OFF_LIMIT = 1.0   # percent that the events may cost while they are off
RUN_LIMIT = 600   # seconds of a boot on a slow host


def build_disk(folder):
    """An initial RAM disk with server and generator."""
    disk = os.path.join(folder, "apps.cpio")
    archive = cpio.Archive()
    for name in ("kv", "load"):
        archive.copy(name, os.path.join(TOP, "build", "apps", name), 0o755)
    archive.write(disk)
    return disk


def machine(options, kernel, words, seed, disk):
    """The emulator.Machine of one boot."""
    load = (f"/load --host 10.1.0.1 --proto resp --conns {options.conns} --time-ms {options.time_ms} "
            f"--warmup-ms {options.warmup_ms} --seed {seed}")
    append = (f'app="/kv" gen="{load}" domain.server={options.vcpus} net=wire wire.queues={options.vcpus} '
              f"wire.delay_ns=0 {words}")
    return emulator.Machine(kernel=kernel, initrd=disk, append=append, smp=options.vcpus + options.gen, mem_mb=1024,
                            vtime=emulator.Vtime())


def measure(options, kernel, words, seed, disk):
    """(ns of server CPU per request, requests per second, IPIs, switches) of one boot."""
    command = machine(options, kernel, words, seed, disk).command()
    proc = subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT, check=False)
    stat = load = None
    for line in proc.stdout.splitlines():
        if "#stat {" in line and '"phase":"c=' in line:
            stat = json.loads(line[line.index("{"):])
        elif '{"phase": "c=' in line:
            load = json.loads(line[line.index("{"):])
    if not stat or not load:
        tail = "\n".join((proc.stdout + proc.stderr).splitlines()[-15:])
        raise SystemExit(f"overhead: the run ended without figures (status {proc.returncode}):\n{tail}")
    busy = (1.0 - stat["idle_share"]) * stat["cpus"] * stat["duration_ns"]
    return busy / load["requests"], load["rps"], stat["ipis"], stat["switches"]


def report(results):
    """The table, and the lines about what is asked; True if all of that holds."""
    base = statistics.mean(r[0] for r in results["off"])
    print(f"{'variant':<14} {'CPU ns/request':>15} {'':>9} {'spread':>8} {'requests/s':>12}")
    for name, runs in results.items():
        ns = [r[0] for r in runs]
        spread = 100 * (max(ns) - min(ns)) / statistics.mean(ns)
        print(f"{name:<14} {statistics.mean(ns):>15.0f} {100 * (statistics.mean(ns) / base - 1):>+8.2f}% {spread:>7.2f}% "
              f"{statistics.mean(r[1] for r in runs):>12.0f}")
    good = True
    wanted = [(name, 100 * (statistics.mean(r[0] for r in results[name]) / base - 1), limit)
              for name, _, _, limit in VARIANTS if limit is not None and name in results]
    if "notrace" in results:
        wanted.append(("off", 100 * (base / statistics.mean(r[0] for r in results["notrace"]) - 1), OFF_LIMIT))
    for name, cost, limit in wanted:
        good &= cost <= limit
        print(f"{name}: {cost:+.2f}% (at most {limit}%): {'holds' if cost <= limit else 'TOO MUCH'}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--vcpus", type=int, default=1)
    parser.add_argument("--gen", type=int, default=2, help="CPUs of the generator")
    parser.add_argument("--conns", type=int, default=8)
    parser.add_argument("--reps", type=int, default=2)
    parser.add_argument("--time-ms", type=int, default=40)
    parser.add_argument("--warmup-ms", type=int, default=10)
    parser.add_argument("--only", default="", help="variants, with commas between them (off is always run)")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    chosen = [v for v in VARIANTS if not options.only or v[0] in options.only.split(",") or v[0] == "off"]
    if any(kernel == NO_TRACE for _, kernel, _, _ in chosen):
        subprocess.run(["make", "-C", TOP, "-s", "O=build/notrace", "CC=gcc -DWEIR_NO_TRACE=1", "kernel"], check=True,
                       stdout=subprocess.DEVNULL)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        disk = build_disk(folder)
        for rep in range(options.reps):
            for name, kernel, words, _ in chosen:
                results.setdefault(name, []).append(measure(options, kernel, words, rep + 1, disk))
                print(f"repetition {rep + 1}: {name}: {results[name][-1][0]:.0f} ns/request", file=sys.stderr, flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"config": vars(options), "results": results}, file)
    return 0 if report(results) else 1


if __name__ == "__main__":
    sys.exit(main())
