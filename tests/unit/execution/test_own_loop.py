"""Work on a loop of its own: what crosses over to it, and what comes back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.runtime import Runtime

from agentrunner.execution.own_loop import on_own_loop
from agentrunner.graph.builder import ROUTES, build_served_graph
from agentrunner.state.run_state import TaskContext
from tests.kit.missing import missing

SEEN: ContextVar[str] = ContextVar("seen", default="nothing")


async def test_it_runs_elsewhere_with_the_callers_context_and_returns() -> None:
    here = asyncio.get_running_loop(), threading.current_thread()

    async def work() -> str:
        assert asyncio.get_running_loop() is not here[0]
        assert threading.current_thread() is not here[1]
        return SEEN.get()

    SEEN.set("what the caller set")
    assert await on_own_loop(work) == "what the caller set"


async def test_what_it_raises_is_raised() -> None:
    async def work() -> None:
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        await on_own_loop(work)


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_cancellation_reaches_the_work_and_waits_for_its_end(at_once: bool) -> None:
    begun, told = threading.Event(), list[str]()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.to_thread(told.append, "cleaned up")

    running = asyncio.ensure_future(on_own_loop(work))
    await asyncio.sleep(0)
    if not at_once:
        await asyncio.to_thread(begun.wait)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert told == (["cleaned up"] if begun.is_set() else [])


async def test_a_work_that_is_over_when_it_is_cancelled_is_cancelled_all_the_same() -> None:
    async def work() -> None:
        raise KeyError("too late")

    running = asyncio.ensure_future(on_own_loop(work))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_it_may_block_under_the_detector_of_the_server_and_the_caller_may_not() -> None:
    try:
        import blockbuster
    except ImportError:
        missing("blockbuster is not installed (the extra `studio`)")

    async def work() -> None:
        Path.cwd()

    with blockbuster.blockbuster_ctx():
        await on_own_loop(work)
        with pytest.raises(blockbuster.BlockingError):
            await work()


async def test_the_servers_loop_goes_on_while_a_node_blocks() -> None:
    begun, released = threading.Event(), threading.Event()

    async def work() -> bool:
        begun.set()
        return released.wait(60)  # blocks its own loop until the server's has moved

    node = asyncio.ensure_future(on_own_loop(work))
    await asyncio.to_thread(begun.wait)
    released.set()
    assert await node is True


async def test_the_mark_of_the_detector_is_of_one_thread_and_ends_with_it() -> None:
    try:
        import blockbuster
    except ImportError:
        missing("blockbuster is not installed (the extra `studio`)")

    async def work() -> None:
        Path.cwd()

    def elsewhere() -> str:
        try:
            asyncio.run(work())
        except blockbuster.BlockingError as error:
            return type(error).__name__
        return "it may block"

    with blockbuster.blockbuster_ctx():
        running = asyncio.ensure_future(on_own_loop(lambda: asyncio.to_thread(elsewhere)))
        assert await running == "BlockingError"  # a thread that the node starts has no mark
        assert await asyncio.to_thread(elsewhere) == "BlockingError"


@pytest.mark.parametrize("name", sorted(ROUTES))
async def test_every_served_node_opens_and_works_on_a_loop_of_its_own(name: str) -> None:
    """The wrapper opens what a node stands on where the node works; this opening ends it."""
    here, threads = threading.current_thread(), list[threading.Thread]()

    class Opened(Exception):
        pass

    @asynccontextmanager
    async def open_deps(state: TaskContext) -> AsyncIterator[Any]:
        threads.append(threading.current_thread())
        raise Opened
        yield

    node = build_served_graph(open_deps, TaskContext).nodes[name].runnable
    state: Any = TaskContext()
    with pytest.raises(Opened):
        await cast("Any", node).afunc(state, runtime=Runtime())
    assert [(one is here, one.name) for one in threads] == [(False, "own-loop")]
