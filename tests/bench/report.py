"""Writes the report of a run: one HTML file with everything inside, and the table for the terminal."""

import os

import results
import svg

HERE = os.path.dirname(os.path.abspath(__file__))

# (css class, marker) of a series.
STYLES = {"none": ("none", "cross"), "legacy": ("legacy", "down"), "drain": ("drain", "circle"),
          "flow": ("flow", "diamond"), "linux-kv": ("linux", "square"),
          "linux-memcached": ("memcached", "triangle")}
NAMES = {"linux-kv": "Linux, same server", "linux-memcached": "Linux, memcached"}

# Parts of a server CPU's time, as the kernel tells them, and their colours.
TIME_KINDS = (("app", "flow"), ("kernel", "drain"), ("idle", "idle"))

MAP_CONNS = 32                    # connections of the placement maps and the time series


def series_name(row):
    return row["policy"] if row["peer"] == "weir" else row["peer"]


def shown_name(name):
    return NAMES.get(name, f"Weir, {name}")


def style(name):
    return STYLES.get(name, ("other", "circle"))


def per_request(row, key, scale=1.0):
    if row.get(key) is None or not row.get("requests"):
        return None
    return scale * row[key] / row["requests"]


def _series(rows, x, y):
    """[(name, class, marker, points)] in a fixed order of names."""
    names = list(dict.fromkeys([n for n in STYLES if any(series_name(r) == n for r in rows)] +
                               [series_name(r) for r in rows]))
    return [(shown_name(n), *style(n), [(r[x], y(r)) for r in rows if series_name(r) == n]) for n in names]


def legend(names):
    items = []
    for name in names:
        css, marker = style(name)
        items.append(f'<span><svg viewBox="0 0 26 12"><path class="line {css}" d="M0,6H26"/>'
                     f'<path class="mark {css}" transform="translate(13 6)" d="{svg.MARKERS[marker]}"/></svg>'
                     f"{svg.escape(shown_name(name))}</span>")
    return f'<div class="legend">{"".join(items)}</div>'


def card(title, drawing, note="", names=None):
    if not drawing:
        return ""
    note = f"<p>{svg.escape(note)}</p>" if note else ""
    return f'<div class="card"><h3>{svg.escape(title)}</h3>{legend(names) if names else ""}{drawing}{note}</div>'


def sweep_cards(rows):
    rows = [r for r in rows if r["group"] == "sweep"]
    names = [n for n in STYLES if any(series_name(r) == n for r in rows)]
    names += [n for n in dict.fromkeys(series_name(r) for r in rows) if n not in names]

    def chart(title, y, label, **options):
        return card(title, svg.line_chart(title, _series(rows, "conns", y), "connections", label, **options),
                    names=names)

    return [
        chart("Throughput", lambda r: r["rps"], "requests / s"),
        chart("Median latency", lambda r: r["p50_us"], "us", y_log=True),
        chart("99th percentile", lambda r: r["p99_us"], "us", y_log=True),
        chart("99.9th percentile", lambda r: r["p999_us"], "us", y_log=True),
        chart("Idle share of the server's CPUs", lambda r: r["idle_share"], "share", y_max=1.0),
        chart("CPUs that ran the server's threads", lambda r: r["cpus_used"], "CPUs"),
        chart("Interrupts between CPUs, per request", lambda r: per_request(r, "ipis"), "IPIs / request"),
        chart("Context switches, per request", lambda r: per_request(r, "switches"), "switches / request"),
        chart("Migrations, per 1,000 requests", lambda r: per_request(r, "migrations", 1000), "migrations"),
    ]


def scaling_card(rows):
    rows = [r for r in rows if r["group"] == "scaling"]
    if not rows:
        return ""
    series = _series(rows, "vcpus", lambda r: r["rps"])
    first = max(rows, key=lambda r: r["rps"] / r["vcpus"])
    base = first["rps"] / first["vcpus"]
    series.append(("linear", "ideal", "circle", [(n, base * n) for n in sorted({r["vcpus"] for r in rows})]))
    names = list(dict.fromkeys(series_name(r) for r in rows))
    return card("Scaling: 4 connections a vCPU", svg.line_chart("Scaling", series, "vCPUs of the server", "requests / s"),
                "Dotted: linear from the best series.", names)


