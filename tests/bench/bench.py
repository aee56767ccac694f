#!/usr/bin/env python3
"""Measures Weir's balancer policies, and its peers, in virtual time.

usage: bench.py quick|full [options]     (--help lists them)

Boots one guest per policy, peer, size and repetition (plan.py), lets the load generator inside it
run its phases, and writes build/bench/results.json, results.csv and report.html. A boot that
fails is named with its reason at the end; the others' points are kept. Exit status: 0 all went
well, 1 something failed, 2 nothing could be measured.
"""

import argparse
import datetime
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "vtime"))
import emulator  # noqa: E402
import goals  # noqa: E402
import guests  # noqa: E402
import peer  # noqa: E402
import plan  # noqa: E402
import progress  # noqa: E402
import report  # noqa: E402
import results  # noqa: E402
import resume  # noqa: E402
import selftest  # noqa: E402
import verdict  # noqa: E402

# A boot may take this many times its estimate, and never less than the floor, before it counts as
# hung. Virtual time has a bound of its own, since a guest that sleeps for ever runs it out fast.
PATIENCE = 20
PATIENCE_FLOOR_S = 240
VIRTUAL_FLOOR_S = 20

# Lockstep window while a guest boots, until the generator begins.
COARSE_NS = 100000

SELFTEST_SPIN = 1000000

# Busy vCPUs that the host's cost of a virtual second is told for.
COST_CPUS = 16


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("mode", choices=sorted(plan.MODES))
    parser.add_argument("--out", default=os.path.join(emulator.BUILD, "bench"))
    parser.add_argument("--policies", default=",".join(plan.POLICIES))
    parser.add_argument("--peers", default=",".join(plan.PEERS), help="'' for none")
    parser.add_argument("--reps", type=int, help="repetitions (quick 1, full 3)")
    parser.add_argument("--time-ms", type=int, help="measured time of every phase, instead of the plan's")
    parser.add_argument("--only", help="regular expression on the boots' labels")
    parser.add_argument("--list", action="store_true", help="only show what would be booted")
    parser.add_argument("--resume", action="store_true", help="keep what the last run, ended early, has finished, and do the rest")
    parser.add_argument("--within", type=float, metavar="SECONDS",
                        help="leave out boots that would end later (quick: 175)")
    parser.add_argument("--accel", choices=("vtime", "kvm", "tcg"), default="vtime")
    parser.add_argument("--window", type=int, default=500, help="lockstep window of up to 4 running vCPUs, ns")
    parser.add_argument("--quantum", type=int, default=250, help="instructions between accountings")
    parser.add_argument("--ipi-send-ns", type=int, default=0, help="charged to a sender of an IPI")
    parser.add_argument("--ipi-wake-ns", type=int, default=0, help="between an IPI and a halted CPU's wake")
    parser.add_argument("--migration-ns", type=int, default=0,
                        help="charged to a thread of Weir's that goes on on another CPU (caches); Linux cannot be charged")
    parser.add_argument("--wire-delay-ns", type=int, default=0)
    parser.add_argument("--qemu", default=emulator.QEMU)
    parser.add_argument("--kernel", default=guests.KERNEL)
    parser.add_argument("--append", default="", help="more of Weir's command line")
    args = parser.parse_args(argv)
    args.policies = [p for p in args.policies.split(",") if p]
    args.peers = [p for p in args.peers.split(",") if p]
    unknown = set(args.peers) - set(plan.PEERS)
    if unknown:
        parser.error(f"unknown peer {', '.join(sorted(unknown))}: use {', '.join(plan.PEERS)}")
    if args.reps is not None and args.reps < 1:
        parser.error("--reps: at least 1")
    if args.time_ms is not None and args.time_ms < 1:
        parser.error("--time-ms: at least 1")
    if args.within is None and args.mode == "quick":
        args.within = 175.0
    return args


def planned(args):
    make, reps = plan.MODES[args.mode]
    boots = make(args.policies, args.peers, args.reps or reps)
    if args.migration_ns:
        args.append = f"{args.append} sched.migration_ns={args.migration_ns}".strip()
    if args.append:
        boots = [plan.dataclasses.replace(b, append=f"{b.append} {args.append}".strip())
                 if b.peer == "weir" else b for b in boots]
    if args.time_ms:
        boots = [plan.dataclasses.replace(b, time_ms=args.time_ms) for b in boots]
    return [b for b in boots if not args.only or re.search(args.only, b.label)]


