"""The wrapper around every node: what LangGraph takes silently is refused here."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.errors import GraphInterrupt
from langgraph.runtime import Runtime
from langgraph.types import Command, Send
from pydantic import ValidationError

from agentrunner.errors import EnvironmentNotReady, TaskFailed
from agentrunner.execution.asking import AskFailed
from agentrunner.execution.deps import Clock, Deps, Stopped
from agentrunner.nodes.guarded import MAX_INT, BadUpdate, checked, guarded, validated
from agentrunner.sandboxes.base import ErrorKind, SandboxError
from agentrunner.state.lifecycle import ForbiddenMove, TaskState
from agentrunner.state.run_state import Counters, Criterion, Evidence, RunInfo, TaskContext
from agentrunner.storage.events import EventLog
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import RunLog
from agentrunner.text.redaction import Redactor

TARGETS = ("next", "note")
STATE = TaskContext(
    run=RunInfo(run_id="probe-0000", task_id="probe", title="t", repo="/r"),
    state=TaskState.RUNNING,
    counters=Counters(),
)


class Ticking(Clock):
    """Every look takes a second and a half."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 1.5
        return self.seconds


@pytest.fixture
def deps(tmp_path: Path) -> Deps:
    clock = Ticking()
    unused = cast("Any", None)  # rooms that the wrapper has nothing to do with
    return Deps(
        spec=unused, folder=RunFolder(tmp_path), snapshots=unused, ledger=unused, verifier=unused,
        prover=unused, panel=unused, members=unused, sandbox=unused, patterns={}, environ={},
        repository=unused,
        log=RunLog(tmp_path / "log.jsonl"),
        events=EventLog(tmp_path / "events.jsonl", "probe-0000", clock.now),
        redactor=Redactor({"TOKEN": "hunter2-hunter2"}),
        clock=clock,
    )  # fmt: skip


async def ran(
    returned: Any, deps: Deps, *, asks: bool = False, name: str = "decide"
) -> Command[str]:
    """What the wrapper makes of a node that returns this, or raises it."""

    async def node(state: TaskContext, deps: Deps) -> Command[str]:
        if isinstance(returned, BaseException):
            raise returned
        return cast("Command[str]", returned)

    node.__name__ = name
    return await guarded(node, TARGETS, asks=asks)(STATE, runtime=Runtime(context=deps))


def updated(command: Command[str]) -> dict[str, Any]:
    assert isinstance(command.update, dict)
    return command.update


# -- what is refused ----------------------------------------------------------------------------

RUBBISH: Any = {"id": 7, "description": None}
CRITERION = Criterion(id="AC-1", description="It works.")
REFUSED: dict[str, Any] = {
    "an unknown channel": Command(update={"sate": TaskState.VALIDATING}, goto="next"),
    "an unknown target": Command(update={}, goto="nxet"),
    "no target": Command(update={}),
    "two targets": Command(update={}, goto=["next", "note"]),
    "a Send": Command(update={}, goto=Send("next", {})),
    "another graph": Command(graph=Command.PARENT, update={}, goto="next"),
    "pairs": Command(update=[("tail", "x")], goto="next"),
    "a mapping": {"tail": "x"},
    "nothing": None,
    "a wrong type": Command(update={"tail": 7}, goto="next"),
    "a wrong type in a model": Command(
        update={"criteria": [Criterion.model_construct(**RUBBISH)]}, goto="next"
    ),
    "an unchecked copy": Command(
        update={"counters": Counters().model_copy(update={"loops": "many"})}, goto="next"
    ),
    "a key no model has": Command(
        update={"criteria": [{"id": "a", "description": "b", "colour": "red"}]}, goto="next"
    ),
    "an integer over 64 bits": Command(
        update={"counters": Counters(loops=MAX_INT + 1)}, goto="next"
    ),
    "a forbidden move": Command(update={"state": TaskState.COMPLETE}, goto="next"),
    "a state that is none": Command(update={"state": "DONE"}, goto="next"),
}


@pytest.mark.parametrize("command", REFUSED.values(), ids=REFUSED)
async def test_a_bad_update_ends_the_run_failed(command: Any, deps: Deps) -> None:
    ended = await ran(command, deps)
    assert ended.goto == "note"
    assert set(updated(ended)) == {"verdict", "counters"}
    verdict = updated(ended)["verdict"]
    assert (verdict.state, verdict.reason) == ("FAILED", "internal")
    assert verdict.text


@pytest.mark.parametrize("command", REFUSED.values(), ids=REFUSED)
async def test_a_bad_update_of_a_node_that_asks_is_raised(command: Any, deps: Deps) -> None:
    with pytest.raises((BadUpdate, ForbiddenMove, ValidationError)):
        await ran(command, deps, asks=True)


def test_the_validated_value_is_handed_on() -> None:
    (criterion,) = validated("criteria", [{"id": "AC-1", "description": "It works."}])
    assert isinstance(criterion, Criterion)
    assert validated("state", "FIXING") is TaskState.FIXING
    assert validated("counters", Counters(loops=MAX_INT)).loops == MAX_INT
    assert validated("tail", "café 日本 🎉") == "café 日本 🎉"
    assert validated("evidence", None) is None


def test_what_a_checkpoint_cannot_keep_is_replaced() -> None:
    assert validated("tail", "caf\udce9") == "caf\ufffd"
    criterion = CRITERION.model_copy(update={"proof": "\ud800 seen"})
    assert validated("criteria", [criterion])[0].proof == "\ufffd seen"
    assert validated("remarks", ["\ud83c\udf89"]) != ["\ud83c\udf89"]


