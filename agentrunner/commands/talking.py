"""Talk to a planner on the command line: the common parts of single messages and chats."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

from agentrunner import api, environment
from agentrunner.commands.command_line import is_no, is_yes
from agentrunner.commands.console import (
    Output,
    interactive,
    paint_for,
    show,
    show_error,
    show_json,
    tell,
    width_of,
)
from agentrunner.commands.meanwhile import meanwhile
from agentrunner.commands.plan_place import Setting, repository
from agentrunner.environment import user_name
from agentrunner.errors import AgentRunnerError, UsageError
from agentrunner.errors.command_line import NotReachable
from agentrunner.errors.planners import PlannerAway, PlannerRefused
from agentrunner.errors.plans import PlanConflict
from agentrunner.plans.control_words import ControlWord, control_word
from agentrunner.plans.patch import PatchRejected
from agentrunner.plans.plan import Plan
from agentrunner.plans.proposal import Proposal, keep, kept, waiting
from agentrunner.plans.store import PlanChange, PlanStore
from agentrunner.screens.layout import count, duration, flat, wrap
from agentrunner.screens.plan_diff import diff_lines, proposal_screen
from agentrunner.screens.status_line import awaited_words
from agentrunner.storage.locks import Holder, boot_id
from agentrunner.storage.process_time import start_time
from agentrunner.text.cut import cut
from agentrunner.text.terminal import cell_width, shorten
from agentrunner.text.times import moment

if TYPE_CHECKING:
    from agentrunner.api import PanelPlanner
    from agentrunner.planners.base import PartialAnswer
    from agentrunner.plans.conversation import Conversation
    from agentrunner.state.worker_runs import Wait

TICK_SEC = 0.5

STOPPED = "The tasks at work are ended gracefully.\nNext:  agentrunner plan run   resumes them"
NOTHING = "Nothing is under way.\nNext:  agentrunner plan run   carries the plan out"
UNDER_WAY = "The plan is under way.\nNext:  agentrunner plan status -f"

WAITS = 4
"""Exit code if something waits for a person."""
PROMPT = "Apply it? Or say what should be different. [y/N] "
MOST_TYPED = 300
"""Characters of a message that is shown in full in the command that says it again."""
UNANSWERED = "unanswered.txt"
"""A longer one, in the plan's folder, until the next of its kind."""
TRIES = 3
"""How often the planner is asked again after another change of the plan came first."""


Decide = Callable[[Proposal], Awaitable[bool | str | None]]
"""Returns whether to apply a proposal, or what should be different; None if nobody can be asked."""


@asynccontextmanager
async def opened(setting: Setting) -> AsyncIterator[tuple[Conversation, PanelPlanner]]:
    """Open the conversation about this repository's plan; raises as `api.conversation`."""
    async with api.conversation(
        repository(setting.repo),
        settings=setting.overrides,
        policy=setting.policy,
        author=user_name(),
        state_dir=setting.state_dir,
        meta=setting.planner,
        planner_model=setting.planner_model,
    ) as talk:
        yield talk


# -- one message ----------------------------------------------------------------------------------


def say_once(text: str, setting: Setting, *, yes: bool, output: Output) -> int:
    """Get a change proposed; apply it with `yes` or the person's consent; return the exit code.

    If nobody can be asked, the proposal is kept for `plan accept`, and the code is 4. A control
    word acts at once.
    """
    as_json = output.json
    if (word := control_word(text)) is not None:
        return act_on(word, setting, as_json=as_json)

    async def decide(proposal: Proposal) -> bool | str | None:
        if yes:
            return True
        return ask_what(PROMPT) if interactive(output) else None

    async def work() -> int:
        async with opened(setting) as (talk, planner):
            notice = "" if as_json else f"Asking {planner.describe()} …"
            return await proposed(
                talk,
                text,
                decide,
                as_json=as_json,
                notice=notice,
                planner=planner,
                again=[*setting.as_options(), *(["--yes"] if yes else [])],
            )

    return asyncio.run(work())