def commit():
    try:
        text = subprocess.run(["git", "-C", emulator.TOP, "describe", "--always", "--dirty"],
                              capture_output=True, text=True, timeout=30, check=True).stdout
        return text.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def configuration(args, version, test):
    unit = {"vtime": "virtual time, 1 ns/instruction", "kvm": "real time, KVM",
            "tcg": "real time, TCG (says nothing about a machine)"}[args.accel]
    config = {"mode": args.mode, "clock": unit, "accel": args.accel, "qemu": version,
              "window_ns": args.window, "quantum": args.quantum, "ipi_send_ns": args.ipi_send_ns,
              "ipi_wake_ns": args.ipi_wake_ns, "migration_ns": args.migration_ns, "append": args.append, "wire_delay_ns": args.wire_delay_ns,
              "gen_vcpus": plan.GEN_CPUS, "load": "90% get, 10% set, 16-byte keys, 100-byte values, "
              "10,000 keys, uniform, closed loop, every value verified",
              "commit": commit(), "date": datetime.datetime.now().isoformat(timespec="seconds"),
              "host_cpus": os.cpu_count(), "command": " ".join(["tests/bench/bench.py"] + sys.argv[1:])}
    if test:
        config["selftest"] = {k: v["text"] for k, v in test["checks"].items()}
    return config


def check_emulator(args):
    """(version, self-test result or None); EmulatorError when it must not be used."""
    if args.accel != "vtime":
        return emulator.version(args.qemu), None
    print("self-test of virtual time ... ", end="", flush=True)
    test = selftest.selftest(args.qemu, emulator.Vtime(quantum=args.quantum, window=args.window),
                             spin=SELFTEST_SPIN)
    if not test["good"]:
        bad = "; ".join(f"{k}: {v['text']}" for k, v in test["checks"].items() if not v["good"])
        raise emulator.EmulatorError(f"the self-test drifts: {bad}")
    print(test["checks"]["spin"]["text"])
    return test["version"], test


def host_cost(outcome):
    """Host seconds for a virtual second of 16 busy vCPUs, had the emulator had the host's cores for itself; None unless in virtual time.

    Taken from the CPU time it used, so that a loaded host does not stretch it, spread over the cores that its
    threads can fill. Busy is measured in instructions: one takes a nanosecond.
    """
    busy_s = outcome.vtime.get("minstructions", 0) / 1000 if outcome else 0
    return round(outcome.cpu_s / os.cpu_count() * COST_CPUS / busy_s, 2) if busy_s else None