def time_cards(points):
    """Throughput over time: the first moments of a policy, and the converged state."""
    cards = []
    for group, title in (("map", "From the first request"), ("converged", "Until legacy has converged")):
        chosen, names = [], []
        for p in points:
            name = series_name(p)
            if p["group"] == group and p["conns"] == MAP_CONNS and p.get("slices") and name not in names:
                names.append(name)
                width = p["slice_ms"] / 1000
                whole = p["slices"][:int((p["warmup_ms"] + p["time_ms"]) / p["slice_ms"])]
                chosen.append((shown_name(name), *style(name),
                               [((i + 0.5) * p["slice_ms"], n / width) for i, n in enumerate(whole)]))
        cards.append(card(f"{title}, c = {MAP_CONNS}",
                          svg.line_chart(title, chosen, "ms", "requests / s", x_log=False, markers=False),
                          "Throughput in slices; the measured part begins after the warm-up.", names))
    return cards


def map_rows(point):
    """(rows of shares per CPU, seconds) from the parts that the phase was counted in."""
    parts = [p for p in point.get("parts", []) if "busy_share" in p]
    seconds = sum(p.get("duration_ns", 0) for p in parts) / 1e9
    return [list(column) for column in zip(*(p["busy_share"] for p in parts))], seconds


def map_cards(points):
    cards, seen = [], set()
    for p in points:
        if p["conns"] != MAP_CONNS or (p["group"], p["policy"]) in seen:
            continue
        rows, seconds = map_rows(p)
        if rows:
            seen.add((p["group"], p["policy"]))
            cards.append(card(f"Placement, {shown_name(series_name(p))}, {p['group']}, c = {MAP_CONNS}",
                              svg.heat_map("placement", rows, "CPU", "ms", seconds),
                              "The darker, the busier the CPU in that slice of time."))
    return cards


def time_share_card(points):
    bars = []
    for p in points:
        if p["rep"] == 1 and p["group"] == "sweep" and p["conns"] in (1, MAP_CONNS):
            shares = p.get("time_share")
            if not shares and p.get("app_share") and p.get("busy_share"):
                app, busy = (sum(p[k]) / p["vcpus"] for k in ("app_share", "busy_share"))
                shares = {"app": app, "kernel": max(0.0, busy - app), "idle": max(0.0, 1 - busy)}
            if shares:
                bars.append((f"{series_name(p)}, c={p['conns']}", shares))
    return card("Where the server CPUs' time went", svg.stacked_bars("time", bars, TIME_KINDS),
                "From left to right: threads of the server with their system calls, threads of the kernel, idle.")


def number(value, digits=1):
    return "" if value is None else f"{value:,.{digits}f}"


COLUMNS = (
    ("c", lambda r: str(r["conns"])), ("krps", lambda r: number(r["rps"] / 1000)),
    ("spread", lambda r: "" if r["rps_spread"] is None else f"{100 * r['rps_spread']:.1f}%"),
    ("p50 us", lambda r: number(r["p50_us"])), ("p99", lambda r: number(r["p99_us"])),
    ("p99.9", lambda r: number(r["p999_us"])),
    ("idle", lambda r: "" if r["idle_share"] is None else f"{100 * r['idle_share']:.0f}%"),
    ("CPUs", lambda r: number(r["cpus_used"], 0)),
    ("migr/k", lambda r: number(per_request(r, "migrations", 1000), 2)),
    ("IPIs/req", lambda r: number(per_request(r, "ipis"), 2)),
    ("switches/req", lambda r: number(per_request(r, "switches"), 2)),
)


def table(rows):
    head = "".join(f"<th>{name}</th>" for name, _ in COLUMNS)
    body = []
    for r in rows:
        cells = "".join(f"<td>{f(r)}</td>" for _, f in COLUMNS)
        width = f", {r['dispatch_width']} workers" if r.get("dispatch_width") else ""
        body.append(f'<tr><td class="text">{svg.escape(shown_name(series_name(r)))}</td>'
                    f'<td class="text">{r["group"]}{width}</td><td>{r["vcpus"]}</td>{cells}'
                    f'<td class="wide">{r["verdict"] or ""}<div class="soft">{svg.escape(r["evidence"] or "")}</div></td></tr>')
    return ('<div class="scroll"><table><tr><th class="text">guest</th><th class="text">series</th><th>vCPUs</th>'
            f'{head}<th class="text">verdict and evidence</th></tr>{"".join(body)}</table></div>')


