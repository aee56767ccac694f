"""As many connections as the default limit allows, each answered, in bounded memory."""
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


@pytest.mark.parametrize("mode", ["thread", "pool"])
def test_ten_thousand_connections(mode):
    if "KV_HOST" in os.environ:
        pytest.skip("needs a server of its own; KV_HOST points elsewhere")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < CONNECTIONS + 200:
        pytest.skip(f"this process may have {hard} descriptors only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else 2 * CONNECTIONS, hard))
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
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
