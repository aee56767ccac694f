"""A small SVG writer: line charts, heat maps and stacked bars for the report.

Colours are CSS classes and variables of the page (report.css), so that a chart follows the page's
light or dark scheme. Every mark carries its figures as a native tooltip (<title>).
"""

import html
import math

WIDTH, HEIGHT = 620, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 14, 44

# Marker shapes, so that series differ by more than colour; paths around (0, 0).
MARKERS = {
    "circle": "M-3.5,0a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0",
    "square": "M-3,-3h6v6h-6z",
    "diamond": "M0,-4.2l4.2,4.2l-4.2,4.2l-4.2,-4.2z",
    "triangle": "M0,-4l4,7h-8z",
    "down": "M0,4l4,-7h-8z",
    "cross": "M-3,-3l6,6M-3,3l6,-6",
}


def escape(text):
    return html.escape(str(text), quote=True)


def short(value):
    """1234567 -> 1.23M, 0.0421 -> 0.0421; for axes and tooltips."""
    if value == 0:
        return "0"
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{suffix}"
    return f"{value:.3g}"


def nice_ticks(low, high, count=5):
    """Round values that cover low..high, about `count` of them."""
    if high <= low:
        high = low + 1
    raw = (high - low) / count
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    first = math.floor(low / step)
    ticks = [first * step]
    while ticks[-1] < high * 0.9999999:
        ticks.append((first + len(ticks)) * step)
    return ticks


def decade_ticks(low, high):
    """1, 2, 5 times powers of ten around low..high (> 0)."""
    ticks, power = [], math.floor(math.log10(low))
    while True:
        for m in (1, 2, 5):
            value = m * 10.0 ** power
            if value >= low / 2.6:
                ticks.append(value)
            if value >= high:
                first = max(i for i, t in enumerate(ticks) if t <= low or i == 0)
                return ticks[first:]
        power += 1


class Scale:
    """Maps data to pixels; log with any base is the same map."""

    def __init__(self, ticks, begin, end, log=False):
        self.ticks, self._log = ticks, log
        self._low, self._high = self._of(ticks[0]), self._of(ticks[-1])
        self._begin, self._end = begin, end

    def _of(self, value):
        return math.log(value) if self._log else value

    def __call__(self, value):
        span = self._high - self._low or 1
        return self._begin + (self._of(value) - self._low) / span * (self._end - self._begin)


def _axes(x, y, x_label, y_label):
    parts = []
    for tick in y.ticks:
        at = y(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
                     f'<text class="tick" x="{LEFT - 7}" y="{at + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    for tick in x.ticks:
        at = x(tick)
        parts.append(f'<line class="axis" x1="{at:.1f}" x2="{at:.1f}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 4}"/>'
                     f'<text class="tick" x="{at:.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{short(tick)}</text>')
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}"/>')
    parts.append(f'<text class="label" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(f'<text class="label" x="14" y="{(TOP + HEIGHT - BOTTOM) / 2}" text-anchor="middle" '
                 f'transform="rotate(-90 14 {(TOP + HEIGHT - BOTTOM) / 2})">{escape(y_label)}</text>')
    return parts


def _open(height, title):
    return (f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}" '
            'xmlns="http://www.w3.org/2000/svg">')


