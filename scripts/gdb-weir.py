"""gdb commands for a running or crashed guest: weir-threads, weir-cpus, weir-runq, weir-bt, weir-locks, weir-trace.

Loaded by scripts/gdb; elsewhere: gdb build/weir.elf -x scripts/gdb-weir.py. `help weir-threads` explains each one.
"""
import gdb

# States of sched/state.h, waits of sched/sched.h: asked of the debug information, not repeated here.
MAX_FRAMES = 40
APP_MAX = 0x00007FFFFFFFF000
KERNEL_MIN = 0xFFFF800000000000
TRACE_TAIL = 40


def enum_names(name):
    """{value: name} of an enum type."""
    return {int(field.enumval): field.name for field in gdb.lookup_type(f"enum {name}").fields()}


def offset_of(type_name, field):
    """Bytes from the start of a struct to a field ("a.b" for one within one)."""
    kind, offset = gdb.lookup_type(type_name), 0
    for part in field.split("."):
        found = next(f for f in kind.fields() if f.name == part)
        offset += found.bitpos // 8
        kind = found.type
    return offset


def container(node, type_name, field):
    """The struct that holds a list or heap node."""
    address = int(node) - offset_of(type_name, field)
    return gdb.Value(address).cast(gdb.lookup_type(type_name).pointer())


def static(file, name):
    """A variable of one file."""
    return gdb.parse_and_eval(f"'{file}'::{name}")


def list_nodes(head):
    """Nodes of a struct list, the head left out."""
    node = head["next"]
    for _ in range(100000):
        if int(node) == int(head.address):
            return
        yield node
        node = node["next"]


def threads():
    """Every living thread."""
    for node in list_nodes(static("sched/thread.c", "living")):
        yield container(node, "struct thread", "table")


def cpus():
    """(number, struct cpu_sched) of every CPU in use."""
    every = gdb.parse_and_eval("cpu_scheds")
    for cpu in range(int(static("sched/init.c", "num_cpus"))):
        yield cpu, every[cpu]


def name_of(thread):
    """'12 "kv-conn"', 'idle'."""
    if int(thread) == 0:
        return "none"
    head = thread["head"]
    return f'{int(head["id"])} "{head["name"].string(errors="replace")}"' if int(head["id"]) else "idle"


def symbol(address):
    """'function+0x12' of the kernel or an application whose symbols are loaded."""
    block = gdb.execute(f"info symbol {address:#x}", to_string=True).split(" in section")[0].strip()
    return block.replace(" + ", "+") if not block.startswith("No symbol") else "?"


def read_word(address):
    """8 bytes of memory, None if they are not mapped."""
    try:
        return int.from_bytes(bytes(gdb.selected_inferior().read_memory(address, 8)), "little")
    except gdb.MemoryError:
        return None


def frames(pointer):
    """Return addresses of a chain of frame pointers."""
    for _ in range(MAX_FRAMES):
        following, pc = read_word(pointer), read_word(pointer + 8)
        if not following and not pc:
            return
        if pc is None or pc == 0:
            return
        yield pc
        if following is None or following == pointer:
            return
        pointer = following


class Command(gdb.Command):
    """A command whose errors are one line."""

    def __init__(self, name, run):
        super().__init__(name, gdb.COMMAND_STATUS)
        self.run = run

    def invoke(self, argument, from_tty):
        del from_tty
        try:
            self.run(argument.split())
        except (gdb.error, gdb.MemoryError, StopIteration) as error:
            raise gdb.GdbError(f"{error} (is the kernel of this guest loaded, and has it started its scheduler?)") from error


def weir_threads(arguments):
    """All threads: id, name, state, CPU, what they wait for. weir-threads [STATE]: only those."""
    states, kinds = enum_names("thread_state"), enum_names("wait_kind")
    print(f"{'id':>6} {'name':<16} {'state':<10} {'cpu':>3} {'runtime ms':>11} {'switches':>9}  waits for")
    for t in threads():
        state = states.get(int(t["state"]), "?").removeprefix("T_").lower()
        if arguments and state != arguments[0].lower():
            continue
        head, wait = t["head"], ""
        if state == "blocked":
            kind = kinds.get(int(head["wait_kind"]), "?").removeprefix("WAIT_").lower()
            wait = f"{kind}:{int(head['wait_object']):#x}"
        print(f"{int(head['id']):>6} {head['name'].string(errors='replace'):<16} {state:<10} {int(t['cpu']):>3} "
              f"{int(t['runtime_ns']) / 1e6:>11.3f} {int(t['switches']):>9}  {wait}")


