"""The harness from end to end, with a stand-in for QEMU."""

import json
import os
import re

import bench
import guests
import plan
import pytest

EVERY_POINT = ("policy", "peer", "vcpus", "conns", "rep", "mode", "rps", "p50_us", "p90_us", "p99_us", "p999_us",
               "max_us", "idle_share", "cpus_used", "migrations", "ipis", "switches", "wakes_remote",
               "client_bound", "verdict")


def results_of(fake):
    return json.loads((fake.out / "results.json").read_text())


def test_quick_writes_everything(fake, capsys):
    assert bench.main(["quick", "--reps", "2"] + fake.args) == 0
    record = results_of(fake)
    assert len(record["points"]) == 2 * 3 * 4 + 2
    for point in record["points"]:
        assert set(EVERY_POINT) <= set(point)
        assert point["mode"] == "vtime" and point["verdict"] in bench.verdict.VERDICTS
    assert "virtual time, 1 ns/instruction" == record["config"]["clock"]
    lines = (fake.out / "results.csv").read_text().splitlines()
    assert len(lines) == 27 and lines[0].startswith("peer,policy")
    page = (fake.out / "report.html").read_text()
    assert "prefers-color-scheme: dark" in page and page.count("<svg") > 8
    assert not re.search(r'(src|href)="?(https?:)?//', page), "the report must not load anything"
    out = capsys.readouterr().out
    assert "left: weir drain" in out and "reached" in out


def test_a_panic_keeps_the_finished_points(fake, capsys):
    fake.behave("panic=1")
    assert bench.main(["quick", "--policies", "drain", "--only", "sweep"] + fake.args) == 1
    record = results_of(fake)
    assert [p["conns"] for p in record["points"]] == [1]
    (failure,) = record["failures"]
    assert failure["at"] == "c=8" and "panicked" in failure["why"] and "thread_park" in failure["why"]
    assert "weir drain" in capsys.readouterr().err
    assert "What failed" in (fake.out / "report.html").read_text()


def test_other_boots_go_on_after_a_failure(fake, monkeypatch):
    fake.behave("panic=0")
    real = bench.Sweep.run

    def heal(sweep, boot, *rest):
        real(sweep, boot, *rest)
        fake.behave("")

    monkeypatch.setattr(bench.Sweep, "run", heal)
    assert bench.main(["quick", "--only", "sweep"] + fake.args) == 1
    record = results_of(fake)
    assert len(record["failures"]) == 1 and len(record["points"]) == 8


def test_a_hang_is_ended_and_named(fake, monkeypatch, capsys):
    fake.behave("hang=2")
    monkeypatch.setattr(bench, "PATIENCE_FLOOR_S", 3)
    monkeypatch.setattr(bench, "PATIENCE", 0)
    assert bench.main(["quick", "--policies", "drain", "--only", "sweep"] + fake.args) == 1
    assert "at c=32: no end within" in capsys.readouterr().err
    assert len(results_of(fake)["points"]) == 2


def test_a_lost_phase_fails(fake):
    fake.behave("lost=0")
    assert bench.main(["quick", "--policies", "drain", "--only", "sweep"] + fake.args) == 1
    assert "only 3 of 4 phases" in results_of(fake)["failures"][0]["why"]


def test_a_bad_exit_status_fails(fake):
    fake.behave("exit=5")
    assert bench.main(["quick", "--policies", "drain", "--only", "sweep"] + fake.args) == 1
    assert "exit status 5" in results_of(fake)["failures"][0]["why"]


@pytest.mark.parametrize("how, says", [("drift", "self-test drifts: spin"), ("refuse", "laid out otherwise"),
                                       ("old", "no plugins with time control")])
def test_an_unfit_emulator_is_refused(fake, capsys, how, says):
    fake.behave(how)
    assert bench.main(["quick"] + fake.args) == 2
    err = capsys.readouterr().err
    assert says in err and len(err.strip().splitlines()) == 1
    assert not (fake.out / "results.json").exists()


def test_a_full_disk_is_said(fake, monkeypatch, capsys):
    def full(path, text):
        raise OSError(28, "No space left on device", path)

    monkeypatch.setattr(bench.results, "write_atomically", full)
    assert bench.main(["quick"] + fake.args) == 1
    assert "No space left on device" in capsys.readouterr().err


def test_a_missing_kernel_is_one_clear_failure(fake, capsys):
    args = [str(fake.out / "none.elf") if a.endswith("weir.elf") else a for a in fake.args]
    assert bench.main(["quick", "--policies", "drain", "--only", "sweep"] + args) == 2
    assert "run make kernel" in capsys.readouterr().err


