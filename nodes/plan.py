"""PENDING → PLANNING → RUNNING: the environment, the baseline, the acceptance criteria."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langgraph.types import Command

from agentrunner.discovery.git import not_fetched, reader_of
from agentrunner.discovery.services import lacking, likely_lacking
from agentrunner.discovery.set_up import set_up_line
from agentrunner.errors import EnvironmentNotReady
from agentrunner.errors.replies import ReplyInvalid
from agentrunner.execution.asking import ask, keeping
from agentrunner.execution.context_length import context_budget
from agentrunner.execution.criteria import criteria_of, merged
from agentrunner.execution.decisions import KNOWN_RED, keep, messages
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.planner_checks import settled
from agentrunner.execution.questions import answered, question, remark, subject_of
from agentrunner.execution.seeing import seeing
from agentrunner.execution.shown_repository import repository_for_planner
from agentrunner.protocol import Message, PlanTask
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import People, Question
from agentrunner.state.run_state import Baseline, Criterion, TaskContext, Verdict, updated
from agentrunner.state.summary import FROM_PERSON
from agentrunner.storage.run_folder import keep_sandbox
from agentrunner.text.mentions import speaks_of
from agentrunner.verification.evidence.findings import first_few
from agentrunner.verification.rooms.complaints import missing_programs
from agentrunner.verification.rooms.decision_sandbox import INSTALL

NAMED = 3
"""Names and reasons in a question about tests that cannot run."""
MOST_TESTS = 100
"""Tests that are listed with such a question."""
SET_BY_CODE = {"status", "evidence", "proof", "comment"}


async def plan(state: TaskContext, deps: Deps) -> Command[str]:
    """Measure the baseline, then get the criteria that have to be met after the run."""
    if state["state"] == TaskState.PENDING:
        for decision in (
            (state.get("people") or People()).recent if state["run"].attempt == 1 else ()
        ):
            keep(state, deps, decision)  # decided in an earlier run of the task
        return Command(update={"state": TaskState.PLANNING}, goto="plan")
    if answered(state, "plan"):
        return _plan_again(state)
    if (end := _not_without_them(state)) is not None:
        return end
    await _without_them(state, deps)
    replied = messages(state, deps)
    own = await asyncio.to_thread(_own_criteria, state, deps)
    baseline = await _baseline(state, deps, own)
    if state.get("baseline") is None and (asked := await _in_part(state, deps, baseline)):
        update: Update = {**replied, "baseline": baseline, "question": asked}
        return Command(update=update, goto="approve")
    asking = updated(state, replied, {"criteria": own, "baseline": baseline})
    budget = await asyncio.to_thread(context_budget, asking, deps)
    names = await asyncio.to_thread(deps.verifier.before, baseline)
    known = await asyncio.to_thread(repository_for_planner, deps, baseline, names, budget)
    if seeing(state, deps).see == "nothing":
        known = None
    counters = asking["counters"]
    if state.get("person_order") is not None:  # a person goes on without the planner's plan
        criteria = own or [Criterion(id="AC-1", description=deps.spec.title)]
    else:
        with keeping({"baseline": baseline}):
            message, counters = await ask(
                asking, deps, "plan_task", counters, None if own else _check_criteria, known
            )
        assert isinstance(message.payload, PlanTask)
        known_names = set(names.names) if names else set()
        criteria = merged(own, message.payload, known_names)
        if not any(one.critical for one in criteria):  # else nothing at all would be demanded
            criteria = [_demanded(one) for one in criteria]
            sentence = "plan_task: no criterion is critical; all that it adds are taken as such"
            deps.warn(state, "reply-taken", sentence)
        planned = updated(asking, {"counters": counters})
        criteria, baseline, counters = await settled(
            planned, deps, criteria, repository=known, names=known_names
        )
    deps.emit("plan", acceptance_criteria=criteria)
    deps.record(state, "plan", "plan", {"criteria": [c.model_dump(mode="json") for c in criteria]})
    update = {
        **replied,
        "counters": counters,
        "criteria": criteria,
        "baseline": baseline,
        "tree": state.get("tree") or baseline.tree,
        "answer": None,
    }
    if deps.spec.runner.approve.plan == "always":
        update["question"] = _approval(state, criteria)
        update["run"] = state["run"].model_copy(update={"plan_open": True})
        return Command(update=update, goto="approve")
    update["run"] = state["run"].model_copy(update={"plan_open": False})
    return Command(update={**update, "state": TaskState.RUNNING}, goto="decide")


def _own_criteria(state: TaskContext, deps: Deps) -> list[Criterion]:
    """Return people's criteria, by what the test command starts before the run. Blocks."""
    known, spec = state.get("baseline"), deps.spec
    read = deps.verifier.snapshots.reader(known.tree) if known else reader_of(Path(spec.repo))
    return criteria_of(spec.criteria, spec.task.test, read)


def _check_criteria(message: Message) -> None:
    """Raise ReplyInvalid where a plan has no criterion although the task has none of its own."""
    if isinstance(message.payload, PlanTask) and not message.payload.acceptance_criteria:
        raise ReplyInvalid("payload.acceptance_criteria", "at least one: the task has none itself")


def _plan_again(state: TaskContext) -> Command[str]:
    plan = "\n".join(f"- {criterion.description}" for criterion in state["criteria"])
    message = f"{FROM_PERSON}no to the plan; why stands under `people`. It was:\n{plan}"
    return Command(update={"answer": None, "remarks": remark(state, message)}, goto="plan")


