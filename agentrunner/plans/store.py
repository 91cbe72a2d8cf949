"""The plan of a repository on disk: one SQLite file, one row for every accepted change.

A change is one transaction: a reader sees the plan before it or after it. Two writers are
distinguished by the version that each has read; the second one is refused, with the changes
between. The status of a task changes often and is no change of the plan: it has a table of its own.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec import Struct

from agentrunner.errors import UsageError
from agentrunner.errors.plans import NothingToUndo, PlanConflict, PlanDamaged, UnknownQuestion
from agentrunner.plans.diff import undo
from agentrunner.plans.plan import AT_REST, Plan, PlanTaskStatus
from agentrunner.plans.planner_view import ConversationMessage
from agentrunner.plans.remarks import taken_back
from agentrunner.plans.serialization import plan_from_json, plan_to_json
from agentrunner.storage.failpoints import reach
from agentrunner.storage.run_folder import make_private

SCHEMA = 1
BUSY_TIMEOUT_SEC = 10.0
KEPT_PLANS = 100
"""How many of the latest versions can be restored; of older ones only the change is kept."""

_TABLES = """
CREATE TABLE IF NOT EXISTS changes (
  version INTEGER PRIMARY KEY, version_before INTEGER NOT NULL, at TEXT NOT NULL,
  kind TEXT NOT NULL, author TEXT NOT NULL, message TEXT NOT NULL, operations TEXT NOT NULL,
  plan BLOB);
