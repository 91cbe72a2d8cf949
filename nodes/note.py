"""The last step of an attempt: the end state and the task note, whatever the end is."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import platform
from pathlib import Path
from typing import Any

from langgraph.graph import END
from langgraph.types import Command
from msgspec.structs import replace

from agentrunner.config.repo import git_root
from agentrunner.errors import AgentRunnerError, CheckpointCorrupt, UsageError
from agentrunner.execution.commit import commit_of, commit_work
from agentrunner.execution.deps import Deps
from agentrunner.execution.egress import refused_hosts
from agentrunner.execution.finding_diffs import keep_diffs, kept_diffs
from agentrunner.execution.result import build_result
from agentrunner.gateway.egress_log import read_egress
from agentrunner.launching.route import EGRESS_LOG
from agentrunner.money.bill import bill_of
from agentrunner.notes.note_model import NoteView, RunFigures
from agentrunner.notes.render import render_note
from agentrunner.notes.view import build_view
from agentrunner.notes.writer import write_note
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import Question
from agentrunner.state.run_state import TaskContext, Verdict, updated
from agentrunner.storage.failpoints import reach

IMAGE_CHARS = 19
"""Characters of an image's id that the note shows, as engines do: "sha256:" and twelve digits."""


async def note(state: TaskContext, deps: Deps) -> Command[str]:
    """Move to the verdict's state, commit the work of a complete run, and write the note."""
    verdict = state.get("verdict") or Verdict(state="FAILED", reason="internal", text="No verdict.")
    update: TaskContext = {"state": TaskState(verdict.state), "verdict": verdict}
    ended = updated(state, update)
    if ended["state"] == TaskState.COMPLETE:
        await asyncio.to_thread(commit_work, ended, deps)
    else:  # the run ends all the same where they can't be made
        with contextlib.suppress(AgentRunnerError, OSError):
            await asyncio.to_thread(keep_diffs, ended, deps)
    reach("during_note")
    await deps.prover.forget()
    await asyncio.to_thread(leave_note, ended, deps)
    return Command(update=update, goto=END)


def leave_note(
    state: TaskContext, deps: Deps, *, waiting: Question | None = None, reason: str | None = None
) -> str:
    """Write the note of this state into the repository and return its path. Blocks.

    Where the repository cannot take it, it goes to the run's folder, with a warning; the state of
    the run does not depend on it. The note of a plan's task stays in the run's folder until no task
    of the plan is running.
    """
    spec = deps.spec
    result = build_result(
        state,
        spec,
        waiting=waiting,
        reason=reason,
        bill=bill_of(deps.log),
        commit=commit_of(deps.log),
        latest_at=deps.log.latest_at,
        diffs=kept_diffs(deps.folder),
    )
    view = build_view(
        result,
        state,
        spec,
        deps.log.history(),
        host=here(),
        now=deps.clock.now().astimezone(),
        tail=lambda ref: _tail(deps, ref),
        redact=deps.redactor.redact,
        in_git=git_root(Path(spec.shown_repo)) is not None,
    )
    view = replace(view, facts=_with_sandbox(view.facts, deps))
    text = deps.redactor.redact(_rendered(view, state, deps))
    deps.folder.write("note.md", text)
    path = deps.folder.note_file if spec.part_of else _into_repository(text, state, deps)
    deps.folder.write("note-path", str(path))
    deps.emit("note_written", path=str(path))
    return str(path)


def _into_repository(text: str, state: TaskContext, deps: Deps) -> Path:
    spec = deps.spec
    written = write_note(
        Path(spec.shown_repo),
        spec.runner.note.dir,
        spec.task_id,
        state["run"].run_id,
        text,
        fallback=deps.folder.note_file,
    )
    if written.warning:
        deps.warn(state, "note-elsewhere", written.warning)
    return written.path


def _with_sandbox(facts: RunFigures, deps: Deps) -> RunFigures:
    """Return the figures with the sandbox and the hosts its commands reached or were refused."""
    used = read_egress(deps.folder.root / EGRESS_LOG)
    image = deps.sandbox.image
    return replace(
        facts,
        sandbox=f"{deps.sandbox.kind} {image[:IMAGE_CHARS]}" if image else deps.sandbox.kind,
        network=deps.members[0].network.policy,
        hosts_reached=tuple(f"{use.host}:{use.port}" for use in used if use.allowed),
        hosts_refused=tuple(refused_hosts(deps)),
    )


def _rendered(view: NoteView, state: TaskContext, deps: Deps) -> str:
    """Return the note by the task's template, or by the built-in one where that fails."""
    spec = deps.spec
    wanted = spec.runner.note.template
    try:
        return render_note(view, wanted, spec.note_language, template_text=spec.template_text)
    except UsageError as error:
        deps.warn(state, error.code, f"{error.message} The built-in template was used.")
        return render_note(view, "core", spec.note_language)


def here() -> str:
    """Return user and machine where the commands of a note are to be run, such as `hana@devbox`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())  # a uid without a name, as in many containers
    return f"{user}@{platform.node()}"


def _tail(deps: Deps, ref: Any) -> str:
    try:
        data = deps.folder.read(ref)
    except CheckpointCorrupt:  # a power loss may destroy an output, which only readers need
        return ""
    return data[-65_536:].decode("utf-8", "replace")
