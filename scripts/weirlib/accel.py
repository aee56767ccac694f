"""Chooses the accelerator: KVM if a CPU really starts under it, else TCG."""

import json
import os
import subprocess
import tempfile

from .common import BUILD, KVM_PROBE_TIMEOUT, WeirError, say

# The probe's guest: a firmware image whose reset vector writes PROBE_VALUE to the debug-exit port.
ROM_SIZE = 65536
RESET_VECTOR = 0xFFF0
PROBE_VALUE = 0x10
PROBE_CODE = bytes([0xB0, PROBE_VALUE,  # mov al, PROBE_VALUE
                    0xE6, 0xF4,         # out 0xf4, al
                    0xF4])              # hlt
PROBE_STATUS = (PROBE_VALUE << 1) | 1
CACHE = os.path.join(BUILD, "run", "accel.json")


def boot_id():
    """Identifies this boot of the host: a probe's answer holds that long."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def probe_command(qemu, accelerator, cpu):
    """QEMU's command for the probe, but for its firmware."""
    return [qemu, "-machine", "q35", "-accel", accelerator, "-cpu", cpu, "-m", "16M", "-display", "none",
            "-nodefaults", "-no-user-config", "-no-reboot", "-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"]


def probe_rom():
    """The probe's firmware in a temporary file."""
    rom = bytearray(b"\xf4" * ROM_SIZE)
    rom[RESET_VECTOR:RESET_VECTOR + len(PROBE_CODE)] = PROBE_CODE
    file = tempfile.NamedTemporaryFile(suffix=".rom")
    file.write(rom)
    file.flush()
    return file


def run_probe(qemu):
    """None if a CPU runs under KVM, else the reason why not in a few words."""
    with probe_rom() as rom:
        try:
            # The cwd takes a core file, should the emulator abort.
            proc = subprocess.run(probe_command(qemu, "kvm", "host") + ["-bios", rom.name],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                                  timeout=KVM_PROBE_TIMEOUT, check=False, cwd=tempfile.gettempdir())
        except subprocess.TimeoutExpired:
            return f"no CPU ran within {KVM_PROBE_TIMEOUT} s"
    if proc.returncode == PROBE_STATUS:
        return None
    lines = [line for line in proc.stderr.splitlines() if line.strip()]
    detail = lines[0].rsplit("error: ", 1)[-1] if lines else f"QEMU ended with status {proc.returncode}"
    return detail


def kvm_refusal(qemu):
    """None if KVM works here with this emulator, else why not. The answer is kept until reboot."""
    if not os.path.exists("/dev/kvm"):
        return "no /dev/kvm"
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "/dev/kvm may not be opened"
    key = [boot_id(), qemu]
    try:
        with open(CACHE, encoding="utf-8") as file:
            cached = json.load(file)
        if cached["key"] == key and key[0]:
            return cached["refusal"]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    refusal = run_probe(qemu)
    os.makedirs(os.path.dirname(CACHE), exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(CACHE), delete=False,
                                     encoding="utf-8") as file:
        json.dump({"key": key, "refusal": refusal}, file)
    os.replace(file.name, CACHE)
    return refusal


def choose(wanted, qemu):
    """'kvm' or 'tcg' for a wish of auto, kvm or tcg."""
    if wanted == "tcg":
        return "tcg"
    refusal = kvm_refusal(qemu)
    if refusal is None:
        return "kvm"
    if wanted == "kvm":
        raise WeirError(f"KVM does not work here: {refusal}; use --accel tcg")
    say(f"KVM does not start a CPU here ({refusal}): using TCG emulation")
    return "tcg"
