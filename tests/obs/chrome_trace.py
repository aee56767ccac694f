"""Checks of a Chrome trace (JSON object format), as strict as what Weir promises in docs/tracing.md."""

import collections

CPUS_PID = 5000000
FIELDS = {
    "M": {"pid", "tid", "name", "args"},
    "X": {"pid", "tid", "ts", "dur", "name", "args"},
    "i": {"pid", "tid", "ts", "s", "name", "args"},
    "C": {"pid", "tid", "ts", "name", "args"},
    "s": {"pid", "tid", "ts", "id", "cat", "name"},
    "f": {"pid", "tid", "ts", "id", "cat", "name", "bp"},
}
METADATA = {"process_name", "thread_name"}
SCOPES = {"t", "p", "g"}
STATES = ("running", "runnable", "blocked: ", "throttled")
# Times are printed with three decimals of a microsecond: sums of two may differ in the last one.
ROUNDING = 0.0015


def check_shape(trace):
    """Every event has exactly the fields of its kind, of the right types."""
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"}
    for event in trace["traceEvents"]:
        assert event["ph"] in FIELDS, event
        assert set(event) - {"ph"} == FIELDS[event["ph"]], event
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int), event
        for key in ("ts", "dur"):
            assert key not in event or (isinstance(event[key], (int, float)) and event[key] >= 0), event
        assert isinstance(event["name"], str) and event["name"], event
        if event["ph"] == "M":
            assert event["name"] in METADATA and isinstance(event["args"]["name"], str), event
        if event["ph"] == "i":
            assert event["s"] in SCOPES, event
        if event["ph"] == "C":
            assert all(isinstance(v, (int, float)) for v in event["args"].values()), event


def slices(trace):
    """{(pid, tid): [(start, end, event), ...] in order of time, the longer first}."""
    tracks = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"], event))
    for track in tracks.values():
        track.sort(key=lambda s: (s[0], -s[1]))
    return tracks


def check_nesting(trace):
    """Slices of a track lie one after the other or one within the other."""
    for (pid, tid), track in slices(trace).items():
        open_ends = []
        for start, end, event in track:
            while open_ends and open_ends[-1] <= start + ROUNDING:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1] + ROUNDING, f"slices cross on {pid}/{tid}: {event}"
            open_ends.append(end)


def check_names(trace, cpus):
    """Every track has a name, every CPU a track."""
    named = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"}
    processes = {e["pid"] for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "process_name"}
    for event in trace["traceEvents"]:
        if event["ph"] != "M":
            assert (event["pid"], event["tid"]) in named, f"no name for the track of {event}"
            assert event["pid"] in processes, f"no name for the process of {event}"
    names = {e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M" and e["pid"] == CPUS_PID}
    assert names >= {"CPUs"} | {f"CPU {n}" for n in range(cpus)}


def check_flows(trace):
    """Each arrow has one start and at most one end, not before it; both lie in a slice of their track."""
    tracks = slices(trace)
    starts, ends = {}, {}
    for event in trace["traceEvents"]:
        if event["ph"] in "sf":
            place = starts if event["ph"] == "s" else ends
            key = event["cat"], event["id"]
            assert key not in place, f"twice: {event}"
            place[key] = event
            around = tracks[event["pid"], event["tid"]]
            assert any(start <= event["ts"] + ROUNDING and event["ts"] <= end + ROUNDING for start, end, _ in around), \
                f"in no slice: {event}"
    for key, end in ends.items():
        assert key in starts, f"no start: {end}"
        assert end["ts"] + ROUNDING >= starts[key]["ts"], f"ends before it starts: {end}"
    return len(ends)


def check_one_place(trace):
    """A thread runs on one CPU at a time, and where its own track says so; a CPU's slices do not overlap."""
    runs = collections.defaultdict(list)
    for (pid, tid), track in slices(trace).items():
        if pid != CPUS_PID:
            last = 0.0
            for start, end, event in track:
                assert event["name"].startswith(STATES), event
                assert start + ROUNDING >= last, f"two states at once: {event}"
                last = end
                if event["name"] == "running":
                    runs[tid].append((start, end, event["args"]["cpu"]))
    on_cpu = collections.defaultdict(list)
    for (pid, tid), track in slices(trace).items():
        if pid == CPUS_PID:
            for start, end, event in track:
                if "thread" in event["args"]:
                    on_cpu[event["args"]["thread"]].append((start, end, tid))
    for thread, places in on_cpu.items():
        places.sort()
        for (_, end, cpu), (start, _, other) in zip(places, places[1:]):
            assert start + ROUNDING >= end, f"thread {thread} runs on {cpu} and {other} at once"
        if thread in runs:
            assert len(runs[thread]) == len(places), f"thread {thread}: its track and the CPUs' differ"


def check(trace, cpus):
    """All of it."""
    check_shape(trace)
    check_nesting(trace)
    check_names(trace, cpus)
    check_one_place(trace)
    return check_flows(trace)
