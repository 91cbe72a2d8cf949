"""Workers that lead nowhere, in bubblewrap: each is found out, and stopped in order."""

from __future__ import annotations

import subprocess

import pytest

from agentrunner.environment import own_process
from agentrunner.supervisor.watching import OutputWatch
from tests.kit.stage import Stage

WATCH = OutputWatch(
    final='^{"type":"end"}',
    final_grace_sec=0.4,
    retry="^retry ",
    retries=3,
    login="^Please log in",
)
ON_TERM = "trap 'echo saved > saved; exit 7' TERM; "
"""What a worker does that ends in order."""


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ('echo work; echo \'{"type":"end"}\'; sleep 600 & wait', "lingered"),
        ("printf '{\"type\":'; sleep 0.1; echo '\"end\"}'; sleep 600 & wait", "lingered"),
        ("while :; do echo retry now; sleep 0.05; done", "retry_storm"),
        ("while :; do echo retry now >&2; sleep 0.05; done", "retry_storm"),
        ("printf 'Please log in: '; sleep 600 & wait", "login_prompt"),
        ("printf 'Please log in: ' >&2; sleep 600 & wait", "login_prompt"),
    ],
)
async def test_it_is_stopped_and_may_save_its_work(stage: Stage, script: str, outcome: str) -> None:
    result = await stage.run(stage.boxed(ON_TERM + script, watch=WATCH))
    assert (result.outcome, result.exit_code) == (outcome, 7)
    assert "saved" in stage.snapshots.list(result.tree_after)
    assert result.duration_sec < 5 and stage.left() == []


async def test_who_exits_within_its_grace_has_exited(stage: Stage) -> None:
    order = stage.boxed('echo \'{"type":"end"}\'; sleep 0.1; exit 3', watch=WATCH)
    result = await stage.run(order)
    assert (result.outcome, result.exit_code) == ("exited", 3)


async def test_silence_after_the_last_event_is_lingering_and_not_idleness(stage: Stage) -> None:
    watch = WATCH._replace(final_grace_sec=0.6)
    order = stage.boxed('echo \'{"type":"end"}\'; sleep 600', watch=watch, idle_sec=0.3)
    assert (await stage.run(order)).outcome == "lingered"


async def test_one_that_has_not_printed_a_thing_is_idle(stage: Stage) -> None:
    result = await stage.run(stage.boxed(ON_TERM + "sleep 600 & wait", idle_sec=0.4))
    assert (result.outcome, result.exit_code, result.stdout_bytes) == ("idle_timeout", 7, 0)
    assert 0.4 <= result.duration_sec < 5


async def test_the_stop_is_int_then_term_then_the_whole_box(stage: Stage) -> None:
    script = """
        trap 'echo int' INT; trap 'echo term' TERM
        setsid sh -c "trap '' INT TERM; setsid sleep 600 & sleep 600" &
        echo '{"type":"end"}'
        while :; do sleep 600 & wait; done"""
    order = stage.boxed(script, watch=WATCH, stop_signal="INT")
    result = await stage.run(order)
    assert stage.text("w1") == '{"type":"end"}\nint\nterm\n'
    assert result.outcome == "lingered" and stage.left() == []
    assert 7.4 <= result.duration_sec < 10  # 0.4 of grace, 2 after INT, 5 after TERM


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("agentrunner.supervisor.main", {"dataclasses", "asyncio", "subprocess", "pydantic"}),
        ("agentrunner.git.snapshot_writer", {"dataclasses", "asyncio", "secrets", "pydantic"}),
    ],
)
def test_a_supervisor_loads_nothing_heavy_for_it(module: str, heavy: set[str]) -> None:
    words = [
        word.replace("main()", "print(*sys.modules)")
        for word in own_process(module, packages=False)
    ]
    loaded = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert module in loaded
    assert not heavy & set(loaded)
