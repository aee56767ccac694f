"""What the host grants to this process: CPU time (cgroup v1 and v2, affinity) and memory.

A quota does not change how many CPUs are seen, only how long they may run: the guest has to be told. Limits count along
the whole path of groups, the tightest wins. What cannot be read or understood is left out and said once.
"""

import os
from fractions import Fraction

from .common import say

# cgroup v1 tells "no limit" as the largest multiple of the page size; anything above this is no limit (bytes).
V1_NO_LIMIT = 1 << 60
# The period in which the guest is told its quota, and the least quota that its kernel takes (microseconds).
PERIOD_US = 100000
MIN_QUOTA_US = 1000


class Files:
    """Reads files below a root directory (tests give a tree of their own)."""

    def __init__(self, root="/"):
        self.root = root

    def read(self, path):
        """Text of a file without blanks around it, None if it cannot be read."""
        try:
            with open(os.path.join(self.root, path.lstrip("/")), encoding="utf-8") as file:
                return file.read().strip()
        except (OSError, UnicodeDecodeError):
            return None


def groups_along(path):
    """A group and all above it: /a/b -> /a/b, /a, and the root."""
    path = "/" + path.strip("/")
    while True:
        yield path.rstrip("/")
        if path == "/":
            return
        path = os.path.dirname(path)


def own_groups(files, pid="self"):
    """{controller: path} of a process; the key of the v2 hierarchy is ''."""
    groups = {}
    for line in (files.read(f"/proc/{pid}/cgroup") or "").splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            for controller in parts[1].split(","):
                groups[controller] = parts[2]
    return groups


