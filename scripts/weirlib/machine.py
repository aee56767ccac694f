"""The QEMU command line of a guest."""

import os
import re
import shutil
import subprocess

from . import accel, grant, tap
from .common import BUILD, GUEST_PORTS, HOST_ADDRESS, TOP, WeirError, build_file, say, shown

# The user-mode network of QEMU is always this one; a static address saves the guest the wait of
# an address negotiation (about a second).
USER_NET = "net=static ip=10.0.2.15/24,gw=10.0.2.2"
DEBUG_EXIT = "isa-debug-exit,iobase=0xf4,iosize=0x04"
MAX_CPUS = 64
# The kernel is loaded at 16 MiB; below this not even its error message would run.
MIN_MEMORY_MIB = 21
# BOOT_MAX_CMDLINE of arch/boot_info.h without the NUL, and one less: a full buffer is taken as a cut one.
MAX_COMMAND_LINE = 4094
# MSI-X vectors of a network device with n queue pairs: one each way, configuration, control.
NET_EXTRA_VECTORS = 2
# Firmware: one file with its variable store inside, or code and variable store apart.
FIRMWARE_WHOLE = ("/usr/share/ovmf/OVMF.fd", "/usr/share/qemu/OVMF.fd")
FIRMWARE_SPLIT = (("/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"),
                  ("/usr/share/OVMF/OVMF_CODE.fd", "/usr/share/OVMF/OVMF_VARS.fd"))
# Where the kernel looks for the host's grant (core/kern/grant.c).
GRANT_FILE = "opt/weir/grant"
# Instructions between looks at the clock, how far (ns) a vCPU may lead the slowest one, and how many may be running for
# that: what the harness measures with (tests/bench/emulator.py).
VTIME_OPTIONS = "quantum=250,window=500,crowd=4"
VTIME_QEMU = os.path.join(BUILD, "qemu-vtime", "qemu-system-x86_64")
VTIME_PLUGIN = os.path.join(BUILD, "vtime", "vtime.so")
# First byte of the EFI system partition within the image (scripts/mkimage): 1 MiB.
IMAGE_FAT_OFFSET = 1048576


def find_qemu(options):
    """Path of the emulator, or an error that names the package."""
    if options.qemu:
        path = shutil.which(options.qemu)
        if path is None:
            raise WeirError(f"no emulator at {options.qemu}")
        return path
    if options.vtime:
        for path, how in ((VTIME_QEMU, "scripts/deps-qemu-vtime"), (VTIME_PLUGIN, "make vtime")):
            if not os.path.exists(path):
                raise WeirError(f"--vtime needs {shown(path)}: run {how}")
        return VTIME_QEMU
    path = shutil.which("qemu-system-x86_64")
    if path is None:
        raise WeirError("qemu-system-x86_64 is missing: run scripts/deps, or install the package "
                        "qemu-system-x86")
    return path


def find_app(options):
    """Path of the application or archive to hand over, None for the one inside the image."""
    if options.initrd:
        path = options.initrd
    elif options.app is None:
        if options.boot != "direct":
            return None
        path = os.path.join(BUILD, "apps", "kv")
    elif os.sep in options.app or os.path.exists(options.app):
        path = options.app
    else:
        path = os.path.join(BUILD, "apps", options.app)
    if not os.path.isfile(path):
        raise WeirError(f"no application at {shown(path)}: run make, or name one with --app")
    return path


def need_built(path, what):
    """The path, or an error that says how to build it."""
    if not os.path.isfile(path):
        raise WeirError(f"{shown(path)} is missing: run {what}")
    return path


