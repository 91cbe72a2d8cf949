"""Opening the planner of a conversation about a plan: its settings, its clients, its log.

Every call is checked against the budget beforehand and recorded afterwards, in the folder of the
plan: `log.jsonl` has a line for each, `meta/` the requests and responses.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentrunner.config.agents import ProfilesSpec, See, seen_by
from agentrunner.config.kinds import planner_kind
from agentrunner.config.spec import TaskSpec
from agentrunner.discovery.planning_context import repository_context
from agentrunner.discovery.seeing.looks import Looker
from agentrunner.engine.policies import capped, capped_as_far
from agentrunner.environment import home_of, prices_file
from agentrunner.errors import InfraError
from agentrunner.errors.planners import NoPlanner
from agentrunner.errors.runs import OutOfBudget
from agentrunner.errors.workers import WorkerNotReady
from agentrunner.execution.context_length import servers_of, shortest
from agentrunner.execution.credentials import secrets_of
from agentrunner.execution.deps import Clock
from agentrunner.execution.failover import AllAway, FailOver
from agentrunner.execution.seeing import Looking
from agentrunner.gateway.order import Allowance
from agentrunner.gateway.prices import Prices, load_prices
from agentrunner.git.snapshots import Snapshots, worked_mark
from agentrunner.money.bill import MadeCalls
from agentrunner.money.counters import allowance, caught_up, cost_of
from agentrunner.planners.asking import Asker
from agentrunner.planners.base import NeedsWorkplace, PartialAnswer, PlannerCall, PlannerClient
from agentrunner.planners.cut import CODE, cut_in_call
from agentrunner.planners.panel import Panel, make_panel
from agentrunner.planners.workplace import Workplace
from agentrunner.plans.conversation import Check, Conversation
from agentrunner.plans.outages import PlannerWaits
from agentrunner.plans.store import PlanStore
from agentrunner.prompts import ContextBudget, PromptInput, budget_for, fixed_tokens
from agentrunner.prompts.context_budget import UNKNOWN, fitted
from agentrunner.protocol import Message
from agentrunner.sandboxes.base import Owner, SandboxOrder
from agentrunner.sandboxes.choose import open_sandbox
from agentrunner.state.budget import FOR_TALK, figure_of, spent_limit
from agentrunner.state.run_state import Counters, TaskContext
from agentrunner.state.worker_runs import Wait
from agentrunner.storage.plan_folder import PlanFolder
from agentrunner.storage.run_folder import RunFolder, make_private, write_new, write_private
from agentrunner.storage.run_log import RunLog
from agentrunner.text.redaction import Redactor
from agentrunner.workers.member import make_members


class RepositoryView(Looking):
    """The repository at the time of a message: a snapshot, never the folder itself."""

    def __init__(
        self,
        spec: TaskSpec,
        place: Path,
        state_dir: Path,
        redact: Callable[[str], str],
        environ: Mapping[str, str],
    ) -> None:
        """`place` is the conversation's own folder. Nothing is read yet."""
        self.see: See = seen_by(spec.runner.meta)
        self._spec = spec
        self._place = place
        self._state_dir = state_dir
        self._redact = redact
        self._environ = dict(environ)
        self._budget = UNKNOWN
        self._taken: tuple[Snapshots, str] | None = None

    @property
    def looks(self) -> bool:
        return self.see == "repo"

    def facts(self, asked: str) -> dict[str, Any] | None:
        """Return what the planner sees; None where no model reads it or nothing may be sent.
        Blocks.

        Raises GitFailed.
        """
        self._taken = self.looker = None  # another message: the files may have changed
        runner = self._spec.runner
        kinds = {one.kind for one in runner.profiles.meta.candidates} or {runner.meta.kind}
        if self.see == "nothing" or not any(planner_kind(kind).calls_model for kind in kinds):
            return None
        self._budget = budget = self._context_budget()
        snapshots, tree = self._snapshot()
        repo = Path(self._spec.repo)
        outline = budget.repository // 3
        facts = repository_context(snapshots, tree, repo, self._redact, asked, outline)
        return fitted(facts, budget.repository) if budget.known else facts

    def _context_budget(self) -> ContextBudget:
        """Return what a prompt of this message may tell; a server on this machine may say it."""
        context = self._spec.runner.meta.context_tokens
        if not context and (servers := servers_of(self._spec, self._environ)):
            context = shortest(servers)
        return budget_for(context, fixed_tokens(self._spec)) if context else UNKNOWN

    def make_looker(self) -> Looker:
        """Return what answers the looks; raise GitFailed."""
        snapshots, tree = self._snapshot()
        return Looker(
            snapshots,
            tree,
            tree,
            self._redact,
            lambda _: None,
            self._budget.looks if self._budget.known else None,
        )

    def _snapshot(self) -> tuple[Snapshots, str]:
        if self._taken is None:
            repo = Path(self._spec.repo)
            worked = worked_mark(self._state_dir, repo)
            folder = self._place / "snapshots"
            snapshots = Snapshots(folder, repo, self._spec.runner.note.dir, worked=worked)
            self._taken = snapshots, snapshots.take().tree
        return self._taken


