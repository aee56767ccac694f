#!/usr/bin/python3
"""Boots the port's test kernel on several emulated machines and counts its tests.

usage: run.py --kernel ELF [--qemu PROGRAM] [NAME]

NAME runs one of the machines or endings only. The last line is "N passed, N failed".
"""
import argparse
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import threading

HOST_LIMIT_S = 180  # a boot takes under a second; the host may be loaded
TESTS = 15          # of main.c
PASSED, PANICKED = 5 * 2 + 1, 101 * 2 + 1  # exit codes through isa-debug-exit

# name: (machine, cpu, vCPUs, MiB)
MACHINES = {
    "q35-1": ("q35", "max", 1, 256),
    "q35-small": ("q35", "qemu64", 2, 64),
    "q35-16": ("q35", "max", 16, 256),
    "q35-64": ("q35", "qemu64", 64, 512),
    "pc-4": ("pc", "qemu64", 4, 128),
    "pc-large": ("pc", "max", 16, 5000),  # RAM above 4 GiB
    "nohpet": ("q35,hpet=off", "max", 4, 256),
}
# name: (command line, what the panic says)
ENDINGS = {
    "null": r"write 0000000000000020",
    "text": r"page fault .* write ffffffff81000000",
    "alias": r"page fault .* write ffff8880",
    "jump": r"page fault .* execute ffffffff",
    "call0": r"page fault .* execute 0000000000000000",
    "stack": r"page fault .* write ffffffff",
    "ud2": r"invalid opcode",
    "app": r"page fault .* write 0000000050",
}


def command(args, machine, append):
    kind, cpu, cpus, mib = machine
    return [args.qemu, "-machine", kind, "-cpu", cpu, "-accel", "tcg", "-smp", str(cpus),
            "-m", str(mib), "-display", "none", "-nodefaults", "-serial", "stdio", "-no-reboot",
            "-device", "isa-debug-exit,iobase=0xf4,iosize=0x04",
            "-device", "pci-bridge,id=b1,chassis_nr=1" if kind.startswith("pc")
            else "pcie-root-port,id=b1",
            "-device", "virtio-rng-pci,disable-legacy=on",
            "-device", "virtio-rng-pci,disable-legacy=on,bus=b1,addr=0x0",
            "-fw_cfg", "name=opt/weir/test,string=hello",
            "-kernel", args.kernel, "-append", append, "-initrd", args.initrd]


def boot(args, machine, append):
    """(exit code, output, command) of one boot."""
    argv = command(args, machine, append)
    try:
        proc = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=HOST_LIMIT_S, check=False)
        return proc.returncode, proc.stdout.decode(errors="replace"), argv
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode(errors="replace")
        return None, output + f"\nno end after {HOST_LIMIT_S} s", argv


def press_button(path):
    """Presses the power button through QEMU's monitor."""
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.connect(path)
        replies = monitor.makefile()
        replies.readline()  # greeting
        for request in ("qmp_capabilities", "system_powerdown"):
            monitor.sendall(('{"execute": "%s"}\n' % request).encode())
            replies.readline()


def boot_and_press(args, machine):
    """Like boot(), and presses the button when the guest waits for it."""
    path = args.initrd + ".qmp"
    argv = command(args, machine, "button") + ["-qmp", f"unix:{path},server=on,wait=off"]
    proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, errors="replace")
    limit = threading.Timer(HOST_LIMIT_S, proc.kill)
    limit.start()
    output = ""
    for line in proc.stdout:
        output += line
        if "waiting for the power button" in line:
            press_button(path)
    code = proc.wait()
    limit.cancel()
    return code, output, argv


class Score:
    def __init__(self):
        self.passed = self.failed = 0

    def add(self, name, passed, failed, result):
        self.passed += passed
        self.failed += failed
        if failed == 0:
            print(f"arch {name}: {passed} passed, 0 failed")
            return
        code, output, argv = result
        print(f"arch {name}: {failed} FAILED, exit code {code}; output:")
        print("  " + "\n  ".join(output.splitlines()[-30:]))
        print(f"  repeat: make test-arch T={name}   (or: {shlex.join(argv)})")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--qemu", default="qemu-system-x86_64")
    parser.add_argument("only", nargs="?")
    args = parser.parse_args()
    names = [*MACHINES, *ENDINGS, "button"]
    if args.only and args.only not in names:
        sys.exit(f"no test named {args.only}; there are: {' '.join(names)}")
    score = Score()
    with tempfile.TemporaryDirectory() as scratch:
        args.initrd = os.path.join(scratch, "initrd")
        with open(args.initrd, "wb") as file:
            file.write(b"weir" * 1250)
        for name, machine in MACHINES.items():
            if args.only in (None, name):
                result = boot(args, machine, "a=1 b")
                passed = len(re.findall(r"\] ok ", result[1]))
                good = result[0] == PASSED and passed == TESTS
                score.add(name, passed, 0 if good else max(1, TESTS - passed), result)
        for name, says in ENDINGS.items():
            if args.only in (None, name):
                result = boot(args, MACHINES["q35-small"], f"fatal={name}")
                good = result[0] == PANICKED and re.search(r"panic on CPU 0.*" + says, result[1])
                score.add(name, 1 if good else 0, 0 if good else 1, result)
        if args.only in (None, "button"):
            result = boot_and_press(args, MACHINES["q35-small"])
            good = result[0] == PASSED and "ok power_button" in result[1]
            score.add("button", 1 if good else 0, 0 if good else 1, result)
    print(f"{score.passed} passed, {score.failed} failed")
    return 1 if score.failed else 0


if __name__ == "__main__":
    sys.exit(main())
