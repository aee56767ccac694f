"""What a benchmark run boots, and in which order.

A boot is one guest with one policy; the generator in it runs one phase per number of connections,
each of which becomes a point of the results.
"""

import dataclasses

POLICIES = ("none", "legacy", "drain", "flow")
PEERS = ("linux-kv", "linux-memcached")

# Linux needs more than 12 generator CPUs to saturate 16 server CPUs; Weir answers faster.
GEN_CPUS = 20
CONNS = (1, 2, 4, 8, 16, 32, 64, 128)

# Host seconds per virtual second: one vCPU's worth of instructions, and the fixed cost of a boot.
# First guesses; the sweep corrects them by what it measures.
HOST_S_PER_BUSY_CPU_S = 7.0
WEIR_BOOT_S = 4.0
LINUX_BOOT_S = 55.0


@dataclasses.dataclass(frozen=True)
class Boot:
    peer: str                     # weir, linux-kv, linux-memcached
    policy: str                   # balancer policy; "cfs" for Linux
    vcpus: int
    conns: tuple
    rep: int
    group: str                    # sweep, scaling, map, converged, narrow, wide
    time_ms: int = 40
    warmup_ms: int = 20
    gen_cpus: int = GEN_CPUS
    slice_ms: int = 5
    ticks: int = 0                # parts that each phase is counted in, for the placement map
    gen_args: str = ""            # more arguments of the generator
    env: tuple = ()               # ((name, value), ...) of the server
    append: str = ""              # more of Weir's kernel command line

    @property
    def label(self):
        what = self.peer if self.peer != "weir" else f"weir {self.policy}"
        return f"{what}, {self.vcpus} vCPUs, {self.group}, rep {self.rep}"

    @property
    def width(self):
        """Most requests that the server works on at once; None: as many as connections."""
        env = dict(self.env)
        return int(env["KV_MAX_WORKERS"]) if env.get("KV_DISPATCH") == "pool" and "KV_MAX_WORKERS" in env else None

    def estimate_s(self):
        """Host seconds, before anything was measured."""
        cost = LINUX_BOOT_S if self.peer != "weir" else WEIR_BOOT_S
        for conns in self.conns:
            # A request in flight keeps about one CPU busy, be it of the server or the generator.
            busy = min(conns, self.vcpus + 0.7 * self.gen_cpus)
            if self.peer == "weir" and self.policy in ("legacy", "none"):
                busy = min(busy, 6)
            cost += busy * HOST_S_PER_BUSY_CPU_S * (self.time_ms + self.warmup_ms) / 1000
        return cost


def quick(policies, peers, reps):
    """About 3 minutes on two cores: in order of what one would want to know first."""
    boots = []
    for rep in range(1, reps + 1):
        for policy in [p for p in policies if p != "none"]:
            boots.append(Boot("weir", policy, 16, (1, 8, 32, 64), rep, "sweep", time_ms=20, warmup_ms=5,
                              slice_ms=1))
    boots += [Boot("weir", policy, 16, (32,), 1, "map", time_ms=24, warmup_ms=0, ticks=12, slice_ms=1)
              for policy in ("legacy", "drain") if policy in policies]
    if "linux-kv" in peers:
        boots.insert(len([p for p in policies if p != "none"]), Boot("linux-kv", "cfs", 16, (1, 8, 32), 1, "sweep", time_ms=20,
                                         warmup_ms=10, slice_ms=1))
    return boots


def full(policies, peers, reps):
    boots = []
    for rep in range(1, reps + 1):
        boots += [Boot("weir", policy, 16, CONNS, rep, "sweep") for policy in policies]
        boots += [Boot(peer, "cfs", 16, CONNS, rep, "sweep") for peer in peers]
        # Scaling at 4 connections a vCPU. 16 is part of the sweep (c = 64), but is measured again
        # under the same group, so that the series is whole.
        for policy in [p for p in ("drain", "flow") if p in policies]:
            boots += [Boot("weir", policy, n, (4 * n,), rep, "scaling") for n in (1, 2, 4, 8, 16)]
        boots += [Boot(peer, "cfs", n, (4 * n,), rep, "scaling")
                  for peer in peers if peer == "linux-kv" for n in (1, 4, 16)]
    # From the first moment, counted in small parts: where the threads are, and when.
    boots += [Boot("weir", policy, 16, (32,), 1, "map", warmup_ms=0, ticks=24, slice_ms=2) for policy in policies]
    # legacy moves a thread per 100 ms: 32 threads on 16 CPUs are apart after 3 s. The others have long converged when a
    # phase of the sweep begins: that is what this series compares with. Once: it takes as long as a third of the rest.
    if "legacy" in policies:
        boots.append(Boot("weir", "legacy", 16, (32,), 1, "converged", warmup_ms=3500, slice_ms=20, ticks=36))
    # The pool of REQUIREMENTS.md section 2: too narrow, and its cure.
    best = next((p for p in ("flow", "drain") if p in policies), None)
    for workers, group in ((4, "narrow"), (64, "wide")):
        if best:
            boots.append(Boot("weir", best, 16, (4, 16, 64), 1, group, env=(
                ("KV_DISPATCH", "pool"), ("KV_MAX_WORKERS", str(workers)), ("KV_MIN_WORKERS", "4"))))
    return boots


MODES = {"quick": (quick, 1), "full": (full, 3)}