def mounts(files, pid="self"):
    """Mount points of cgroup hierarchies: {'': v2 path, 'cpu': v1 path, ...}, with the group that is their root."""
    found = {}
    for line in (files.read(f"/proc/{pid}/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            found.setdefault("", (fields[4], fields[3]))
        elif kind[0] == "cgroup":
            for option in kind[2].split(","):
                found.setdefault(option, (fields[4], fields[3]))
    return found


def below_mount(group, root):
    """A group's path below the mount point whose root shows the group `root`."""
    root = root.rstrip("/")
    if root and (group == root or group.startswith(root + "/")):
        return group[len(root):] or "/"
    # In a container the path may be that of the host, which is not visible here: the mount's root is ours.
    return "/" if root else group


def number(text, what):
    """A non-negative whole number, None (said once) if it is none."""
    if text is None:
        return None
    if not text.isdigit():
        say(f"grant: {what} is '{text[:40]}', not a number: ignored")
        return None
    return int(text)


def quota_v2(files, directory):
    """CPUs granted by one cpu.max, None for no limit."""
    text = files.read(directory + "/cpu.max")
    if text is None:
        return None
    words = text.split()
    if len(words) != 2 or not words[1].isdigit() or int(words[1]) == 0 or not (words[0] == "max" or words[0].isdigit()):
        say(f"grant: {directory}/cpu.max is '{text[:40]}', not 'QUOTA PERIOD': ignored")
        return None
    if words[0] == "max" or int(words[0]) == 0:
        return None
    return Fraction(int(words[0]), int(words[1]))


def quota_v1(files, directory):
    """CPUs granted by one cpu.cfs_quota_us over cpu.cfs_period_us, None for no limit."""
    text = files.read(directory + "/cpu.cfs_quota_us")
    if text is None or text.startswith("-"):
        return None
    quota = number(text, directory + "/cpu.cfs_quota_us")
    period = number(files.read(directory + "/cpu.cfs_period_us"), directory + "/cpu.cfs_period_us")
    if period == 0:
        say(f"grant: {directory}/cpu.cfs_period_us is 0, no period at all: ignored")
    if not quota or not period:
        return None
    return Fraction(quota, period)


def limit(files, directory, name):
    """A memory limit in bytes, None for no limit."""
    text = files.read(f"{directory}/{name}")
    if text in (None, "max"):
        return None
    value = number(text, f"{directory}/{name}")
    return None if value is None or value >= V1_NO_LIMIT else value


def tightest(values):
    """The smallest of those that are limits, None if none is."""
    return min((v for v in values if v is not None), default=None)


class Grant:
    """cpus: Fraction or None; affinity: CPUs this process may run on, of those seen; memory limits in bytes or None."""

    def __init__(self, cpus, affinity, memory_max, memory_high, seen=None):
        self.seen = seen or os.cpu_count() or affinity
        self.cpus = cpus
        self.affinity = affinity
        self.memory_max = memory_max
        self.memory_high = memory_high

    def cpus_text(self):
        """CPUs to three places, rounded up: 1.5, 2, 0.001."""
        thousandths = -(-self.cpus.numerator * 1000 // self.cpus.denominator)
        return f"{thousandths / 1000:.3f}".rstrip("0").rstrip(".")

    def effective_cpus(self):
        """The tighter of quota and affinity, None if this process may use the whole machine."""
        limits = [self.cpus] if self.cpus is not None else []
        if self.affinity < self.seen:
            limits.append(Fraction(self.affinity))
        return min(limits, default=None)

    def words(self, vcpus, memory):
        """What a guest with so many vCPUs and bytes of memory is told: only what is less than that."""
        result = []
        cpus = self.effective_cpus()
        if cpus is not None and cpus < vcpus:
            quota = max(-(-cpus.numerator * PERIOD_US // cpus.denominator), MIN_QUOTA_US)
            result += [f"quota_us={quota}", f"period_us={PERIOD_US}"]
        if self.memory_high is not None and self.memory_high < memory:
            result.append(f"memory_high={self.memory_high}")
        if self.memory_max is not None and self.memory_max < memory:
            result.append(f"memory={self.memory_max}")
        return result

    def sentence(self):
        """One line for the user, None if nothing is limited below what the host has."""
        parts = []
        if self.cpus is not None:
            parts.append(f"{self.cpus_text()} CPUs by quota")
        if self.affinity < self.seen:
            parts.append(f"{self.affinity} CPUs by affinity")
        if self.memory_max is not None:
            parts.append(f"{self.memory_max >> 20} MiB of memory")
        return "the host grants " + ", ".join(parts) if parts else None


def read(root="/", affinity=None, seen=None, pid="self"):
    """The Grant of a process; tests give a root directory and what the scheduler would say."""
    files = Files(root)
    groups, hierarchies = own_groups(files, pid), mounts(files, pid)
    cpus, memory_max, memory_high = [], [], []
    for controller, version in (("", 2), ("cpu", 1), ("memory", 1)):
        if controller not in groups or controller not in hierarchies:
            continue
        mount, mount_root = hierarchies[controller]
        for group in groups_along(below_mount(groups[controller], mount_root)):
            directory = mount + group
            if version == 2:
                cpus.append(quota_v2(files, directory))
                memory_max.append(limit(files, directory, "memory.max"))
                memory_high.append(limit(files, directory, "memory.high"))
            elif controller == "cpu":
                cpus.append(quota_v1(files, directory))
            else:
                memory_max.append(limit(files, directory, "memory.limit_in_bytes"))
    allowed = len(os.sched_getaffinity(0 if pid == "self" else pid)) if affinity is None else affinity
    return Grant(tightest(cpus), allowed, tightest(memory_max), tightest(memory_high), seen)


def changed(old, new):
    """Words that bring a guest from one list of words to another: what is no longer limited is "max"."""
    names = {word.split("=")[0] for word in new}
    gone = [f"{name}=max" for name in dict(word.split("=") for word in old)
            if name not in names and name != "period_us"]
    return new + gone


def update(options, state, fetch):
    """`weir grant PID`: tells a running guest what the host grants to its emulator now; prints the guest's answer."""
    machine = state["machine"]
    found = read(pid=state["pid"])
    words = found.words(machine["smp"], machine["memory"])
    said = found.sentence() or "the host grants all of the machine"
    say(f"{said}: handed to the guest")
    everything = ["quota_us=1", "memory=1", "memory_high=1"]
    body = "&".join(["from=host", *changed(everything, words)])
    print(fetch(options.host, state["services"]["http"], "/grant", data=body.encode()), end="")
    return 0
