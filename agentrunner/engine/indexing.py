"""Keeps a run's row in the index up to date while its state changes."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import replace
from datetime import datetime

from agentrunner.config.spec import TaskSpec
from agentrunner.engine import attempts
from agentrunner.engine.attempt_run import Options
from agentrunner.engine.unrecorded import has_spent
from agentrunner.errors import AgentRunnerError
from agentrunner.results import Result
from agentrunner.state.lifecycle import TERMINAL, TaskState
from agentrunner.state.people import Question
from agentrunner.state.run_state import TaskContext
from agentrunner.storage.events import Event
from agentrunner.storage.index import RunIndex, RunRow, note_in
from agentrunner.storage.locks import run_lock
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import RunLog
from agentrunner.storage.worker_ledger import read_json
from agentrunner.text.times import stamp


class Indexer:
    """Keeps the run's row in the index as its state changes."""

    def __init__(self, spec: TaskSpec, folder: RunFolder, options: Options) -> None:
        self._folder = folder
        self._index = RunIndex(options.state_dir)
        self._clock = options.clock
        self._ordered = False
        """Whether the latest decision was for a worker, which starts at once."""
        self._unwritten = False
        """Whether `_row` has changes that are not written to the folder yet."""
        self._is_new = True
        """Whether no earlier process got the run started."""
        self._row = RunRow(
            run_id=folder.run_id,
            task_id=spec.task_id,
            title=spec.title,
            repo=spec.shown_repo,
            state=str(TaskState.PENDING),
            started_at=stamp(options.given_at or options.clock.now()),
            part_of=spec.part_of,
        )
        for row in self._index.runs():
            if row.run_id == folder.run_id:
                self._is_new = bool(row.start_error) or row.rounds_at_most is None
                self._row = replace(
                    row,
                    waiting=None,
                    waiting_until=None,
                    finished_at=None,
                    reason=None,
                    start_error="",
                    stop_error="",
                )

    def begin(self) -> None:
        """Add the run to the index, so that it can be found by its name."""
        self._index.record(self._row)

    def _since_driven(self) -> float:
        """Return the seconds since this process took the run up, or since the latest wait."""
        if self._row.driven_at is None:
            return 0.0
        since = datetime.fromisoformat(self._row.driven_at)
        return max((self._clock.now() - since).total_seconds(), 0.0)

    def __call__(self, event: Event) -> None:
        """Update the row from an event of the run."""
        if event["event"] in ("run_started", "run_resumed"):
            most, now = event["header"]["limits"]["rounds_at_most"], self._clock.stamp()
            self._row = replace(self._row, rounds_at_most=most, driven_at=now)
            self.begin()
            return
        if event["event"] == "waiting":
            self._pause(replace(self._row, waiting_until=event["until"]))
            return
        if event["event"] == "question":
            self._pause(replace(self._row, waiting=event["kind"]))
            return
        waits = self._row.waiting is not None or self._row.waiting_until is not None
        if waits and event["event"] != "warning":
            self._row = replace(
                self._row, waiting=None, waiting_until=None, driven_at=self._clock.stamp()
            )
            self._unwritten = True
        if event["event"] == "decision":
            self._ordered = event["action"] == "run_worker"
        elif event["event"] == "worker_started":
            number, most = event["round"], event["rounds_at_most"]
            self._row = replace(self._row, rounds=number, rounds_at_most=most)
            self._ordered, self._unwritten = False, True
        elif event["event"] == "state_changed":
            self._row = replace(self._row, state=event["to"])
            self._unwritten = True
            if self._ordered:  # written with what follows: its start, or a question
                return
        if self._unwritten:
            note_in(self._folder, self._row)
            self._unwritten = False

    def _pause(self, row: RunRow) -> None:
        """Note that nobody works on the run for now; `row` says what it waits for."""
        worked = row.worked_sec + self._since_driven()
        self._row = replace(row, worked_sec=worked, driven_at=None)
        note_in(self._folder, self._row)

    def fail(self, error: Exception, why: str) -> None:
        """Note `why` a new run did not start, where this error came before anything was spent; any
        other run stands as it is saved, with its open question.

        What can be neither read nor written is left: the error says more than what came of it.
        """
        with contextlib.suppress(AgentRunnerError, OSError, sqlite3.Error):
            unspent = isinstance(error, AgentRunnerError) and error.nothing_spent
            if unspent and self._is_new and not has_spent(self._folder):
                self._index.record(replace(self._row, start_error=why))
            elif not attempts.unsaved(self._folder):
                self._stand(*attempts.read_sync(self._folder), why)

    def _stand(self, state: TaskContext, question: Question | None, why: str) -> None:
        """Write the row of a run that goes on as this state of it is; an ended one has its own."""
        if state["state"] in TERMINAL:
            return
        wait, worked = state.get("wait"), self._row.worked_sec + self._since_driven()
        self._row = replace(
            self._row,
            state=str(state["state"]),
            waiting=question.kind if question else None,
            waiting_until=wait.until if wait else None,
            worked_sec=worked,
            driven_at=None,
            stop_error="" if question or wait else why,
        )
        self._index.record(self._row)

    def finish(self, result: Result) -> None:
        """Write the row as the run is left by this driver."""
        self._row = replace(
            self._row,
            state=str(result.state),
            waiting=result.waiting.kind if result.waiting else None,
            waiting_until=result.waiting_until,
            finished_at=self._clock.stamp() if result.state in TERMINAL else None,
            reason=result.reason if result.state in TERMINAL else None,
            rounds=result.rounds or 0,
            worked_sec=result.duration_sec or 0,
            driven_at=None,
        )
        self._index.record(self._row)


def start_error(folder: RunFolder) -> str:
    """Return why a run did not start, with nothing spent; "" for any other."""
    return str((read_json(folder.index_file) or {}).get("start_error") or "")


def note_end(folder: RunFolder, index: RunIndex, state: TaskContext) -> None:
    """Fix the row of a run that was killed after its end was saved and before the index had it."""
    if state["state"] not in TERMINAL or run_lock(folder).taken():
        return
    moves = RunLog(folder.log_file).records("state")
    ended = moves[-1].at if moves else state["run"].started_at
    for row in index.runs():
        if row.run_id == folder.run_id and row.finished_at is None:
            verdict = state.get("verdict")
            reason = verdict.reason if verdict else None
            index.record(replace(row, state=str(state["state"]), finished_at=ended, reason=reason))