class Sweep:
    """Runs boots one after another and keeps what they bring."""

    def __init__(self, args, config):
        self.args, self.config = args, config
        self.points, self.failures, self.skipped = [], [], []
        self.disk_error = None
        self.commands = {}

    def save(self):
        verdict.annotate(self.points)
        try:
            results.save(self.args.out, self.config, self.points, self.failures)
        except OSError as error:
            self.disk_error = f"results cannot be written to {self.args.out}: {error.strerror}"

    def machine(self, boot, workdir):
        a = self.args
        virtual_s = VIRTUAL_FLOOR_S + 3 * len(boot.conns) * (boot.time_ms + boot.warmup_ms) / 1000
        vtime = emulator.Vtime(a.quantum, a.window, coarse=COARSE_NS, ipi_send=a.ipi_send_ns, ipi_wake=a.ipi_wake_ns,
                               limit_s=virtual_s) if a.accel == "vtime" else None
        return guests.machine(boot, workdir, a.wire_delay_ns, a.qemu, a.kernel, a.accel, vtime)

    def run(self, boot, clock, workdir):
        """One boot; its finished points are kept even when it fails."""
        console, outcome = guests.Console(boot, clock.phase), None
        log = os.path.join(self.args.out, "logs", re.sub(r"[^a-z0-9]+", "-", boot.label.lower()) + ".log")
        try:
            machine = self.machine(boot, workdir)
            self.commands[boot.label] = machine.command()
            patience = max(PATIENCE_FLOOR_S, PATIENCE * boot.estimate_s())
            outcome = emulator.run(machine, patience, console.line, log)
            console.check_end(outcome)
        except emulator.EmulatorError as error:
            done = len(console.phases)
            where = f"c={boot.conns[done]}" if done < len(boot.conns) else "the end"
            self.failures.append({"boot": boot.label, "at": where, "why": str(error),
                                  "tail": error.tail, "log": os.path.relpath(log, emulator.TOP)})
        except OSError as error:
            self.failures.append({"boot": boot.label, "at": "start", "why": str(error), "tail": []})
        fresh = guests.points(boot, console, self.args.accel)
        cost = host_cost(outcome)
        for p in fresh:
            p["host_cost"] = cost
            p["command"] = " ".join(self.commands.get(boot.label, []))
        self.points += fresh

    def all(self, boots):
        clock = progress.Progress(boots)
        with tempfile.TemporaryDirectory(prefix="weir-bench-") as workdir:
            for boot in boots:
                if self.args.within and clock.would_end(boot) > self.args.within and self.points:
                    self.skipped.append(boot.label)
                    clock.skip(boot)
                    continue
                clock.start(boot)
                before = len(self.failures)
                self.run(boot, clock, workdir)
                failed = self.failures[before] if len(self.failures) > before else None
                clock.end(boot, failed)
                self.save()
                if self.disk_error:
                    return


def finish(sweep, args):
    """Report, summary, verdicts, failures; the exit status."""
    rows = results.summary(sweep.points)
    checks = goals.check(rows)
    try:
        report.write(os.path.join(args.out, "report.html"), sweep.config, sweep.points, rows, checks,
                     sweep.failures)
    except OSError as error:
        sweep.disk_error = sweep.disk_error or f"the report cannot be written: {error.strerror}"
    print(report.text_table(rows))
    for name, reached, text in checks:
        print(f"  {'reached    ' if reached else 'NOT reached'} {name}: {text}")
    if sweep.skipped:
        print(f"left out for lack of time: {', '.join(sweep.skipped)}")
    if sweep.disk_error:
        print(f"bench: {sweep.disk_error}", file=sys.stderr)
    for failure in sweep.failures:
        print(f"bench: failed: {failure['boot']}, at {failure['at']}: {failure['why']}", file=sys.stderr)
        for line in failure["tail"][-8:]:
            print(f"  | {line}", file=sys.stderr)
    if not sweep.disk_error:
        print(f"{os.path.relpath(os.path.join(args.out, 'report.html'))}, results.json and results.csv beside it")
    if sweep.disk_error or sweep.failures:
        return 1 if sweep.points else 2
    return 0


def main(argv=None):
    args = parse_arguments(argv)
    boots = planned(args)
    if args.list:
        for boot in boots:
            print(f"{boot.label}: c = {', '.join(map(str, boot.conns))}; about {boot.estimate_s():.0f} s")
        return 0
    if not boots:
        print("bench: nothing to boot: no label matches", file=sys.stderr)
        return 2
    try:
        os.makedirs(os.path.join(args.out, "logs"), exist_ok=True)
        if any(b.peer != "weir" for b in boots):
            peer.fetch()
        version, test = check_emulator(args)
    except (emulator.EmulatorError, OSError, subprocess.CalledProcessError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    sweep = Sweep(args, configuration(args, version, test))
    if args.resume:
        try:
            sweep.points, boots = resume.split(resume.load(args.out, sweep.config), boots)
        except (OSError, ValueError) as error:
            print(f"bench: {error}", file=sys.stderr)
            return 2
        print(f"{len(sweep.points)} points are there already")
    started = time.monotonic()
    try:
        sweep.all(boots)
    except KeyboardInterrupt:
        sweep.failures.append({"boot": "the sweep", "at": "interrupt", "why": "interrupted", "tail": []})
    sweep.config["host_s"] = round(time.monotonic() - started, 1)
    sweep.save()
    return finish(sweep, args)


if __name__ == "__main__":
    sys.exit(main())