ATTEMPT = 1
"""Stands in for the attempt of a run, which a conversation does not have."""


def planning_spec(
    spec: TaskSpec, environ: Mapping[str, str], state_dir: Path, policy: Path | None = None
) -> TaskSpec:
    """Return the settings with only the role of the planner, settled and within every policy.

    Raises UsageError where they go beyond one, InfraError where no planner is available. A worker
    is not needed yet.
    """
    settled, missing = capped_as_far(spec, environ, state_dir, policy)
    for error in missing:
        if isinstance(error, NoPlanner):
            raise _no_planner(error)
        if not isinstance(error, WorkerNotReady):
            raise error
    if missing:  # the usual worker stands in; the rest is checked against the policies
        settled = capped(settled, environ, state_dir, policy)
    profiles = settled.runner.profiles
    alone = ProfilesSpec(meta=profiles.plan or profiles.meta)
    return settled.with_runner(profiles=alone, assess=None)


def _no_planner(error: InfraError) -> InfraError:
    """Return the error of a run, without planners that can judge a task but not discuss a plan."""
    remedies = tuple((who, cure) for who, cure in error.details if planner_kind(who).calls_model)
    return NoPlanner(
        "Nothing here can make a plan: no model can be asked.",
        path=error.path,
        details=remedies,
        remedy="export OPENAI_API_KEY=…, or see how it works without a model: --planner mock",
        nothing_spent=True,
    )