def firmware(run_dir):
    """QEMU options for UEFI firmware."""
    for path in FIRMWARE_WHOLE:
        if os.path.exists(path):
            return ["-bios", path]
    for code, variables in FIRMWARE_SPLIT:
        if os.path.exists(code) and os.path.exists(variables):
            store = os.path.join(run_dir, "efi-variables.fd")
            shutil.copyfile(variables, store)
            return ["-drive", f"if=pflash,format=raw,readonly=on,file={code}",
                    "-drive", f"if=pflash,format=raw,file={store}"]
    raise WeirError("UEFI firmware is missing: run scripts/deps, or install the package ovmf")


def command_line(options):
    """The guest's kernel command line."""
    words = []
    user_words = options.append.split()
    if options.args is not None:
        words.append(f'app="/app {options.args}"' if options.args else 'app="/app"')
    if options.policy is not None:
        words.append(f"sched.policy={options.policy}")
    if options.http != "off":
        words.append(f"http={GUEST_PORTS['http']}")
    if options.net != "none" and not any(w.startswith(("net=", "ip=")) for w in user_words):
        words.append(USER_NET if options.net == "user" else tap.guest_words(options.guest_ip))
    if options.append:
        words.append(options.append)
    return " ".join(words)


def memory_bytes(text):
    """Bytes of a memory size that check() has accepted."""
    number, unit = re.fullmatch(r"([0-9]+)([MmGg]?)", text).groups()
    return int(number) << (30 if unit in ("G", "g") else 20)


def grant_options(options):
    """QEMU options that tell the guest what the host grants to this process, if it is less than the guest would see."""
    if options.grant != "auto" or options.vtime:
        return []  # in virtual time the guest's clock does not run while the host holds it back
    found = grant.read()
    words = found.words(options.smp, memory_bytes(options.mem))
    if not words:
        return []
    say(f"{found.sentence()}: {' '.join(words)} handed to the guest (--grant off leaves it out)")
    return ["-fw_cfg", f"name={GRANT_FILE},string={' '.join(words)}"]


def run_tool(words, package):
    """Runs a program that must succeed; raises WeirError with its last words."""
    try:
        proc = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise WeirError(f"{words[0]} is missing: run scripts/deps, or install the package {package}") from error
    if proc.returncode:
        lines = proc.stderr.strip().splitlines() or [f"status {proc.returncode}"]
        raise WeirError(f"{os.path.basename(words[0])}: {lines[-1]}")


def customised_image(options, app, run_dir):
    """A disk image with the command line and, if one is named, the application beside the loader."""
    copy = os.path.join(run_dir, "disk.img")
    text = os.path.join(run_dir, "weir.cmd")
    with open(text, "w", encoding="utf-8") as file:
        file.write(command_line(options))
    files = [(text, "weir.cmd")] + ([(app, "weir.app")] if app else [])
    if options.image:
        shutil.copyfile(need_built(options.image, "make image"), copy)
        for path, name in files:
            run_tool(["mcopy", "-o", "-i", f"{copy}@@{IMAGE_FAT_OFFSET}", path, f"::{name}"], "mtools")
    else:
        application = need_built(build_file("weir.efi", options.build), "make image")
        run_tool([os.path.join(TOP, "scripts", "mkimage"), application, copy, *sum(files, ())], "gdisk")
    return copy


def boot_options(options, run_dir):
    """QEMU options that say what is booted and how."""
    app = find_app(options)
    # The firmware turns this device into its RNG protocol, from which the loader takes entropy.
    entropy = ["-device", "virtio-rng-pci,romfile="]
    if options.boot == "image":
        image = customised_image(options, app, run_dir)
        return firmware(run_dir) + entropy + [
            "-drive", f"if=none,id=disk0,format=raw,readonly=on,file={image}",
            "-device", "virtio-blk-pci,drive=disk0,bootindex=0,romfile="]
    words = []
    if options.boot == "uefi":
        words += firmware(run_dir) + entropy
        words += ["-kernel", need_built(options.kernel or build_file("weir.efi", options.build), "make image")]
    else:
        words += ["-kernel", need_built(options.kernel or build_file("weir.elf", options.build), "make")]
    if app and not options.no_app:
        words += ["-initrd", app]
    return words + ["-append", command_line(options)]


