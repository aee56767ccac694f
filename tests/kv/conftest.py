"""Fixtures of the key-value server's tests.

By default a server of our own (ASan, UBSan) is started, once with each dispatch mode. With KV_HOST, KV_RESP_PORT
and KV_MC_PORT set, the tests of the fixture `kv` run against that server (a guest, for example) and those that
need a server with settings of their own are skipped.
"""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import kv_server  # noqa: E402


class Elsewhere:
    """A server that somebody else runs."""

    def __init__(self):
        self.host = os.environ["KV_HOST"]
        self.resp = int(os.environ.get("KV_RESP_PORT", "6379"))
        self.mc = int(os.environ.get("KV_MC_PORT", "11211"))

    raw = kv_server.Server.raw
    info = kv_server.Server.info

    def stop(self):
        pass


def pytest_generate_tests(metafunc):
    if "kv_shared" in metafunc.fixturenames:
        modes = ["given"] if "KV_HOST" in os.environ else ["thread", "pool"]
        metafunc.parametrize("kv_shared", modes, indirect=True, scope="session")


@pytest.fixture(scope="session")
def kv_shared(request):
    if request.param == "given":
        server = Elsewhere()
    else:
        server = kv_server.Server(KV_DISPATCH=request.param, KV_DEBUG=1)
    yield server
    server.stop()


@pytest.fixture
def kv(kv_shared):
    """An empty server with default limits."""
    with kv_shared.raw() as c:
        assert c.ask("FLUSHALL") == "OK"
    return kv_shared


@pytest.fixture
def start():
    """Starts servers with settings of the test; they are stopped and checked at its end."""
    if "KV_HOST" in os.environ:
        pytest.skip("needs a server of its own; KV_HOST points elsewhere")
    servers = []

    def begin(**settings):
        servers.append(kv_server.Server(**settings))
        return servers[-1]

    yield begin
    for server in servers:
        server.stop()
