"""The saved state of a run: one SQLite file per run, checked before it is believed.

A damaged, empty, foreign or newer file is reported and left as it is; it is never taken for a
fresh start, because that would run every worker again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing
from functools import cache
from pathlib import Path
from typing import Any

import aiosqlite
import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Interrupt

from agentrunner.errors import CheckpointCorrupt
from agentrunner.task import context
from agentrunner.task.context import SCHEMA_VERSION, StateModel
from agentrunner.task.lifecycle import TaskState
from agentrunner.task.spec import Check

APPLICATION_ID = 0x41475255  # "AGRU"
BUSY_MS = 10_000
CACHE_KB = 256
"""What SQLite may cache per run; its own limit, 2 MB, is filled by long runs."""
RECURSION_LIMIT = 10_000
"""A seat belt: more steps than the most loops a task may have can take. The loops are counted in
the state, where --max-loops of a later attempt is known, too."""

KEPT_CHECKPOINTS = 8
FORGET = "delete from {} where (thread_id, checkpoint_ns, checkpoint_id) = (?, ?, ?)"
PRUNE = """
delete from writes where thread_id = :thread and checkpoint_id not in
  (select max(checkpoint_id) from checkpoints where thread_id = :thread group by checkpoint_ns);
delete from checkpoints where thread_id = :thread and (checkpoint_ns, checkpoint_id) not in
  (select checkpoint_ns, max(checkpoint_id) from checkpoints where thread_id = :thread
   group by checkpoint_ns);
"""


@cache
def state_types() -> dict[tuple[str, str], type]:
    """The classes a checkpoint may make objects of, and no others, by module and name."""
    classes: list[type] = [
        value
        for value in vars(context).values()
        if isinstance(value, type) and issubclass(value, StateModel)
    ]
    return {(cls.__module__, cls.__name__): cls for cls in [*classes, Check, TaskState, Interrupt]}


def serializer() -> JsonPlusSerializer:
    """Strict: no pickle, no JSON constructors, and of msgpack only our own models."""
    return JsonPlusSerializer(
        pickle_fallback=False,
        allowed_json_modules=None,
        allowed_msgpack_modules=list(state_types()),
        __unpack_ext_hook__=_revived,
    )


def _revived(code: int, data: bytes) -> Any:
    """An object of a checkpoint; raises ValueError for every class that is none of ours.

    LangGraph's own hook hands on the raw parts of what it refuses or cannot make, and makes
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
    return cls(content) if code == EXT_CONSTRUCTOR_SINGLE_ARG else cls(**content)


class BoundedSaver(AsyncSqliteSaver):
    """Keeps the latest checkpoints only: a run goes on from the last, however many it has made.

    What it forgets are checkpoints that it has itself put and followed up, by their ids, so that
    nothing depends on the order of ids over several processes.
    """

    def __init__(self, connection: aiosqlite.Connection, serde: JsonPlusSerializer) -> None:
        super().__init__(connection, serde=serde)
        self._put: list[tuple[str, str, str]] = []

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, and now and then forget earlier ones."""
        saved = await super().aput(config, checkpoint, metadata, new_versions)
        place = saved["configurable"]
        self._put.append((place["thread_id"], place["checkpoint_ns"], place["checkpoint_id"]))
        if len(self._put) >= 2 * KEPT_CHECKPOINTS:
            old, self._put = self._put[:-KEPT_CHECKPOINTS], self._put[-KEPT_CHECKPOINTS:]
            async with self.lock:
                for table in ("writes", "checkpoints"):
                    await self.conn.executemany(FORGET.format(table), old)
                await self.conn.commit()
        return saved


@asynccontextmanager
async def open_saver(path: Path, *, new: bool) -> AsyncIterator[AsyncSqliteSaver]:
    """The checkpointer of one run; raises CheckpointCorrupt for a file that cannot be believed."""
    if not new:
        check_file(path)
    async with aiosqlite.connect(path, timeout=BUSY_MS / 1000) as connection:
        path.chmod(0o600)
        await connection.execute(f"pragma cache_size = -{CACHE_KB}")
        if new:
            await connection.execute(f"pragma application_id = {APPLICATION_ID}")
            await connection.execute(f"pragma user_version = {SCHEMA_VERSION}")
            await connection.commit()
        saver = BoundedSaver(connection, serializer())
        await saver.setup()
        yield saver


def check_file(path: Path) -> None:
    """Raise CheckpointCorrupt unless this is a whole checkpoint file of this version."""
    if not path.is_file() or path.stat().st_size == 0:
        raise damaged(path, "it is missing or empty; the run cannot be continued from it")
    try:
        with closing(sqlite3.connect(read_only(path), uri=True)) as database:
            application = database.execute("pragma application_id").fetchone()[0]
            version = database.execute("pragma user_version").fetchone()[0]
            health = database.execute("pragma quick_check").fetchone()[0]
    except (sqlite3.DatabaseError, UnicodeDecodeError, ValueError) as error:
        raise damaged(path, str(error)) from error
    if application != APPLICATION_ID:
        raise damaged(path, "it was not written by AgentRunner")
    if version > SCHEMA_VERSION:
        raise damaged(path, f"it was written by a newer AgentRunner (state version {version})")
    if health != "ok":
        raise damaged(path, str(health))


def read_only(path: Path) -> str:
    """The URI by which SQLite opens a file for reading; a `?`, `#` or `%` in it is escaped."""
    return f"{path.absolute().as_uri()}?mode=ro"


def damaged(path: Path, why: str) -> CheckpointCorrupt:
    """The error for a state file that cannot be used; the file stays as it is."""
    return CheckpointCorrupt(
        f"The saved state of this run cannot be used: {why}. Nothing was changed.",
        path=str(path),
        remedy="agentrunner show reads what the run log still tells; start the task again with run",
    )


async def prune(saver: AsyncSqliteSaver, threads: Iterable[str]) -> None:
    """Keep only the last checkpoint of each thread; for ended runs."""
    for thread in threads:
        for statement in PRUNE.split(";"):
            if statement.strip():
                await saver.conn.execute(statement, {"thread": thread})
    await saver.conn.commit()
    await saver.conn.execute("vacuum")
    await saver.conn.execute("pragma wal_checkpoint(truncate)")


def read_errors() -> tuple[type[Exception], ...]:
    """What loading a damaged checkpoint has been seen to raise."""
    return (sqlite3.DatabaseError, UnicodeDecodeError, ValueError, KeyError, TypeError)


def thread_config(run_id: str, attempt: int) -> dict[str, Any]:
    """The LangGraph config of one attempt."""
    return {
        "configurable": {"thread_id": f"{run_id}#{attempt}"},
        "recursion_limit": RECURSION_LIMIT,
    }
