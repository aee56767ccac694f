"""The host's grant, read from trees of files as cgroup v1 and v2 have them."""

from fractions import Fraction

import pytest

from weirlib import grant

V2_MOUNT = "30 20 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
V1_MOUNTS = ("31 20 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
             "32 20 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n")


def tree(tmp_path, files):
    """A root directory with these files."""
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return str(tmp_path)


def v2(tmp_path, group, files):
    root = {"proc/self/cgroup": f"0::{group}\n", "proc/self/mountinfo": V2_MOUNT}
    root.update({"sys/fs/cgroup" + name: content for name, content in files.items()})
    return grant.read(tree(tmp_path, root), affinity=16, seen=16)


def v1(tmp_path, files):
    root = {"proc/self/cgroup": "5:cpu,cpuacct:/box\n4:memory:/box\n", "proc/self/mountinfo": V1_MOUNTS}
    root.update({"sys/fs/cgroup/" + name: content for name, content in files.items()})
    return grant.read(tree(tmp_path, root), affinity=16, seen=16)


def test_nothing_to_read(tmp_path):
    found = grant.read(str(tmp_path), affinity=3, seen=3)
    assert found.cpus is None and found.memory_max is None
    assert found.words(16, 1 << 30) == [] and found.sentence() is None


def test_v2_quota(tmp_path):
    found = v2(tmp_path, "/a", {"/a/cpu.max": "150000 100000\n", "/a/memory.max": "max\n"})
    assert found.cpus == Fraction(3, 2)
    assert found.words(16, 1 << 30) == ["quota_us=150000", "period_us=100000"]
    assert found.words(1, 1 << 30) == []
    assert found.sentence() == "the host grants 1.5 CPUs by quota"


def test_v2_tightest_on_the_path_wins(tmp_path):
    found = v2(tmp_path, "/a/b/c", {
        "/a/cpu.max": "100000 100000\n", "/a/b/cpu.max": "max 100000\n", "/a/b/c/cpu.max": "400000 100000\n",
        "/a/memory.max": "2147483648\n", "/a/b/memory.max": "1073741824\n", "/a/b/c/memory.high": "536870912\n"})
    assert found.cpus == 1
    assert found.memory_max == 1 << 30
    assert found.memory_high == 512 << 20
    assert found.words(16, 2 << 30) == ["quota_us=100000", "period_us=100000",
                                        "memory_high=536870912", "memory=1073741824"]
    assert found.words(16, 256 << 20)[2:] == []


def test_v2_limit_of_the_mounts_root(tmp_path):
    """In a container the group's path is the host's and the mount shows its own group as root."""
    mount = "30 20 0:26 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    root = tree(tmp_path, {"proc/self/cgroup": "0::/box\n", "proc/self/mountinfo": mount,
                           "sys/fs/cgroup/cpu.max": "50000 100000\n"})
    assert grant.read(root, affinity=16, seen=16).cpus == Fraction(1, 2)


@pytest.mark.parametrize("text", ["", "max", "100000", "1 0", "x 100000", "100000 y", "-5 100000", "1 2 3"])
def test_v2_malformed_is_ignored_and_said(tmp_path, text, capsys):
    assert v2(tmp_path, "/a", {"/a/cpu.max": text}).cpus is None
    assert "ignored" in capsys.readouterr().err


def test_v2_unlimited_is_silent(tmp_path, capsys):
    assert v2(tmp_path, "/a", {"/a/cpu.max": "max 100000\n"}).cpus is None
    assert capsys.readouterr().err == ""


def test_v1_quota(tmp_path):
    found = v1(tmp_path, {"cpu,cpuacct/box/cpu.cfs_quota_us": "200000\n", "cpu,cpuacct/box/cpu.cfs_period_us": "100000\n",
                          "memory/box/memory.limit_in_bytes": "268435456\n"})
    assert found.cpus == 2
    assert found.memory_max == 256 << 20


def test_v1_unlimited(tmp_path, capsys):
    found = v1(tmp_path, {"cpu,cpuacct/box/cpu.cfs_quota_us": "-1\n", "cpu,cpuacct/box/cpu.cfs_period_us": "100000\n",
                          "memory/box/memory.limit_in_bytes": "9223372036854771712\n"})
    assert found.cpus is None and found.memory_max is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("quota, period", [("abc", "100000"), ("100000", "0"), ("100000", "many"), ("", "100000")])
def test_v1_malformed(tmp_path, quota, period):
    found = v1(tmp_path, {"cpu,cpuacct/box/cpu.cfs_quota_us": quota, "cpu,cpuacct/box/cpu.cfs_period_us": period})
    assert found.cpus is None


@pytest.mark.parametrize("cpus, text", [(Fraction(1), "1"), (Fraction(3, 2), "1.5"), (Fraction(1, 3), "0.334"),
                                        (Fraction(1, 10000), "0.001"), (Fraction(10), "10")])
def test_fractions_never_round_to_nothing(cpus, text):
    assert grant.Grant(cpus, 16, None, None).cpus_text() == text


def test_v1_zero_period_is_said(tmp_path, capsys):
    v1(tmp_path, {"cpu,cpuacct/box/cpu.cfs_quota_us": "100000", "cpu,cpuacct/box/cpu.cfs_period_us": "0"})
    assert capsys.readouterr().err.count("ignored") == 1


def test_what_is_no_longer_limited_is_max():
    assert grant.changed(["quota_us=1", "period_us=1", "memory=1"], ["quota_us=5", "period_us=2"]) == \
        ["quota_us=5", "period_us=2", "memory=max"]
    assert grant.changed(["quota_us=1"], []) == ["quota_us=max"]


def test_another_process(tmp_path):
    root = tree(tmp_path, {"proc/7/cgroup": "0::/a\n", "proc/7/mountinfo": V2_MOUNT, "sys/fs/cgroup/a/cpu.max": "1000 2000"})
    assert grant.read(root, affinity=16, seen=16, pid=7).cpus == Fraction(1, 2)


def test_this_host_can_be_read():
    found = grant.read()
    assert found.affinity >= 1
    assert found.cpus is None or found.cpus > 0


def test_affinity_counts_when_it_is_less_than_what_is_seen():
    assert grant.Grant(None, 2, None, None, seen=4).words(16, 1 << 30)[0] == "quota_us=200000"
    assert grant.Grant(Fraction(3), 2, None, None, seen=4).words(16, 1 << 30)[0] == "quota_us=200000"
    assert grant.Grant(Fraction(1), 2, None, None, seen=4).words(16, 1 << 30)[0] == "quota_us=100000"
    # A machine with two CPUs, all of them ours: sixteen vCPUs are the user's wish.
    assert grant.Grant(None, 2, None, None, seen=2).words(16, 1 << 30) == []


def test_least_quota():
    assert grant.Grant(Fraction(1, 1000), 2, None, None, seen=2).words(16, 1 << 30)[0] == "quota_us=1000"
