"""The numbers to reach, checked on a run's medians; each is told whether reached or not."""

import statistics

# (name, least or most, limit); ratios are of medians at the same number of connections.
SPREAD_LIMIT = 0.02               # half the range over the median, c >= 8
DRAIN_OVER_LEGACY = 1.7           # throughput, c >= 16
LOW_LOSS = 0.01                   # throughput of drain against legacy, c <= 8
SCALING = 0.90                    # 1 -> 16 vCPUs, of linear
OVER_LINUX = 1.0                  # throughput everywhere
OVER_LINUX_HIGH = 2.0             # throughput, c >= 16
P99_OF_LINUX = 0.5                # p99 of Linux's
P50_ONE_US = 12.0                 # c = 1
IPIS_PER_REQUEST = 0.1            # c = 32
HOST_COST_S = 70                  # host seconds for a virtual second of 16 busy vCPUs


def _by(rows, **wanted):
    """{conns: row} of the rows that have all the wanted fields."""
    return {r["conns"]: r for r in rows if all(r.get(k) == v for k, v in wanted.items())}


def _ratios(a, b, key="rps", keep=lambda c: True):
    return {c: a[c][key] / b[c][key] for c in sorted(a) if c in b and keep(c) and b[c].get(key)}


def _listed(ratios):
    return ", ".join(f"c={c} {r:.2f}x" for c, r in ratios.items())


def _best_policy(rows):
    have = {r["policy"] for r in rows if r["peer"] == "weir" and r["group"] == "sweep"}
    return next((p for p in ("flow", "drain") if p in have), None)


def _drain_legacy(rows, checks):
    drain = _by(rows, peer="weir", policy="drain", group="sweep")
    legacy = _by(rows, peer="weir", policy="legacy", group="sweep")
    high = _ratios(drain, legacy, keep=lambda c: c >= 16)
    low = _ratios(drain, legacy, keep=lambda c: c <= 8)
    if high:
        checks.append((f"drain >= {DRAIN_OVER_LEGACY}x legacy before it converges, c >= 16",
                       min(high.values()) >= DRAIN_OVER_LEGACY, _listed(high)))
    if low:
        checks.append(("drain within 1% of legacy or better, c <= 8",
                       min(low.values()) >= 1 - LOW_LOSS, _listed(low)))


def _linux(rows, policy, checks):
    ours = _by(rows, peer="weir", policy=policy, group="sweep")
    linux = _by(rows, peer="linux-kv", group="sweep")
    everywhere = _ratios(ours, linux)
    if not everywhere:
        return
    checks.append((f"{policy} >= Linux with the same server, everywhere",
                   min(everywhere.values()) >= OVER_LINUX, _listed(everywhere)))
    high = {c: r for c, r in everywhere.items() if c >= 16}
    if high:
        checks.append((f"{policy} >= {OVER_LINUX_HIGH}x Linux, c >= 16",
                       min(high.values()) >= OVER_LINUX_HIGH, _listed(high)))
    tail = _ratios(ours, linux, "p99_us")
    checks.append((f"p99 of {policy} <= {P99_OF_LINUX}x Linux's", max(tail.values()) <= P99_OF_LINUX,
                   _listed(tail)))


def _scaling(rows, checks):
    for policy in ("flow", "drain"):
        by_vcpus = {r["vcpus"]: r for r in rows
                    if r["peer"] == "weir" and r["policy"] == policy and r["group"] == "scaling"}
        if 1 in by_vcpus and 16 in by_vcpus:
            share = by_vcpus[16]["rps"] / by_vcpus[1]["rps"] / 16
            checks.append((f"scaling of {policy} 1 -> 16 vCPUs >= 90%", share >= SCALING, f"{100 * share:.1f}%"))


def check(rows):
    """[(name, reached, text)] for the goals that this run has the points for."""
    checks = []
    spreads = [(r["rps_spread"], r) for r in rows
               if r["rps_spread"] is not None and r["conns"] >= 8 and r["peer"] == "weir"]
    if spreads:
        worst, row = max(spreads, key=lambda s: s[0])
        checks.append(("run-to-run spread <= 2%, c >= 8", worst <= SPREAD_LIMIT,
                       f"at most {100 * worst:.2f}% ({row['policy']}, {row['group']}, c={row['conns']})"))
    _drain_legacy(rows, checks)
    policy = _best_policy(rows)
    if policy:
        _linux(rows, policy, checks)
        ours = _by(rows, peer="weir", policy=policy, group="sweep")
        if 1 in ours:
            checks.append((f"p50 of {policy} at c = 1 <= {P50_ONE_US:.0f} us", ours[1]["p50_us"] <= P50_ONE_US,
                           f"{ours[1]['p50_us']:.1f} us"))
        if 32 in ours and ours[32].get("ipis") is not None and ours[32].get("requests"):
            per = ours[32]["ipis"] / ours[32]["requests"]
            checks.append((f"IPIs per request of {policy} at c = 32 <= {IPIS_PER_REQUEST}",
                           per <= IPIS_PER_REQUEST, f"{per:.3f}"))
    _scaling(rows, checks)
    costs = [r["host_cost"] for r in rows if r.get("host_cost") is not None and r["peer"] == "weir" and r["conns"] >= 16]
    if costs:
        middle = statistics.median(costs)
        checks.append((f"host seconds per virtual second of 16 busy vCPUs <= {HOST_COST_S}", middle <= HOST_COST_S,
                       f"{middle:.0f} s"))
    return checks
