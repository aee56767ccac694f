#!/usr/bin/python3
"""How long a dump of many threads keeps anybody else waiting, in virtual time (1 ns/instruction).

usage: tests/obs/dump_cost.py [--connections N] [--seconds N]

Boots the key-value server with a thread per connection and asks for /threads again and again while /locks records. A dump
stops no CPU; what it can do is to make one wait for the thread table's lock (class "threads"), or for the instance that
sends the page. Prints the lines of /locks for both. Exit status 1 if the table was held for longer than a millisecond.
"""
import argparse
import os
import sys
import threading
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(TOP, "scripts"), os.path.join(TOP, "tests", "qemu")]
from weir_guest import Guest  # noqa: E402
from weirlib import descriptors  # noqa: E402

LIMIT_NS = 1000000
PAGE_LIMIT = 600    # seconds of the host for a page
# Virtual time passes at once while the guest waits for this host, so that a recording may miss every dump: it is made again.
ROUNDS = 20
ACQUIRED = 2        # columns of /locks: how often, and
HOLD_MAX = -2       # column of /locks: the longest time held, ns


def get(guest, page):
    url = f"http://{guest.host}:{guest.info['http']}{page}"
    with urllib.request.urlopen(url, timeout=PAGE_LIMIT) as answer:
        return answer.read().decode()


def record(guest, seconds):
    """(lines of /locks, threads in each dump): dumps asked for until the recording ends."""
    pages, dumps = [], []
    recording = threading.Thread(target=lambda: pages.append(get(guest, f"/locks?seconds={seconds}")))
    recording.start()
    while recording.is_alive():
        dumps.append(get(guest, "/threads").count("\nthread "))
    recording.join()
    return pages[0].splitlines(), dumps


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=3, help="of virtual time")
    options = parser.parse_args()
    descriptors.raise_to_hard()
    with Guest("dump-cost", "--vtime", "--build", "release", "--smp", "4", append="locks=1") as guest:
        held = [guest.connect("resp") for _ in range(options.connections)]
        for sock in held:
            sock.sendall(b"PING\r\n")
            assert sock.recv(7) == b"+PONG\r\n"
        for _ in range(ROUNDS):
            lines, dumps = record(guest, options.seconds)
            rows = {line.split()[1]: line for line in lines if line.startswith("kernel")}
            if "threads" in rows and int(rows["threads"].split()[ACQUIRED]) > len(dumps):
                break
        else:
            raise SystemExit(f"no dump fell into {ROUNDS} recordings")
        for sock in held:
            sock.close()
        guest.stop()
    print(f"{len(dumps)} dumps of {max(dumps)} threads")
    print("\n".join([lines[0], rows["threads"], rows["net_instance"]]))
    return 0 if int(rows["threads"].split()[HOLD_MAX]) <= LIMIT_NS else 1


if __name__ == "__main__":
    sys.exit(main())