def test_resume_does_only_the_rest(fake, monkeypatch, capsys):
    """A boot that failed in the middle is run again whole; what is finished is not."""
    fake.behave("panic=2")
    real, begun = bench.Sweep.run, []

    def heal(sweep, boot, *rest):
        begun.append(boot.policy)
        if boot.policy == "flow":
            fake.behave("panic=2")
        else:
            fake.behave("")
        real(sweep, boot, *rest)

    monkeypatch.setattr(bench.Sweep, "run", heal)
    run = ["quick", "--only", "sweep"] + fake.args
    assert bench.main(run) == 1
    first = results_of(fake)["points"]
    assert begun == ["legacy", "drain", "flow"] and len(first) == 4 + 4 + 2
    begun.clear()
    monkeypatch.setattr(bench.Sweep, "run", lambda *all: (begun.append(all[1].policy), real(*all)))
    fake.behave("")
    assert bench.main(run + ["--resume"]) == 0
    record = results_of(fake)
    assert begun == ["flow"] and record["failures"] == []
    assert record["points"][:8] == first[:8] and [p["conns"] for p in record["points"]] == [1, 8, 32, 64] * 3
    assert "8 points are there already" in capsys.readouterr().out


def test_resume_refuses_what_was_measured_otherwise(fake, capsys):
    run = ["quick", "--only", "drain.*sweep"] + fake.args
    assert bench.main(run + ["--resume"]) == 0, "nothing to go on with: all of it is run"
    assert bench.main(run + ["--resume", "--window", "900"]) == 2
    assert "cannot be continued: window_ns 500, now 900" in capsys.readouterr().err
    assert len(results_of(fake)["points"]) == 4
    (fake.out / "results.json").write_text("{")
    assert bench.main(run + ["--resume"]) == 2
    assert "not JSON" in capsys.readouterr().err


def test_host_cost_is_of_sixteen_busy_cpus(fake, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    outcome = bench.emulator.Outcome(0, 99.0, 10.0, {"minstructions": 2000.0}, [], [])
    assert bench.host_cost(outcome) == 40.0
    assert bench.host_cost(None) is None
    assert bench.host_cost(bench.emulator.Outcome(0, 1.0, 1.0, {}, [], [])) is None


def test_boots_that_do_not_fit_the_time_are_named(fake, capsys):
    assert bench.main(["quick", "--within", "0.001"] + fake.args) == 0
    assert "left out for lack of time: weir drain" in capsys.readouterr().out


def test_list_boots_nothing(fake, capsys):
    assert bench.main(["full", "--list"] + fake.args) == 0
    out = capsys.readouterr().out
    assert "converged" in out and "scaling" in out and not fake.out.exists()


def test_unknown_peer_is_refused(fake):
    with pytest.raises(SystemExit):
        bench.main(["quick", "--peers", "bsd"])


def test_command_line_of_weir():
    boot = plan.Boot("weir", "flow", 8, (1, 4), 2, "narrow", ticks=5, env=(("KV_DISPATCH", "pool"),), append="x=1")
    line = guests.weir_command_line(boot, 100)
    assert 'app="/kv" gen="/load --host 10.1.0.1 --proto resp --conns 1,4 ' in line
    for word in ("domain.server=8", "net=wire", "wire.queues=8", "wire.delay_ns=100", "sched.policy=flow",
                 "env.KV_DISPATCH=pool", "--ticks 5", "x=1"):
        assert word in line


def test_full_covers_what_was_asked():
    boots = plan.full(plan.POLICIES, plan.PEERS, 3)
    sweep = [b for b in boots if b.group == "sweep"]
    assert {b.policy for b in sweep if b.peer == "weir"} == set(plan.POLICIES)
    assert {b.peer for b in sweep} == {"weir", *plan.PEERS}
    assert all(b.conns == (1, 2, 4, 8, 16, 32, 64, 128) for b in sweep)
    assert max(b.rep for b in sweep) == 3
    assert {b.vcpus for b in boots if b.group == "scaling"} == {1, 2, 4, 8, 16}
    assert all(b.vcpus + b.gen_cpus <= 64 for b in boots)
    assert {b.width for b in boots if b.group in ("narrow", "wide")} == {4, 64}


def test_parts_add_up_to_the_phase(fake):
    assert bench.main(["quick", "--policies", "drain", "--only", "map"] + fake.args) == 0
    (point,) = results_of(fake)["points"]
    assert len(point["parts"]) == 12 and point["migrations"] == 12 and point["cpus_used"] == 16
    assert point["idle_share"] == pytest.approx(1 - sum(point["busy_share"]) / 16, abs=1e-3)


def test_logs_are_kept(fake):
    bench.main(["quick", "--policies", "drain", "--only", "sweep"] + fake.args)
    (log,) = os.listdir(fake.out / "logs")
    assert (fake.out / "logs" / log).read_text().startswith("$ ")