def line_chart(title, series, x_label, y_label, x_log=True, y_log=False, y_max=None, markers=True):
    """series: [(name, css class, marker, [(x, y), ...])]; points with y None are left out.
    '' when there is nothing to draw."""
    series = [(n, c, m, sorted((px, py) for px, py in pts if py is not None and (py > 0 or not y_log)))
              for n, c, m, pts in series]
    series = [s for s in series if s[3]]
    if not series:
        return ""
    xs = sorted({px for *_, pts in series for px, _ in pts})
    ys = [py for *_, pts in series for _, py in pts]
    x_ticks = xs if x_log else nice_ticks(min(xs), max(xs), 8)
    y_ticks = decade_ticks(min(ys), max(ys)) if y_log else nice_ticks(0, y_max or max(ys))
    pad = 12
    x = Scale(x_ticks, LEFT + pad, WIDTH - RIGHT - pad, x_log and len(xs) > 1)
    y = Scale(y_ticks, HEIGHT - BOTTOM, TOP, y_log)
    parts = [_open(HEIGHT, title)] + _axes(x, y, x_label, y_label)
    for name, css, marker, pts in series:
        path = " ".join(f"{'M' if i == 0 else 'L'}{x(px):.1f},{y(py):.1f}" for i, (px, py) in enumerate(pts))
        parts.append(f'<path class="line {css}" d="{path}"><title>{escape(name)}</title></path>')
        if markers:
            parts += [f'<path class="mark {css}" transform="translate({x(px):.1f} {y(py):.1f})" d="{MARKERS[marker]}">'
                      f"<title>{escape(name)}: {short(py)} at {short(px)}</title></path>" for px, py in pts]
    return "".join(parts) + "</svg>"


def heat_map(title, rows, row_label, column_label, seconds):
    """rows: one list of shares (0..1, None unknown) per CPU, all of one length; `seconds` is the
    width of the map in time."""
    if not rows or not rows[0]:
        return ""
    cell = 13
    height = TOP + cell * len(rows) + BOTTOM
    width = (WIDTH - LEFT - RIGHT) / len(rows[0])
    parts = [_open(height, title)]
    for r, row in enumerate(rows):
        at = TOP + r * cell
        if r % 4 == 0 or len(rows) <= 8:
            parts.append(f'<text class="tick" x="{LEFT - 7}" y="{at + 10}" text-anchor="end">{r}</text>')
        for c, share in enumerate(row):
            if share is None:
                continue
            begin, end = c * seconds / len(row), (c + 1) * seconds / len(row)
            parts.append(f'<rect class="heat" x="{LEFT + c * width:.1f}" y="{at}" width="{width - 1:.1f}" '
                         f'height="{cell - 1}" fill-opacity="{max(0.04, min(1.0, share)):.2f}"><title>CPU {r}, '
                         f"{begin * 1000:.0f}-{end * 1000:.0f} ms: {100 * share:.0f}% busy</title></rect>")
    base = TOP + cell * len(rows)
    for i in range(5):
        at = LEFT + i * (WIDTH - LEFT - RIGHT) / 4
        parts.append(f'<text class="tick" x="{at:.1f}" y="{base + 16}" text-anchor="middle">{seconds * 250 * i:.0f}</text>')
    parts.append(f'<text class="label" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{base + 34}" text-anchor="middle">{escape(column_label)}</text>')
    parts.append(f'<text class="label" x="14" y="{TOP + cell * len(rows) / 2}" text-anchor="middle" '
                 f'transform="rotate(-90 14 {TOP + cell * len(rows) / 2})">{escape(row_label)}</text>')
    return "".join(parts) + "</svg>"


def stacked_bars(title, bars, kinds):
    """bars: [(label, {kind: share})]; kinds: [(kind, css class)] in order of stacking."""
    if not bars:
        return ""
    cell, label_width = 22, 150
    height = TOP + cell * len(bars) + 26
    span = WIDTH - label_width - RIGHT
    parts = [_open(height, title)]
    for i, (label, shares) in enumerate(bars):
        at, x = TOP + i * cell, float(label_width)
        parts.append(f'<text class="tick" x="{label_width - 8}" y="{at + 13}" text-anchor="end">{escape(label)}</text>')
        for kind, css in kinds:
            share = shares.get(kind) or 0
            if share > 0:
                parts.append(f'<rect class="bar {css}" x="{x:.1f}" y="{at}" width="{max(0.5, share * span - 1):.1f}" '
                             f'height="{cell - 6}"><title>{escape(label)}, {escape(kind)}: {100 * share:.1f}%</title></rect>')
            x += share * span
    for i in range(5):
        at = label_width + span * i / 4
        parts.append(f'<text class="tick" x="{at:.1f}" y="{height - 8}" text-anchor="middle">{25 * i}%</text>')
    return "".join(parts) + "</svg>"