async def test_a_good_update_passes_with_its_values(deps: Deps) -> None:
    evidence = Evidence(tree="t")
    command = await ran(Command(update={"evidence": evidence}, goto="next"), deps)
    assert (updated(command)["evidence"], command.goto) == (evidence, "next")


async def test_without_dependencies_nothing_runs() -> None:
    async def node(state: TaskContext, deps: Deps) -> Command[str]:
        raise AssertionError

    with pytest.raises(BadUpdate):
        await guarded(node, TARGETS)(STATE, runtime=cast("Any", Runtime()))


# -- time, moves --------------------------------------------------------------------------------


async def test_time_is_counted_but_not_while_a_person_is_asked(deps: Deps) -> None:
    worked = await ran(Command(update={}, goto="next"), deps)
    assert updated(worked)["counters"].wall_sec == 1.5
    asked = await ran(Command(update={}, goto="next"), deps, asks=True)
    assert "counters" not in updated(asked)


async def test_time_is_added_to_what_the_node_counted(deps: Deps) -> None:
    counters = Counters(loops=2, wall_sec=10)
    command = await ran(Command(update={"counters": counters}, goto="next"), deps)
    assert updated(command)["counters"] == Counters(loops=2, wall_sec=11.5)


async def test_a_move_is_recorded_and_told_and_an_end_told_by_who_saves_it(deps: Deps) -> None:
    await ran(Command(update={"state": TaskState.VALIDATING}, goto="next"), deps)
    await ran(Command(update={"state": TaskState.FAILED}, goto="next"), deps)
    await ran(Command(update={"state": TaskState.RUNNING}, goto="next"), deps)
    moves = [record.data for record in deps.log.records("state")]
    assert moves == [{"from": "RUNNING", "to": "VALIDATING"}, {"from": "RUNNING", "to": "FAILED"}]
    told = [(event["from"], event["to"]) for event in deps.events.read()]
    assert told == [("RUNNING", "VALIDATING")]


# -- what nodes raise ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        EnvironmentNotReady("no pytest"),
        SandboxError(ErrorKind.INFRA, "run", "gone"),
        GraphInterrupt(),
        OSError(errno.ENOSPC, "no room"),
    ],
    ids=["surroundings", "sandbox", "interrupt", "disk full"],
)
async def test_trouble_of_the_machine_passes_and_the_run_stays(
    error: Exception, deps: Deps
) -> None:
    with pytest.raises(type(error)):
        await ran(error, deps)


async def test_a_failure_with_a_name_ends_the_run_by_that_name(deps: Deps) -> None:
    ended = await ran(TaskFailed("The planner talks rubbish.", code="meta-garbage"), deps)
    verdict = updated(ended)["verdict"]
    assert (verdict.reason, verdict.text) == ("meta-garbage", "The planner talks rubbish.")
    assert deps.log.records("warning") == []


async def test_what_a_failed_question_cost_is_kept_and_what_was_said_is_not_heard(
    deps: Deps,
) -> None:
    spent = Counters(meta_calls=4, messages=1)
    ended = await ran(AskFailed(TaskFailed("no"), spent), deps)
    assert updated(ended)["counters"] == Counters(meta_calls=4, messages=0, wall_sec=1.5)


async def test_any_other_exception_ends_the_run_and_its_text_is_redacted(deps: Deps) -> None:
    ended = await ran(ZeroDivisionError("with hunter2-hunter2 and \ud800"), deps)
    verdict = updated(ended)["verdict"]
    assert verdict.reason == "internal"
    assert verdict.text.startswith("Unexpected ZeroDivisionError: with [TOKEN redacted]")
    (warning,) = deps.log.records("warning")
    assert warning.data["code"] == "unexpected-error"


async def test_a_mistake_of_ours_leaves_its_frames_with_the_run(deps: Deps) -> None:
    ended = await ran(ZeroDivisionError("with hunter2-hunter2"), deps)
    file = deps.folder.traceback_file
    assert str(file) in updated(ended)["verdict"].text
    kept = file.read_text()
    assert "in step" in kept
    assert "hunter2" not in kept


async def test_the_last_node_has_nowhere_to_send_an_error(deps: Deps) -> None:
    with pytest.raises(ZeroDivisionError):
        await ran(ZeroDivisionError(), deps, name="note")


# -- stopping -----------------------------------------------------------------------------------


def waits_for_ever(name: str) -> Callable[[TaskContext, Deps], Any]:
    async def node(state: TaskContext, deps: Deps) -> Command[str]:
        await asyncio.Event().wait()
        raise AssertionError

    node.__name__ = name
    return node


async def test_a_stop_ends_a_node_that_starts_nothing_lasting(deps: Deps) -> None:
    wrapped = guarded(waits_for_ever("decide"), TARGETS)
    task = asyncio.ensure_future(wrapped(STATE, runtime=Runtime(context=deps)))
    deps.stop.set()
    with pytest.raises(Stopped):
        await asyncio.wait_for(task, 10)


async def test_a_stop_leaves_the_node_that_waits_for_a_worker_to_end_it(deps: Deps) -> None:
    deps.stop.set()
    command = await ran(Command(update={}, goto="next"), deps, name="run_worker")
    assert command.goto == "next"


async def test_a_node_that_is_done_when_the_stop_comes_keeps_its_result(deps: Deps) -> None:
    deps.stop.set()
    command = await ran(Command(update={"tail": "x"}, goto="next"), deps)
    assert updated(command)["tail"] == "x"


def test_no_update_at_all_is_an_update(deps: Deps) -> None:
    assert checked(Command(goto="note"), TARGETS, STATE, deps, {}).update == {}
