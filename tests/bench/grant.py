#!/usr/bin/python3
"""The same work under a grant of one CPU by 1, 4, 16 and 32 threads: sized by seen and by granted, parked and not.

usage: tests/bench/grant.py [--vcpus N] [--work-ms N] [--cpus X] [--threads "1 4 16 32"] [--host auto|on|off] [--json FILE]

In virtual time (1 ns/instruction) the kernel's own quota holds the program (apps/quota) back. With --host, QEMU in real time
stands in a cgroup of the host whose quota is the same, told to the guest and not told; where no cgroup can be made this is said.
Prints one table; exit status 1 if a run failed or a goal (marked) was missed.
"""
import argparse
import contextlib
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import emulator  # noqa: E402

TOP = emulator.TOP
KERNEL = os.path.join(TOP, "build", "weir.elf")
APP = os.path.join(TOP, "build", "apps", "quota")
WEIR = os.path.join(TOP, "scripts", "weir")
# Seconds of the host for one run, and of guest time after which it is ended.
RUN_LIMIT = 240
GUEST_LIMIT_S = 60
# Instructions between looks at the clock, and how far (ns) a vCPU may lead: spinning threads share nothing that a finer
# window would show.
QUANTUM, WINDOW = 5000, 10000
# Goals: elapsed against one thread's, slowest against fastest thread.
ELAPSED_GOAL, SPREAD_GOAL = 1.05, 1.10
PERIOD_US = 100000
# Rounds of apps/quota in a millisecond of virtual time: five instructions each.  The same in real time, so that no run measures
# its own work while the host holds it back.
ROUNDS_PER_MS = 200000
# Does the host's kernel enforce a quota? This much wall time in a group with that quota (seconds, CPUs), and what is believed.
ENFORCE_S, ENFORCE_CPUS, ENFORCE_MAX = 1.0, 0.2, 0.4

# (name, words of the command line, is it what the goals are about?)
SIZINGS = [
    ("granted, parked", "grant.park=1", True),
    ("granted, not parked", "grant.park=0", False),
    ("seen, not parked", "grant.park=0 grant.show=all", False),
]


def quota_line(text):
    """The record that apps/quota printed, or an error."""
    for line in text:
        if '{"quota": 1' in line:
            return json.loads(line[line.index("{"):])
    raise emulator.EmulatorError("the program printed no record", text[-10:])


def virtual(options, words, arguments):
    """One run in virtual time."""
    lines = []
    machine = emulator.Machine(kernel=KERNEL, initrd=APP, smp=options.vcpus, mem_mb=256,
                               append=f'net=none app="/app {arguments}" {words}',
                               vtime=emulator.Vtime(quantum=QUANTUM, window=WINDOW, limit_s=GUEST_LIMIT_S))
    emulator.run(machine, RUN_LIMIT, on_line=lines.append)
    return quota_line(lines)


def host_group():
    """(directory of a parent group, version) in which a group with a CPU quota can be made; None if there is none."""
    for directory, version in (("/sys/fs/cgroup/cpu", 1), ("/sys/fs/cgroup/cpu,cpuacct", 1), ("/sys/fs/cgroup", 2)):
        name = os.path.join(directory, "cpu.cfs_quota_us" if version == 1 else "cgroup.controllers")
        if not os.path.exists(name) or not os.access(directory, os.W_OK):
            continue
        if version == 2:
            with open(name, encoding="ascii") as file:
                if "cpu" not in file.read().split():
                    continue
        return directory, version
    return None


@contextlib.contextmanager
def group(cpus):
    """A cgroup of the host with that quota: its directory. OSError if it cannot be made."""
    directory, version = host_group()
    path = os.path.join(directory, f"weir-bench-{os.getpid()}")
    os.mkdir(path)
    try:
        quota = int(cpus * PERIOD_US)
        if version == 1:
            files = {"cpu.cfs_period_us": PERIOD_US, "cpu.cfs_quota_us": quota}
        else:
            files = {"cpu.max": f"{quota} {PERIOD_US}"}
        for name, value in files.items():
            with open(os.path.join(path, name), "w", encoding="ascii") as file:
                file.write(str(value))
        yield path
    finally:
        os.rmdir(path)


def throttled(path):
    """(periods, throttled periods) of a cgroup."""
    with open(os.path.join(path, "cpu.stat"), encoding="ascii") as file:
        values = dict(line.split() for line in file)
    return int(values["nr_periods"]), int(values["nr_throttled"])


def real(options, words, arguments, path):
    """One run of the emulator in real time inside a cgroup."""
    def enter():
        with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
    before = throttled(path)
    command = [WEIR, "run", "--app", "quota", "--args", arguments, "--smp", str(options.vcpus), "--mem", "256M", "--net", "none",
               "--accel", options.accel, "--append", f"net=none {words}"]
    if "host-grant" in words:
        command[-1] = "net=none"
    else:
        command += ["--grant", "off"]
    proc = subprocess.run(command, capture_output=True, text=True, timeout=RUN_LIMIT, check=False, stdin=subprocess.DEVNULL,
                          preexec_fn=enter)
    record = quota_line(proc.stdout.splitlines() + proc.stderr.splitlines())
    after = throttled(path)
    record["nr_periods"], record["nr_throttled"] = after[0] - before[0], after[1] - before[1]
    record["throttled_us"] = None
    return record


