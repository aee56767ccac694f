"""Builds what the Linux peer boots: kernel, base RAM disk, and one small disk per run.

Debian's cloud kernel with busybox, iproute2 and memcached from build/linux/root (see fetch), our
init and peerstat. The server and generator binaries are the ones that the Weir guest runs.
"""

import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import cpio  # noqa: E402
import emulator  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
DIR = os.path.join(emulator.BUILD, "linux")
ROOT = os.path.join(DIR, "root")
BASE = os.path.join(DIR, "base.cpio")
PEERSTAT = os.path.join(DIR, "peerstat")

# mitigations=off: Weir has none either. tsc=reliable: no watchdog against a slower clock; the
# early frequency saves a calibration that virtual time would confuse (the plugin's TSC: 1 GHz).
# cpu_init_udelay, lpj: starting 36 CPUs takes 34 s of host time with the waits meant for hardware.
KERNEL_LINE = ("console=ttyS0 quiet loglevel=3 mitigations=off tsc=reliable clocksource=tsc "
               "tsc_early_khz=1000000 cpu_init_udelay=0 lpj=4000000 nokaslr random.trust_cpu=on panic=-1 rdinit=/init")

MEMCACHED = "/usr/bin/memcached -u root -l 10.1.0.1 -p 11211 -t {cpus} -c 16384 -m 512"
KV = "/kv"


def _needed(path):
    """Names of the shared libraries that an executable or library asks for."""
    text = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def _library(name):
    for folder in ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"):
        path = os.path.join(ROOT, folder, name)
        if os.path.exists(path):
            return os.path.realpath(path)
    raise emulator.EmulatorError(f"linux peer: no {name} among the unpacked packages")


def _add_program(archive, path, source):
    """A dynamic executable with its libraries and the dynamic linker."""
    archive.copy(path, source, 0o755)
    todo, done = _needed(source), set()
    while todo:
        name = todo.pop()
        if name not in done:
            done.add(name)
            library = _library(name)
            archive.copy(f"lib/x86_64-linux-gnu/{name}", library, 0o755)
            todo += _needed(library)
    if "ld-linux-x86-64.so.2" not in archive.paths():
        archive.link("lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")
        archive.copy("lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", _library("ld-linux-x86-64.so.2"),
                     0o755)


def fetch():
    subprocess.run([os.path.join(HERE, "fetch")], check=True)


def kernel():
    found = sorted(glob.glob(os.path.join(ROOT, "boot", "vmlinuz-*")))
    if not found:
        raise emulator.EmulatorError("linux peer: not fetched: run tests/bench/linux/fetch")
    return found[-1]


def release():
    return os.path.basename(kernel()).replace("vmlinuz-", "")


def build_base():
    """The part that is the same for every run; rebuilt when one of its sources is newer."""
    sources = [os.path.join(HERE, "init"), os.path.join(HERE, "peer.py"), PEERSTAT, kernel()]
    if os.path.exists(BASE) and all(os.path.getmtime(s) < os.path.getmtime(BASE) for s in sources):
        return BASE
    archive = cpio.Archive()
    for folder in ("proc", "sys", "dev", "run", "tmp", "var/run", "bin", "etc"):
        archive.directory(folder)
    archive.link("var/run/netns", "/run/netns")
    archive.copy("init", os.path.join(HERE, "init"), 0o755)
    archive.copy("bin/busybox", os.path.join(ROOT, "bin", "busybox"), 0o755)
    archive.link("bin/sh", "busybox")
    archive.copy("bin/peerstat", PEERSTAT, 0o755)
    archive.file("etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")
    module = glob.glob(os.path.join(ROOT, "lib/modules", release(), "kernel/drivers/net/veth.ko*"))
    if not module or not module[0].endswith(".ko"):
        raise emulator.EmulatorError("linux peer: the kernel package has no plain veth.ko")
    archive.copy("lib/veth.ko", module[0])
    _add_program(archive, "usr/sbin/ip", os.path.join(ROOT, "bin", "ip"))
    _add_program(archive, "usr/bin/memcached", os.path.join(ROOT, "usr/bin/memcached"))
    archive.write(BASE)
    return BASE


def _mask(first, count):
    """A CPU mask as /sys wants it: groups of 32 bits, commas between."""
    bits = ((1 << count) - 1) << first
    groups = []
    while True:
        groups.append(f"{bits & 0xffffffff:08x}")
        bits >>= 32
        if not bits:
            return ",".join(reversed(groups))


def machine(kind, server_cpus, gen_cpus, gen_args, out, env=None, extra="", **options):
    """An emulator.Machine for peer `kind` ("kv" or "memcached").

    gen_args: arguments of the generator, without address and protocol. `out`: where to write the
    RAM disk. env: environment of the server. One more CPU counts, so that it disturbs neither.
    """
    server = KV if kind == "kv" else MEMCACHED.format(cpus=server_cpus)
    assignments = "".join(f"{k}={v} " for k, v in sorted((env or {}).items()))
    proto = "resp" if kind == "kv" else "memcache"
    conf = {
        "SERVER": f"env {assignments}{server}",
        "PROCESS": "kv" if kind == "kv" else "memcached",
        "SERVER_CPUS": f"0-{server_cpus - 1}",
        "GEN_CPUS": f"{server_cpus}-{server_cpus + gen_cpus - 1}",
        "HOUSE_CPU": str(server_cpus + gen_cpus),
        "SERVER_MASK": _mask(0, server_cpus),
        "GEN_MASK": _mask(server_cpus, gen_cpus),
        "GEN": f"/load --host 10.1.0.1 --proto {proto} {gen_args}",
        "EXTRA": extra,
    }
    run = cpio.Archive()
    run.file("run.conf", "".join(f"{k}='{v}'\n" for k, v in conf.items()).encode())
    run.copy("load", os.path.join(emulator.BUILD, "apps", "load"), 0o755)
    if kind == "kv":
        run.copy("kv", os.path.join(emulator.BUILD, "apps", "kv"), 0o755)
    with open(build_base(), "rb") as base, open(out, "wb") as file:
        file.write(base.read())
        file.write(run.data())
    return emulator.Machine(kernel=kernel(), initrd=out, append=KERNEL_LINE,
                            smp=server_cpus + gen_cpus + 1, mem_mb=3072, **options)
