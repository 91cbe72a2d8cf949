"""The process that drives a run: it holds the run's lock and its repository's, and one attempt.

The repository's lock is shared with the supervisor of the run, which keeps it while a worker works.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path

from msgspec import Struct

from agentrunner.config.load import changed_sources
from agentrunner.engine import attempts
from agentrunner.engine.attempt_run import Drive, Options
from agentrunner.engine.header import header_of, left_by_others, news_of_sight
from agentrunner.engine.indexing import Indexer
from agentrunner.engine.resources import open_workshop
from agentrunner.execution.deps import Deps
from agentrunner.execution.resolved import ResolvedRun
from agentrunner.git.worktree import remove_places
from agentrunner.graph.builder import graph_for
from agentrunner.graph.checkpoints import BoundedSaver, open_saver, thread_config
from agentrunner.results import Result
from agentrunner.sandboxes.process_tree import kill_orphans
from agentrunner.state.lifecycle import TERMINAL
from agentrunner.state.people import Answer
from agentrunner.state.run_state import TaskContext
from agentrunner.storage.locks import FileLock, me, repository_lock, run_lock
from agentrunner.storage.run_folder import RunFolder
from agentrunner.text.redaction import Redactor

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Constants of glibc's malloc.h."""
ARENAS = 1
"""By default glibc opens one per thread. Python's threads wait for Python's own lock, not for an
arena's."""
LARGE = 1 << 16
"""Blocks larger than so many bytes go back to the system once they are free."""


@contextmanager
def driving(folder: RunFolder, options: Options) -> Iterator[None]:
    """Hold the run's lock: one process drives a run. Raises Busy where another one does."""
    be_frugal()
    lock = run_lock(folder)
    lock.acquire(me(folder.run_id, options.clock.stamp()))
    with contextlib.closing(lock):
        yield


@contextmanager
def open_driver(resolved: ResolvedRun, folder: RunFolder, options: Options) -> Iterator[Driver]:
    """Yield the driver of a run that continues. It, or the run's supervisor, holds the repository's
    lock.

    Raises Busy where another run holds the repository.
    """
    lock = repository_lock(options.state_dir, Path(resolved.spec.repo))
    lock.acquire_or_leave(me(folder.run_id, options.clock.stamp()))
    with contextlib.closing(lock):
        if lock.held:  # then no live process can own the sandboxes
            kill_orphans(folder.root)
        yield Driver(resolved, folder, options, lock)


class Driver(Struct, frozen=True):
    """Drives one run, whose lock this process holds (`driving`)."""

    resolved: ResolvedRun
    folder: RunFolder
    options: Options
    repository: FileLock
    """Held here, or by the run's own supervisor while that lives."""

    async def run(
        self,
        fresh: TaskContext | None,
        answer: Answer | None = None,
        *,
        grants: Mapping[str, float] | None = None,
    ) -> Result:
        """Drive one attempt to its result: `fresh` starts it, None continues the latest."""
        index = self._indexer()
        async with self._opened(fresh, index) as (drive, saver):
            if grants:
                state = fresh or (await drive.standing())[0]
                number = len(drive.deps.log.records("grant")) + 1
                drive.deps.record(state, "grant", f"resume-{number}", {"amounts": dict(grants)})
            if fresh is not None and fresh["run"].attempt == 1:
                fresh = attempts.started(fresh, self.options.clock.now(), self.options.given_at)
            result = await drive.to_the_end(fresh, answer)
            values = result.as_dict()
            drive.deps.emit("result", **{name: values[name] for name in values if name != "run_id"})
            if result.state in TERMINAL:
                attempts_made = range(1, (result.attempt or 1) + 1)
                threads = [f"{self.folder.run_id}#{number}" for number in attempts_made]
                await asyncio.to_thread(saver.keep_latest, threads)
        index.finish(result)
        self.folder.write("result.json", json.dumps(values, ensure_ascii=False, indent=1))
        if result.state in TERMINAL and self.resolved.spec.runner.retention_days == 0:
            await asyncio.to_thread(self.folder.remove)
            await asyncio.to_thread(remove_places, self.options.state_dir, self.folder.run_id)
        return result

    async def settle(self, state: TaskContext) -> TaskContext:
        """Return the state once the worker that an earlier driver left is ended gracefully and
        recorded.

        No other attempt may work beside it, and its changes count as a worker's.
        """
        if not attempts.has_worker(self.folder, state):
            return state
        async with self._opened(None, self._indexer()) as (drive, _):
            await drive.stop_worker()
        return await attempts.latest(self.folder)

    def _indexer(self) -> Indexer:
        return Indexer(self.resolved.spec, self.folder, self.options)

    @asynccontextmanager
    async def _opened(
        self, fresh: TaskContext | None, index: Indexer
    ) -> AsyncIterator[tuple[Drive, BoundedSaver]]:
        """Yield what drives the attempt that `fresh` starts, or the latest one."""
        folder, options = self.folder, self.options
        new_file = fresh is not None and attempts.untouched(folder)
        try:
            async with (
                open_workshop(
                    self.resolved, folder, options.state_dir, [index, options.on_event],
                    self.repository, options.clock, options.cassette,
                ) as (deps, resolved),
                open_saver(folder.checkpoints, new=new_file, before=deps.log.sync) as saver,
            ):  # fmt: skip
                attempt = fresh["run"].attempt if fresh else attempts.newest_attempt(folder)
                config = thread_config(folder.run_id, attempt)
                drive = Drive(graph_for(saver), config, deps, options)
                state = fresh or (await drive.standing())[0]
                self._announce(deps, resolved, state, begins=fresh is not None and attempt == 1)
                yield drive, saver
        except Exception as error:
            why = Redactor(self.resolved.secrets).redact(str(error))
            await asyncio.to_thread(index.fail, error, why)
            raise

    def _announce(
        self, deps: Deps, resolved: ResolvedRun, state: TaskContext, *, begins: bool
    ) -> None:
        run, spec, verdict = state["run"], resolved.spec, state.get("verdict")
        if verdict and verdict.reason == "cancelled":  # it is only ended
            return
        sandbox = deps.sandbox.describe()
        news = []
        if begins:
            left = left_by_others(spec, run.run_id, self.options.state_dir)
            news = [*left, *news_of_sight(spec, self.folder)]
        header = header_of(resolved, sandbox=sandbox, state=state, begins=begins, news=news)
        if begins:
            deps.emit("run_started", task_id=spec.task_id, title=spec.title, header=header)
            return
        deps.emit("run_resumed", attempt=run.attempt, header=header)
        if names := [path for path, _ in changed_sources(spec)]:
            kept = "changed meanwhile; the run continues with what it was made from"
            deps.warn(state, "inputs-changed", f"{kept}: {', '.join(names)}")


@cache
def be_frugal() -> None:
    """Ask malloc for few arenas, once per process. With another C library this does nothing."""
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        settings = {M_ARENA_MAX: ARENAS, M_TRIM_THRESHOLD: LARGE, M_MMAP_THRESHOLD: LARGE}
        for option, value in settings.items():
            libc.mallopt(option, value)
