"""A saved state that cannot be believed is said to be so, and is never a fresh start."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from agentrunner.engine import attempts
from agentrunner.engine.queries import show
from agentrunner.errors import CheckpointCorrupt
from agentrunner.graph.checkpoints import APPLICATION_ID, serializer
from agentrunner.state.run_state import SCHEMA_VERSION, TaskContext
from tests.kit.process import Drill, at_point, done

FLIPS = 150


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drill]:
    """A run that was killed between its worker and the end, with everything in one file."""
    with Drill.open(tmp_path_factory.mktemp("crashed")) as drill:
        drill.crash(**at_point("during_validation"))
        drill.nothing_runs()
        with closing(sqlite3.connect(drill.folder.checkpoints)) as database:
            database.execute("pragma wal_checkpoint(truncate)")
        shutil.copy(drill.folder.checkpoints, drill.place / "good.sqlite")
        yield drill


@pytest.fixture
def saved(crashed: Drill) -> Iterator[Path]:
    """The file of that run, put back afterwards."""
    yield crashed.folder.checkpoints
    for name in ("checkpoints.sqlite-wal", "checkpoints.sqlite-shm"):
        (crashed.folder.root / name).unlink(missing_ok=True)
    shutil.copy(crashed.place / "good.sqlite", crashed.folder.checkpoints)


def garbage(path: Path) -> None:
    path.write_bytes(b"\0\xffnot a database" * 500)


def foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute("create table somebody (elses text)")


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"pragma user_version = {SCHEMA_VERSION + 1}")


def without_tables(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"pragma application_id = {APPLICATION_ID}")
        database.execute(f"pragma user_version = {SCHEMA_VERSION}")


def without_rows(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("delete from checkpoints")


def a_strange_thread(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("update checkpoints set thread_id = thread_id || '#next'")


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


DAMAGES: list[Callable[[Path], Any]] = [
    Path.unlink,
    lambda path: os.truncate(path, 0),
    lambda path: os.truncate(path, 50),
    truncated,
    garbage,
    foreign,
    newer,
    without_tables,
    without_rows,
    a_strange_thread,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_state_is_refused_and_left_as_it_is(
    crashed: Drill, saved: Path, damage: Callable[[Path], Any]
) -> None:
    damage(saved)
    before = saved.read_bytes() if saved.exists() else None
    for _ in range(2):  # the first refusal does not make it acceptable
        with pytest.raises(CheckpointCorrupt) as refused:
            crashed.resume()
        assert refused.value.exit_code == 5
        assert str(saved) in refused.value.path
        with pytest.raises(CheckpointCorrupt):
            show(crashed.state_dir, crashed.run_id)
    assert (saved.read_bytes() if saved.exists() else None) == before
    assert crashed.starts == 1
    crashed.nothing_runs()


def test_the_command_line_says_so_with_exit_code_5(crashed: Drill, saved: Path) -> None:
    garbage(saved)
    refused = done(crashed.command("resume", crashed.run_id))
    assert refused.code == 5
    assert refused.result["error"]["code"] == "state-damaged"
    assert str(saved) in refused.result["error"]["path"]


def read(drill: Drill) -> TaskContext:
    return asyncio.run(attempts.latest(drill.folder))


def test_any_flipped_byte_is_the_same_state_or_a_damaged_one(crashed: Drill, saved: Path) -> None:
    good = (crashed.place / "good.sqlite").read_bytes()
    right = read(crashed)
    chance = random.Random(27)
    for _ in range(FLIPS):
        flipped = bytearray(good)
        flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        saved.write_bytes(flipped)
        try:
            state = read(crashed)
        except CheckpointCorrupt:
            continue
        # A flipped letter in a text cannot be known; but it is a state with the same shape.
        assert state.keys() == right.keys()
        assert {key: type(value) for key, value in state.items()} == {
            key: type(value) for key, value in right.items()
        }


def payloads(canary: Path) -> dict[str, bytes]:
    """What a state file that somebody else wrote would run: LangGraph's three call extensions."""

    def ext(code: int, *call: object) -> bytes:
        return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(call)))

    return {
        "call with one argument": ext(0, "os", "mkdir", str(canary)),
        "call with arguments": ext(1, "os", "mkdir", (str(canary),)),
        "call with keywords": ext(2, "os", "mkdir", {"path": str(canary)}),
        "method": ext(4, "os", "mkdir", {"path": str(canary)}, "mkdir"),
    }


@pytest.mark.parametrize("name", payloads(Path("/")))
def test_a_state_that_calls_something_is_refused_and_calls_nothing(
    crashed: Drill, saved: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LANGGRAPH_STRICT_MSGPACK", raising=False)
    canary = tmp_path / "canary"
    payload = payloads(canary)[name]
    with closing(sqlite3.connect(saved)) as database, database:
        newest = database.execute("select max(checkpoint_id) from checkpoints").fetchone()[0]
        blob = database.execute(
            "select checkpoint from checkpoints where checkpoint_id = ?", (newest,)
        ).fetchone()[0]
        channels = serializer().loads_typed(("msgpack", blob))
        evil = ormsgpack.packb(
            {**channels, "channel_values": {"tail": "HERE"}}, option=ormsgpack.OPT_NON_STR_KEYS
        ).replace(ormsgpack.packb("HERE"), payload)
        database.execute(
            "update checkpoints set checkpoint = ? where checkpoint_id = ?", (evil, newest)
        )
    with pytest.raises(CheckpointCorrupt):
        crashed.resume()
    with pytest.raises(CheckpointCorrupt):
        show(crashed.state_dir, crashed.run_id)
    assert not canary.exists()


def test_the_state_is_whole_again_when_the_file_is(crashed: Drill, saved: Path) -> None:
    garbage(saved)
    with pytest.raises(CheckpointCorrupt):
        crashed.resume()
    shutil.copy(crashed.place / "good.sqlite", saved)
    assert crashed.resume()["state"] == "COMPLETE"
    assert crashed.starts == 1
