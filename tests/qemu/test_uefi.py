"""The UEFI loader with damaged images: it says what is wrong and powers off with its own code."""

import os
import subprocess

import pytest

from weir_guest import TOP, Ended

STUB = os.path.join(TOP, "build", "uefi", "stub.efi")
KERNEL = os.path.join(TOP, "build", "weir.elf")
LOADER_EXIT_CODE = 99
OFF = ["--resp", "off", "--mc", "off", "--http", "off", "--smp", "1", "--boot", "uefi"]


def make_efi(path, kernel):
    """An image with the given bytes for a kernel."""
    source = str(path) + ".kernel"
    with open(source, "wb") as file:
        file.write(kernel)
    subprocess.run([os.path.join(TOP, "scripts", "mkefi"), "--stub", STUB, "--kernel", source, "-o", str(path)],
                   check=True)


def kernel_bytes():
    with open(KERNEL, "rb") as file:
        return file.read()


@pytest.mark.parametrize("name, damage, words", [
    ("text", lambda k: b"not a kernel at all\n" * 10, "not an ELF file"),
    ("cut", lambda k: k[:3000], "outside the file"),
    ("machine", lambda k: k[:18] + b"\xb7\x00" + k[20:], "not for x86-64"),
])
def test_damaged_kernel(tmp_path, name, damage, words):
    image = tmp_path / "bad.efi"
    make_efi(image, damage(kernel_bytes()))
    ended = Ended(f"uefi-bad-{name}", *OFF, "--kernel", str(image))
    assert ended.code == LOADER_EXIT_CODE, ended.why()
    assert ended.console.count("weir: error: ") == 1, ended.why()
    assert words in ended.console, ended.why()


def test_no_kernel_inside():
    ended = Ended("uefi-stub", *OFF, "--kernel", STUB)
    assert ended.code == LOADER_EXIT_CODE, ended.why()
    assert "holds no kernel" in ended.console, ended.why()


def test_too_long_command_line(tmp_path):
    """A command line beyond the limit on the disk is refused, not cut."""
    ended = Ended("uefi-long", "--resp", "off", "--mc", "off", "--http", "off", "--smp", "1", "--boot", "image",
                  append="log=info " * 500)
    assert ended.code == LOADER_EXIT_CODE, ended.why()
    assert "weir.cmd: is larger than" in ended.console, ended.why()
