#!/usr/bin/env python3
"""Self-test of the virtual-time plugin: is time independent of how many vCPUs are busy?

usage: selftest.py [--qemu PATH] [--json] [--spin ITERATIONS] [--cpus N]

Boots a bare guest (selftest/guest.c) with 16 vCPUs twice: one spinning, then all. Checks
  spin   the same instructions take the same virtual time on 1 and on N vCPUs, within 1%, and
         that time is what the charge per instruction says, within 1%
  ping   a wake-up by interrupt from HLT and back takes under 2 us (unmarked wake-ups take a
         window or more)
  sleep  a 1 ms one-shot timer fires within 1% of its time
Exit status: 0 good, 1 a check failed, 2 the emulator does not fit (one line says why).
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import emulator  # noqa: E402

GUEST = os.path.join(emulator.BUILD, "vtime", "selftest.elf")
EXIT_GOOD = (0x10 << 1) | 1

SPREAD = 0.01               # allowed difference between 1 and N vCPUs, and from the charge
PING_LIMIT_NS = 2000
PING_ROUND_TRIPS = 2000
SLEEP_NS = 1000000
VIRTUAL_LIMIT_S = 5.0       # the guest needs 0.05; a hang ends here
HOST_LIMIT_S = 300


def measure(cpus, smp, spin, qemu, vtime, gap=0):
    """{'spin': {...}, 'ping': {...}, 'sleep': {...}} of one boot with `cpus` of `smp` busy."""
    results = {}

    def on_line(line):
        if line.startswith("{"):
            record = json.loads(line)
            results[record.pop("test")] = record

    machine = emulator.Machine(
        kernel=GUEST, smp=smp, qemu=qemu, vtime=vtime,
        append=f"n={cpus} spin={spin} pings={PING_ROUND_TRIPS} gap={gap} sleep_ns={SLEEP_NS}")
    outcome = emulator.run(machine, HOST_LIMIT_S, on_line)
    if outcome.status != EXIT_GOOD or "sleep" not in results:
        raise emulator.EmulatorError(f"the self-test guest ended with status {outcome.status}",
                                     outcome.tail + outcome.errors)
    return results


def check(one, many, charge_ns1000):
    """List of (name, good, text)."""
    spin1, spin_n = one["spin"]["ns"], many["spin"]["ns"]
    expected = one["spin"]["instructions"] * charge_ns1000 / 1000
    drift = abs(spin_n - spin1) / spin1
    charge = abs(spin1 - expected) / expected
    ping = many["ping"]["mean_ns"]
    sleep = abs(many["sleep"]["ns"] - many["sleep"]["asked_ns"]) / many["sleep"]["asked_ns"]
    return [
        ("spin", drift <= SPREAD,
         f"{spin1 / 1e6:.4f} ms on 1, {spin_n / 1e6:.4f} ms on {many['spin']['cpus']} vCPUs: "
         f"{100 * drift:.3f}% apart (at most {100 * SPREAD:.0f}%)"),
        ("charge", charge <= SPREAD,
         f"{spin1 / 1e6:.4f} ms for {expected / 1e6:.4f} ms of instructions"),
        ("ping", ping < PING_LIMIT_NS, f"round trip {ping} ns (under {PING_LIMIT_NS})"),
        ("sleep", sleep <= SPREAD,
         f"{many['sleep']['ns']} ns for {many['sleep']['asked_ns']} ns"),
    ]


def selftest(qemu=emulator.QEMU, vtime=None, cpus=16, spin=1000000):
    """Runs the self-test; a dict with 'good', 'version', 'checks', 'text'."""
    have = emulator.require_vtime(qemu)
    if not os.path.exists(GUEST):
        raise emulator.EmulatorError("no self-test guest: run make vtime")
    options = emulator.Vtime(**{**vars(vtime or emulator.Vtime()), "limit_s": VIRTUAL_LIMIT_S})
    one = measure(1, cpus, spin, qemu, options)
    many = measure(cpus, cpus, spin, qemu, options)
    checks = check(one, many, options.ns1000)
    return {
        "good": all(good for _, good, _ in checks),
        "version": have,
        "checked_version": have in emulator.CHECKED_VERSIONS,
        "checks": {name: {"good": good, "text": text} for name, good, text in checks},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--qemu", default=emulator.QEMU)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--spin", type=int, default=10000000)
    parser.add_argument("--cpus", type=int, default=16, choices=range(2, 65), metavar="2..64")
    args = parser.parse_args()
    try:
        result = selftest(args.qemu, cpus=args.cpus, spin=args.spin)
    except emulator.EmulatorError as error:
        print(f"vtime self-test: {error}", file=sys.stderr)
        for line in error.tail:
            print(f"  | {line}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(result))
    else:
        note = "" if result["checked_version"] else " (not a version the plugin was compared with)"
        print(f"QEMU {result['version']}{note}")
        for name, entry in result["checks"].items():
            print(f"  {'good  ' if entry['good'] else 'FAILED'} {name}: {entry['text']}")
    return 0 if result["good"] else 1


if __name__ == "__main__":
    sys.exit(main())
