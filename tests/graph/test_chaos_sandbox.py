"""kill -9 of any part of a run at a moment that a seed draws: it ends right, and leaves nothing.

`python -m benchmarks.chaos` does the same a hundred times, and with `--of plans` to plans.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from benchmarks.chaos import table
from tests.kit.chaos import Blow, Fate
from tests.kit.engine_watch import EngineWatch
from tests.kit.greeter import greeter
from tests.kit.plan_chaos import PlanChaos
from tests.kit.process import until
from tests.kit.run_chaos import VICTIMS, RunChaos

SEED = 3
MOST_TRIES = 4
KINDS = (*VICTIMS, "several")
OFTEN = {("docker", "engine"), ("docker", "helper"), ("docker", "several")}
OFTEN |= {("bwrap", "driver"), ("bwrap", "keeper"), ("bwrap", "supervisor")}
PAIRS = [("docker", kind) for kind in KINDS]
PAIRS += [("bwrap", kind) for kind in KINDS if kind != "engine"]
CASES = [pytest.param(*one, marks=[] if one in OFTEN else pytest.mark.whole) for one in PAIRS]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineWatch]:
    with EngineWatch.running(tmp_path_factory.mktemp("engine")) as watch:
        yield watch


@pytest.fixture
def port() -> Iterator[int]:
    with greeter() as number:
        yield number


@pytest.mark.series(2)
@pytest.mark.parametrize(("sandbox", "kind"), CASES)
def test_it_ends_right_and_leaves_nothing(
    request: pytest.FixtureRequest, tmp_path: Path, port: int, sandbox: str, kind: str
) -> None:
    engine = request.getfixturevalue("engine") if sandbox == "docker" else None
    blow = RunChaos.draw(Random(f"{SEED} {sandbox} {kind}"), kind, engine=engine is not None)
    if kind == "keeper":  # boxes of commands are gone in no time
        blow = replace(blow, event="step")
    for number in range(MOST_TRIES):
        with RunChaos.open(tmp_path / str(number), port, engine) as chaos:
            fate = chaos.strike([blow])
        assert fate.ok, fate
        if fate.killed:
            return
        # A machine that is slow or fast today had nothing there: strike sooner after the event.
        blow = replace(blow, delay_sec=blow.delay_sec / 4)
    pytest.fail(f"{blow} hit nothing")


@pytest.mark.whole
def test_what_a_plan_would_get_wrong_is_noticed(tmp_path: Path, port: int) -> None:
    with PlanChaos.open(tmp_path, port, None) as chaos:
        fate = chaos.strike([])
        assert fate == Fate(codes=[0], state="COMPLETE", outcomes=["completed"] * 9)
        (chaos.drill.repo / ".git" / "index.lock").touch()
        chaos.drill.git("branch", "theirs")
        result = {"tasks": {"TASK-0001": "COMPLETE"}, "branch": "main"}
        (told,) = [text for text in chaos.wrong(result) if "checkout" in text]
        assert "refs/heads/theirs" in told
        assert [place.rpartition("/")[2] for place in chaos.there()] == ["index.lock"]


def test_what_a_run_would_leave_is_noticed(tmp_path: Path, port: int) -> None:
    with ExitStack() as stack:
        chaos = stack.enter_context(RunChaos.open(tmp_path, port, None))
        undisturbed = chaos.strike([])
        assert undisturbed == Fate(codes=[0], state="COMPLETE", outcomes=["completed"])
        os.mkfifo(chaos.drill.folder.root / "lifeline")
        words = [sys.executable, "-c", "input()", str(tmp_path)]
        left = stack.enter_context(subprocess.Popen(words, stdin=subprocess.PIPE))
        stack.callback(left.kill)
        until(lambda: len(chaos.there()) == 2, "both are noticed")


def test_the_seed_draws_all_there_is() -> None:
    random = Random(SEED)
    blows = [RunChaos.draw(random, kind, engine=True) for kind in KINDS for _ in range(50)]
    assert {victim for blow in blows for victim in blow.victims} == set(VICTIMS)
    assert all(blow.event in VICTIMS[victim] for blow in blows for victim in blow.victims)
    assert len({replace(blow, delay_sec=0) for blow in blows}) > 30


def test_the_table_counts_each_kind_of_kill() -> None:
    proxy = Blow(("proxy",), "step", 0.1)
    both = Blow(("driver", "proxy"), "step", 0.1)
    good = Fate(killed=["proxy"], state="COMPLETE", outcomes=["lost", "completed"], resumes=2)
    bad = Fate(state="FAILED", wrong=["it failed"], left=["mount /x", "socket"])
    lines = [line.split() for line in table([(proxy, good), (both, bad)]).splitlines()[1:]]
    assert lines == [
        ["proxy", "1", "1", "1", "0", "0", "1", "2", "(2)", "0", "0"],
        ["several", "1", "0", "0", "1", "1", "0", "0", "(0)", "2", "0"],
        ["all", "2", "1", "1", "1", "1", "1", "2", "(2)", "2", "0"],
    ]