async def proposed(
    talk: Conversation,
    text: str,
    decide: Decide,
    *,
    as_json: bool = False,
    chat: bool = False,
    notice: str = "",
    planner: PanelPlanner | None = None,
    again: Sequence[str] | None = None,
) -> int:
    """Handle one message to its end: ask, show, decide, apply.

    In a terminal, the progress of the answer of `planner` is shown meanwhile.

    If somebody else changed the plan meanwhile, that is shown and the planner is asked again. A
    person who says what should be different gets another proposal. Where the planner is away, the
    command that says it again is shown, with the options `again`; in a chat there is none.
    """
    tries, former = TRIES, None
    while tries:
        if notice and sys.stderr.isatty():
            show(flat(notice), sys.stderr)
        async with answer_line(planner, talk.redact, live=not as_json):
            with (
                _former_kept_on_failure(former),
                _message_again(text, talk, again),
                _warned_of(planner),
            ):
                proposal = await talk.propose(text, in_place_of=former)
        if not as_json:
            _show(proposal, talk, chat=chat)
        if proposal.empty:
            _tell_kept(former)
            return _nothing(proposal, talk, as_json=as_json)
        keep(talk.store.path.parent, proposal)
        decision = await decide(proposal)
        if decision is None:
            return _kept(proposal, talk, as_json=as_json)
        if isinstance(decision, str):
            text, tries, former = decision, TRIES, proposal
            continue
        if not decision:
            talk.refuse(proposal)
            tell("Nothing was changed.")
            return 0
        try:
            plan = talk.accept(proposal)
        except (PlanConflict, PatchRejected) as error:
            conflict, tries = error, tries - 1
            show_error(error)
        else:
            return applied(proposal, plan, talk.store, as_json=as_json, chat=chat)
    raise conflict


@contextlib.contextmanager
def _former_kept_on_failure(proposal: Proposal | None) -> Iterator[None]:
    """If no new proposal comes, say how to apply the former one."""
    try:
        yield
    except (AgentRunnerError, asyncio.CancelledError):
        _tell_kept(proposal)
        raise


@contextlib.contextmanager
def _message_again(text: str, talk: Conversation, options: Sequence[str] | None) -> Iterator[None]:
    """If the planner refuses or is away, or is waited for no longer, tell how to say it again."""
    try:
        yield
    except (PlannerRefused, PlannerAway) as error:
        how = "the arrow up brings it back" if options is None else _command(text, talk, options)
        error.details = (*error.details, ("say it again", how))
        raise
    except asyncio.CancelledError:  # Ctrl-C
        if options is not None:
            tell(f"Nothing was changed. Say it again:  {_command(text, talk, options)}", sys.stderr)
        raise


def _command(text: str, talk: Conversation, options: Sequence[str]) -> str:
    """Return the command that says this; a long text is kept in a file of the plan's folder."""
    from agentrunner.storage.run_folder import write_private

    text = talk.redact(text)
    if len(text) > MOST_TYPED or "\n" in text or text == "-":
        file = talk.store.path.parent / UNANSWERED
        write_private(file, text.encode("utf-8", "backslashreplace"))
        command = shlex.join(["agentrunner", "plan", "say", "-", *options])
        return f"{command} < {shlex.quote(str(file))}"
    if text.startswith("-"):  # else it would be read as an option
        return shlex.join(["agentrunner", "plan", "say", *options, "--", text])
    say = [] if len(text.split()) > 1 else ["say"]
    return shlex.join(["agentrunner", "plan", *say, text, *options])


@contextlib.contextmanager
def _warned_of(planner: PanelPlanner | None) -> Iterator[None]:
    """Tell what became known while the planner answered, whether an answer came or not."""
    try:
        yield
    finally:
        for sentence in planner.warnings() if planner is not None else ():
            tell(f"warning: {flat(sentence)}", sys.stderr)


def _tell_kept(proposal: Proposal | None) -> None:
    if proposal is not None:
        command = f"agentrunner plan accept --id {proposal.id}"
        tell(f"What was proposed before is kept:  {command}", sys.stderr)


def ask_what(question: str) -> bool | str | None:
    """Return yes, no, or what should be different; None if the person leaves."""
    from agentrunner.commands.question_prompt import interruptible, read_line

    with interruptible(), contextlib.suppress(EOFError, KeyboardInterrupt):
        return meant(read_line(question))
    return None


def meant(line: str) -> bool | str:
    """Interpret a line at the prompt: yes, no, or words for the planner.

    A single short word that is no yes means no, since it cannot describe a change.
    """
    if is_yes(line):
        return True
    words = line.strip()
    says_no = words.startswith("/") or is_no(words)
    short = words.isascii() and len(words.split()) < 2
    return False if says_no or short or len(words) < 2 else words


def show_kept(plan: Plan, store: PlanStore) -> None:
    """Show the proposal that waits for this version of the plan, if there is one."""
    folder = store.path.parent
    if waiting(folder) is None:
        return
    with contextlib.suppress(UsageError, PatchRejected):
        proposal = kept(folder, plan)
        width, paint = width_of(sys.stdout), paint_for(sys.stdout)
        show("\n" + proposal_screen(proposal, (), width=width, paint=paint))
        tell(f"\nThis is proposed and waits.\nNext:  agentrunner plan accept --id {proposal.id}")


