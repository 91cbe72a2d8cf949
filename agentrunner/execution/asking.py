"""Asking the planner from a node: check the budget, collect facts, record the call, count it."""

from __future__ import annotations

import asyncio
from collections import ChainMap
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from agentrunner.errors import TaskFailed
from agentrunner.errors.planners import PlannerQuotaSpent
from agentrunner.execution.budget_questions import FOR_CALL, BudgetSpent, check_budget, limits_for
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.failover import AllAway, Answered, FailOver
from agentrunner.execution.outages import is_too_long
from agentrunner.execution.partial_answer import facts_of
from agentrunner.execution.quota import MustWait
from agentrunner.execution.seeing import Seeing, ids_in, red_ids_in, seeing
from agentrunner.execution.silence import Silence, silence_of
from agentrunner.money.counters import Accounting, allowance
from agentrunner.planners.asking import Asker
from agentrunner.planners.base import (
    PartialAnswer,
    PlannerCall,
    PlannerClient,
    PlannerUnavailable,
    PlannerUnusable,
    costs_nothing,
)
from agentrunner.planners.cut import CODE, cut_in_call
from agentrunner.planners.factory import reply_format
from agentrunner.planners.panel import RoleCandidates, role_of
from agentrunner.prompts import PromptInput, Quotes
from agentrunner.protocol import Choices, Message
from agentrunner.protocol.known_ids import with_known_ids, with_names
from agentrunner.protocol.message import MessageType
from agentrunner.protocol.schema import KINDS
from agentrunner.state.run_state import Counters, TaskContext
from agentrunner.state.summary import summarize
from agentrunner.state.worker_runs import Wait
from agentrunner.verification.evidence.baseline_checks import proposed

PARKED = "meta-quota"
"""Code of the warning that a run stopped because a wait would be too long."""

WRITTEN_SEC = 2.0
"""Seconds between two events about an answer that is being written."""


async def ask(
    state: TaskContext,
    deps: Deps,
    type: MessageType,  # noqa: A002  (the protocol's word)
    counters: Counters,
    check: Callable[[Message], None] | None = None,
    repository: Mapping[str, Any] | None = None,
    vote: int = 0,
    view: Seeing | None = None,
    at_fault: tuple[str, ...] = (),
    quotes: Quotes | None = None,
) -> tuple[Message, Counters]:
    """Return one message of the planner, and the counters after it.

    `vote` is the number of this vote among several on one thing: votes go round among the
    candidates. `view` is what the planner sees, for a caller who needs to know what it has seen.
    `at_fault` are the criteria that a plan is asked for once more; of others nothing is read.
    `quotes` makes it a judge's second question, whose `view` has been asked with before.
    Raises NeedsPerson where the planner gives no answer and a person may help, TaskFailed where
    nobody can, BudgetSpent where no call is left, MustWait where the planner is unavailable for a
    while. The counters so far are on the error.
    """
    accounting = Accounting(counters, deps.prices)

    async def record(call: PlannerCall) -> None:
        _record(state, deps, call, accounting.add(call))

    candidates = deps.panel.role_candidates(role_of(type)).candidates
    free = all(
        costs_nothing(one.client, partial(deps.prices.is_free, near=True)) for one in candidates
    )
    names = limits_for(FOR_CALL, free=free)

    def before_attempt() -> None:
        check_budget(state, deps, accounting.counters, names)
        number = accounting.counters.meta_calls
        deps.record(state, "meta_begun", str(number), {"number": number, "type": type})

    view = view or seeing(state, deps)
    prompt = await _prompt(state, deps, type, view, repository, at_fault, quotes)

    async def asked_of(client: PlannerClient) -> Message:
        if quotes is None:
            view.begin()
        asker = Asker(
            client,
            look=view.answer if view.looks and quotes is None else None,
            record=record,
            before_attempt=before_attempt,
            sleep=deps.clock.sleep,
            redact=deps.redactor.redact,
            allowance=lambda: allowance(deps.spec, state.get("grants", {}), accounting.counters),
            progress=_Progress(deps, type).written,
        )
        deps.emit("awaiting", who="planner", what=type)
        try:
            return await asker.ask(
                replace(prompt, call_number=accounting.counters.meta_calls), check
            )
        except PlannerUnavailable as failure:
            if failure.kind == "budget":  # its gateway refused a further call
                check_budget(state, deps, accounting.counters, FOR_CALL)
            raise

    try:
        asked = await ask_candidates(state, deps, type, accounting, asked_of, vote=vote)
    except BudgetSpent:
        raise
    except (PlannerUnavailable, PlannerUnusable) as error:
        role_candidates = deps.panel.role_candidates(role_of(type))
        if asks(deps, role_candidates):
            silence = silence_of(error, type, role_candidates, deps)
            raise NeedsPerson(silence, error, accounting.counters) from error
        raise AskFailed(error, accounting.counters) from error
    except TaskFailed as error:
        raise AskFailed(error, accounting.counters) from error
    return _with_known_names(state, deps, type, asked, view), accounting.counters


