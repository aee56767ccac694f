"""The simulator's figures of how well threads were placed, from a guest's trace (/trace, Chrome trace JSON).

The definitions are those of docs/simulator.md. Times in microseconds of the trace's clock.
"""

import json
import math
from collections import Counter, defaultdict

# A thread that comes back to the CPU that its last move left, within this time, has moved for nothing (tests/sim/track.c).
PINGPONG_US = 10000
CPUS_PROCESS = "CPUs"


class Trace:
    """What is needed of a trace: per thread its intervals in order of time and its moves, per CPU when it was idle."""

    def __init__(self, events):
        names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
        cpus = {e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name" and e["args"]["name"] == CPUS_PROCESS}
        self.states, self.moves, self.idle = defaultdict(list), defaultdict(list), defaultdict(list)
        self.end, self.cpus = 0.0, sum(pid in cpus for pid, _ in names)
        for e in events:
            where = (e["pid"], e["tid"])
            if e["ph"] == "X":
                self.end = max(self.end, e["ts"] + e["dur"])
                if e["pid"] not in cpus:
                    self.states[where].append((e["ts"], e["ts"] + e["dur"], e["name"]))
                elif e["name"] in ("idle", "waiting for work"):
                    self.idle[where].append((e["ts"], e["ts"] + e["dur"]))
            elif e["ph"] == "i" and e["name"].startswith("migrate: "):
                self.moves[where].append((e["ts"], e["name"].partition(": ")[2], e["args"]["from"], e["args"]["to"]))
        for spans in self.states.values():
            spans.sort()


def quantile(values, q):
    """The smallest value that a share q of them does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(q * len(ordered)) - 1))] if ordered else 0.0


def overlap(spans, begin, end):
    """The parts of [begin, end) that lie in one of the spans."""
    return [(max(a, begin), min(b, end)) for a, b in spans if a < end and b > begin]


def union(spans):
    """The same time as spans that do not touch, in order."""
    joined = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def waits(trace):
    """(waits after a wakeup, all waits): (begin, end) of each time that a thread was runnable and did not run."""
    woken, every = [], []
    for spans in trace.states.values():
        before = None
        for begin, end, name in spans:
            if name == "runnable":
                every.append((begin, end))
                if before and before.startswith("blocked"):
                    woken.append((begin, end))
            before = name
    return woken, every


def pingpong(trace):
    """Moves back to the CPU that the same thread's last move left, soon after it."""
    count = 0
    for moves in trace.moves.values():
        count += sum(later[0] - earlier[0] <= PINGPONG_US and later[3] == earlier[2]
                     for earlier, later in zip(moves, moves[1:]))
    return count


def jain(shares):
    """Jain's index: 1 if all are equal, 1/n if one has all."""
    squares = sum(x * x for x in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0


def figures(events):
    """{name: figure} of a trace's events."""
    trace = Trace(events)
    woken, every = waits(trace)
    latency = [end - begin for begin, end in woken]
    waiting = union(every)
    some_idle = union([span for spans in trace.idle.values() for span in spans])
    wasted = sum(b - a for spans in trace.idle.values() for begin, end in union(spans) for a, b in overlap(waiting, begin, end))
    longest = max((b - a for begin, end in every for a, b in overlap(some_idle, begin, end)), default=0.0)
    ran = [sum(end - begin for begin, end, name in spans if name == "running") for spans in trace.states.values()]
    reasons = Counter(reason for moves in trace.moves.values() for _, reason, _, _ in moves)
    total = trace.cpus * trace.end
    return {
        "duration_us": trace.end, "cpus": trace.cpus, "threads": len(trace.states),
        "runs_per_second": sum(name == "running" for spans in trace.states.values() for _, _, name in spans) / trace.end * 1e6
        if trace.end else 0.0,
        "wakeups": len(woken), "wakeup_p50_us": quantile(latency, 0.5), "wakeup_p99_us": quantile(latency, 0.99),
        "wakeup_p999_us": quantile(latency, 0.999), "wakeup_max_us": max(latency, default=0.0),
        "queue_wait_mean_us": sum(end - begin for begin, end in every) / len(every) if every else 0.0,
        "migrations": sum(reasons.values()), "migrations_by_reason": dict(sorted(reasons.items())), "pingpong": pingpong(trace),
        "idle_overloaded_share": wasted / total if total else 0.0, "longest_violation_us": longest,
        "jain": jain([share for share in ran if share > 0]),
    }


def read(path):
    """figures() of a file; ValueError says what is wrong with it."""
    with open(path, encoding="utf-8") as file:
        try:
            events = json.load(file)["traceEvents"]
            return figures(events)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: not a guest's trace (curl :9100/trace): {error!r}") from error


def text(found):
    """One figure a line."""
    return "\n".join(f"{name:<24}{value:,.3f}" if isinstance(value, float) else f"{name:<24}{value}" for name, value in found.items())
