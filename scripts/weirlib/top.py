"""`weir top`: a live view of a running guest, from its /metrics, /sched and /threads, and the server's INFO."""

import collections
import json
import re
import socket
import sys
import time

from . import observe
from .common import GUEST_PORTS

METRIC = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
CLEAR = "\x1b[H\x1b[J"
BAR = 20  # characters of a CPU's load bar
BUSIEST = 8  # threads shown
# With more threads than this the dump that tells what they wait for is left out: it costs the guest more than the view is worth.
DUMP_LIMIT = 500
INFO_TIMEOUT = 2  # seconds that the server may take for INFO
INFO_BYTES = 1 << 16

# Columns of the CPU table: heading, metric, and whether it is a rate.
CPU_COLUMNS = (
    ("switch/s", "weir_switches_total"),
    ("wake/s", "weir_wakes_local_total"),
    ("remote/s", "weir_wakes_remote_total"),
    ("ipi/s", "weir_ipis_sent_total"),
    ("moved/s", "weir_migrations_total"),
    ("timer/s", "weir_timer_irqs_total"),
)
# Rates of the whole guest: heading and metric.
TOTALS = (
    ("packets in/s", "weir_net_rx_packets_total"),
    ("packets out/s", "weir_net_tx_packets_total"),
    ("system calls/s", "weir_syscalls_total"),
    ("futex waits/s", "weir_futex_waits_total"),
)


def parse(text):
    """{(name, cpu or None): sum over the other labels} of a /metrics page."""
    values = {}
    for line in text.splitlines():
        match = METRIC.match(line)
        if not match:
            continue
        labels = dict(LABEL.findall(match.group(2) or ""))
        key = (match.group(1), labels.get("cpu"))
        values[key] = values.get(key, 0.0) + float(match.group(3))
        if labels.get("state"):
            key = (f"{match.group(1)}.{labels['state']}", labels.get("cpu"))
            values[key] = values.get(key, 0.0) + float(match.group(3))
    return values


def total(values, name):
    """Sum of a metric over all CPUs."""
    return sum(value for (metric, _), value in values.items() if metric == name)


def frame(before, after, policy):
    """The text of one screen: what happened between two readings."""
    seconds = total(after, "weir_uptime_seconds") - total(before, "weir_uptime_seconds")
    # The uptime may be in whole seconds; idle and busy time together are exact.
    cpus = sorted({cpu for _, cpu in after if cpu is not None}, key=int)
    spans = [sum(after.get((m, cpu), 0) - before.get((m, cpu), 0)
                 for m in ("weir_cpu_idle_seconds_total", "weir_cpu_busy_seconds_total")) for cpu in cpus]
    seconds = max(spans, default=0) or seconds or 1.0

    def rate(name, cpu=None):
        if cpu is None:
            return (total(after, name) - total(before, name)) / seconds
        return (after.get((name, cpu), 0) - before.get((name, cpu), 0)) / seconds

    lines = [f"Weir  policy {policy}  {len(cpus)} CPUs  {total(after, 'weir_threads_alive'):.0f} threads  "
             f"{total(after, 'weir_memory_free_bytes') / 2**20:.0f} MiB free  up {total(after, 'weir_uptime_seconds'):.0f} s"]
    lines.append("  ".join(f"{heading} {rate(metric):.0f}" for heading, metric in TOTALS))
    lines.append("")
    lines.append("cpu  load" + " " * (BAR + 4) + "queue " + "".join(f"{heading:>10}" for heading, _ in CPU_COLUMNS))
    for cpu in cpus:
        busy = min(max(1.0 - rate("weir_cpu_idle_seconds_total", cpu), 0.0), 1.0)
        filled = round(busy * BAR)
        queued = after.get(("weir_threads.queued", cpu), after.get(("weir_threads.runnable", cpu), 0))
        lines.append(f"{cpu:>3} [{'#' * filled}{'.' * (BAR - filled)}] {100 * busy:4.0f}% {queued:5.0f} " +
                     "".join(f"{rate(metric, cpu):>10.0f}" for _, metric in CPU_COLUMNS))
    return "\n".join(lines)


