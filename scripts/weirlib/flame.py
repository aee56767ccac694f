"""Flame graphs: folded stacks (one "frame;frame;frame VALUE" a line, outermost first) as one SVG file.

The SVG needs nothing else: each box has a tool tip; a small script inside zooms on a click and searches with Ctrl-F.
"""

import html
import zlib

from .common import WeirError

WIDTH = 1200           # pixels
ROW = 17               # pixels of a frame's height
MARGIN = 10
TITLE_HEIGHT = 30
CHARACTER = 6.6        # pixels of a letter of the 11 px monospace font
NARROWEST = 0.3        # pixels: thinner frames are left out
MAX_DEPTH = 200        # frames of a stack; deeper ones are cut

SCRIPT = """
function zoom(box) {
  var all = document.querySelectorAll('g.f'), x0 = +box.dataset.x, w0 = +box.dataset.w, y0 = +box.dataset.d;
  all.forEach(function (g) {
    var x = +g.dataset.x, w = +g.dataset.w, inside = x >= x0 - 1e-6 && x + w <= x0 + w0 + 1e-6;
    var over = +g.dataset.d < y0 && x <= x0 + 1e-6 && x + w >= x0 + w0 - 1e-6;
    g.style.display = inside || over ? '' : 'none';
    var left = over ? 0 : (x - x0) / w0, width = over ? 1 : w / w0, pixels = width * %(inner)d;
    var r = g.querySelector('rect'), t = g.querySelector('text');
    r.setAttribute('x', %(margin)d + left * %(inner)d); r.setAttribute('width', Math.max(0, pixels - 0.5));
    t.setAttribute('x', %(margin)d + left * %(inner)d + 3);
    var n = Math.floor((pixels - 6) / %(character)f);
    t.textContent = n < 3 ? '' : (g.dataset.n.length <= n ? g.dataset.n : g.dataset.n.slice(0, n - 2) + '..');
  });
}
"""


class Node:
    """A frame with everything called from it."""

    def __init__(self):
        self.value = 0
        self.children = {}


def parse(text):
    """The tree of folded stacks; raises WeirError with the line that is none."""
    root = Node()
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        stack, _, count = line.rpartition(" ")
        if not stack or not count.isdigit():
            raise WeirError(f"folded stacks: line {number} is not 'FRAME;FRAME VALUE': {line[:60]}")
        node = root
        node.value += int(count)
        for frame in stack.split(";")[:MAX_DEPTH]:
            node = node.children.setdefault(frame, Node())
            node.value += int(count)
    if root.value == 0:
        raise WeirError("folded stacks: nothing in them (no sample was taken)")
    return root


def colour(name):
    """A warm colour, the same for the same name."""
    seed = zlib.crc32(name.encode())
    return f"rgb({205 + seed % 50},{80 + (seed >> 8) % 130},{(seed >> 16) % 60})"


def boxes(node, depth, left, total):
    """(name, depth, left 0..1, width 0..1, value) of all frames wide enough to see."""
    for name in sorted(node.children):
        child = node.children[name]
        width = child.value / total
        if width * WIDTH >= NARROWEST:
            yield name, depth, left, width, child.value
            yield from boxes(child, depth + 1, left, total)
        left += width


def svg(text, title, unit):
    """The flame graph of folded stacks."""
    root = parse(text)
    frames = list(boxes(root, 0, 0.0, root.value))
    deepest = max(depth for _, depth, _, _, _ in frames) + 1
    height = TITLE_HEIGHT + deepest * ROW + 2 * MARGIN
    inner = WIDTH - 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
           f'viewBox="0 0 {WIDTH} {height}" font-family="monospace" font-size="11">',
           f'<rect width="100%" height="100%" fill="#fffdf7"/><text x="{WIDTH / 2}" y="20" font-size="14" '
           f'text-anchor="middle">{html.escape(title)}</text>',
           "<script><![CDATA[" + SCRIPT % {"inner": inner, "margin": MARGIN, "character": CHARACTER} + "]]></script>"]
    for name, depth, left, width, value in frames:
        y = height - MARGIN - (depth + 1) * ROW
        x = MARGIN + left * inner
        room = int((width * inner - 6) / CHARACTER)
        label = "" if room < 3 else name if len(name) <= room else name[:room - 2] + ".."
        out.append(
            f'<g class="f" data-x="{left:.9f}" data-w="{width:.9f}" data-d="{depth}" data-n="{html.escape(name)}" '
            f'onclick="zoom(this)"><title>{html.escape(name)}: {value} {html.escape(unit)} '
            f'({100 * value / root.value:.2f}%)</title><rect x="{x:.2f}" y="{y}" width="{max(width * inner - 0.5, 0.1):.2f}" '
            f'height="{ROW - 1}" rx="1" fill="{colour(name)}"/><text x="{x + 3:.2f}" y="{y + 12}">'
            f"{html.escape(label)}</text></g>")
    out.append("</svg>\n")
    return "\n".join(out)
