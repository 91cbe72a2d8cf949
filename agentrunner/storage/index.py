"""The index of runs: a small SQLite file to find runs by, rebuilt from their folders when lost.

The truth is `index.json` in each run's folder. The database only saves reading those of ended runs;
a run that goes on is looked up in its folder.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from agentrunner.errors import UsageError
from agentrunner.errors.runs import AmbiguousRun, UnknownRun
from agentrunner.state.lifecycle import state_word
from agentrunner.storage.run_folder import RunFolder, make_private, overwrite, runs_root
from agentrunner.storage.worker_ledger import read_json

BUSY_TIMEOUT_SEC = 10.0
SHOWN_CANDIDATES = 8


@dataclass(frozen=True)
class RunRow:
    """What `list` shows of a run. Times are UTC, ISO 8601."""

    run_id: str
    task_id: str
    title: str
    repo: str
    """The user's repository, also of a run with its own work tree; absolute, symlinks resolved."""
    state: str
    waiting: str | None = None
    """Kind of the question it waits with; None if it does not wait."""
    started_at: str = ""
    finished_at: str | None = None
    rounds: int = 0
    """Worker runs; during a run the number of the present one."""
    rounds_at_most: int | None = None
    waiting_until: str | None = None
    """When it resumes by itself, where it waits for a quota or a provider."""
    part_of: str | None = None
    """"plan" for the run of a plan's task; None for one of its own."""
    worked_sec: float = 0
    """Seconds that it had worked when it was last driven, without waits."""
    driven_at: str | None = None
    """Since when it is at work; None while no process drives it, and while it waits."""
    reason: str | None = None
    """Why it ended as it did; None for one that goes on, or ended under an older version."""
    start_error: str = ""
    """Why it did not start, with nothing spent yet; "" once it is tried again."""
    stop_error: str = ""
    """The error that stopped it, while it stands as that left it; "" once it is driven again."""
    undone: bool = False
    """Whether a person put the files back as they were before it; SQLite gives 0 or 1."""


COLUMNS = tuple(field.name for field in fields(RunRow))
CREATE = f"CREATE TABLE IF NOT EXISTS runs ({', '.join(COLUMNS)}, PRIMARY KEY (run_id))"
INSERT = f"INSERT OR REPLACE INTO runs VALUES ({', '.join('?' * len(COLUMNS))})"
SELECT = f"SELECT {', '.join(COLUMNS)} FROM runs ORDER BY started_at DESC, run_id DESC"


def _row_in(folder: Path) -> RunRow | None:
    """Return the row in a run's own folder; None if there is none that can be read."""
    value = read_json(folder / "index.json") or {}
    try:
        return RunRow(**value)
    except TypeError:
        return None


def note_in(folder: RunFolder, row: RunRow) -> None:
    """Write the present row of a run that goes on, only into its folder."""
    overwrite(folder.index_file, json.dumps(vars(row)))


class RunIndex:
    """Finds runs. Every method may raise OSError or sqlite3.Error when the disk fails."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.path = state_dir / "index.sqlite"

    def note(self, row: RunRow) -> None:
        """Write the row of a run that goes on, only into its folder: 0.2 ms, `record` takes 2."""
        note_in(RunFolder.open(self.state_dir, row.run_id), row)

    def record(self, row: RunRow) -> None:
        """Write the row of a run that starts or stops, into its folder and the index."""
        self.note(row)
        with self._database() as database:
            database.execute(INSERT, tuple(asdict(row).values()))

    def runs(self, repo: Path | None = None) -> list[RunRow]:
        """Return the runs of a repository, or all; the newest first."""
        if not runs_root(self.state_dir).is_dir():
            return []
        with self._database() as database:
            self._match_folders(database)
            rows = [self._now(RunRow(*row)) for row in database.execute(SELECT)]
        path = None if repo is None else str(repo.resolve())
        return [row for row in rows if path is None or row.repo == path]

    def _now(self, row: RunRow) -> RunRow:
        if row.finished_at is not None:
            return row
        return _row_in(runs_root(self.state_dir) / row.run_id) or row

    def find(self, name: str, repo: Path) -> str:
        """Return the id of a run by its id, a task id of this repository (its newest run) or a
        prefix.

        Raises UsageError: `unknown-run`, or `ambiguous-run` with the candidates.
        """
        everywhere = self.runs()
        if any(row.run_id == name for row in everywhere):
            return name
        path = str(repo.resolve())
        named = [row for row in everywhere if row.task_id == name and row.repo == path]
        if named:
            return named[0].run_id
        begun = [row for row in everywhere if name and row.run_id.startswith(name)]
        if len(begun) == 1:
            return begun[0].run_id
        if begun:
            raise _ambiguous(f'"{name}" is the beginning of several runs', begun)
        raise self.unknown(f'there is no run "{name}"')

    def newest(self, repo: Path) -> str:
        """Return the newest run of a repository; raise UsageError (`unknown-run`) for none."""
        rows = self.runs(repo)
        if not rows:
            raise self.unknown(f"there is no run of {repo}")
        return rows[0].run_id

    def unknown(self, message: str) -> UnknownRun:
        """Return the error for no such run, with where there are others, or how one begins."""
        begin = 'agentrunner run FILE.md, or agentrunner "what you want", begins the first one'
        return UnknownRun(message, remedy="agentrunner list --all" if self.runs() else begin)

    def waiting(self, repo: Path) -> str:
        """Return the only run of a repository that waits for a person, or raise UsageError."""
        rows = [row for row in self.runs(repo) if row.waiting]
        if not rows:
            raise UnknownRun(
                f"no run of {repo} is waiting for you",
                remedy="agentrunner list",
            )
        if len(rows) > 1:
            raise _ambiguous("several runs are waiting", rows)
        return rows[0].run_id

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """Yield an open transaction on a sound database, rebuilt where it is lost or damaged."""
        make_private(self.state_dir)
        with self.path.open("ab"):
            self.path.chmod(0o600)
        try:
            connection = self._connect()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            self.path.replace(self.path.with_name("index.sqlite.damaged"))
            connection = self._connect()
        with closing(connection), connection:
            yield connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_SEC)
        try:
            # Damage by a power cut is found by the check below, and rebuilt from the folders.
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(CREATE)
            connection.execute("PRAGMA quick_check").fetchall()
            if [row[1] for row in connection.execute("PRAGMA table_info(runs)")] != list(COLUMNS):
                connection.execute("DROP TABLE runs")
                connection.execute(CREATE)
        except BaseException:
            connection.close()
            raise
        return connection

    def _match_folders(self, database: sqlite3.Connection) -> None:
        """Add runs that the index has missed, and drop those that are gone."""
        known = {run_id for (run_id,) in database.execute("SELECT run_id FROM runs")}
        present = {folder.name: folder for folder in runs_root(self.state_dir).iterdir()}
        for run_id in present.keys() - known:
            row = _row_in(present[run_id])
            if row is not None and row.run_id == run_id:
                database.execute(INSERT, tuple(asdict(row).values()))
        for run_id in known - present.keys():
            database.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))


def _ambiguous(message: str, rows: list[RunRow]) -> UsageError:
    shown = rows[:SHOWN_CANDIDATES]
    details = tuple((row.run_id, f"{state_word(asdict(row))}, {row.title}") for row in shown)
    return AmbiguousRun(message, details=details, remedy=f"name one, e.g. {shown[0].run_id}")
