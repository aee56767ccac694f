"""Deadlocks and owners in /threads; profiles of a program without symbols; the flight recorder in a panic."""

import http.client
import json
import re

from weir_guest import wait_until

CPUS = 2
LIMIT = 240
GUEST_OPTIONS = ["--smp", str(CPUS), "--app", "build/obs/waits-stripped", "--resp", "off", "--mc", "off"]
GUEST_APPEND = "trace=sched,queue"


def page(guest, path):
    connection = http.client.HTTPConnection(guest.host, guest.info["http"], timeout=LIMIT)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        return answer.read().decode()
    finally:
        connection.close()


def ids(guest):
    """{name: thread id} as the program printed them, once all its threads are there and wait."""
    def all_wait():
        found = {name: int(number) for name, number in re.findall(r"^tid (\w+) (\d+)", guest.console(), re.M)}
        if len(found) < 6:
            return None
        states = {t["id"]: t["state"] for t in json.loads(page(guest, "/threads?format=json"))["threads"]}
        return found if all(states.get(number) == "blocked" for number in found.values()) else None

    return wait_until(all_wait, "all threads of the program wait", LIMIT)


def test_owners_and_deadlock(guest):
    tid = ids(guest)
    found = json.loads(page(guest, "/threads?format=json"))
    threads = {t["id"]: t for t in found["threads"]}
    waits = {name: threads[number]["waits_for"] for name, number in tid.items()}
    assert waits["ab"]["owner"] == tid["ba"] and waits["ba"]["owner"] == tid["ab"]
    assert waits["behind"]["owner"] == tid["ab"] and waits["behind"]["what"] == "mutex"
    assert waits["joiner"]["owner"] == tid["ab"] and waits["joiner"]["what"] == "join"
    assert "owner" not in waits["normal"] and waits["normal"]["what"] == "mutex"
    assert waits["sleeper"]["kind"] == "sleep"
    assert [sorted(cycle) for cycle in found["deadlocks"]] == [sorted([tid["ab"], tid["ba"]])]
    assert {t["id"] for t in found["threads"] if "deadlock" in t} == {tid["ab"], tid["ba"]}
    text = page(guest, "/threads")
    first, second = sorted([tid["ab"], tid["ba"]])
    assert re.search(rf'^DEADLOCK 1: ({first}|{second}) "\w+" -> ({first}|{second}) "\w+" -> \d+$', text, re.M), text[:500]
    assert re.search(rf'^thread {tid["behind"]} "behind" .* waits-for=futex:0x[0-9a-f]+ mutex-of={tid["ab"]} ', text, re.M)


def test_waits_that_never_end_are_in_the_profile(guest):
    """And a program without symbols is told of, by addresses and a remark."""
    ids(guest)
    text = page(guest, "/profile?seconds=0.2&mode=offcpu&wait=futex")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    # ab, ba, behind, joiner and normal wait on futexes all the time.
    names = {line.split(";")[0].split("/")[1] for line in lines}
    assert {"ab", "ba", "behind", "joiner", "normal"} <= names, lines
    assert all(";[not_over] " in line for line in lines if "/ab;" in line)
    assert re.search(r";0x[0-9a-f]+;", text) and re.search(r"^# unnamed: \d+ frames without a symbol", text, re.M)


def test_flight_recorder_goes_on_after_a_trace(guest):
    """trace= on the command line records from boot; a trace that is taken in between does not end it."""
    trace = json.loads(page(guest, "/trace?seconds=0.05&cat=sched"))
    assert trace["otherData"]["categories"] == "sched"
    again = json.loads(page(guest, "/trace?seconds=0.05"))
    assert again["otherData"]["exported"] > 0
