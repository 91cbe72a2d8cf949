"""The saved state of a run: one SQLite file per run, checked before it is trusted.

A damaged, empty, foreign or newer file is reported and left as it is. It is never taken for a fresh
start, because that would run every worker again.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from functools import cache
from pathlib import Path
from typing import Any

import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Interrupt

from agentrunner.config.spec import Check
from agentrunner.environment import is_full
from agentrunner.errors import CheckpointCorrupt
from agentrunner.errors.runs import DiskFull
from agentrunner.state import people, run_state, state_model, worker_runs
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.run_state import SCHEMA_VERSION, Baseline
from agentrunner.state.state_model import StateModel

APPLICATION_ID = 0x41475255  # "AGRU"
BUSY_MS = 10_000
CACHE_KB = 64
"""What SQLite may cache per run. Long runs would fill its own limit of 2 MB."""
PAGE_BYTES = 1024
"""SQLite allocates room for twenty pages as it opens a file: 20 KB per run, with its own page size
80 KB."""
RECURSION_LIMIT = 10_000
"""A safety net: more steps than a task with the most loops allowed can take. Loops are counted in
the state, where the --max-loops of a later attempt is known, too."""

KEPT_CHECKPOINTS = 8
FORGET = "delete from {} where (thread_id, checkpoint_ns, checkpoint_id) = (?, ?, ?)"
PRUNE = """
delete from writes where thread_id = :thread and checkpoint_id not in
  (select max(checkpoint_id) from checkpoints where thread_id = :thread group by checkpoint_ns);
delete from checkpoints where thread_id = :thread and (checkpoint_ns, checkpoint_id) not in
  (select checkpoint_ns, max(checkpoint_id) from checkpoints where thread_id = :thread
   group by checkpoint_ns);
