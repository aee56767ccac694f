"""Paths of the harness's modules, and the stand-in for QEMU."""

import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in (HERE, os.path.join(HERE, "vtime"), os.path.join(HERE, "linux")):
    sys.path.insert(0, folder)

import emulator  # noqa: E402
import guests  # noqa: E402
import selftest  # noqa: E402


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """Arguments that make bench.py use the stand-in; .behave("panic=1") makes it misbehave."""
    for name in ("kv", "load"):
        (tmp_path / name).write_bytes(b"\x7fELF not really")
    (tmp_path / "weir.elf").write_bytes(b"\x7fELF not really")
    (tmp_path / "selftest.elf").write_bytes(b"\x7fELF not really")
    monkeypatch.setattr(guests, "APPS", str(tmp_path))
    monkeypatch.setattr(selftest, "GUEST", str(tmp_path / "selftest.elf"))
    monkeypatch.setattr(emulator, "PLUGIN", str(tmp_path / "weir.elf"))
    monkeypatch.delenv("FAKE_QEMU", raising=False)
    qemu = os.path.join(HERE, "fixtures", "fake-qemu")

    class Fake:
        out = tmp_path / "out"
        args = ["--qemu", qemu, "--kernel", str(tmp_path / "weir.elf"), "--out", str(out), "--peers", ""]

        @staticmethod
        def behave(how):
            monkeypatch.setenv("FAKE_QEMU", how)

    Fake.qemu = qemu
    return Fake
