"""Work on a loop of its own: what crosses over to it, and what comes back."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from pathlib import Path

import pytest

from agentrunner.execution.own_loop import on_own_loop
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