"""


_STATE = (run_state, people, worker_runs, state_model)
FORMER_MODULES: Mapping[str, tuple[str, ...]] = {
    "agentrunner.state.lifecycle": ("agentrunner.task.lifecycle",),
    "agentrunner.config.spec": ("agentrunner.task.spec",),
    **dict.fromkeys(
        (module.__name__ for module in _STATE),
        ("agentrunner.task.context", "agentrunner.state.run_state"),
    ),
}
"""Where the classes of a state were in earlier versions, whose runs this version resumes."""


FORMER_FIELDS: Mapping[type, frozenset[str]] = {Baseline: frozenset({"exact"})}
"""What classes had in earlier versions and have no more."""


@cache
def state_types() -> dict[tuple[str, str], type]:
    """Return the only classes a checkpoint may create objects of, by module and name."""
    classes: list[type] = [
        value
        for module in _STATE
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, StateModel)
    ]
    return {
        (module, cls.__name__): cls
        for cls in [*classes, Check, TaskState, Interrupt]
        for module in (cls.__module__, *FORMER_MODULES.get(cls.__module__, ()))
    }


@cache
def serializer() -> JsonPlusSerializer:
    """Return the serializer of all runs: no pickle, no JSON constructors, in msgpack only our
    models.
    """
    return JsonPlusSerializer(
        pickle_fallback=False,
        allowed_json_modules=None,
        allowed_msgpack_modules=list(state_types()),
        __unpack_ext_hook__=_revived,
    )


def _revived(code: int, data: bytes) -> Any:
    """Return an object of a checkpoint; raise ValueError for a class that is not one of ours.

    LangGraph's own hook returns the raw parts of what it refuses or cannot create, and creates
    models unvalidated where they are invalid: a damaged state would pass for a whole one.
    """
    module, name, content, *_ = ormsgpack.unpackb(
        data, ext_hook=_revived, option=ormsgpack.OPT_NON_STR_KEYS
    )
    cls = state_types().get((module, name))
    if cls is None or code not in (
        EXT_CONSTRUCTOR_SINGLE_ARG,
        EXT_CONSTRUCTOR_KW_ARGS,
        EXT_PYDANTIC_V2,
    ):
        raise ValueError(f"it holds a {module}.{name}, which is no part of a state")
    if code == EXT_CONSTRUCTOR_SINGLE_ARG:
        return cls(content)
    former = FORMER_FIELDS.get(cls, ())
    return cls(**{name: value for name, value in content.items() if name not in former})


class BoundedSaver(SqliteSaver):
    """A saver that works in the process's thread pool, in one hop, and keeps only the latest
    checkpoints.

    LangGraph's own asynchronous saver has a thread per connection and goes there and back seven
    times per step. This one deletes, by id, only checkpoints that it has put itself and followed by
    newer ones, so nothing depends on the order of ids over several processes.

    A finished step's writes are in the checkpoint that follows at once. They are saved besides only
    with `history`: where that checkpoint did not get to the disk, the step runs again, as it does
    after a crash in its middle.

    `before` is called in the same thread before anything is saved: what the state builds on has to
    be on the disk first.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        serde: JsonPlusSerializer,
        *,
        history: bool,
        before: Callable[[], None],
    ) -> None:
        super().__init__(connection, serde=serde)
        self._history = history
        self._before = before
        self._saved_ids: dict[tuple[str, str], list[str]] = {}

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, and delete earlier ones of its thread now and then."""
        self._before()
        saved = super().put(config, checkpoint, metadata, new_versions)
        where = saved["configurable"]
        thread = (where["thread_id"], where["checkpoint_ns"])
        saved_ids = self._saved_ids.setdefault(thread, [])
        saved_ids.append(where["checkpoint_id"])
        if len(saved_ids) >= 2 * KEPT_CHECKPOINTS:
            self._saved_ids[thread] = saved_ids[-KEPT_CHECKPOINTS:]
            outdated = [(*thread, checkpoint_id) for checkpoint_id in saved_ids[:-KEPT_CHECKPOINTS]]
            with self.cursor() as cursor:
                for table in ("writes", "checkpoints"):
                    cursor.executemany(FORGET.format(table), outdated)
        return saved

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Save what a step wrote."""
        self._before()
        super().put_writes(config, writes, task_id, task_path)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint; raise ValueError where it holds a value that was not written with
        it.

        LangGraph skips a channel with an unknown name, so one flipped bit in a name would silently
        give a state that lacks a value.
        """
        found = super().get_tuple(config)
        if found is not None:
            checkpoint = found.checkpoint
            strange = checkpoint["channel_values"].keys() - checkpoint["channel_versions"].keys()
            if strange:
                raise ValueError(f"it holds {min(strange)!r} without a version")
        return found

    def keep_latest(self, threads: Iterable[str]) -> None:
        """Keep only the last checkpoint of each thread. For runs that have ended."""
        with self.cursor() as cursor:
            for thread in threads:
                for statement in PRUNE.split(";"):
                    cursor.execute(statement, {"thread": thread})
        with self.lock:
            self.conn.execute("vacuum")
            self.conn.execute("pragma wal_checkpoint(truncate)")

    def close(self) -> None:
        """Close the file once no other thread uses it."""
        with self.lock:
            self.conn.close()

    # -- the same, off the event loop -----------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the latest checkpoint, or the one that `config` names."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  (LangGraph's word)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield the checkpoints that are kept, the latest first."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        for checkpoint in await asyncio.to_thread(list, found):
            yield checkpoint

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, as `put` does. It is on the disk when this returns."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Save only writes that no checkpoint follows: an interrupt, its answer, an error."""
        if self._history or any(channel in WRITES_IDX_MAP for channel, _ in writes):
            await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread."""
        await asyncio.to_thread(self.delete_thread, thread_id)


@asynccontextmanager
async def open_saver(
    path: Path,
    *,
    new: bool,
    history: bool = False,
    before: Callable[[], None] = lambda: None,
) -> AsyncIterator[BoundedSaver]:
    """Yield the checkpointer of one run; raise CheckpointCorrupt for a file that cannot be trusted.

    `history` also keeps each step's own writes, for a server that shows them. `before` is called in
    another thread before each save.
    """
    saver = await asyncio.to_thread(open_saver_sync, path, new=new, history=history, before=before)
    try:
        yield saver
    finally:
        await asyncio.to_thread(saver.close)


def open_saver_sync(
    path: Path, *, new: bool, history: bool = False, before: Callable[[], None] = lambda: None
) -> BoundedSaver:
    """Like `open_saver`, for callers without an event loop; they close the saver. Blocks."""
    if not new:
        check_file(path)
    connection = sqlite3.connect(path, timeout=BUSY_MS / 1000, check_same_thread=False)
    try:
        path.chmod(0o600)
        connection.execute(f"pragma cache_size = -{CACHE_KB}")
        if new:
            connection.execute(f"pragma page_size = {PAGE_BYTES}")
            connection.execute(f"pragma application_id = {APPLICATION_ID}")
            connection.execute(f"pragma user_version = {SCHEMA_VERSION}")
        saver = BoundedSaver(connection, serializer(), history=history, before=before)
        saver.setup()
    except BaseException:
        connection.close()
        raise
    return saver


def check_file(path: Path) -> None:
    """Raise CheckpointCorrupt unless this is a whole checkpoint file, and not a newer one."""
    if not path.is_file() or path.stat().st_size == 0:
        raise damaged(path, "it is missing or empty; the run cannot be continued from it")
    try:
        with closing(sqlite3.connect(read_only(path), uri=True)) as database:
            application = database.execute("pragma application_id").fetchone()[0]
            version = database.execute("pragma user_version").fetchone()[0]
            health = database.execute("pragma integrity_check").fetchone()[0]
    except (sqlite3.DatabaseError, UnicodeDecodeError, ValueError) as error:
        if _is_disk_full(error, path):
            needs = "Reading the run's state needs a little. Nothing was changed."
            raise DiskFull.of(path.parent, needs) from error
        raise damaged(path, str(error)) from error
    if application != APPLICATION_ID:
        raise damaged(path, "it was not written by AgentRunner")
    if version > SCHEMA_VERSION:
        raise damaged(path, f"it was written by a newer AgentRunner (state version {version})")
    if health != "ok":
        raise damaged(path, str(health))


def _is_disk_full(error: Exception, path: Path) -> bool:
    """Whether SQLite failed because the disk is full, which damages nothing."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    full = code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN)
    return full and is_full(path.parent)


def read_only(path: Path) -> str:
    """Return the URI by which SQLite opens a file for reading; `?`, `#` and `%` are escaped."""
    return f"{path.absolute().as_uri()}?mode=ro"


def damaged(path: Path, why: str) -> CheckpointCorrupt:
    """Return the error for a state file that cannot be used. The file stays as it is."""
    return CheckpointCorrupt(
        f"The saved state of this run cannot be used: {why}. Nothing was changed.",
        path=str(path),
        remedy="agentrunner logs tells what happened; start the task again with run",
    )


def read_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that loading a damaged checkpoint has been seen to raise."""
    return (sqlite3.DatabaseError, UnicodeDecodeError, ValueError, KeyError, TypeError)


def thread_config(run_id: str, attempt: int) -> RunnableConfig:
    """Return the LangGraph config of one attempt."""
    return {
        "configurable": {"thread_id": f"{run_id}#{attempt}"},
        "recursion_limit": RECURSION_LIMIT,
    }
