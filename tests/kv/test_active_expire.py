"""DEBUG SET-ACTIVE-EXPIRE: expired keys stay until they are met, and go by themselves once it is on again."""
from kv_server import wait_for


def test_active_expire_off_and_on(start):
    server = start(KV_DEBUG=1)
    with server.raw() as c:
        assert c.ask("DEBUG SET-ACTIVE-EXPIRE 0") == "OK"
        assert c.ask("SET met 1 PX 1") == "OK" and c.ask("SET unmet 1 PX 1") == "OK"
        wait_for(lambda: c.ask("GET met") is None, "the end of a key's time")
        assert c.ask("DBSIZE") == 1, "the one that nobody asked for is still there"
        assert c.ask("DEBUG SET-ACTIVE-EXPIRE 2").startswith("-ERR")
        assert c.ask("DEBUG SET-ACTIVE-EXPIRE 1") == "OK"
        wait_for(lambda: c.ask("DBSIZE") == 0, "the removal of an expired key that nobody asks for")
