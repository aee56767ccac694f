"""Goes on with a run that was ended: which boots of a plan are in its results already."""

import os

import results

# What two runs must have in common for their points to stand in one table.
SAME_CONFIG = ("mode", "clock", "accel", "qemu", "window_ns", "quantum", "ipi_send_ns", "ipi_wake_ns", "migration_ns", "append",
               "wire_delay_ns", "gen_vcpus", "load", "commit")


def load(folder, config):
    """Points of the run in `folder`, [] if there is none; ValueError when it measured something else."""
    path = os.path.join(folder, "results.json")
    if not os.path.exists(path):
        return []
    record = results.load(path)
    before = record.get("config") or {}
    other = [key for key in SAME_CONFIG if before.get(key) != config.get(key)]
    if other:
        said = ", ".join(f"{key} {before.get(key)!r}, now {config.get(key)!r}" for key in other)
        raise ValueError(f"{path} cannot be continued: {said}")
    return record["points"]


def belongs(point, boot):
    """True if the point is a phase of this boot."""
    return all(point.get(key) == getattr(boot, key)
               for key in ("peer", "policy", "vcpus", "rep", "group", "time_ms", "warmup_ms"))


def split(points, boots):
    """(points of boots that are complete, boots still to run): half a boot is run again whole."""
    kept, todo = [], []
    for boot in boots:
        mine = [p for p in points if belongs(p, boot)]
        if {p["conns"] for p in mine} == set(boot.conns):
            kept += mine
        else:
            todo.append(boot)
    return kept, todo