def commands_served(host, port):
    """Commands that the key-value server has processed so far; None if it does not say."""
    try:
        with socket.create_connection((host, port), timeout=INFO_TIMEOUT) as sock:
            sock.sendall(b"INFO stats\r\nQUIT\r\n")
            data = b""
            while len(data) < INFO_BYTES:
                part = sock.recv(4096)
                if not part:
                    break
                data += part
    except OSError:
        return None
    match = re.search(rb"total_commands_processed:(\d+)", data)
    return int(match.group(1)) if match else None


def thread_lines(before, after, waits):
    """The busiest threads between two readings of /sched, and how many wait for what."""
    seconds = (after["time_ns"] - before["time_ns"]) / 1e9 or 1.0
    earlier = {t["id"]: t for t in before["threads"]}
    rows = []
    for t in after["threads"]:
        old = earlier.get(t["id"], {"runtime_ns": 0, "migrations": 0})
        rows.append(((t["runtime_ns"] - old["runtime_ns"]) / 1e9 / seconds, t, (t["migrations"] - old["migrations"]) / seconds))
    rows.sort(key=lambda row: -row[0])
    states = collections.Counter(t["state"] for t in after["threads"])
    lines = ["", "threads  " + "  ".join(f"{state} {count}" for state, count in sorted(states.items()))]
    if waits:
        lines.append("waiting for  " + "  ".join(f"{kind} {count}" for kind, count in waits.most_common()))
    lines.append(f"{'id':>7} {'name':<16} {'process':<16} {'state':<9} cpu   load  moved/s")
    for load, t, moved in rows[:BUSIEST]:
        lines.append(f"{t['id']:>7} {t['name']:<16} {t['process']:<16} {t['state']:<9} {t['cpu']:>3} {100 * load:5.1f}% {moved:>8.1f}")
    return lines


def reading(options):
    """What one screen needs of the guest at one time."""
    sched = json.loads(observe.fetch(options.host, options.http, "/sched"))
    waits = collections.Counter()
    if len(sched["threads"]) <= DUMP_LIMIT:
        dump = json.loads(observe.fetch(options.host, options.http, "/threads?format=json"))
        waits.update(t["waits_for"]["kind"] for t in dump["threads"] if "waits_for" in t)
    return {"metrics": parse(observe.fetch(options.host, options.http, "/metrics")), "sched": sched, "waits": waits,
            "served": commands_served(options.host, options.resp) if options.resp else None}


def screen(before, after):
    """The whole text between two readings."""
    text = frame(before["metrics"], after["metrics"], after["sched"]["policy"])
    seconds = (after["sched"]["time_ns"] - before["sched"]["time_ns"]) / 1e9 or 1.0
    if before["served"] is not None and after["served"] is not None:
        text = text.replace("\n", f"\nrequests/s {(after['served'] - before['served']) / seconds:.0f}  ", 1)
    return "\n".join([text] + thread_lines(before["sched"], after["sched"], after["waits"]))


def run_top(options):
    """`weir top`: prints a screen every interval until Ctrl-C, or --count times."""
    if options.resp is None and options.http == GUEST_PORTS["http"]:
        options.resp = GUEST_PORTS["resp"]
    before = reading(options)
    shown = 0
    while options.count is None or shown < options.count:
        time.sleep(options.interval)
        after = reading(options)
        print((CLEAR if sys.stdout.isatty() else "") + screen(before, after), flush=True)
        before = after
        shown += 1
    return 0


def add(commands):
    """The options of `weir top`."""
    p = commands.add_parser("top", help="live view of a running guest: load, threads, waits, requests, IPIs, migrations")
    observe.add_address(p)
    p.add_argument("--resp", type=int, metavar="PORT",
                   help="RESP port on the host, for the request rate; 0: leave it out (6379 if the HTTP port is 9100)")
    p.add_argument("--interval", type=float, default=1.0, metavar="S", help="seconds between screens (1)")
    p.add_argument("--count", type=int, metavar="N", help="end after N screens")
    p.set_defaults(call=run_top)
