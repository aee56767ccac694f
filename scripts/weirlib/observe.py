"""`weir flame`: looks into a running guest through its HTTP port."""

import os
import urllib.error
import urllib.request

from . import flame
from .common import BUILD, GUEST_PORTS, HOST_ADDRESS, WeirError, say, shown

# What the values of each kind of profile count.
UNITS = {"oncpu": "samples", "offcpu": "us asleep"}
# Short names of the modes.
SHORT = {"on": "oncpu", "off": "offcpu"}
# The guest may need this much longer than the profile itself (seconds): it is slow when emulated and busy.
ANSWER_MARGIN = 60


def fetch(host, port, path, timeout=ANSWER_MARGIN, data=None):
    """Body of a page of the guest's HTTP server; data: of a POST."""
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", data=data, timeout=timeout) as answer:
            return answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace").strip().splitlines()
        raise WeirError(f"{path}: HTTP {error.code}" + (f": {text[0]}" if text else "")) from error
    except OSError as error:
        raise WeirError(f"no guest answers HTTP on {host}:{port} ({error}); is one running?") from error


def run_flame(options):
    """`weir flame`: profiles the guest and writes an SVG file."""
    options.mode = SHORT.get(options.mode, options.mode)
    say(f"profiling for {options.seconds} s ({options.mode})")
    text = fetch(options.host, options.http, f"/profile?seconds={options.seconds}&mode={options.mode}",
                 options.seconds + ANSWER_MARGIN)
    title = f"Weir, {options.mode}, {options.seconds} s"
    picture = flame.svg(text, title, UNITS[options.mode])
    path = options.output or os.path.join(BUILD, f"flame-{options.mode}.svg")
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(picture)
    print(shown(path))
    return 0


def add_address(p):
    """Options that say where the guest's HTTP port is."""
    p.add_argument("--host", default=HOST_ADDRESS, help="address (127.0.0.1)")
    p.add_argument("--http", type=int, default=GUEST_PORTS["http"], metavar="PORT", help="HTTP port on the host (9100)")


def add(commands):
    """The options of `weir flame`."""
    p = commands.add_parser("flame", help="profile a running guest and write a flame graph (SVG)")
    add_address(p)
    p.add_argument("--seconds", type=int, default=2, metavar="N", help="how long (2)")
    p.add_argument("--mode", choices=sorted([*UNITS, *SHORT]), default="oncpu", help="where it runs, or where it waits (oncpu)")
    p.add_argument("-o", "--output", metavar="FILE", help="SVG file (build/flame-MODE.svg)")
    p.set_defaults(call=run_flame)