def _show(proposal: Proposal, talk: Conversation, *, chat: bool) -> None:
    width, paint = width_of(sys.stdout), paint_for(sys.stdout)
    from agentrunner.plans.execution.waiting_questions import waiting_questions

    asked = waiting_questions(talk.store)
    show(proposal_screen(proposal, asked, width=width, paint=paint, chat=chat))


def _nothing(proposal: Proposal, talk: Conversation, *, as_json: bool) -> int:
    """Report that the planner changes nothing: it only replied, or asks something first."""
    if as_json:
        show_json(proposal_json(proposal, talk.store, applied=False))
    return WAITS if proposal.questions else 0


def _kept(proposal: Proposal, talk: Conversation, *, as_json: bool) -> int:
    if as_json:
        show_json(proposal_json(proposal, talk.store, applied=False))
    else:
        tell(f"\nNothing is changed yet.\nNext:  agentrunner plan accept --id {proposal.id}")
    return WAITS


def applied(
    proposal: Proposal,
    plan: Plan,
    store: PlanStore,
    *,
    as_json: bool = False,
    chat: bool = False,
) -> int:
    """Report that a proposal is now the plan."""
    if as_json:
        show_json(proposal_json(proposal, store, applied=True))
    else:
        back = "/undo" if chat else "agentrunner plan undo"
        tasks = count(len(plan.tasks), "task")
        tell(f"The plan is at version {plan.version}: {tasks}.  {back}  takes it back")
    return 0


def undone(before: Plan, after: Plan, change: PlanChange, *, as_json: bool = False) -> int:
    """Report what was undone."""
    if as_json:
        values = {"version": after.version, "undone": change.version, "message": change.message}
        return show_json(values)
    width, paint = width_of(sys.stdout), paint_for(sys.stdout)
    message = cut(flat(change.message), 60)
    head = f'Taken back: version {change.version} by {flat(change.author)}, "{message}"'
    show("\n".join(wrap(head, width)))
    show("\n".join(diff_lines(before, after, width=width, paint=paint)))
    return 0


# -- as JSON --------------------------------------------------------------------------------------


def proposal_json(proposal: Proposal, store: PlanStore, *, applied: bool) -> dict[str, object]:
    """Return a proposal for other programs: nodes by id, each with its task; new ones in full."""
    change = proposal.changes
    return {
        "id": proposal.id,
        "applied": applied,
        "version": (proposal.after if applied else proposal.before).version,
        "understanding": proposal.understanding,
        "created": [_all_of(proposal.after, node_id) for node_id in change.created],
        "deleted": [_node_json(proposal.before, node_id) for node_id in change.deleted],
        "moved": [_node_json(proposal.after, node_id) for node_id in change.moved],
        "changed": [
            {**_node_json(proposal.after, node_id), "fields": list(map(asdict, fields))}
            for node_id, fields in change.changed
        ],
        "conflicts": list(map(asdict, proposal.conflicts)),
        "questions": list(proposal.questions),
        "open_questions": questions_json(store),
    }


def plan_json(plan: Plan, store: PlanStore) -> dict[str, object]:
    """Return the whole plan in the order of its tree."""
    return {
        "version": plan.version,
        "goal": plan.goal,
        "nodes": [_node_json(plan, node_id) for node_id in plan.walk() if node_id in plan.designs],
        "conflicts": list(map(asdict, plan.conflicts)),
        "open_questions": questions_json(store),
    }


def task_json(plan: Plan, store: PlanStore, task_id: str) -> dict[str, object]:
    """Return everything that the plan says about an existing task, and what people answered."""
    from agentrunner.plans.execution.answers import answered_questions

    answered = [
        {"id": one.id, "task_id": one.task_id, "text": one.text, "answer": one.answer}
        for one in answered_questions(store, task_id)
    ]
    return {**_all_of(plan, plan.tasks[task_id].node_id), "answered": answered}


def _all_of(plan: Plan, node_id: str) -> dict[str, object]:
    return {**_node_json(plan, node_id), **asdict(plan.designs[node_id])}


def _node_json(plan: Plan, node_id: str) -> dict[str, object]:
    node = plan.nodes[node_id]
    task_id = node.task_id
    return {
        "node_id": node_id,
        "task_id": task_id,
        "title": plan.designs[node_id].title,
        "parent_id": node.parent_id,
        "status": plan.shown_status(task_id).value if task_id else None,
        "dependencies": list(plan.designs[node_id].dependencies),
    }


def questions_json(store: PlanStore) -> list[dict[str, object]]:
    """Return the open questions."""
    from agentrunner.plans.execution.waiting_questions import waiting_questions

    asked = waiting_questions(store)
    return [{"id": one.id, "task_id": one.task_id, "text": one.text} for one in asked]


