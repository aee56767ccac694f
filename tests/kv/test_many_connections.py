"""As many connections as the default limit allows, each answered, in bounded memory."""
import glob
import os
import resource

import pytest

from kv_server import Server, Raw

CONNECTIONS = 10000
# Resident bytes of the server with all connections open and used.
MOST_RESIDENT = 1 << 30


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


def threads_allowed():
    """The least of what the system, this user and the control groups allow."""
    limits = [resource.getrlimit(resource.RLIMIT_NPROC)[0]]
    for path in ["/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max", *glob.glob("/sys/fs/cgroup/pids.max"),
                 *glob.glob("/sys/fs/cgroup/pids/pids.max")]:
        with open(path, encoding="ascii") as file:
            limits.append(resource.RLIM_INFINITY if (text := file.read().strip()) == "max" else int(text))
    return min((limit for limit in limits if limit != resource.RLIM_INFINITY), default=2 * CONNECTIONS)


@pytest.mark.descriptors(CONNECTIONS + 200)
@pytest.mark.skipif(threads_allowed() < 2 * CONNECTIONS, reason="this host's limit of threads is too low")
@pytest.mark.parametrize("mode", ["thread", "pool"])
def test_ten_thousand_connections(mode):
    if "KV_HOST" in os.environ:
        pytest.skip("needs a server of its own; KV_HOST points elsewhere")
    server, clients = Server("host", KV_DISPATCH=mode), []
    try:
        for i in range(CONNECTIONS):
            clients.append(Raw(server.host, server.resp))
            clients[-1].send(b"SET c:%d %d\r\n" % (i, i))
        for client in clients:
            client.expect(b"+OK\r\n")
        for i, client in enumerate(clients):      # all are still open
            client.send(b"GET c:%d\r\n" % i)
        for i, client in enumerate(clients):
            client.expect(b"$%d\r\n%d\r\n" % (len(str(i)), i))
        size = resident(server.proc.pid)
        print(f"{mode}: {size} bytes resident, {size // CONNECTIONS} a connection")
        assert size <= MOST_RESIDENT
    finally:
        for client in clients:
            client.close()
        server.stop()
