"""How the verbs of the API are driven: where runs are kept, who gets their events."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from agentrunner import environment

if TYPE_CHECKING:
    from agentrunner.engine.attempt_run import Options

__all__ = ["options"]

Given = ParamSpec("Given")
Found = TypeVar("Found")


async def aside(
    work: Callable[Given, Found], /, *args: Given.args, **kwargs: Given.kwargs
) -> Found:
    """Do in a thread what blocks."""
    import asyncio  # a third of the time of `agentrunner list`, which does without

    return await asyncio.to_thread(work, *args, **kwargs)


def in_thread(
    work: Callable[Given, Found],
) -> Callable[Given, Coroutine[Any, Any, Found]]:
    """Return the twin of `NAME_sync`, which blocks: the same, done in a thread."""

    @functools.wraps(work)
    async def twin(*args: Given.args, **kwargs: Given.kwargs) -> Found:
        return await aside(work, *args, **kwargs)

    twin.__name__ = twin.__qualname__ = work.__name__.removesuffix("_sync")
    return twin


def state_folder(state_dir: Path | str | None) -> Path:
    """Return where runs are kept, as for the command line."""
    return environment.state_dir(os.fspath(state_dir) if state_dir else None)


def options(state_dir: Path | str | None = None, **how: Any) -> Options:
    """Return how runs are driven: `state_dir` as for the command line, no questions, no listener.

    `how` are further fields of `Options`: `on_event`, `ask`, `environ`, `policy`, `stop`.
    """
    from agentrunner.engine.attempt_run import Options

    return Options(state_dir=state_folder(state_dir), **{"on_event": ignore, **how})


def ignore(event: object) -> None:
    """Take an event and do nothing, for callers that use `follow`, or no events at all."""
