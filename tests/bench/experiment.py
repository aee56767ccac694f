"""A handful of boots for one question: run in virtual time, shown as a table, judged, kept as JSON.

pool.py and tail.py use it; bench.py is for whole sweeps.
"""

import argparse
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "vtime"))
import bench  # noqa: E402
import emulator  # noqa: E402
import guests  # noqa: E402
import peer  # noqa: E402
import results  # noqa: E402
import verdict  # noqa: E402

# Host seconds for one boot, and virtual seconds after which a guest that hangs is ended.
BOOT_LIMIT_S, GUEST_LIMIT_S = 900, 30


def arguments(doc, name, argv, adds=()):
    """Options that every experiment has; adds: ((flag, keywords), ...)."""
    parser = argparse.ArgumentParser(description=doc.split("\n", maxsplit=1)[0])
    parser.add_argument("--json", metavar="FILE", default=os.path.join(emulator.BUILD, "bench", f"{name}.json"))
    parser.add_argument("--only", default="", help="only series whose name contains this")
    for flag, keywords in adds:
        parser.add_argument(flag, **keywords)
    return parser.parse_args(argv)


def run(boots, on_point=None):
    """The boots one after another; their points with verdicts. EmulatorError when one fails."""
    emulator.require_vtime()
    if any(b.peer != "weir" for b in boots):
        peer.fetch()
    points = []
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as workdir:
        for boot in boots:
            console = guests.Console(boot)
            vtime = emulator.Vtime(coarse=bench.COARSE_NS, limit_s=GUEST_LIMIT_S)
            try:
                outcome = emulator.run(guests.machine(boot, workdir, vtime=vtime), BOOT_LIMIT_S, console.line)
                console.check_end(outcome)
            except emulator.EmulatorError as error:
                raise emulator.EmulatorError(f"{boot.label}: {error}", error.tail) from error
            fresh = guests.points(boot, console, "vtime")
            for point in fresh:
                point["env"] = dict(boot.env)
            points += fresh
            verdict.annotate(points)
            if on_point:
                for point in fresh:
                    on_point(point)
    return points


def table_head(columns):
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)


def table_row(cells):
    print(f"| {' | '.join(str(c) for c in cells)} |", flush=True)


def finish(path, points, claims):
    """Prints the claims [(text, held, evidence)] and writes the JSON; the exit status."""
    for text, held, evidence in claims:
        print(f"  {'shown    ' if held else 'NOT shown'} {text}: {evidence}")
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    record = {"clock": "virtual time, 1 ns/instruction", "commit": bench.commit(), "points": points,
              "claims": [{"claim": c[0], "shown": c[1], "evidence": c[2]} for c in claims]}
    results.write_atomically(path, json.dumps(record, indent=1) + "\n")
    print(f"points: {os.path.relpath(path)}")
    return 0 if claims and all(c[1] for c in claims) else 1


def main(doc, name, argv, boots, columns, row, claims, adds=()):
    """One experiment: boots(options) -> list, row(point) -> cells, claims(points) -> list."""
    options = arguments(doc, name, argv, adds)
    plan = [b for b in boots(options) if options.only in b.group]
    if not plan:
        sys.exit(f"{name}: nothing to boot: no series is called {options.only}")
    table_head(columns)
    try:
        points = run(plan, lambda point: table_row(row(point)))
    except (emulator.EmulatorError, OSError) as error:
        sys.exit(f"{name}: {error}\n" + "\n".join(getattr(error, "tail", [])))
    try:
        return finish(options.json, points, claims(points))
    except OSError as error:
        sys.exit(f"{name}: {options.json}: {error.strerror}")