async def _prompt(
    state: TaskContext,
    deps: Deps,
    type_: MessageType,
    view: Seeing,
    repository: Mapping[str, Any] | None,
    at_fault: tuple[str, ...],
    quotes: Quotes | None,
) -> PromptInput:
    """Return what the planner is asked with: the summary of the run, and what it sees.

    Where it is asked for lines alone (`quotes`), it sees what it saw before.
    """
    workers = [member.name for member in deps.members]
    facts = summarize(state, deps.spec, patterns=deps.patterns, workers=workers)
    prompt = PromptInput.of(
        deps.spec,
        type_,
        facts=facts,
        repository=repository,
        salt=state["run"].salt,
        call_number=0,  # of each attempt, as it is made
        format=reply_format(deps.spec),
        patterns=deps.patterns,
    )
    if quotes is not None:
        choices = Choices(criteria=tuple(str(one["id"]) for one in quotes.criteria), quotes=True)
        return replace(prompt, choices=choices, quotes=quotes)
    fields = await asyncio.to_thread(view.fields, type_, facts)
    if repository is not None:
        fields["repository"] = repository
    choices = _choices(state, deps, fields.get("repository"), at_fault)
    return replace(prompt, choices=choices, **fields)


def _with_known_names(
    state: TaskContext, deps: Deps, type_: MessageType, message: Message, view: Seeing
) -> Message:
    """Return the message with the names that its ids stand for; warn of what was adapted."""
    ids = [criterion.id for criterion in state["criteria"]]
    by_id = {id_: name for id_, name in view.names.items() if id_ not in ids}
    message, adapted = with_known_ids(with_names(message, by_id), ids)
    for sentence in adapted:
        deps.warn(state, "reply-taken", f"{type_}: {sentence}")
    for warning in message.warnings:
        deps.warn(state, f"reply-{warning.code}", f"{type_} {warning.path}: {warning.message}")
    return message


class _Progress:
    """Emits the progress of an answer, at most every other second."""

    def __init__(self, deps: Deps, type_: MessageType) -> None:
        self._deps = deps
        self._type = type_
        self._next = 0.0

    def written(self, so_far: PartialAnswer) -> None:
        """Emit how much is written so far; only its end is shown, without secrets."""
        now = self._deps.clock.monotonic()
        if now < self._next and not so_far.reading:
            return
        facts = facts_of(so_far, self._deps.redactor.redact)
        if facts is None:
            return
        if not so_far.reading:
            self._next = now + WRITTEN_SEC
        self._deps.emit("awaiting", who="planner", what=self._type, **facts)


def _warn_of_cut(state: TaskContext, deps: Deps, call: PlannerCall) -> None:
    """Warn once in a run that a server reads less than it is sent, and how to fix it. Blocks."""
    if (cut := cut_in_call(call)) is None:
        return
    if not any(warning.data.get("code") == CODE for warning in deps.log.records("warning")):
        deps.warn(state, CODE, cut.sentence())


class NeedsPerson(TaskFailed):
    """No candidate of a planner role answers; the wrapper sends the run to node `planner`.

    `kept` is what the node has found out so far, so that it is not measured again.
    """

    def __init__(self, silence: Silence, cause: TaskFailed, counters: Counters) -> None:
        super().__init__(cause.message, code=cause.code, remedy=cause.remedy)
        self.silence = silence
        self.counters = counters
        self.kept: Update = {}


@contextmanager
def keeping(update: Update) -> Iterator[None]:
    """Keep what a node knows already, where the planner that it asks is unavailable."""
    try:
        yield
    except (NeedsPerson, MustWait) as error:
        error.kept = {**update, **error.kept}
        raise


def _choices(
    state: TaskContext,
    deps: Deps,
    repository: Mapping[str, Any] | None,
    at_fault: tuple[str, ...],
) -> Choices:
    """Return what the schema of a reply names: the workers and their models, and the criteria.

    Whether a candidate is cooling down or has a session is no part of it: that changes between
    calls.
    """
    members = deps.members
    models = [name for one in members for name in one.spec.runner.worker.models]
    models += [own for one in members if (own := one.spec.runner.worker.model)] if models else []
    has_suite = deps.spec.task.test is not None
    red = red_ids_in(repository)
    return Choices(
        workers=tuple(one.name for one in members),
        models=tuple(models),
        patterns=tuple(deps.patterns),
        criteria=tuple(one.id for one in state.get("criteria", [])),
        kinds=tuple(kinds_for(has_suite, bool(ids_in(repository)), bool(red))),
        tests=red,
        new_tests=has_suite,
        own_checks=_questionable_checks(state),
        at_fault=at_fault,
        may_complete=_may_be_changed(state),
    )


def _may_be_changed(state: TaskContext) -> bool:
    """Return whether a worker or a person may have changed anything since the run began.

    Small models ask for completion before any work, and call it done as judges.
    """
    baseline, tree = state.get("baseline"), state.get("tree")
    edited = baseline is not None and tree is not None and tree != baseline.tree
    return edited or state["counters"].worker_runs > 0


