"""The wrapper around every node: it refuses what LangGraph accepts silently.

LangGraph drops unknown keys and unknown targets without a message, keeps values of a wrong type and
follows a static edge beside a Command. Here every update is validated against its channel
(`revalidate_instances="always"` on the models), the validated values are passed on, and a change of
the task's state has to be a move that `state/lifecycle.py` allows.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sqlite3
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Any, Protocol, cast, get_type_hints

from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from agentrunner.environment import is_out_of_room
from agentrunner.errors import AgentRunnerError, InfraError, TaskFailed
from agentrunner.execution.asking import NeedsPerson
from agentrunner.execution.budget_questions import BudgetSpent, pause
from agentrunner.execution.deps import Deps, Stopped, Update
from agentrunner.execution.own_loop import on_own_loop
from agentrunner.execution.quota import MustWait
from agentrunner.execution.silence import planner_question
from agentrunner.money.counters import caught_up
from agentrunner.registry import extension_of
from agentrunner.sandboxes.base import SandboxError
from agentrunner.state.lifecycle import TERMINAL, move
from agentrunner.state.run_state import Counters, TaskContext, Verdict, updated
from agentrunner.state.state_model import StateModel
from agentrunner.storage.run_folder import write_private
from agentrunner.text.unicode import clean

Node = Callable[[TaskContext, Deps], Awaitable[Command[str]]]
OpenDeps = Callable[[TaskContext], AbstractAsyncContextManager[tuple[Deps, Update]]]
"""Opens the dependencies of one node, and returns what the state has to hold besides."""

MAX_INT = 2**63 - 1
_LONG = re.compile(rb"\d{19}")


class Wrapped(Protocol):
    """A node as LangGraph calls it."""

    async def __call__(self, state: TaskContext, *, runtime: Runtime[Deps]) -> Command[str]:
        """Run one step."""


class BadUpdate(AgentRunnerError):
    """A node returned something that is no valid update of the state."""


def guarded(
    node: Node,
    targets: tuple[str, ...],
    *,
    asks: bool = False,
    idle: bool = False,
    open_deps: OpenDeps | None = None,
) -> Wrapped:
    """Return `node` wrapped: its update checked, its time counted, its failures turned into an end.

    `asks` marks the nodes that interrupt: they get no error handling at all, because whatever
    catches a malformed answer there loses the question. `idle` marks the one that only waits, whose
    time is not counted. The dependencies are the caller's context, or, with `open_deps`, opened for
    each node and closed after it, on a loop of the node's own: the caller's is a server's.
    """

    async def run(state: TaskContext, *, runtime: Runtime[Deps]) -> Command[str]:
        if open_deps is None:
            if runtime.context is None:
                raise BadUpdate(f"{node.__name__} was started without its dependencies")
            return await step(state, runtime.context, {})
        return await on_own_loop(lambda: served(state, open_deps))

    async def served(state: TaskContext, open_deps: OpenDeps) -> Command[str]:
        async with open_deps(state) as (deps, opened):
            command = await step(updated(state, opened), deps, opened)
            deps.log.sync()  # the server that saves the state does not know it
            return command

    async def step(state: TaskContext, deps: Deps, opened: Update) -> Command[str]:
        if asks:
            return checked(await node(state, deps), targets, state, deps, opened)
        started = deps.clock.monotonic()
        known = caught_up(state, deps.calls)  # the log is not read twice
        state, opened = updated(state, known), {**opened, **known}
        try:
            command = await _unless_stopped(node, state, deps)
            spent = 0.0 if idle else deps.clock.monotonic() - started
            return checked(command, targets, state, deps, opened, spent=spent)
        except (InfraError, SandboxError, GraphBubbleUp, Stopped):
            raise
        except MustWait as error:
            command = _waiting(error, state, node.__name__)
        except BudgetSpent as error:
            asked = pause(error, state, deps, node.__name__)
            command = (
                Command(update=asked, goto="ask_human") if asked else _ended(error, state, deps)
            )
        except NeedsPerson as error:
            command = _asking_person(error, state, node.__name__)
        except Exception as error:
            if node.__name__ == "note" or _is_fault_of_machine(error):
                raise
            command = _ended(error, state, deps)
        spent = deps.clock.monotonic() - started
        return checked(command, targets, state, deps, opened, spent=spent)

    run.__name__ = node.__name__
    run.__doc__ = node.__doc__
    return run


def _is_fault_of_machine(error: Exception) -> bool:
    """Whether the disk is full or the state cannot be saved; the saved run stays as it is."""
    return is_out_of_room(error) or isinstance(error, sqlite3.Error)


async def _unless_stopped(node: Node, state: TaskContext, deps: Deps) -> Command[str]:
    """Run the node; a stop ends it at once, except nodes that must end a worker gracefully."""
    if node.__name__ in ("run_worker", "note"):
        return await node(state, deps)
    work = asyncio.ensure_future(node(state, deps))
    stop = asyncio.ensure_future(deps.stop.wait())
    try:
        await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise Stopped
        return work.result()
    finally:
        stop.cancel()
        if not work.done():
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


def _ended(error: Exception, state: TaskContext, deps: Deps) -> Command[str]:
    """Return the command that ends the run FAILED, with the error as its verdict."""
    known = isinstance(error, TaskFailed)
    text = deps.redactor.redact(str(error)) or type(error).__name__
    if not known:
        text = f"Unexpected {type(error).__name__}: {text}"[:500] + _kept_traceback(error, deps)
        deps.warn(state, "unexpected-error", text)
    verdict = Verdict(
        state="FAILED",
        reason=error.code if isinstance(error, AgentRunnerError) else "internal",
        text=_storable(text)[:2000],
    )
    counters = getattr(error, "counters", None)
    update: Update = {"verdict": verdict}
    if isinstance(counters, Counters):
        update["counters"] = _without_messages(counters, state)
    return Command(update=update, goto="note")


def _kept_traceback(error: Exception, deps: Deps) -> str:
    """Write the frames of a mistake of ours into the run's folder; return a sentence on where."""
    text = deps.redactor.redact("".join(traceback.format_exception(error)))
    file = deps.folder.traceback_file
    with contextlib.suppress(OSError):
        write_private(file, text.encode("utf-8", "backslashreplace"))
        return f". This is a bug of {extension_of(error) or 'AgentRunner'}; its traceback: {file}"
    return ""