async def _baseline(state: TaskContext, deps: Deps, criteria: list[Criterion]) -> Baseline:
    """Run set-up, test command and the task's checks on the untouched tree; return the baseline."""
    known = state.get("baseline")
    if known is not None:
        if known.measured_with == deps.verifier.measured_with(criteria):
            return known
        worked = state["counters"].worker_runs > 0
        await deps.verifier.set_up.anew(known.tree, worked=worked)  # it may have changed, too
        return await deps.verifier.look_again(known, criteria)
    origin = (await asyncio.to_thread(deps.snapshots.take)).tree
    while True:
        try:
            await deps.verifier.set_up.in_repo()
            found = await deps.verifier.baseline(criteria, origin)
        except EnvironmentNotReady as error:
            if not await deps.verifier.sandbox.fall_back(error.message):
                await asyncio.to_thread(_name_set_up, error, deps)
                raise
            deps.warn(state, "box-changed", f"{error.message} Next: {deps.sandbox.describe()}")
        else:
            sandbox = deps.sandbox
            await asyncio.to_thread(keep_sandbox, deps.folder, sandbox.kind, sandbox.image)
            for sentence in await asyncio.to_thread(_missing_services, deps, found):
                deps.emit("warning", code="suite-needs", message=sentence)
            return found


async def _in_part(state: TaskContext, deps: Deps, baseline: Baseline) -> Question | None:
    """Return the question about tests that could not run where others did; None without such.

    It is asked when the baseline is new, so once in a run.
    """
    found = await asyncio.to_thread(deps.verifier.could_not_run, baseline)
    if not found:
        return None
    names, reasons = list(found), list(dict.fromkeys(found.values()))
    proposed = await asyncio.to_thread(_proposed_set_up, deps, "\n".join(reasons))
    alone = len(names) == 1
    stays = (
        "it? It stays red, and what it asks" if alone else "them? They stay red, and what they ask"
    )
    text = (
        f"{len(names)} of the tests cannot run here, while others do: "
        f"{'; '.join(reasons[:NAMED])} ({first_few(names, NAMED)}). Go on without {stays} is not "
        f"verified. {proposed or 'task.setup.command'} can provide what is missing."
    )
    subject = {"tests": names[:MOST_TESTS], "why": reasons[:MOST_TESTS]}
    return question("tests_could_not_run", text, subject, state)


def _not_without_them(state: TaskContext) -> Command[str] | None:
    """Return the end of the run where a person does not go on without these tests; else None.

    The next attempt measures anew.
    """
    answer = answered(state, "tests_could_not_run")
    if answer is None or answer.decision == "approve":
        return None
    why = "; ".join(map(str, subject_of(state)["why"]))
    reason = f" A person did not go on without them: {answer.text}" if answer.text else ""
    text = f"Some tests cannot run here: {why}.{reason}"
    verdict = Verdict(state="FAILED", reason="environment_not_ready", text=text)
    return Command(update={"answer": None, "baseline": None, "verdict": verdict}, goto="note")


async def _without_them(state: TaskContext, deps: Deps) -> None:
    """Take the tests for known reds that a person said to go on without."""
    answer, baseline = answered(state, "tests_could_not_run"), state.get("baseline")
    if answer is None or baseline is None:
        return
    names = list(await asyncio.to_thread(deps.verifier.could_not_run, baseline))
    data = {"names": names, "reason": answer.text, "by": answer.by}
    deps.record(state, KNOWN_RED, f"known-red-{answer.id}", data)
    deps.verifier.accept_reds(names)


def _name_set_up(error: EnvironmentNotReady, deps: Deps) -> None:
    """Put the set-up that this repository's files propose into the remedy. Blocks.

    One that is run by the very program that is missing provides nothing.
    """
    details = "\n".join(text for _, text in error.details)
    line = _proposed_set_up(deps, details) if error.remedy.startswith(INSTALL) else ""
    if line and not any(speaks_of(line, hit["program"]) for hit in missing_programs(details)):
        error.remedy = f"{line}; or {error.remedy}"


def _proposed_set_up(deps: Deps, output: str) -> str:
    """Return the set-up that this repository's files propose, as a line of a task file. Blocks.

    `output` is what tools say that they cannot fetch. "" where the task has a set-up, or where they
    propose none.
    """
    task = deps.spec.task
    part = task.test.cwd if task.test else "."
    if task.setup is not None:
        return ""
    line = set_up_line(Path(deps.spec.repo), part, deps.environ, output)
    return f"`{line}` in the task file" if line else ""


def _missing_services(deps: Deps, baseline: Baseline) -> Sequence[str]:
    """Return sentences on what a red suite seems to need and the sandbox lacks, such as a database.
    Blocks.

    The suite's output decides, else the repository's files. A green suite lacks nothing. What git
    names and did not fetch is missed in the user's checkout; in another one the header says it.
    """
    test = baseline.test
    if test is None or test.green:
        return ()
    output = deps.folder.read(test.output).decode(errors="replace") if test.output else test.tail
    repo, landing = Path(deps.spec.repo), deps.spec.landing
    absent = [] if landing is not None and landing.outside else not_fetched(repo)
    return [*absent, *(lacking(output) or likely_lacking(repo))]


def _demanded(criterion: Criterion) -> Criterion:
    """A criterion that the planner has added, as a critical one; another as people wrote it."""
    by_planner = criterion.origin == "model"
    return criterion.model_copy(update={"critical": True}) if by_planner else criterion


def _approval(state: TaskContext, criteria: list[Criterion]) -> Any:
    subject = {
        "criteria": [
            c.model_dump(mode="json", exclude_defaults=True, exclude=SET_BY_CODE) for c in criteria
        ]
    }
    noun = "criterion" if len(criteria) == 1 else "criteria"
    return question("plan", f"Approve the plan: {len(criteria)} {noun}.", subject, state)