def kinds_for(has_suite: bool, has_names: bool, has_red: bool) -> list[str]:
    """Return the kinds of check that are offered.

    Where tests of the suite have ids, a test is named by its id, or as a new one. Small models
    write `pytest` with half a name for a project of unittest, and that then counts as still to be
    written. A suite that is green can show nothing but by new tests.
    """
    if has_names:
        return ["command", *(["test"] if has_red else []), "file"]
    return [kind for kind in KINDS if kind != "test" or has_suite]


def _questionable_checks(state: TaskContext) -> tuple[str, ...]:
    """Return criteria whose check, written by the planner, is red after work and so may be at
    fault.

    Small models withdraw each check that they are offered, before it has decided anything.
    """
    evidence = state.get("evidence")
    red = (
        {one.criterion_id for one in evidence.checks if one.outcome != "passed"} if evidence else ()
    )
    return tuple(one.id for one in state.get("criteria", []) if proposed(one) and one.id in red)


class AskFailed(TaskFailed):
    """The planner could not be asked; `counters` hold what that cost."""

    def __init__(self, cause: TaskFailed, counters: Counters) -> None:
        super().__init__(cause.message, code=cause.code, remedy=cause.remedy)
        self.counters = counters


def _record(state: TaskContext, deps: Deps, call: PlannerCall, cost: Mapping[str, Any]) -> None:
    """Save the whole exchange in files, and a line about it in log and events; warn of a server
    that cut it. Blocks, but does not wait for the disk.
    """
    # For people to read: unlike checkpoint and log, no step depends on these files.
    request = deps.folder.write(f"{call.name}.request.json", call.request, sync=False, new=True)
    response = deps.folder.write(f"{call.name}.response.txt", call.text, sync=False, new=True)
    files = {"request": request.model_dump(), "response": response.model_dump()}
    values = {**call.as_record(deps.clock.stamp(), cost), **files}
    deps.record(state, "meta_call", str(call.number), values)
    deps.emit(
        "meta_call",
        type=call.type,
        attempt=call.number + 1,
        duration_ms=round(call.duration_sec * 1000),
        usage=cost["usage"],
        usd=cost["usd"],
        error=call.error or None,
        looks=list(call.looks),
    )
    _warn_of_cut(state, deps, call)


async def ask_candidates(
    state: TaskContext,
    deps: Deps,
    message: MessageType,
    accounting: Accounting,
    ask: Callable[[PlannerClient], Awaitable[Answered]],
    *,
    vote: int = 0,
) -> Answered:
    """Return what `ask` gets from the first candidate of the role that answers; see `FailOver`.

    Raises MustWait where all are unavailable for a while. Where that is longer than the task may
    wait, or for another reason, raises the last error, PlannerUnavailable or PlannerUnusable; or
    InfraError (`meta-quota`) where a quota is spent for too long and no person is asked.
    """
    role = role_of(message)
    candidates = FailOver(
        deps.panel,
        role,
        clock=deps.clock,
        cooling=ChainMap(deps.cooled, state.get("cooling", {})),
        salt=state["run"].salt,
        warn=lambda sentence: deps.warn(state, "fail-over", sentence),
        waits=lambda: _waits(deps),
    )
    try:
        return await candidates.ask(ask, lambda: accounting.counters.meta_calls, vote=vote)
    except AllAway as found:
        away = found
    before, limit = _waits(deps), deps.spec.runner.budget.wait_sec
    if not is_too_long(away.wait, before, limit):
        raise MustWait(away.wait, accounting.counters)
    why = f"The planner {away.wait.candidate} could not answer, {away.trouble}. It would be asked "
    why += f"again at {away.wait.until}, and runner.budget.wait_sec allows waits of {limit:g} s."
    # Under a new key each time: later waits are counted from here.
    deps.record(state, "warning", f"{PARKED}-{away.wait.since}", {"code": PARKED, "message": why})
    spent = isinstance(away.failure, PlannerUnavailable) and away.failure.kind == "rate_limit"
    if asks(deps, deps.panel.role_candidates(role)) or not spent:
        candidates.release(away.failed)
        raise away.failure
    raise PlannerQuotaSpent(
        why, remedy=f"agentrunner resume {state['run'].run_id}, after that time"
    )


def _waits(deps: Deps) -> list[Wait]:
    """Return the waits for the planner since it last answered or a person resumed the run."""
    found: list[Wait] = []
    for record in reversed(deps.log.records()):
        answered = record.kind == "meta_call" and not record.data.get("error")
        if answered or (record.kind == "warning" and record.data.get("code") == PARKED):
            break
        if record.kind == "wait" and record.data.get("role") == "meta":
            found.append(Wait.model_validate(record.data))
    return found


def asks(deps: Deps, role_candidates: RoleCandidates) -> bool:
    """Whether a person is asked where no candidate of this role answers.

    Programs answer the same however often they are asked, and so does a replayed planner.
    """
    by_code = role_candidates.by_code
    wanted = deps.spec.runner.meta.on_unusable == "ask"
    return wanted and not by_code and deps.cassette.replay is None