CREATE TABLE IF NOT EXISTS standing (
  task_id TEXT PRIMARY KEY, status TEXT NOT NULL, run_id TEXT NOT NULL, tries INTEGER NOT NULL,
  retry_at TEXT NOT NULL, detail TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS reopened (
  task_id TEXT PRIMARY KEY, version INTEGER NOT NULL, status TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS messages (
  id INTEGER PRIMARY KEY, at TEXT NOT NULL, role TEXT NOT NULL, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS questions (
  id INTEGER PRIMARY KEY, at TEXT NOT NULL, text TEXT NOT NULL, task_id TEXT NOT NULL,
  answer TEXT, answered_at TEXT);
"""

BUDGET = "budget"
"""In place of a task's id: a question about the plan's budget, which the planner does not see."""

ChangeKind = Literal["decompose", "plan_patch", "undo", "import"]
Found = TypeVar("Found")


@dataclass(frozen=True)
class PlanChange:
    """An accepted change of a plan."""

    version: int
    """The version of the plan after the change."""
    version_before: int
    at: str
    """UTC, ISO 8601."""
    kind: ChangeKind
    author: str
    message: str
    """The message that led to the change, or that of the undone one."""
    operations: Sequence[Mapping[str, Any]]

    @property
    def quote(self) -> str:
        """Return the message as planners read it: an import's own has a path of this machine."""
        return "plan import" if self.kind == "import" else self.message


@dataclass(frozen=True)
class StoredTask:
    """The status of a task of the plan."""

    task_id: str
    status: PlanTaskStatus
    run_id: str = ""
    """Its latest run."""
    tries: int = 0
    """Tries in a row that ended with an infrastructure error."""
    retry_at: str = ""
    """For RETRY_WAIT: when it is tried again; UTC, ISO 8601."""
    detail: str = ""
    """One sentence for people."""


class OpenQuestion(Struct, frozen=True):
    """A question that only a person can answer."""

    id: int
    at: str
    text: str
    task_id: str = ""
    """The task it is about, or BUDGET; "" for the plan."""
    answer: str | None = None
    answered_at: str = ""
    """UTC, ISO 8601; "" while it is open."""


class UndonePlan(NamedTuple):
    """The plan before and after its latest change was undone, and that change."""

    before: Plan
    plan: Plan
    change: PlanChange


class PlanStore:
    """Reads and writes the plan of one repository.

    Every method may raise OSError or sqlite3.Error when the disk fails; then nothing is changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    # -- the plan -------------------------------------------------------------------------------

    def load(self) -> Plan:
        """Return the latest plan with the present status of each task; an empty one where there is
        none yet.

        Raises UsageError (`plan-damaged`) for a file that does not hold a plan.
        """
        return self._read(_latest, Plan())

    def save(
        self,
        plan: Plan,
        *,
        at: str,
        kind: ChangeKind,
        author: str,
        message: str,
        operations: Sequence[Mapping[str, Any]] = (),
        undoes: int = 0,
        remark: str = "",
    ) -> None:
        """Save a plan that was made from the latest one.

        A task at rest that has to do something else now becomes PENDING: only what it had been
        asked for was proven. `undoes` is the version that is undone, 0 for none; `remark` is
        added to the conversation. Raises PlanConflict where `plan` was not made from the latest
        one; then nothing is changed.
        """
        with self._database(write=True) as database:
            latest = _version(database)
            if plan.version != latest + 1:
                raise _conflict(plan.version - 1, _changes(database, plan.version - 1))
            payload = json.dumps(list(operations), ensure_ascii=False)
            _reopen(database, plan, undoes, at)
            row = (plan.version, latest, at, kind, author, message, payload)
            packed = zlib.compress(plan_to_json(plan))
            database.execute("INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, packed))
            reach("plan_half_changed")
            database.execute(
                "UPDATE changes SET plan = NULL WHERE version <= ?", (plan.version - KEPT_PLANS,)
            )
            if remark:
                _say(database, "user", remark, at)

    def undo(self, *, at: str, author: str, force: bool = False) -> UndonePlan:
        """Go back to the plan before the latest change that is not itself undone.

        Raises UsageError (`nothing-to-undo`), and PatchRejected where that removes a task that is
        at work, unless `force`.
        """
        current = self.load()
        changes = self.changes()
        undone = 0
        for change in reversed(changes):
            if change.kind == "undo":
                undone += 1
            elif undone:
                undone -= 1
            else:
                earlier = self._plan_at(change.version_before)
                plan = undo(current, earlier, force=force)
                self.save(
                    plan,
                    at=at,
                    kind="undo",
                    author=author,
                    message=change.message,
                    undoes=change.version,
                    remark=taken_back(change.quote, current.goal),
                )
                return UndonePlan(current, plan, change)
        raise NothingToUndo("There is no change to undo.", remedy="agentrunner plan shows the plan")

    def changes(self, since: int = 0) -> list[PlanChange]:
        """Return every change after a version, in order."""
        return self._read(lambda database: _changes(database, since), [])

    def _plan_at(self, version: int) -> Plan:
        if version == 0:
            return Plan()
        with self._database() as database:
            found = database.execute("SELECT plan FROM changes WHERE version = ?", (version,))
            row = found.fetchone()
        if row is None or row[0] is None:
            raise NothingToUndo(f"Only the latest {KEPT_PLANS} versions can be undone.")
        return plan_from_json(zlib.decompress(row[0]))

    # -- the status of tasks --------------------------------------------------------------------

    def note(self, standing: StoredTask, at: str) -> None:
        """Save the status of a task."""
        row = {**asdict(standing), "status": str(standing.status), "at": at}
        with self._database(write=True) as database:
            database.execute(
                "INSERT OR REPLACE INTO standing VALUES"
                " (:task_id, :status, :run_id, :tries, :retry_at, :detail, :at)",
                row,
            )
            database.execute("DELETE FROM reopened WHERE task_id = ?", (standing.task_id,))

    def standings(self) -> dict[str, StoredTask]:
        """Return the status of each task that was ever worked on, by task id."""
        return self._read(_standings, {})

    # -- the conversation -----------------------------------------------------------------------

    def say(self, role: str, text: str, at: str) -> None:
        """Add a message to the conversation."""
        with self._database(write=True) as database:
            _say(database, role, text, at)

    def conversation(self) -> list[ConversationMessage]:
        """Return all messages in order."""
        return self._read(_messages, [])

    def ask(self, text: str, at: str, task_id: str = "") -> int:
        """Save a question for a person; return its number."""
        with self._database(write=True) as database:
            cursor = database.execute(
                "INSERT INTO questions (at, text, task_id) VALUES (?, ?, ?)", (at, text, task_id)
            )
            return int(cursor.lastrowid or 0)

    def answer(self, number: int, text: str, at: str) -> OpenQuestion:
        """Answer an open question; raise UsageError (`unknown-question`) for any other."""
        with self._database(write=True) as database:
            cursor = database.execute(
                "UPDATE questions SET answer = ?, answered_at = ? WHERE id = ? AND answer IS NULL",
                (text, at, number),
            )
            if cursor.rowcount != 1:
                raise unknown_question(number)
            return next(q for q in _questions(database) if q.id == number)

    def questions(self) -> list[OpenQuestion]:
        """Return all questions in order, answered ones included."""
        return self._read(_questions, [])

    # -- the file -------------------------------------------------------------------------------

    def _read(self, read: Callable[[sqlite3.Connection], Found], none: Found) -> Found:
        """Return what is read; `none` where there is no file yet."""
        if not self.path.exists():
            return none
        with self._database() as database:
            return read(database)

    @contextmanager
    def _database(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a transaction; a writer's locks the file at once, so that none comes between."""
        make_private(self.path.parent)
        with self.path.open("ab"):
            self.path.chmod(0o600)
        try:
            connection = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_SEC, isolation_level=None)
            with closing(connection):
                self._prepare(connection)
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield connection
                except BaseException:
                    if connection.in_transaction:  # on a full disk SQLite rolls back by itself
                        connection.execute("ROLLBACK")
                    raise
                reach("plan_before_commit")
                connection.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            raise self._damaged(str(error)) from error

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA synchronous = FULL")
        (schema,) = connection.execute("PRAGMA user_version").fetchone()
        if schema == 0:
            connection.executescript(
                f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {SCHEMA}; COMMIT;"
            )
        elif schema != SCHEMA:
            raise self._damaged(f"it is of format {schema}, and this is {SCHEMA}")

    def _damaged(self, why: str) -> UsageError:
        return PlanDamaged(
            f"The plan in {self.path} cannot be read: {why}.",
            path=str(self.path),
            remedy="agentrunner plan import FOLDER, from what plan export wrote",
        )


def unknown_question(number: int) -> UsageError:
    """Return the error for a number that no open question has."""
    return UnknownQuestion(
        f"There is no open question {number}.",
        remedy="agentrunner plan status",
    )


def _version(database: sqlite3.Connection) -> int:
    (version,) = database.execute("SELECT coalesce(max(version), 0) FROM changes").fetchone()
    return int(version)


def _latest(database: sqlite3.Connection) -> Plan:
    row = database.execute("SELECT plan FROM changes ORDER BY version DESC LIMIT 1").fetchone()
    plan = plan_from_json(zlib.decompress(row[0])) if row else Plan()
    known = _standings(database)
    tasks = {
        task_id: replace(task, status=known[task_id].status) if task_id in known else task
        for task_id, task in plan.tasks.items()
    }
    return replace(plan, tasks=tasks)


def _reopen(database: sqlite3.Connection, plan: Plan, undoes: int, at: str) -> None:
    """Reset tasks at rest that are other tasks now, or restore them where that is undone."""
    before, known = _latest(database), _standings(database)
    ended = dict(
        database.execute("SELECT task_id, status FROM reopened WHERE version = ?", (undoes,))
    )
    for task_id in known.keys() & before.tasks.keys() & plan.tasks.keys():
        if plan.asks_as(before, task_id):
            continue
        if (now := known[task_id].status) in AT_REST:
            row = (task_id, plan.version, str(now))
            database.execute("INSERT OR REPLACE INTO reopened VALUES (?, ?, ?)", row)
            reason = f"was {now} until version {plan.version} of the plan changed it"
            fresh = str(PlanTaskStatus.PENDING), reason
        elif task_id in ended:
            database.execute("DELETE FROM reopened WHERE task_id = ?", (task_id,))
            fresh = ended[task_id], ""
        else:
            continue
        database.execute(
            "UPDATE standing SET status = ?, detail = ?, updated_at = ? WHERE task_id = ?",
            (*fresh, at, task_id),
        )


def _say(database: sqlite3.Connection, role: str, text: str, at: str) -> None:
    database.execute("INSERT INTO messages (at, role, text) VALUES (?, ?, ?)", (at, role, text))


def _standings(database: sqlite3.Connection) -> dict[str, StoredTask]:
    rows = database.execute(
        "SELECT task_id, status, run_id, tries, retry_at, detail FROM standing"
    ).fetchall()
    return {row[0]: StoredTask(row[0], PlanTaskStatus(row[1]), *row[2:]) for row in rows}


def _changes(database: sqlite3.Connection, since: int) -> list[PlanChange]:
    rows = database.execute(
        "SELECT version, version_before, at, kind, author, message, operations FROM changes "
        "WHERE version > ? ORDER BY version",
        (since,),
    )
    return [
        PlanChange(version, before, at, kind, author, message, json.loads(operations))
        for version, before, at, kind, author, message, operations in rows
    ]


def _messages(database: sqlite3.Connection) -> list[ConversationMessage]:
    rows = database.execute("SELECT role, text FROM messages ORDER BY id")
    return [ConversationMessage(role, text) for role, text in rows]


def _questions(database: sqlite3.Connection) -> list[OpenQuestion]:
    columns = "id, at, text, task_id, answer, coalesce(answered_at, '')"
    rows = database.execute(f"SELECT {columns} FROM questions ORDER BY id")
    return [OpenQuestion(*row) for row in rows]


def _conflict(read: int, since: Sequence[PlanChange]) -> PlanConflict:
    details = tuple((f"version {c.version}", f"{c.author}: {c.message}") for c in since[-5:])
    return PlanConflict(
        f"The plan was changed since version {read}.",
        details=details,
        remedy="look at it again: agentrunner plan status",
    )
