"""Work on an event loop of its own, in a thread of its own.

A served run shares the server's loop with every other run. What blocks there holds all of them up,
and `langgraph dev` ends the run that did it. On a loop of its own a node holds up only itself.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

Made = TypeVar("Made")


async def on_own_loop(work: Callable[[], Coroutine[Any, Any, Made]]) -> Made:
    """Return what `work()` returns, or raise what it raises, run on a loop of its own.

    It sees the caller's context variables. A cancellation is passed on and its end awaited: when
    this returns or raises, nothing of the work runs any more.
    """
    loop, ended = asyncio.new_event_loop(), Future[Made]()
    begun: list[asyncio.Task[Any] | None] = []

    async def watched() -> Made:
        begun.append(asyncio.current_task())
        return await work()

    def serve() -> None:
        _say_that_it_may_block()
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                made = runner.run(watched())
        except BaseException as error:  # noqa: BLE001 - it is for whoever awaits the work
            ended.set_exception(error)
        else:
            ended.set_result(made)

    def cancel() -> None:
        if begun and begun[0] is not None:
            begun[0].cancel()
        else:  # the loop has just begun
            loop.call_soon(cancel)

    # Not of the server's pool, from which a worker would hold a thread for hours.
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(serve,), name="own-loop", daemon=True).start()
    waiting, cancelled = asyncio.wrap_future(ended), None
    while not waiting.done():
        try:
            await asyncio.wait([waiting])
        except asyncio.CancelledError as error:
            cancelled = error
            with suppress(RuntimeError):  # the loop is closed: the work has ended meanwhile
                loop.call_soon_threadsafe(cancel)
    if cancelled is not None:
        waiting.exception()  # looked at, so that nobody logs it as lost
        raise cancelled
    return waiting.result()


def _say_that_it_may_block() -> None:
    """Tell the detector of `langgraph dev`, where it is at work, that this thread may block.

    It takes every running loop for the server's, and has no public way to except one. Where its
    mark has another name, it reports calls that hold up nobody; tests/integration/test_studio.py
    tells.
    """
    mark = getattr(sys.modules.get("blockbuster.blockbuster"), "_skip", None)
    if isinstance(mark, threading.local):
        mark.value = True