def net_options(options, forwards):
    """QEMU options of the network; forwards: {service: host port}."""
    if options.net == "none":
        return []
    device = "virtio-net-pci,netdev=net0,disable-legacy=on,romfile="
    if options.net == "user":
        if options.queues != 1:
            raise WeirError("--net user has one queue; use --net tap for more")
        rules = "".join(f",hostfwd=tcp:{HOST_ADDRESS}:{port}-:{GUEST_PORTS[service]}"
                        for service, port in forwards.items())
        return ["-netdev", f"user,id=net0{rules}", "-device", device]
    netdev = f"tap,id=net0,ifname={options.tap},script=no,downscript=no,vhost=off"
    if options.queues > 1:
        netdev += f",queues={options.queues}"
        device += f",mq=on,rss=on,vectors={2 * options.queues + NET_EXTRA_VECTORS}"
    return ["-netdev", netdev, "-device", device]


def cpu_options(options, qemu):
    """QEMU options of machine, processor and clock."""
    if options.vtime:
        return ["-machine", "q35,hpet=on", "-cpu", "qemu64,+rdrand", "-accel", "tcg,thread=multi",
                "-rtc", "clock=vm", "-plugin", f"{VTIME_PLUGIN},{VTIME_OPTIONS}"]
    if accel.choose(options.accel, qemu) == "kvm":
        return ["-machine", "q35", "-cpu", "host", "-accel", "kvm"]
    return ["-machine", "q35", "-cpu", "max", "-accel", "tcg,thread=multi"]


def check_command_line(line):
    """Refuses what the kernel would not get whole: QEMU's loader loses its way with more than a page."""
    try:
        length = len(line.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise WeirError(f"the kernel's command line is not UTF-8 text: {line!r}") from error
    if length > MAX_COMMAND_LINE:
        raise WeirError(f"the kernel's command line has {length} characters, at most {MAX_COMMAND_LINE} are possible")


def check(options):
    """Refuses option values that no machine can have."""
    if not 1 <= options.smp <= MAX_CPUS:
        raise WeirError(f"--smp {options.smp}: use 1..{MAX_CPUS}")
    if not re.fullmatch(r"([1-9][0-9]*)([MmGg]?)", options.mem):
        raise WeirError(f"--mem {options.mem}: use a size such as 512M or 2G")
    if options.boot == "direct":
        check_command_line(command_line(options))  # the UEFI application refuses by itself
    if memory_bytes(options.mem) >> 20 < MIN_MEMORY_MIB:
        raise WeirError(f"--mem {options.mem}: too little memory, the kernel needs at least {MIN_MEMORY_MIB}M")
    if options.timeout is not None and options.timeout <= 0:
        raise WeirError(f"--timeout {options.timeout}: use more than 0 seconds")
    if options.netns and options.net != "tap":
        raise WeirError("--netns goes with --net tap")
    if options.queues < 1 or options.queues > MAX_CPUS:
        raise WeirError(f"--queues {options.queues}: use 1..{MAX_CPUS}")


def qemu_command(options, forwards, run_dir):
    """The whole command, for a guest that waits until it is told to go on (-S)."""
    qemu = find_qemu(options)
    words = [qemu] + cpu_options(options, qemu)
    words += ["-smp", str(options.smp), "-m", options.mem, "-display", "none", "-nodefaults",
              "-no-user-config", "-no-reboot", "-S",
              "-chardev", f"file,id=console,path={os.path.join(run_dir, 'console.log')}",
              "-serial", "chardev:console", "-device", DEBUG_EXIT]
    words += net_options(options, forwards)
    words += boot_options(options, run_dir) + grant_options(options)
    if options.gdb is not None:
        words += ["-gdb", f"tcp:{HOST_ADDRESS}:{options.gdb}"]
    return words + options.qemu_arg