class CallLog:
    """The calls about one plan, and their cost, over all conversations."""

    def __init__(
        self, folder: Path, spec: TaskSpec, prices: Prices, redact: Callable[[str], str]
    ) -> None:
        self._folder = folder
        self._spec = spec
        self._prices = prices
        self._log = RunLog(folder / "log.jsonl", redact)
        self._calls = MadeCalls(self._log)
        make_private(folder / "meta")

    def counters(self) -> Counters:
        """Return what was spent so far, calls of other processes included."""
        state = TaskContext(counters=Counters(), grants={})
        return caught_up(state, self._calls).get("counters", Counters())

    def begin(self, number: int, type_: str, at: str) -> None:
        """Record that a call is about to be made; raise TaskFailed (`budget`) if none is left."""
        found = spent_limit(self._spec, {}, self.counters(), FOR_TALK)
        if found is not None:
            name, limit = found
            raise OutOfBudget(
                f"The budget runner.budget.{name} of {limit:,.12g} is spent on talking about this "
                "plan.",
                code=f"{OutOfBudget.code}: {name}",
                remedy=f"--set runner.budget.{name}={figure_of(name, 2 * limit or 10)}",
            )
        self._append("meta_begun", number, {"number": number, "type": type_}, at)

    def allowance(self) -> Allowance:
        """Return what is left for a planner whose calls pass a gateway."""
        return allowance(self._spec, {}, self.counters())

    def record(self, call: PlannerCall, at: str) -> None:
        """Record a call: a line of the log, and request and response as files."""
        for end, text in (("request.json", call.request), ("response.txt", call.text)):
            data = text.encode("utf-8", "backslashreplace")
            write_new(self._folder / f"{call.name}.{end}", data, sync=False)
        values = call.as_record(at, cost_of(call, self._prices))
        self._append("meta_call", call.number, values, at)

    def is_noted(self, code: str) -> bool:
        """Whether a warning of this code is recorded, in this conversation or an earlier one."""
        return any(one.data.get("code") == code for one in self._log.records("warning"))

    def note(self, code: str, message: str, at: str) -> None:
        """Record where a reply was not taken literally, as the log of a run does."""
        key = f"{self.counters().calls}: {message}"
        data = {"code": code, "message": message}
        self._log.append("warning", key, data, attempt=ATTEMPT, loop=0, at=at, sync=False)

    def wait(self, wait: Wait) -> None:
        """Record that the planner is away and waited for."""
        data = wait.model_dump(mode="json")
        self._log.append("wait", f"meta-{wait.since}", data, attempt=ATTEMPT, loop=0, at=wait.since)

    def _append(self, kind: str, number: int, data: Mapping[str, Any], at: str) -> None:
        self._log.append(kind, str(number), data, attempt=ATTEMPT, loop=0, at=at, sync=False)


class PanelPlanner:
    """Asks the candidates for the planner's role in order, until one answers."""

    def __init__(
        self,
        panel: Panel,
        log: CallLog,
        redact: Callable[[str], str],
        clock: Clock,
        salt: str,
        view: RepositoryView,
        waits: PlannerWaits,
    ) -> None:
        self._panel = panel
        self._view = view
        self.progress: Callable[[PartialAnswer], None] | None = None
        """Gets the progress of an answer, from a planner that streams it; not redacted."""
        self.waits = waits
        """Waits where no candidate answers for now; asked by the conversation."""
        self._log = log
        self._redact = redact
        self._clock = clock
        self._cooling: dict[str, str] = {}
        self._candidates = FailOver(
            panel,
            "plan",
            clock=clock,
            cooling=self._cooling,
            salt=salt,
            warn=lambda sentence: self._note("fail-over", sentence),
            waits=lambda: waits.made,
        )
        self._warnings: list[str] = []

    def warnings(self) -> list[str]:
        """Return what people should know of the answers since this was asked last."""
        found, self._warnings = self._warnings, []
        return found

    def describe(self) -> str:
        """Return the planner's description for people."""
        return self._panel.role_candidates("plan").candidates[0].client.describe()

    async def ask(self, prompt: PromptInput, check: Check) -> Message:
        """Return the answer of the first candidate that gives a usable one; see
        `conversation.Planner`.
        """

        def number() -> int:
            return self._log.counters().calls

        async def asked_of(client: PlannerClient) -> Message:
            asker = self._asker(client, prompt)
            return await asker.ask(replace(prompt, call_number=number()), check)

        try:
            return await self._candidates.ask(asked_of, number)
        except AllAway as away:
            if away.failed:
                raise
        self._cooling.clear()  # all are left alone, for earlier messages: better any than none
        return await self._candidates.ask(asked_of, number)

    def _note(self, code: str, sentence: str) -> None:
        """Record a warning, and keep it for whoever shows the answer."""
        self._log.note(code, sentence, self._clock.stamp())
        self._warnings.append(self._redact(sentence))

    def _record(self, call: PlannerCall) -> None:
        """Record a call; warn once of a server that reads less than it is sent. Blocks."""
        self._log.record(call, self._clock.stamp())
        cut = cut_in_call(call)
        if cut is not None and not self._log.is_noted(CODE):
            self._note(CODE, cut.sentence())

    def _asker(self, client: PlannerClient, prompt: PromptInput) -> Asker:
        async def record(call: PlannerCall) -> None:
            await asyncio.to_thread(self._record, call)

        def before_attempt() -> None:
            self._log.begin(self._log.counters().calls, prompt.type, self._clock.stamp())

        self._view.begin()
        return Asker(
            client,
            record=record,
            before_attempt=before_attempt,
            sleep=self._clock.sleep,
            redact=self._redact,
            allowance=self._log.allowance,
            look=self._view.answer if self._view.looks else None,
            progress=self.progress,
        )