def act_on(word: ControlWord, setting: Setting, *, as_json: bool) -> int:
    """Apply a control word to the process that executes the plan; return the exit code.

    Raises UsageError (`not-here`) for a process that cannot be reached from here, and for a pause,
    which only the chat that executes the plan can do.
    """
    from agentrunner.commands.plan_status import status
    from agentrunner.storage.plan_folder import plan_folder

    if word == "status":
        return status(follow=False, repo=setting.repo, as_json=as_json, state_dir=setting.state_dir)
    folder = plan_folder(environment.state_dir(setting.state_dir), repository(setting.repo))
    holder = folder.lock().probe() if folder.root.is_dir() else None
    if holder is None:
        tell(NOTHING)
    elif word == "continue":
        tell(UNDER_WAY)
    elif word == "stop" and _is_here(holder):
        os.kill(holder.pid, signal.SIGINT)
        tell(STOPPED)
    else:
        raise NotReachable(
            f"The plan is carried out by process {holder.pid} on {holder.host or 'this machine'}, "
            f"which has to be told to {word} there.",
            remedy="/pause in its chat, or Ctrl-C; agentrunner plan stop ends it from this machine",
        )
    return 0


def _is_here(holder: Holder) -> bool:
    """Whether the process is on this machine, and still the same one."""
    known = holder.pid > 0 and holder.boot_id == boot_id()
    return known and start_time(holder.pid) == holder.start_time


@asynccontextmanager
async def answer_line(
    planner: PanelPlanner | None,
    redact: Callable[[str], str],
    stream: TextIO | None = None,
    *,
    live: bool = True,
) -> AsyncIterator[None]:
    """Show the progress of the answer while waiting for it, and that the planner is away.

    Without a terminal, or without `live`, only each wait for a planner is told, in a line of its
    own.

    The line is overwritten after a carriage return and removed at the end, so that nothing remains
    of a partial answer.
    """
    target = stream or sys.stderr
    if planner is None:
        yield
        return
    line = _Line(target, redact)
    planner.waits.on_wait = line.waits
    if not (live and target.isatty()):
        try:
            yield
        finally:
            planner.waits.on_wait = None
        return
    planner.progress = line.written
    try:
        async with meanwhile(line.tick()):
            yield
    finally:
        planner.progress = planner.waits.on_wait = None
        line.show("")


class _Line:
    def __init__(self, target: TextIO, redact: Callable[[str], str]) -> None:
        self._target = target
        self._redact = redact
        self._begun = time.monotonic()
        self._partial_answer: PartialAnswer | None = None
        self._until: datetime | None = None
        """When a planner that is away is asked again."""
        self._cells = 0

    def written(self, so_far: PartialAnswer) -> None:
        """Take the partial answer; it is shown with the next tick."""
        if so_far.reading or so_far.text or so_far.thoughts:  # else only a sign of life
            self._partial_answer = so_far

    def waits(self, wait: Wait) -> None:
        """Say that the planner is away and when it is asked again; count down from here on."""
        until = moment(wait.until)
        again = f"{until.astimezone():%H:%M:%S}" if until else "once more"
        self._begun, self._partial_answer, self._until = time.monotonic(), None, until
        self.show("")
        why = f"{wait.reason[:1].upper()}{wait.reason[1:]}."
        text = f"{why} It is asked again at {again}; Ctrl-C ends the wait, the plan stays as it is."
        with contextlib.suppress(OSError):
            self._target.write("\n".join(wrap(text, width_of(self._target))) + "\n")
            self._target.flush()

    async def tick(self) -> None:
        """Rewrite the line twice a second."""
        from agentrunner.execution.partial_answer import facts_of

        while True:
            facts = facts_of(self._partial_answer, self._redact) if self._partial_answer else None
            awaited: dict[str, Any] = {"who": "planner", **(facts or {})}
            words = self._away() or awaited_words(awaited, time.monotonic() - self._begun)
            self.show(words)
            await asyncio.sleep(TICK_SEC)

    def _away(self) -> str:
        """Return what is left of a wait; "" where there is none."""
        left = (self._until - datetime.now(UTC)).total_seconds() if self._until else 0.0
        if left > 0:
            return f"the planner is away, asked again in {duration(left)}"
        if self._until is not None:
            self._begun, self._until = time.monotonic(), None
        return ""

    def show(self, text: str) -> None:
        """Show `text` as the line; "" removes it."""
        shown = shorten(f"-- {text}", width_of(self._target) - 1) if text else ""
        cells = cell_width(shown)
        with contextlib.suppress(OSError):
            blank = " " * max(0, self._cells - cells)
            self._target.write(f"\r{shown}{blank}" + ("" if shown else "\r"))
            self._target.flush()
        self._cells = cells