def row(mode, sizing, threads, record, base):
    """One line of the table."""
    spread = record["slowest_us"] / record["fastest_us"]
    waited = "-" if record["throttled_us"] is None else f"{record['throttled_us'] / 1000:.0f}"
    print(f"| {mode} | {sizing} | {threads} | {record['elapsed_us'] / 1000:.0f} | {record['elapsed_us'] / base:.3f} | "
          f"{record['fastest_us'] / 1000:.0f} | {record['slowest_us'] / 1000:.0f} | {spread:.2f} | "
          f"{record['nr_throttled']}/{record['nr_periods']} | {waited} |", flush=True)
    return {"mode": mode, "sizing": sizing, "threads": threads, "relative": record["elapsed_us"] / base, "spread": spread, **record}


def sweep(options, mode, sizings, run_one):
    """Every sizing with every number of threads; returns the points. base: one thread, sized by the grant."""
    points, base = [], None
    for sizing, words, goal in sizings:
        for threads in options.threads.split() + ["0"]:
            record = run_one(words, f"--threads {threads} --work-ms {options.work_ms} --rounds-per-ms {ROUNDS_PER_MS}")
            base = base or record["elapsed_us"]
            name = threads if threads != "0" else f"nproc = {record['threads']}"
            point = row(mode, sizing, name, record, base)
            point["goal"] = goal
            points.append(point)
    return points


def missed(points):
    """The goals that were not reached, one sentence each."""
    for p in points:
        if p["goal"] and p["relative"] > ELAPSED_GOAL:
            yield f"{p['threads']} threads ({p['sizing']}): {p['relative']:.3f} times one thread's elapsed time, {ELAPSED_GOAL} at most"
        if p["goal"] and p["spread"] > SPREAD_GOAL:
            yield f"{p['threads']} threads ({p['sizing']}): slowest / fastest {p['spread']:.2f}, {SPREAD_GOAL} at most"


def enforced():
    """Does the host's kernel hold a process in such a group back? (A kernel that emulates Linux may only keep the files.)"""
    code = f"import time\nt = time.time()\nwhile time.time() - t < {ENFORCE_S}: pass\nprint(time.process_time())"
    with group(ENFORCE_CPUS) as path:
        def enter():
            with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
        used = float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True,
                                    preexec_fn=enter).stdout)
    return used < ENFORCE_MAX * ENFORCE_S, used


def host_sweep(options):
    """The same with a cgroup of the host around QEMU."""
    if host_group() is None:
        print("host: no cgroup with a CPU controller can be made here (not root, or read-only): left out")
        return []
    sizings = [("host's, told", "host-grant", False), ("host's, not told", "", False)]
    try:
        holds, used = enforced()
        if not holds:
            print(f"host: its kernel does not enforce the quota of a cgroup ({used:.2f} s of CPU time in {ENFORCE_S:g} s with "
                  f"{ENFORCE_CPUS} CPUs granted): the following lines are not held back")
        with group(options.cpus) as path:
            return sweep(options, options.accel, sizings, lambda words, arguments: real(options, words, arguments, path))
    except OSError as error:
        print(f"host: {error}: left out")
        return []


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--vcpus", type=int, default=16)
    parser.add_argument("--work-ms", type=int, default=2000, help="of one CPU, in all (2000)")
    parser.add_argument("--cpus", type=float, default=1.0, help="granted (1)")
    parser.add_argument("--threads", default="1 4 16 32")
    parser.add_argument("--host", choices=("auto", "on", "off"), default="auto", help="also with a cgroup of the host (auto)")
    parser.add_argument("--accel", choices=("tcg", "kvm"), default="tcg", help="of the runs in the host's cgroup (tcg)")
    parser.add_argument("--json", metavar="FILE", help="write the points there too")
    options = parser.parse_args()
    emulator.require_vtime()
    print(f"{options.cpus:g} CPUs granted of {options.vcpus} vCPUs, {options.work_ms} ms of work; vtime: virtual time, "
          "1 ns/instruction, no caches; times in ms")
    print("| clock | sized by | threads | elapsed | to 1 thread | fastest | slowest | ratio | throttled/periods | throttled ms |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    try:
        points = sweep(options, "vtime", SIZINGS,
                       lambda words, arguments: virtual(options, f"grant.cpus={options.cpus} {words}", arguments))
        if options.host != "off":
            points += host_sweep(options)
    except emulator.EmulatorError as error:
        sys.exit(f"grant: {error}\n" + "\n".join(error.tail))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"points": points}, file, indent=1)
    failures = list(missed(points))
    print("\n".join(f"missed: {line}" for line in failures) or "goals reached")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