@asynccontextmanager
async def open_conversation(
    spec: TaskSpec,
    folder: PlanFolder,
    state_dir: Path,
    environ: Mapping[str, str],
    *,
    author: str,
    clock: Clock | None = None,
) -> AsyncIterator[tuple[Conversation, PanelPlanner]]:
    """Yield a conversation about the plan of a repository, and its planner; close them whatever
    happens.

    `spec` comes from `planning_spec`. Raises UsageError and InfraError where the planner is
    unavailable; then nothing is spent.
    """
    clock = clock or Clock()
    panel = make_panel(spec, environ)
    redactor = Redactor(secrets_of(spec, make_members(spec), environ))
    folder.make()
    root = folder.conversation
    make_private(root)
    salt = _salt(root / "salt")
    log = CallLog(root, spec, load_prices(prices_file(environ)), redactor.redact)
    view = RepositoryView(spec, root, state_dir, redactor.redact, environ)
    waits = PlannerWaits(panel.role_candidates("plan"), spec, environ, clock, log.wait)
    planner = PanelPlanner(panel, log, redactor.redact, clock, salt, view, waits)
    conversation = Conversation(
        store=PlanStore(folder.plan),
        planner=planner,
        spec=spec,
        salt=salt,
        stamp=clock.stamp,
        author=author,
        redact=redactor.redact,
        look=view.facts,
        see=view.see,
        note=lambda code, message: log.note(code, message, clock.stamp()),
        waits=waits,
    )
    try:
        async with _workplace(panel, spec, folder, state_dir, environ, redactor):
            yield conversation, planner
    finally:
        await panel.close()


def _salt(path: Path) -> str:
    """Return the key of the markers in this plan's prompts; drawn once, whoever comes first."""
    if not path.exists():
        draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        write_private(draft, secrets.token_hex(16).encode())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)  # unlike a rename, it never replaces
        draft.unlink()
    return path.read_text()


@asynccontextmanager
async def _workplace(
    panel: Panel,
    spec: TaskSpec,
    folder: PlanFolder,
    state_dir: Path,
    environ: Mapping[str, str],
    redactor: Redactor,
) -> AsyncIterator[None]:
    """Open a workplace for planners that are programs, for as long as the conversation lasts.

    Each process has its own: two people may talk about the same plan.
    """
    if not any(
        isinstance(c.client, NeedsWorkplace) for c in panel.role_candidates("plan").candidates
    ):
        yield
        return
    root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="cli-", dir=folder.conversation))
    workroom = RunFolder(root)
    for part in (workroom.planner_dir, workroom.sandbox_dir, workroom.sock_dir):
        make_private(part)
    order = SandboxOrder(
        repo=Path(spec.repo), home=workroom.sandbox_dir, owner=Owner("", spec.task_id)
    )
    home = home_of(environ)
    try:
        kind = spec.runner.sandbox.kind
        sandbox = await open_sandbox(kind, order, environ, home, state_root=state_dir)
        try:
            await panel.open(Workplace(workroom, state_dir, sandbox, redactor))
            yield
        finally:
            await panel.close()
            await sandbox.close()
    finally:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(shutil.rmtree, root)
