"""scripts/weir cluster: three guests behind nutcracker; one that is lost takes only its share with it."""

import json
import os
import signal
import subprocess

import pytest
import redis
from pymemcache.client.base import Client as Memcache

from weir_guest import BOOT_LIMIT, END_LIMIT, WEIR, wait_until

GUESTS, KEYS = 3, 300


def weir(*words, limit=BOOT_LIMIT):
    return subprocess.run([WEIR, *words], capture_output=True, text=True, timeout=limit, check=False, stdin=subprocess.DEVNULL)


class Cluster:
    def __init__(self):
        done = weir("cluster", str(GUESTS), "--resp", "0", "--mc", "0", "--accel", os.environ.get("WEIR_TEST_ACCEL", "tcg"))
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == 1
        self.info = json.loads(done.stdout)
        self.stopped = False

    def stop(self):
        self.stopped = True
        return weir("stop", str(self.info["pid"]), limit=END_LIMIT).returncode

    def resp(self):
        return redis.Redis(port=self.info["resp"], socket_timeout=300, decode_responses=True)

    def memcached(self):
        return Memcache(("127.0.0.1", self.info["mc"]), timeout=300)

    def guest(self, i):
        return redis.Redis(port=self.info["guests"][i]["resp"], socket_timeout=300, decode_responses=True)


@pytest.fixture
def cluster():
    running = Cluster()
    try:
        yield running
    finally:
        if not running.stopped:
            running.stop()


def value(client, key):
    """The value, None for a miss; the proxy's word that a guest is lost is passed on once, then it is left out."""
    for _ in range(2 * GUESTS):
        try:
            return client.get(key)
        except (redis.ConnectionError, redis.ResponseError):
            continue
    raise AssertionError(f"{key}: no answer")


def alive(pid):
    """Does it run? (One that nobody has waited for yet does not.)"""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_three_guests_one_lost(cluster):
    proxy, keys = cluster.resp(), [f"key:{i}" for i in range(KEYS)]
    for key in keys:
        assert proxy.set(key, key)
    assert proxy.mget(keys) == keys
    homes = [set(cluster.guest(i).keys()) for i in range(GUESTS)]
    assert sum(map(len, homes)) == KEYS and set.union(*homes) == set(keys)
    assert all(KEYS / GUESTS / 3 < len(home) < KEYS * 2 / GUESTS for home in homes), [len(h) for h in homes]
    # Both protocols lead to the same guest: one hash, one ring, one store.
    memcached = cluster.memcached()
    assert memcached.get("key:7") == b"key:7"
    memcached.set("of-memcached", b"1", noreply=False)
    assert proxy.get("of-memcached") == "1"
    memcached.close()

    os.kill(cluster.info["guests"][1]["pid"], signal.SIGKILL)
    wait_until(lambda: not alive(cluster.info["guests"][1]["pid"]), "the end of the killed guest")
    found = {key: value(proxy, key) for key in keys}
    assert {key for key, v in found.items() if v is None} == homes[1]
    assert all(v == key for key, v in found.items() if v is not None)
    for key in homes[1]:                        # its share has a new home
        assert proxy.set(key, "again")
    assert all(value(proxy, key) == ("again" if key in homes[1] else key) for key in keys)

    code = cluster.stop()
    assert code == 128 + signal.SIGKILL, "the code of the guest that was killed"
    for pid in [cluster.info["pid"]] + [g["pid"] for g in cluster.info["guests"]]:
        assert not alive(pid)
    assert weir("stop", str(cluster.info["pid"])).returncode == code, "stopping again says the same"


@pytest.mark.parametrize("words, says", [(("0",), "1..64"), (("65",), "1..64"), (("2", "--mc", "off"), "both protocols"),
                                         (("2", "--resp", "70000"), "not a port")])
def test_bad_options_are_one_line(words, says):
    done = weir("cluster", *words)
    assert done.returncode == 2 and says in done.stderr.strip().splitlines()[-1] and not done.stdout


def test_without_the_proxy_it_says_what_to_install(monkeypatch):
    code = ("import sys; sys.path.insert(0, 'scripts')\nfrom weirlib import cluster, cli\n"
            "cluster.shutil.which = lambda *a, **k: None\nsys.exit(cli.main(['cluster', '2']))")
    done = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, timeout=300, check=False,
                          cwd=os.path.dirname(os.path.dirname(WEIR)))
    assert done.returncode == 2 and "run scripts/deps cluster" in done.stderr
