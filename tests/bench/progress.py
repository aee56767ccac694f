"""Progress of a sweep on the terminal, with the time that is left.

Estimates come from the plan and are corrected by how long finished boots really took, apart for
Weir and Linux.
"""

import sys
import time


class Progress:
    def __init__(self, boots, out=None, now=time.monotonic):
        self._out, self._now = out or sys.stdout, now
        self._todo = list(boots)
        self._total = len(boots)
        self._begun = now()
        self._boot_begun = None
        self._spent = {}              # kind -> [estimated, real] of finished boots

    @staticmethod
    def _kind(boot):
        return "weir" if boot.peer == "weir" else "linux"

    def _estimate(self, boot):
        estimated, real = self._spent.get(self._kind(boot), (0, 0))
        if not estimated:       # nothing of its kind yet: a slow host is slow for both
            estimated, real = (sum(column) for column in zip((0, 0), *self._spent.values()))
        return boot.estimate_s() * (real / estimated if estimated else 1.0)

    def left(self):
        """Host seconds until all boots in the list are done."""
        return sum(self._estimate(b) for b in self._todo)

    def would_end(self, boot):
        """Seconds after the sweep's begin at which `boot`, started now, would end."""
        return self._now() - self._begun + self._estimate(boot)

    def skip(self, boot):
        self._todo.remove(boot)

    def start(self, boot):
        self._boot_begun = self._now()
        number = self._total - len(self._todo) + 1
        elapsed = self._now() - self._begun
        self._out.write(f"[{number}/{self._total}] {clock(elapsed)} gone, about {clock(self.left())} "
                        f"left: {boot.label}: ")
        self._out.flush()

    def phase(self, conns, rps):
        self._out.write(f"c={conns} {rps / 1000:.1f}k  ")
        self._out.flush()

    def end(self, boot, failure=None):
        real = self._now() - self._boot_begun
        self._todo.remove(boot)
        if failure:
            self._out.write(f"FAILED at {failure['at']}: {failure['why']}\n")
        else:
            spent = self._spent.setdefault(self._kind(boot), [0.0, 0.0])
            spent[0] += boot.estimate_s()
            spent[1] += real
            self._out.write(f"({real:.0f} s)\n")
        self._out.flush()


def clock(seconds):
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
