"""Machines of the boots in a plan, and what their consoles say.

Weir boots its kernel with an initial RAM disk that holds /kv and /load; its command line starts
the server in domain 0 and the generator in domain 1. The console carries, among other lines,
  {"phase": "NAME", ...}                          one per phase, from the generator
  #stat {"phase": "NAME", ...}                    the kernel's counters over that phase
and the run ends with the generator. With --ticks the generator has a phase counted in parts, named
NAME#w0, NAME#w1 ... (warm-up) and NAME#m0 ... (measured): columns of the placement map. The Linux
peer prints the same, and "#exit STATUS" at the end.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "linux"))
import cpio  # noqa: E402
import emulator  # noqa: E402
import peer  # noqa: E402

KERNEL = os.path.join(emulator.BUILD, "weir.elf")
APPS = os.path.join(emulator.BUILD, "apps")
WEIR_MEM_MB = 1024
# What an idle CPU polls before it halts: the default under KVM, which an emulated guest would leave out to spare its host.
WEIR_IDLE_SPIN_NS = 20000

# First local port of the generator. Fixed, so that receive steering puts the same connections on
# the same queues for every policy and repetition: what differs is the policy.
LOCAL_PORT = 20000

# Guest exit codes arrive as (code << 1) | 1 through isa-debug-exit.
WEIR_EXIT_GOOD = 1
WEIR_EXIT_PANIC = (101 << 1) | 1


def generator_args(boot):
    """Arguments of the generator without address and protocol."""
    words = [f"--conns {','.join(map(str, boot.conns))}", f"--time-ms {boot.time_ms}",
             f"--warmup-ms {boot.warmup_ms}", f"--slice-ms {boot.slice_ms}", f"--seed {boot.rep}",
             f"--local-port {LOCAL_PORT}"]
    if boot.ticks:
        words.append(f"--ticks {boot.ticks}")
    if boot.gen_args:
        words.append(boot.gen_args)
    return " ".join(words)


def weir_command_line(boot, delay_ns):
    env = "".join(f" env.{name}={value}" for name, value in boot.env)
    append = f" {boot.append}" if boot.append else ""
    return (f'app="/kv" gen="/load --host 10.1.0.1 --proto resp {generator_args(boot)}" '
            f"domain.server={boot.vcpus} net=wire wire.queues={boot.vcpus} wire.delay_ns={delay_ns} "
            f"sched.policy={boot.policy} sched.idle_spin_ns={WEIR_IDLE_SPIN_NS}{env}{append}")


def build_weir_disk(path):
    archive = cpio.Archive()
    for name in ("kv", "load", "spread"):
        source = os.path.join(APPS, name)
        if os.path.exists(source):
            archive.copy(name, source, 0o755)
        elif name != "spread":
            raise emulator.EmulatorError(f"no build/apps/{name}: run make apps")
    archive.write(path)
    return path


def machine(boot, workdir, delay_ns=0, qemu=emulator.QEMU, kernel=KERNEL, accel="vtime",
            vtime=None):
    """The emulator.Machine of a boot; writes its RAM disk into workdir."""
    disk = os.path.join(workdir, f"{boot.peer}.cpio")
    if boot.peer != "weir":
        return peer.machine(boot.peer.replace("linux-", ""), boot.vcpus, boot.gen_cpus,
                            generator_args(boot), disk, dict(boot.env), qemu=qemu, accel=accel,
                            vtime=vtime)
    if not os.path.exists(kernel):
        raise emulator.EmulatorError(f"no kernel at {os.path.relpath(kernel, emulator.TOP)}: run make kernel")
    return emulator.Machine(kernel=kernel, initrd=build_weir_disk(disk),
                            append=weir_command_line(boot, delay_ns),
                            smp=boot.vcpus + boot.gen_cpus, mem_mb=WEIR_MEM_MB, qemu=qemu,
                            accel=accel, vtime=vtime)


class Console:
    """Collects a boot's phases from its console lines. `on_phase(conns, rps)` tells of each."""

    def __init__(self, boot, on_phase=None):
        self.boot = boot
        self.phases = {}          # name -> the generator's record
        self.stats = {}           # name -> the kernel's record
        self.parts = {}           # name -> its parts' records, in order of time
        self.infos = {}           # name -> what the server told of itself after the phase (--info)
        self.exit_status = None   # of the generator, on Linux
        self.panic = None
        self._on_phase = on_phase

    @staticmethod
    def _json(text):
        try:
            return json.loads(text)
        except ValueError:
            return None

    def line(self, text):
        at = text.find("#stat {")
        if at >= 0:
            record = self._json(text[at + 6:])
            if record:
                name, _, part = record["phase"].partition("#")
                if part:
                    self.parts.setdefault(name, []).append(record)
                else:
                    self.stats[name] = record
        elif text.startswith("#exit "):
            self.exit_status = int(text.split()[1])
        elif '{"info": ' in text:
            record = self._json(text[text.index('{"info": '):])
            if record:
                self.infos[record["info"]] = record
        elif '{"phase": ' in text:
            record = self._json(text[text.index('{"phase": '):])
            if record:
                self.phases[record["phase"]] = record
                if self._on_phase:
                    self._on_phase(record["conns"], record["rps"])
        elif self.panic is None and ("panic" in text.lower() and "panic=" not in text):
            self.panic = text.strip()

    def check_end(self, outcome):
        """EmulatorError unless the guest ended well and every phase is there."""
        why = None
        if self.panic:
            why = f"the guest panicked: {self.panic}"
        elif self.boot.peer == "weir" and outcome.status == WEIR_EXIT_PANIC:
            why = "the guest panicked"
        elif self.boot.peer == "weir" and outcome.status != WEIR_EXIT_GOOD:
            why = f"the guest ended with exit status {outcome.status}"
        elif self.boot.peer != "weir" and self.exit_status != 0:
            why = f"the generator ended with exit status {self.exit_status}"
        elif len(self.phases) < len(self.boot.conns):
            why = f"only {len(self.phases)} of {len(self.boot.conns)} phases were reported"
        if why:
            raise emulator.EmulatorError(why, outcome.tail + outcome.errors)


