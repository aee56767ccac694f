"""Many connections at once: nothing is lost, nothing is seen half done."""
import threading

import pytest

from kv_server import PATIENCE, encode

CLIENTS = 16


def together(work, count=CLIENTS):
    """Runs work(i) in count threads; re-raises what any of them raised."""
    failures = []

    def guarded(i):
        try:
            work(i)
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(PATIENCE * 3)
        assert not t.is_alive()
    if failures:
        raise failures[0]


def test_increments_add_up(kv):
    def work(i):
        with kv.raw() as c, kv.raw("mc") as m:
            c.send(encode("INCR", "n") * 300)
            for _ in range(300):
                assert isinstance(c.reply(), int)
            for _ in range(100):
                m.send(b"incr n 1\r\n")
                m.line()

    with kv.raw() as c:
        assert c.command("SET", "n", 0) == "OK"
        together(work)
        assert c.command("GET", "n") == b"%d" % (CLIENTS * 400)


def test_transactions_are_atomic(kv):
    """Writers set three keys (of different shards) to one value; readers never see two values."""
    keys = ["a", "b", "c"]

    def work(i):
        with kv.raw() as c:
            for n in range(150):
                if i % 2:
                    c.send(b"MULTI\r\n" + b"".join(encode("SET", k, f"{i}:{n}") for k in keys) + b"EXEC\r\n")
                    replies = [c.reply() for _ in range(5)]
                    assert replies[-1] == ["OK"] * 3
                elif i % 4:
                    assert len(set(c.command("MGET", *keys))) == 1
                else:
                    c.send(b"MULTI\r\n" + b"".join(encode("GET", k) for k in keys) + b"EXEC\r\n")
                    assert len(set([c.reply() for _ in range(5)][-1])) == 1

    with kv.raw() as c:
        assert c.command("MSET", *sum(([k, "0"] for k in keys), [])) == "OK"
    together(work)


def test_msetnx_has_one_winner(kv):
    won = []

    def work(i):
        with kv.raw() as c:
            for n in range(100):
                if c.command("MSETNX", f"x{n}", i, f"y{n}", i) == 1:
                    won.append((n, i))

    together(work)
    assert sorted(n for n, _ in won) == list(range(100))
    with kv.raw() as c:
        for n, i in won:
            assert c.command("MGET", f"x{n}", f"y{n}") == [b"%d" % i] * 2


def test_watch_makes_optimistic_counters(kv):
    def work(i):
        with kv.raw() as c:
            done = 0
            while done < 20:
                c.command("WATCH", "n")
                value = int(c.command("GET", "n") or 0)
                c.send(b"MULTI\r\n" + encode("SET", "n", value + 1) + b"EXEC\r\n")
                done += [c.reply() for _ in range(3)][-1] == ["OK"]

    together(work, 8)
    with kv.raw() as c:
        assert c.command("GET", "n") == b"160"


def test_cas_makes_optimistic_counters(kv):
    def work(i):
        with kv.raw("mc") as c:
            done = 0
            while done < 20:
                c.send(b"gets n\r\n")
                cas = c.line().split()[4]
                value = int(c.line())
                c.expect(b"END\r\n")
                text = b"%d" % (value + 1)
                c.send(b"cas n 0 0 %d %s\r\n%s\r\n" % (len(text), cas, text))
                done += c.line() == b"STORED"

    with kv.raw("mc") as c:
        c.send(b"set n 0 0 1\r\n0\r\n")
        c.expect(b"STORED\r\n")
        together(work, 8)
        c.send(b"get n\r\n")
        c.expect(b"VALUE n 0 3\r\n160\r\nEND\r\n")


def test_scan_sees_what_stays(kv):
    """While others insert and delete (tables grow and shrink), SCAN finds every key that stays."""
    stay = {b"stay:%d" % i for i in range(200)}
    stop = threading.Event()

    def churn(i):
        with kv.raw() as c:
            while not stop.is_set():
                c.send(b"".join(encode("SET", f"t:{i}:{n}", n) for n in range(2000)))
                for _ in range(2000):
                    c.reply()
                c.send(b"".join(encode("DEL", f"t:{i}:{n}") for n in range(2000)))
                for _ in range(2000):
                    c.reply()

    threads = [threading.Thread(target=churn, args=(i,)) for i in range(3)]
    with kv.raw() as c:
        for k in stay:
            c.command("SET", k, 1)
        for t in threads:
            t.start()
        try:
            for _ in range(5):
                seen, cursor = set(), b"0"
                while True:
                    cursor, keys = c.command("SCAN", cursor, "COUNT", 100)
                    seen.update(keys)
                    if cursor == b"0":
                        break
                assert stay <= seen
        finally:
            stop.set()
            for t in threads:
                t.join(PATIENCE)


def test_flush_under_load(kv):
    def work(i):
        with kv.raw() as c:
            for n in range(60):
                if i == 0:
                    assert c.command("FLUSHALL") == "OK"
                elif i == 1:
                    assert isinstance(c.command("KEYS", "*"), list)
                elif i == 2:
                    assert isinstance(c.command("DBSIZE"), int)
                else:
                    c.send(encode("SET", f"k{n}", i))
                    assert c.reply() == "OK"

    together(work)
    with kv.raw() as c:
        c.command("FLUSHALL")
        assert c.command("DBSIZE") == 0


@pytest.mark.parametrize("abuse", [b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\nxx", b"set k 0 0 100\r\nab", b"get "])
def test_broken_off_requests(kv, abuse):
    """Connections that end in the middle leave nothing behind."""
    def work(i):
        for _ in range(50):
            with kv.raw("resp" if abuse.startswith(b"*") else "mc") as c:
                c.send(abuse)

    together(work, 8)
    with kv.raw() as c:
        assert c.command("DBSIZE") == 0
