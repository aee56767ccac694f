"""The static checks find what they are there for, and let pass what is right."""

import importlib.machinery
import importlib.util
import os
import subprocess
import time

import pytest

from conftest import TOP


def load(name):
    """A script of scripts/ as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), os.path.join(TOP, "scripts", name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


includes = load("check-includes")
sizes = load("check-sizes")


def forbidden(tmp_path, monkeypatch, path, *lines):
    """How many includes of a file are refused."""
    monkeypatch.setattr(includes, "TOP", str(tmp_path))
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")
    return len(includes.check(path))


@pytest.mark.parametrize("path, line", [
    ("sched/policies/x.c", '#include "arch/arch.h"'),
    ("sched/policies/x.c", '#include "sched/runq.h"'),
    ("sched/policies/x.c", "#include <string.h>"),
    ("core/base/x.c", '#include "sched/sched.h"'),
    ("core/base/x.c", '#include "arch/x86_64/cpu.h"'),
    ("arch/x86_64/x.c", '#include "core/mm/mm.h"'),
    ("arch/arch.h", '#include "sched/sched.h"'),
    ("sched/x.c", '#include "net/net.h"'),
    ("sched/x.c", '#include "core/mm/page.h"'),
    ("net/x.c", '#include "sched/runq.h"'),
    ("net/x.c", '#  include "core/kern/proc.h"'),
    ("core/kern/x.c", '#include "sched/thread.h"'),
    ("core/kern/x.c", "#include <stdio.h>"),
    ("core/mm/x.c", '#include "sched/sched.h"'),
    ("apps/a/x.c", '#include "apps/b/y.h"'),
    ("apps/a/x.c", '#include "core/base/types.h"'),
    ("tests/sim/x.c", '#include "core/kern/proc.h"'),
    ("elsewhere/x.c", "#include <stdint.h>"),
])
def test_forbidden(tmp_path, monkeypatch, path, line):
    assert forbidden(tmp_path, monkeypatch, path, line) == 1


@pytest.mark.parametrize("path, line", [
    ("sched/policies/x.c", '#include "sched/policy.h"'),
    ("sched/policies/x.c", "#include <stdint.h>"),
    ("core/base/x.c", '#include "arch/arch.h"'),
    ("arch/x86_64/x.c", '#include "core/base/log.h"'),
    ("sched/x.c", '#include "core/mm/mm.h"'),
    ("net/x.c", '#include "sched/sched.h"'),
    ("net/x.c", '#include "lwip/tcp.h"'),
    ("core/kern/x.c", '#include "net/net.h"'),
    ("apps/a/x.c", "#include <pthread.h>"),
    ("apps/a/x.c", '#include "apps/a/y.h"'),
    ("tests/sim/x.c", '#include "sched/policy.h"'),
    ("tests/unit/x.c", '#include "core/kern/proc.h"'),
])
def test_allowed(tmp_path, monkeypatch, path, line):
    assert forbidden(tmp_path, monkeypatch, path, line) == 0


def test_host_test_branch_is_not_kernel_code(tmp_path, monkeypatch):
    lines = ["#if defined(WEIR_HOST_TEST)", "#include <string.h>", "#else", '#include "sched/sched.h"', "#endif"]
    assert forbidden(tmp_path, monkeypatch, "core/base/x.c", *lines) == 1


def c_function(length):
    return ["int f(int a)", "{"] + ["    a++;"] * (length - 2) + ["}"]


def test_function_lengths():
    found = list(sizes.c_functions(c_function(10) + ["", "static void *g(void)"] + c_function(70)[1:]))
    assert [(name, length) for name, _, length in found] == [("f", 10), ("g", 70)]
    found = list(sizes.python_functions(["def f():", "    x = 1", "", "    return x", "", "y = 2"]))
    assert [(name, length) for name, _, length in found] == [("f", 4)]


def run_tool(name, *arguments):
    return subprocess.run([os.path.join(TOP, "scripts", name), *arguments], capture_output=True, text=True,
                          timeout=300, check=False)


def test_count_reports_failures():
    proc = run_tool("test-count", "true", "false", "exit 3")
    assert proc.returncode == 1
    assert proc.stdout.splitlines()[-1] == "1 passed, 2 failed"
    assert "repeat: exit 3" in proc.stdout


@pytest.mark.parametrize("body, last, code", [
    ("printf 'ok 1 - a\\nok 2 - b\\n'", "2 passed, 0 failed", 0),
    ("printf 'ok 1 - a\\nnot ok 2 - b\\n'; exit 1", "1 passed, 1 failed", 1),
    ("printf 'ok 1 - a\\n'; exit 1", "1 passed, 1 failed", 1),      # died after its tests
    ("kill -SEGV $$", "0 passed, 1 failed", 1),
    ("true", "0 passed, 1 failed", 1),                              # ran nothing
])
def test_unit_runner_counts(tmp_path, body, last, code):
    program = tmp_path / "prog"
    program.write_text("#!/bin/sh\n" + body + "\n")
    program.chmod(0o755)
    proc = run_tool("test-unit", str(program))
    assert proc.stdout.splitlines()[-1] == last
    assert proc.returncode == code


def test_tiers_add_up(tmp_path):
    """Sums, a tier that breaks without a result, and the last line."""
    (tmp_path / "Makefile").write_text(
        "test-a:\n\t@echo '3 passed, 0 failed'\ntest-b:\n\t@echo '1 passed, 2 failed'; exit 1\ntest-c:\n\t@exit 7\n")
    proc = subprocess.run([os.path.join(TOP, "scripts", "test-tiers"), "a", "b", "c"], capture_output=True, text=True,
                          cwd=tmp_path, timeout=300, check=False)
    assert proc.stdout.splitlines()[-1] == "4 passed, 3 failed"
    assert "repeat: make test-c" in proc.stdout
    assert proc.returncode == 1


def test_tiers_end_what_they_started(tmp_path):
    """Ended from outside, the tier that runs is ended too."""
    (tmp_path / "Makefile").write_text("test-a:\n\t@echo $$PPID; exec sleep 600\n")
    with subprocess.Popen([os.path.join(TOP, "scripts", "test-tiers"), "a"], stdout=subprocess.PIPE, text=True,
                          cwd=tmp_path) as proc:
        assert proc.stdout.readline().startswith("---- test-a")
        make = int(proc.stdout.readline())
        proc.terminate()
        assert proc.wait(timeout=300) == 130
        deadline = time.monotonic() + 60
        while os.path.exists(f"/proc/{make}") and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not os.path.exists(f"/proc/{make}")