def checks_html(checks):
    if not checks:
        return ""
    rows = "".join(f'<tr><td class="text {"good" if ok else "bad"}">{"reached" if ok else "not reached"}</td>'
                   f'<td class="text">{svg.escape(name)}</td><td class="wide">{svg.escape(text)}</td></tr>'
                   for name, ok, text in checks)
    return f'<h2>Numbers to reach</h2><div class="scroll"><table>{rows}</table></div>'


def failures_html(failures):
    if not failures:
        return ""
    items = "".join(f'<p class="bad">{svg.escape(f["boot"])}, at {svg.escape(f["at"])}: {svg.escape(f["why"])}</p>'
                    f'<pre>{svg.escape(chr(10).join(f["tail"]))}</pre>' for f in failures)
    return f"<h2>What failed</h2>{items}"


def commands_html(config, points):
    seen = {}
    for p in points:
        seen.setdefault(p.get("command", ""), f"{shown_name(series_name(p))}, {p['group']}, {p['vcpus']} vCPUs, rep {p['rep']}")
    items = "".join(f"<details><summary>{svg.escape(label)}</summary><pre>{svg.escape(command)}</pre></details>"
                    for command, label in seen.items() if command)
    facts = "".join(f'<tr><td class="text">{svg.escape(k)}</td><td class="wide">{svg.escape(v)}</td></tr>'
                    for k, v in config.items() if not isinstance(v, dict))
    tests = "".join(f'<tr><td class="text">self-test, {svg.escape(k)}</td><td class="wide">{svg.escape(v)}</td></tr>'
                    for k, v in config.get("selftest", {}).items())
    return (f"<h2>Configuration</h2><div class='scroll'><table>{facts}{tests}</table></div>"
            f"<h2>Exact command of every figure</h2>{items}")


def html(config, points, rows, checks, failures):
    with open(os.path.join(HERE, "report.css"), encoding="utf-8") as file:
        css = file.read()
    charts = "".join(sweep_cards(rows) + [scaling_card(rows)])
    over_time = "".join(time_cards(points) + map_cards(points) + [time_share_card(points)])
    reps = max((r["reps"] for r in rows), default=0)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Weir benchmark</title><style>{css}</style></head><body>
<h1>Weir benchmark</h1>
<p class="soft">{svg.escape(config.get("clock", ""))} &middot; QEMU {svg.escape(config.get("qemu", "?"))} &middot;
window {config.get("window_ns", 0)} ns &middot; {svg.escape(config.get("commit", ""))} &middot; {svg.escape(config.get("date", ""))}</p>
<p>{svg.escape(config.get("load", ""))}. Figures are medians of up to {reps} repetition{"s" if reps != 1 else ""};
"spread" is half the range over the median.</p>
<p class="soft">{svg.escape(MODEL_NOTE if config.get("accel") == "vtime" else "")}</p>
{failures_html(failures)}{checks_html(checks)}
<h2>Against connections</h2><div class="grid2">{charts}</div>
<h2>Over time and over CPUs</h2><div class="grid2">{over_time}</div>
<h2>Every series</h2>{table(rows)}
{commands_html(config, points)}
</body></html>
"""


MODEL_NOTE = ("Virtual time charges 1 ns per instruction and nothing for caches, memory, migrations or interrupts "
              "between CPUs unless the configuration below says so. It compares guests that execute the same "
              "way; it does not foretell a machine.")


def write(path, config, points, rows, checks, failures):
    results.write_atomically(path, html(config, points, rows, checks, failures))


def text_table(rows):
    """For the terminal."""
    lines = [f"{'guest':<22}{'series':<11}{'vCPUs':>5} {'c':>4}{'krps':>9}{'spread':>8}{'p50':>8}{'p99':>8}{'p99.9':>9}"
             f"{'idle':>6}{'CPUs':>6}{'migr/k':>10}{'IPIs/req':>9}  verdict"]
    for r in rows:
        cell = {name: f(r) for name, f in COLUMNS}
        lines.append(f"{shown_name(series_name(r)):<22}{r['group']:<11}{r['vcpus']:>5} {cell['c']:>4}{cell['krps']:>9}"
                     f"{cell['spread']:>8}{cell['p50 us']:>8}{cell['p99']:>8}{cell['p99.9']:>9}{cell['idle']:>6}"
                     f"{cell['CPUs']:>6}{cell['migr/k']:>10}{cell['IPIs/req']:>9}  {r['verdict'] or ''}")
    return "\n".join(lines)