def _waiting(error: MustWait, state: TaskContext, node: str) -> Command[str]:
    """Return the command to wait and run the node again; what it has spent is counted."""
    update: Update = {
        "wait": error.wait.model_copy(update={"back_to": node}),
        "counters": _without_messages(error.counters, state),
    }
    return Command(update={**error.kept, **update}, goto="wait")


def _asking_person(error: NeedsPerson, state: TaskContext, node: str) -> Command[str]:
    """Return the command to ask a person in the planner's place; then this node or another runs."""
    counted = updated(state, {"counters": error.counters})
    asked = planner_question(error.silence, counted, node)
    update: Update = {"counters": _without_messages(error.counters, state), "question": asked}
    return Command(update={**error.kept, **update}, goto="planner")


def _without_messages(counters: Counters, state: TaskContext) -> Counters:
    """Return the counters with no message of a person marked as read: the node did not use it."""
    return counters.model_copy(update={"messages": state["counters"].messages})


def checked(
    command: object,
    targets: tuple[str, ...],
    state: TaskContext,
    deps: Deps,
    opened: Mapping[str, Any],
    *,
    spent: float = 0.0,
) -> Command[str]:
    """Return the command with valid values; raise BadUpdate for what LangGraph would drop."""
    if not isinstance(command, Command) or command.graph is not None:
        raise BadUpdate(f"a node returns a Command of this graph, not {type(command).__name__}")
    if not isinstance(command.goto, str) or command.goto not in targets:
        raise BadUpdate(f"{command.goto!r} is none of {', '.join(targets)}")
    if command.update is not None and not isinstance(command.update, dict):
        raise BadUpdate("an update is a mapping of channels")
    update = {**opened, **(command.update or {})}
    if deps.cooled:
        update["cooling"] = {**update.get("cooling", state.get("cooling", {})), **deps.cooled}
        deps.cooled.clear()
    if spent:
        counters: Counters = update.get("counters") or state["counters"]
        update["counters"] = counters.model_copy(
            update={"wall_sec": round(counters.wall_sec + spent, 3)}
        )
    valid = {
        channel: value if _is_validated(channel, value, state) else validated(channel, value)
        for channel, value in update.items()
    }
    if (target := valid.get("state")) is not None and target != state["state"]:
        move(state["state"], target)
        deps.record(
            updated(state, cast("TaskContext", valid)),  # its channels were validated above
            "state",
            f"{state['counters'].decisions}-{state['counters'].loops}-{state['state']}-{target}",
            {"from": state["state"], "to": target},
        )
        if target not in TERMINAL:  # a terminal state is announced once it is saved
            deps.emit("state_changed", **{"from": state["state"], "to": target})
    return Command(update=valid, goto=command.goto)


def _is_validated(channel: str, value: Any, state: Mapping[str, Any]) -> bool:
    """Whether it is the very value that the state has, one that nobody can have changed since."""
    lasts = isinstance(value, StateModel | str | int | None)
    return lasts and channel in state and value is state[channel]


@cache
def _adapters() -> dict[str, TypeAdapter[Any]]:
    return {name: TypeAdapter(hint) for name, hint in get_type_hints(TaskContext).items()}


def validated(channel: str, value: Any) -> Any:
    """Return the value as its channel's type, validated inside; raise BadUpdate if invalid."""
    adapter = _adapters().get(channel)
    if adapter is None:
        raise BadUpdate(f"the state has no channel {channel!r}")
    valid = adapter.validate_python(value)
    if _is_plain(adapter, valid):
        return valid
    plain = adapter.dump_python(valid, mode="python")
    storable = _fit_for_storage(plain, channel)
    return valid if storable == plain else adapter.validate_python(storable)


def _is_plain(adapter: TypeAdapter[Any], value: Any) -> bool:
    """Whether the value can be stored without a closer look, as nearly all can: it has ASCII only,
    and no integer that may have more than 64 bits.
    """
    try:
        text = adapter.dump_json(value)
    except PydanticSerializationError:  # a lone surrogate
        return False
    return text.isascii() and not _LONG.search(text)


def _fit_for_storage(value: Any, channel: str) -> Any:
    """Return the value with U+FFFD for lone surrogates, which a checkpoint does not keep.

    They come from names of files that are not UTF-8. Raises BadUpdate for integers over 64 bits.
    """
    if isinstance(value, str):
        return value if value.isascii() else clean(value)
    if isinstance(value, int) and abs(value) > MAX_INT:
        raise BadUpdate(f"{channel} holds an integer over 64 bits")
    if isinstance(value, dict):
        return {
            _fit_for_storage(key, channel): _fit_for_storage(item, channel)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_fit_for_storage(item, channel) for item in value]
    return value


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