# Kernel counters of a point; null where a peer cannot tell.
COUNTS = ("migrations", "ipis", "switches", "wakes_remote", "wakes_local", "packets")
# A CPU is used by the server's threads when they had this share of it.
USED_SHARE = 0.01
# Taken over from the generator's record.
LOAD_KEYS = ("rps", "p50_us", "p90_us", "p99_us", "p999_us", "max_us", "mean_us", "requests", "seconds",
             "errors", "bad_values", "disconnects", "unfinished", "threads", "client_bound",
             "client_busy_mean", "client_busy_max", "client_queue_share", "slice_ms", "slices")


def _mean(parts, key, weights):
    """Mean of a number, or of a list of numbers place by place."""
    if any(key not in p for p in parts):
        return None
    total = sum(weights) or 1
    if isinstance(parts[0][key], list):
        return [sum(v * w for v, w in zip(column, weights)) / total for column in zip(*(p[key] for p in parts))]
    return sum(p[key] * w for p, w in zip(parts, weights)) / total


def whole(parts):
    """One record of the measured parts of a phase."""
    parts = [p for p in parts if "#m" in p["phase"]]
    if not parts:
        return {}
    weights = [p.get("duration_ns", 1) for p in parts]
    record = {key: sum(p[key] for p in parts) for key in COUNTS if all(key in p for p in parts)}
    for key in ("idle_share", "busy_share", "app_share"):
        record[key] = _mean(parts, key, weights)
    record["cpus_used"] = (sum(share > USED_SHARE for share in record["app_share"])
                           if record["app_share"] else None)
    record["duration_ns"] = sum(weights)
    return record


def point(boot, console, name, mode):
    """The results' record of one phase (docs/benchmarks.md lists the fields)."""
    load, parts = console.phases[name], console.parts.get(name, [])
    stat = console.stats.get(name) or whole(parts)
    record = {"policy": boot.policy, "peer": boot.peer, "vcpus": boot.vcpus, "conns": load["conns"],
              "rep": boot.rep, "mode": mode, "group": boot.group, "gen_vcpus": boot.gen_cpus,
              "time_ms": boot.time_ms, "warmup_ms": boot.warmup_ms, "dispatch_width": boot.width}
    record.update({key: load.get(key) for key in LOAD_KEYS})
    record.update({key: stat.get(key) for key in ("idle_share", "cpus_used") + COUNTS})
    if isinstance(record["idle_share"], (int, float)):
        record["idle_share"] = min(1.0, max(0.0, record["idle_share"]))
    for key in ("busy_share", "app_share", "time_share", "migrations_by_reason"):
        if stat.get(key):
            record[key] = stat[key]
    if name in console.infos:
        record["info"] = console.infos[name]
    if parts:
        record["parts"] = [{k: p[k] for k in ("phase", "duration_ns", "busy_share", "app_share") if k in p}
                           for p in parts]
    return record


def points(boot, console, mode):
    """All points of a boot that are finished, in the order of the phases."""
    return [point(boot, console, name, mode) for name in console.phases]
