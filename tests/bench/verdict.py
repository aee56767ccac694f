"""What holds a point back: core-, client-, concurrency- or placement-bound, with the evidence.

  core-bound         the server's CPUs are busy; more cores would help
  client-bound       not enough arrives: the generator is saturated, or too few requests are in
                     flight to fill the CPUs while latency is what one request takes
  concurrency-bound  requests wait although CPUs idle, and the dispatch pool is narrower than the
                     requests in flight
  placement-bound    requests wait although CPUs idle, and it is not the pool: the threads share
                     fewer CPUs than they could
Idle time is the kernel's own count over the measured part, never a sample from outside.
"""

# Server CPUs this busy on average count as full: what is left is hand-over between requests.
FULL_BUSY = 0.90
# Mean latency this many times the unloaded one means that requests wait for something. The mean,
# not the median: by Little's law it is what the throughput follows from, and when a few CPUs are
# overloaded most requests do not notice.
WAITING = 1.5
# Threads on fewer than this share of the CPUs that they could use are badly placed.
SPREAD = 0.9

VERDICTS = ("core-bound", "client-bound", "concurrency-bound", "placement-bound")


def classify(point, unloaded_us):
    """(verdict, evidence) of a point; unloaded_us: mean latency of the smallest number of
    connections of the same series, None if there is none."""
    idle = point.get("idle_share")
    conns, vcpus = point["conns"], point["vcpus"]
    if point.get("client_bound"):
        busy = point.get("client_busy_mean")
        share = point.get("client_queue_share") or 0
        return "client-bound", (f"generator threads {percent(busy)} busy, {percent(share)} of the "
                                "latency is replies waiting for the generator")
    if idle is None:
        return "unmeasured", "this guest does not count its idle time"
    busy_text = f"server CPUs {percent(1 - idle)} busy"
    if 1 - idle >= FULL_BUSY:
        return "core-bound", busy_text
    latency = latency_of(point)
    if unloaded_us is None or latency < WAITING * unloaded_us:
        calm = f", mean latency {latency:.1f} us" + (
            f" against {unloaded_us:.1f} us unloaded" if unloaded_us is not None else "")
        return "client-bound", f"{busy_text}{calm}: {conns} in flight do not fill {vcpus} CPUs"
    waits = f"{busy_text}, yet the mean latency is {latency / unloaded_us:.1f} times the unloaded one"
    width = point.get("dispatch_width")
    if width is not None and width < conns:
        return "concurrency-bound", f"{waits}; {width} workers for {conns} in flight"
    return "placement-bound", f"{waits}; {placement_evidence(point)}"


def placement_evidence(point):
    reachable = min(point["conns"], point["vcpus"])
    used, busy = point.get("cpus_used"), point.get("busy_share")
    if used is not None and used < SPREAD * reachable:
        return f"threads ran on {used:g} of {reachable} CPUs"
    if busy:
        return f"CPUs are {percent(min(busy))} to {percent(max(busy))} busy"
    return "threads wait on busy CPUs while others idle"


def latency_of(point):
    """Mean latency in us; a record without it is judged by its median."""
    return point["mean_us"] if point.get("mean_us") is not None else point["p50_us"]


def percent(share):
    return "?" if share is None else f"{100 * share:.0f}%"


def series_key(point):
    return (point["peer"], point["policy"], point["vcpus"], point["group"], point.get("dispatch_width"))


def annotate(points):
    """Sets verdict and evidence of each point, in place."""
    unloaded = {}
    for p in points:
        key = (series_key(p), p["rep"])
        best = unloaded.get(key)
        if best is None or p["conns"] < best[0]:
            unloaded[key] = (p["conns"], latency_of(p))
    # A series that begins loaded borrows the same guest's sweep as its unloaded reference.
    sweep = {}
    for p in points:
        if p["group"] == "sweep" and p["conns"] == 1:
            sweep.setdefault((p["peer"], p["policy"]), latency_of(p))
    for p in points:
        conns, latency = unloaded[(series_key(p), p["rep"])]
        reference = latency if conns == 1 else sweep.get((p["peer"], p["policy"]))
        p["verdict"], p["evidence"] = classify(p, reference)
