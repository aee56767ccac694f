"""The command line of scripts/weir."""

import argparse
import os
import sys

from . import cluster, observe, ports, run, top
from .common import EXIT_USAGE, HOST_ADDRESS, TOP, WeirError, say

# Commands that are programs of their own: name -> (program below scripts/, help).
PROGRAMS = {
    "sim": ("weir-sim", "run the simulator"),
    "compare": ("weir-compare", "compare two result files of make bench: before and after a patch"),
}


def port_option(text):
    try:
        return ports.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def add_run(commands):
    """Options of `weir run`."""
    p = commands.add_parser("run", help="boot a guest",
                            description="Boots a guest and shows its console until it ends; Ctrl-C "
                            "presses its power button. The exit code is the guest's.")
    p.add_argument("--smp", type=int, default=16, metavar="N", help="vCPUs, 1..64 (16)")
    p.add_argument("--mem", default="1G", metavar="SIZE", help="memory (1G)")
    p.add_argument("--accel", choices=("auto", "kvm", "tcg"), default=os.environ.get("ACCEL", "auto"),
                   help="auto: KVM if a CPU really starts under it, else TCG (environment: ACCEL)")
    p.add_argument("--boot", choices=("direct", "uefi", "image"), default="direct",
                   help="the kernel itself, the UEFI application, or the disk image (direct)")
    p.add_argument("--net", choices=("user", "tap", "none"), default="user", help="network (user)")
    p.add_argument("--tap", default="weir0", metavar="IF", help="interface for --net tap (weir0)")
    p.add_argument("--netns", action="store_true",
                   help="with --net tap: make the tap, in a network namespace of its own; clients enter it by "
                   "nsenter -t PID -n")
    p.add_argument("--guest-ip", default="10.0.2.15", metavar="ADDR",
                   help="where the guest is reached with --net tap (10.0.2.15)")
    p.add_argument("--queues", type=int, default=1, metavar="N", help="queue pairs, needs tap (1)")
    p.add_argument("--policy", metavar="NAME", help="balancer policy")
    p.add_argument("--append", default="", metavar="ARGS", help="more of the kernel's command line")
    p.add_argument("--app", metavar="NAME", help="application: a name below build/apps, or a path (kv)")
    p.add_argument("--args", metavar="ARGS", help="arguments of the application")
    p.add_argument("--initrd", metavar="FILE", help="archive (cpio) instead of one application")
    p.add_argument("--no-app", action="store_true", help="hand over no application at all")
    p.add_argument("--resp", type=port_option, metavar="PORT", help="host port of RESP; 0: a free one; off (6379)")
    p.add_argument("--mc", type=port_option, metavar="PORT", help="host port of memcached (11211)")
    p.add_argument("--http", type=port_option, metavar="PORT", help="host port of HTTP (9100)")
    p.add_argument("--vtime", action="store_true", help="virtual time, 1 ns/instruction (make vtime)")
    p.add_argument("--detach", action="store_true",
                   help="return once the server answers, with one JSON line: pid, resp, mc, http, log")
    p.add_argument("--build", choices=("release", "debug"),
                   default=os.environ.get("WEIR_BUILD", "release"), help="which kernel (release)")
    p.add_argument("--kernel", metavar="FILE", help="another kernel or UEFI application")
    p.add_argument("--image", metavar="FILE", help="another disk image")
    p.add_argument("--qemu", metavar="FILE", help="another emulator")
    p.add_argument("--qemu-arg", action="append", default=[], metavar="ARG", help="one more word for QEMU")
    p.add_argument("--log", metavar="FILE", help="console log (below build/run)")
    p.add_argument("--grant", choices=("auto", "off"), default="auto",
                   help="auto: tell the guest the host's CPU quota and memory limit")
    p.add_argument("--gdb", type=int, metavar="PORT", help="start paused, debugger on this port")
    p.add_argument("--timeout", type=float, metavar="S", help="bound of the wait for the first answer")
    p.add_argument("--quiet", dest="echo", action="store_false", help="do not show the console")
    p.set_defaults(call=run.run)


def add_cluster(commands):
    """Options of `weir cluster`."""
    p = commands.add_parser("cluster", help="boot several guests behind nutcracker, keys spread by consistent hashing",
                            description="Returns once the proxy answers, with one JSON line: pid, resp, mc, guests, log; "
                            "`weir stop PID` ends all.")
    p.add_argument("guests", type=int, metavar="N", help="guests, 1..64")
    p.add_argument("--resp", type=port_option, default=6379, metavar="PORT", help="the proxy's port of RESP; 0: a free one (6379)")
    p.add_argument("--mc", type=port_option, default=11211, metavar="PORT", help="the proxy's port of memcached (11211)")
    p.add_argument("--smp", type=int, default=1, metavar="N", help="vCPUs of a guest (1)")
    p.add_argument("--mem", default="256M", metavar="SIZE", help="memory of a guest (256M)")
    p.add_argument("--accel", choices=("auto", "kvm", "tcg"), default=os.environ.get("ACCEL", "auto"), help="as for run (auto)")
    p.add_argument("--policy", metavar="NAME", help="balancer policy")
    p.add_argument("--append", default="", metavar="ARGS", help="more of the kernel's command line")
    p.add_argument("--build", choices=("release", "debug"), default=os.environ.get("WEIR_BUILD", "release"),
                   help="which kernel (release)")
    p.set_defaults(call=cluster.run)


def parser():
    """The whole command line."""
    main_parser = argparse.ArgumentParser(prog="scripts/weir", description=__doc__)
    commands = main_parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_run(commands)
    add_cluster(commands)
    p = commands.add_parser("stop", help="shut a guest, or a cluster, down in order; the exit code is the guest's")
    p.add_argument("pid", type=int, metavar="PID", help="pid that run --detach or cluster printed")
    p.set_defaults(call=run.stop)
    p = commands.add_parser("grant", help="tell a running guest what the host grants to it now (boot it with http.write=1)")
    p.add_argument("pid", type=int, metavar="PID", help="pid that run --detach printed")
    p.add_argument("--host", default=HOST_ADDRESS, help="address (127.0.0.1)")
    p.set_defaults(call=run.update_grant)
    observe.add(commands)
    top.add(commands)
    for name, (_, text) in PROGRAMS.items():
        commands.add_parser(name, help=text, add_help=False)
    return main_parser


def run_program(name, arguments):
    """Becomes the program behind a command."""
    path = os.path.join(TOP, "scripts", PROGRAMS[name][0])
    if not os.path.exists(path):
        raise WeirError(f"scripts/{PROGRAMS[name][0]} is missing from this tree")
    os.execv(path, [path] + arguments)


def main(arguments):
    """Exit code of scripts/weir."""
    try:
        if arguments and arguments[0] in PROGRAMS:
            return run_program(arguments[0], arguments[1:])
        options = parser().parse_args(arguments)
        return options.call(options)
    except WeirError as error:
        say(f"error: {error}")
        return EXIT_USAGE
    except KeyboardInterrupt:
        return 128 + 2
    except BrokenPipeError:
        sys.stderr.close()
        return EXIT_USAGE