def weir_cpus(arguments):
    """All CPUs: what runs, how many wait, wake list, polling, capacity, counters."""
    del arguments
    board = gdb.parse_and_eval("board")
    print(f"{'cpu':>3} {'runs':<24} {'queued':>6} {'in flight':>9} {'capacity':>8} {'polls':>5} {'switches':>10} {'ipis':>8} wake list")
    for cpu, c in cpus():
        woken, t = [], c["wake_list"]
        while int(t) and len(woken) < 20:
            woken.append(name_of(t))
            t = t["wake_next"]
        print(f"{cpu:>3} {name_of(c['current']):<24} {int(c['runq']['count']):>6} {int(board[cpu]['in_flight']):>9} "
              f"{int(board[cpu]['capacity']):>8} {int(c['polling']):>5} {int(c['stats']['switches']):>10} "
              f"{int(c['stats']['ipis_sent']):>8} {', '.join(woken)}")


def weir_runq(arguments):
    """Run queues: the threads that wait, in order of arrival, with their virtual run time. weir-runq [CPU]"""
    for cpu, c in cpus():
        if arguments and cpu != int(arguments[0]):
            continue
        queue = c["runq"]
        print(f"CPU {cpu}: runs {name_of(c['current'])}, {int(queue['count'])} waiting, floor {int(queue['floor'])} ns")
        for node in list_nodes(queue["order"]):
            entity = container(node, "struct runq_entity", "order")
            t = container(entity, "struct thread", "entity")
            print(f"    {name_of(t):<24} vruntime {int(entity['node']['key'])} ns, weight {int(entity['weight'])}, "
                  f"queued since {int(entity['queued_ns'])} ns")


def weir_bt(arguments):
    """Back trace of a thread that does not run, through kernel and application: weir-bt ID"""
    if len(arguments) != 1:
        raise gdb.GdbError("usage: weir-bt ID (weir-threads lists them)")
    for t in threads():
        if int(t["head"]["id"]) != int(arguments[0]):
            continue
        if int(t["on_cpu"]):
            raise gdb.GdbError(f"thread {name_of(t)} runs on CPU {int(t['cpu'])}: `thread {int(t['cpu']) + 1}`, then bt")
        print(f"thread {name_of(t)}")
        pointer = read_word(int(t["arch"]["sp"]))
        for number, pc in enumerate(frames(pointer)):
            where = "" if pc >= KERNEL_MIN else "  (application)" if pc < APP_MAX else ""
            print(f"  #{number:<2} {pc:#018x} {symbol(pc)}{where}")
        return
    raise gdb.GdbError(f"no thread {arguments[0]}")


def weir_locks(arguments):
    """Lock classes that were contended or counted: acquisitions, contention, longest wait and hold."""
    del arguments
    lock = gdb.parse_and_eval("lock_classes")
    print(f"{'class':<20} {'acquired':>12} {'contended':>10} {'max wait ns':>12} {'max hold ns':>12}")
    while int(lock):
        print(f"{lock['name'].string():<20} {int(lock['acquisitions']):>12} {int(lock['contended']):>10} "
              f"{int(lock['wait_ns_max']):>12} {int(lock['hold_ns_max']):>12}")
        lock = lock["next"]


def weir_trace(arguments):
    """The newest events of all CPUs (boot with trace=all): weir-trace [HOW-MANY]"""
    want = int(arguments[0]) if arguments else TRACE_TAIL
    names = enum_names("trace_type")
    rings, mask = static("core/base/trace.c", "rings"), int(static("core/base/trace.c", "ring_mask"))
    found = []
    for cpu in range(int(static("core/base/trace.c", "num_rings"))):
        head = int(rings[cpu]["head"])
        for i in range(max(0, head - min(want, mask + 1)), head):
            e = rings[cpu]["events"][i & mask]
            found.append((int(e["time_ns"]), cpu, names.get(int(e["type"]), "?"), int(e["thread"]), int(e["arg"]),
                          int(e["a"]), int(e["b"])))
    if not found:
        raise gdb.GdbError("nothing recorded: boot with trace=all")
    for time, cpu, kind, thread, arg, a, b in sorted(found)[-want:]:
        print(f"{time / 1e9:14.9f} c{cpu:<2} {kind.removeprefix('TRACE_').lower():<12} thread {thread:<6} arg {arg:<5} a {a:#x} b {b:#x}")


for function in (weir_threads, weir_cpus, weir_runq, weir_bt, weir_locks, weir_trace):
    # gdb shows the class's docstring as help.
    kind = type(function.__name__, (Command,), {"__doc__": function.__doc__})
    kind(function.__name__.replace("_", "-"), function)
