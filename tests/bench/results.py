"""Results of a run: kept on disk after every boot, summarised over repetitions, compared."""

import csv
import json
import os
import statistics

CSV_KEYS = ("peer", "policy", "group", "vcpus", "conns", "rep", "mode", "rps", "p50_us", "p90_us", "p99_us",
            "p999_us", "max_us", "idle_share", "cpus_used", "migrations", "ipis", "switches",
            "wakes_remote", "client_bound", "client_busy_mean", "verdict", "errors", "bad_values")


def write_atomically(path, text):
    """Never leaves half a file: a full disk keeps the old one."""
    new = path + ".new"
    try:
        with open(new, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except OSError:
        if os.path.exists(new):
            os.unlink(new)
        raise


def csv_text(points):
    class Lines(list):
        write = list.append

    lines = Lines()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(CSV_KEYS)
    for p in points:
        writer.writerow(["" if p.get(k) is None else p.get(k) for k in CSV_KEYS])
    return "".join(lines)


def save(folder, config, points, failures):
    """results.json and results.csv in `folder`. OSError when they cannot be written."""
    record = {"config": config, "points": points, "failures": failures}
    write_atomically(os.path.join(folder, "results.json"), json.dumps(record, indent=1) + "\n")
    write_atomically(os.path.join(folder, "results.csv"), csv_text(points))


def load(path):
    """The record of a results.json; ValueError says what is wrong with it."""
    with open(path, encoding="utf-8") as file:
        try:
            record = json.load(file)
        except ValueError as error:
            raise ValueError(f"{path}: not JSON: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("points"), list):
        raise ValueError(f"{path}: no list of points")
    for number, p in enumerate(record["points"]):
        if not isinstance(p, dict) or not isinstance(p.get("rps"), (int, float)):
            raise ValueError(f"{path}: point {number} has no rps")
    return record


# What makes two points repetitions of each other.
SAME_KEYS = ("peer", "policy", "group", "vcpus", "conns", "workload", "cpus", "mode", "dispatch_width")


def key_of(p):
    return tuple((k, p.get(k)) for k in SAME_KEYS if p.get(k) is not None)


def grouped(points):
    """{key: [points that repeat each other]} in order of appearance."""
    groups = {}
    for p in points:
        groups.setdefault(key_of(p), []).append(p)
    return groups


def spread(values):
    """(median, half of the range over the median); the latter None for a single value."""
    middle = statistics.median(values)
    if len(values) < 2:
        return middle, None
    return middle, (max(values) - min(values)) / 2 / middle if middle else 0.0


def summary(points):
    """One record per group: medians over its repetitions, and the spread of the throughput."""
    rows = []
    for members in grouped(points).values():
        first = members[0]
        row = {k: first.get(k) for k in ("peer", "policy", "group", "vcpus", "conns", "mode", "dispatch_width")}
        row["reps"] = len(members)
        for key in ("rps", "p50_us", "p90_us", "p99_us", "p999_us", "max_us", "idle_share", "cpus_used",
                    "migrations", "ipis", "switches", "requests", "client_busy_mean", "host_cost"):
            values = [m[key] for m in members if isinstance(m.get(key), (int, float))]
            row[key] = statistics.median(values) if values else None
        row["rps_spread"] = spread([m["rps"] for m in members])[1]
        verdicts = [m["verdict"] for m in members if m.get("verdict")]
        row["verdict"] = max(set(verdicts), key=verdicts.count) if verdicts else None
        row["evidence"] = next((m.get("evidence") for m in members if m.get("verdict") == row["verdict"]), None)
        rows.append(row)
    return rows
