"""PENDING → PLANNING → RUNNING: the environment, the baseline, the acceptance criteria."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from langgraph.types import Command

from agentrunner.config.kinds import planner_kind
from agentrunner.config.spec import Check, CriterionSpec, TestSpec
from agentrunner.discovery.planning_context import repository_context
from agentrunner.discovery.services import lacking, likely_lacking
from agentrunner.discovery.set_up import set_up_line
from agentrunner.errors import EnvironmentNotReady
from agentrunner.errors.replies import ReplyInvalid
from agentrunner.execution.asking import ask, keeping
from agentrunner.execution.context_length import context_budget
from agentrunner.execution.decisions import KNOWN_RED, keep, messages
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.planner_checks import asked_by_people, check_of, settled
from agentrunner.execution.questions import answered, question, remark, subject_of
from agentrunner.execution.seeing import CONTEXT_FILE, seeing
from agentrunner.prompts import ContextBudget
from agentrunner.prompts.context_budget import UNKNOWN, fitted
from agentrunner.protocol import CriterionDraft, Message, PlanTask
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import People, Question
from agentrunner.state.run_state import Baseline, Criterion, TaskContext, Verdict, updated
from agentrunner.state.short_names import further, shortened
from agentrunner.state.summary import FROM_PERSON
from agentrunner.storage.run_folder import keep_sandbox
from agentrunner.verification.checks import stands_in_suite
from agentrunner.verification.findings import first_few
from agentrunner.verification.results.model import Results
from agentrunner.verification.results.names import is_called
from agentrunner.verification.rooms.decision_sandbox import INSTALL

MAX_CRITERIA = 50
MOST_RED, MOST_GREEN = 100, 40
"""How many names of red and of green tests a planner is shown."""
NAMED = 3
"""Names and reasons in a question about tests that cannot run."""
LEAST_RED = 5
"""The same where its context is short."""
SAME_WORDS = 0.6
"""How alike (0 to 1) two descriptions with the same id must be to count as one criterion."""
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
    own = criteria_of(deps.spec.criteria, deps.spec.task.test)
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


def _check_criteria(message: Message) -> None:
    """Raise ReplyInvalid where a plan has no criterion although the task has none of its own."""
    if isinstance(message.payload, PlanTask) and not message.payload.acceptance_criteria:
        raise ReplyInvalid("payload.acceptance_criteria", "at least one: the task has none itself")


def repository_for_planner(
    deps: Deps, baseline: Baseline, names: Results | None, budget: ContextBudget
) -> dict[str, object] | None:
    """Return what the planner is told of the repository, within the budget, and save it. Blocks.

    Returns None where no candidate that plans calls a model.
    """
    known = repository_before(deps, baseline, budget)
    if known is None:
        return None
    if names is not None:
        known["tests"] = with_ids(names_for_planner(names, budget))
    if budget.known:
        known = fitted(known, budget.repository)
    keep_context(deps, baseline, known)
    return known


def names_for_planner(results: Results, budget: ContextBudget = UNKNOWN) -> dict[str, object]:
    """Return test names of the suite for a prompt, red ones first, cut to the limits above."""
    red = list(dict.fromkeys(test.name for test in results.red))
    green = [test.name for test in results.tests if test.outcome == "passed"]
    most_red, most_green = MOST_RED, MOST_GREEN
    if budget.known:
        most_red = min(MOST_RED, max(LEAST_RED, budget.repository // 80))
        most_green = min(MOST_GREEN, budget.repository // 160)
    return {
        "red_now": red[:most_red],
        "passing_now": green[:most_green],
        "in_all": len(results.tests),
    }


def with_ids(tests: dict[str, object]) -> dict[str, object]:
    """Return the names of tests, each with an id that stands for it from then on.

    A plan maps criteria to tests by these ids: names are text of the repository, and no schema is
    made of that.
    """
    ids = further(tests, {}, 1)
    by_name = {name: test_id for test_id, name in ids.items()}
    return {**({"ids": ids} if ids else {}), **shortened(tests, by_name)}


def repository_before(
    deps: Deps, baseline: Baseline, budget: ContextBudget = UNKNOWN
) -> dict[str, object] | None:
    """Return what a model should know of the repository before the run; each call gives the same.

    Returns None where no candidate that plans calls a model.
    """
    runner = deps.spec.runner
    candidates = (runner.profiles.plan or runner.profiles.meta).candidates
    kinds = {candidate.kind for candidate in candidates} or {runner.meta.kind}
    if not any(planner_kind(kind).calls_model for kind in kinds):
        return None
    kept = deps.folder.root / CONTEXT_FILE
    if kept.exists():
        known = json.loads(kept.read_bytes())
        if known["tree"] == baseline.tree:
            return dict(known["facts"])
    return repository_context(
        deps.snapshots, baseline.tree, Path(deps.spec.repo), deps.redactor.redact,
        asked_by_people(deps), budget.repository // 3,
    )  # fmt: skip


def keep_context(deps: Deps, baseline: Baseline, known: dict[str, object]) -> None:
    """Save what the planner was shown, test names too: each later prompt begins with it."""
    kept = deps.folder.root / CONTEXT_FILE
    facts = {name: value for name, value in known.items() if name != "tests"}
    text = json.dumps({"tree": baseline.tree, "facts": facts, "told": known}, ensure_ascii=False)
    if not kept.exists() or kept.read_text("utf-8") != text:
        deps.folder.write(CONTEXT_FILE, text)


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
    cure = await asyncio.to_thread(_proposed_set_up, deps) or "task.setup.command"
    alone = len(names) == 1
    stays = (
        "it? It stays red, and what it asks" if alone else "them? They stay red, and what they ask"
    )
    text = (
        f"{len(names)} of the tests cannot run here, while others do: "
        f"{'; '.join(reasons[:NAMED])} ({first_few(names, NAMED)}). Go on without {stays} is not "
        f"verified. {cure} can provide what is missing."
    )
    subject = {"tests": names[:MOST_RED], "why": reasons[:MOST_RED]}
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
    """Put the set-up that this repository's files propose into the remedy. Blocks."""
    if error.remedy.startswith(INSTALL) and (line := _proposed_set_up(deps)):
        error.remedy = f"{line}; or {error.remedy}"


def _proposed_set_up(deps: Deps) -> str:
    """Return the set-up that this repository's files propose, as a line of a task file. Blocks.

    "" where the task has a set-up, or where they propose none.
    """
    task = deps.spec.task
    part = task.test.cwd if task.test else "."
    if task.setup is not None:
        return ""
    line = set_up_line(Path(deps.spec.repo), part, deps.environ)
    return f"`{line}` in the task file" if line else ""


def _missing_services(deps: Deps, baseline: Baseline) -> Sequence[str]:
    """Return sentences on what a red suite seems to need and the sandbox lacks, such as a database.
    Blocks.

    The suite's output decides, else the repository's files. A green suite lacks nothing.
    """
    test = baseline.test
    if test is None or test.green:
        return ()
    output = deps.folder.read(test.output).decode(errors="replace") if test.output else test.tail
    return lacking(output) or likely_lacking(Path(deps.spec.repo))


def criteria_of(specs: Sequence[CriterionSpec], test: TestSpec | None = None) -> list[Criterion]:
    """Return the criteria that people wrote, as state.

    A check that is a test of the suite and cannot be run alone becomes a test that a person mapped.
    """
    in_suite = {spec.id: spec.check for spec in specs if stands_in_suite(spec.check, test)}
    return [
        Criterion(
            id=spec.id,
            description=spec.description,
            critical=spec.critical,
            type=spec.type,
            rationale=spec.rationale,
            detail=spec.detail,
            line=spec.line,
            check=None if spec.id in in_suite else spec.check,
            tests=[check.name] if (check := in_suite.get(spec.id)) is not None else [],
        )
        for spec in specs
    ]


def merged(
    own: Sequence[Criterion], planned: PlanTask, names: Collection[str] = ()
) -> list[Criterion]:
    """Return people's criteria as they are, then the model's additions under ids of their own.

    The model may add a check to a person's criterion that has none; it counts as the model's. The
    id alone does not make it the same criterion: models number their own from AC-1, too. The model
    may name only tests that exist before the run (`names`). What a check or test of a person
    decides already is no further criterion, unless only the model's is critical.
    """
    criteria = {criterion.id: criterion for criterion in own}
    by_people = dict(criteria)
    known = {_normal(criterion.description): criterion.id for criterion in own}
    for draft in planned.acceptance_criteria:
        check = check_of(draft)
        tests = [name for name in draft.tests if name in names]
        same = known.get(_normal(draft.description))
        if same is None and draft.id in by_people and _reworded(draft, by_people[draft.id]):
            same = draft.id
        if same is not None:
            person_criterion = criteria[same]
            if person_criterion.check is None and check is not None:
                person_criterion = person_criterion.model_copy(
                    update={"check": check, "check_origin": "model"}
                )
            if person_criterion.check is None and not person_criterion.tests and tests:
                person_criterion = person_criterion.model_copy(
                    update={"tests": tests, "tests_origin": "model"}
                )
            criteria[same] = person_criterion
            continue
        # A green check of a criterion that may stay open would not stand for one that may not.
        as_critical = [one for one in own if one.critical or not draft.critical]
        if any(_is_decided_alike(check, tests, criterion) for criterion in as_critical):
            continue
        if len(criteria) >= MAX_CRITERIA:
            break
        new_id = draft.id if draft.id and draft.id not in criteria else _free_id(criteria)
        known[_normal(draft.description)] = new_id
        criteria[new_id] = Criterion(
            id=new_id,
            description=draft.description,
            critical=draft.critical,
            type=draft.type,
            rationale=draft.rationale,
            origin="model",
            check=check,
            check_origin="model",
            tests=tests if check is None else [],
            tests_origin="model",
        )
    return list(criteria.values())


def _free_id(taken: dict[str, Criterion]) -> str:
    number = len(taken) + 1
    while f"AC-{number}" in taken:
        number += 1
    return f"AC-{number}"


def _reworded(draft: CriterionDraft, own: Criterion) -> bool:
    """Whether the model's description is mostly the person's."""
    words = SequenceMatcher(None, _normal(draft.description), _normal(own.description))
    return words.ratio() >= SAME_WORDS


def _is_decided_alike(check: Check | None, tests: Sequence[str], own: Criterion) -> bool:
    """Whether a person's criterion is decided by the check or the tests of a draft."""
    if check is not None and check.kind != "test":
        return check == own.check
    drafted = [check.name] if check is not None else list(tests)
    given = [own.check.name] if own.check is not None and own.check.kind == "test" else own.tests
    same = [name for name in drafted if any(is_called(name, one) for one in given if one)]
    return bool(same) and same == drafted


def _normal(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".。")


def _approval(state: TaskContext, criteria: list[Criterion]) -> Any:
    subject = {
        "criteria": [
            c.model_dump(mode="json", exclude_defaults=True, exclude=SET_BY_CODE) for c in criteria
        ]
    }
    noun = "criterion" if len(criteria) == 1 else "criteria"
    return question("plan", f"Approve the plan: {len(criteria)} {noun}.", subject, state)


def edited_criteria(text: str) -> list[Criterion]:
    """Return the criteria of an edited approval; raise ValueError where they cannot be read."""
    subject = json.loads(text)
    items = subject.get("criteria") if isinstance(subject, dict) else subject
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_CRITERIA:
        raise ValueError(f"the edited plan needs a list `criteria` of 1 to {MAX_CRITERIA}")
    criteria = [
        Criterion.model_validate(item).model_copy(
            update={"origin": "human", "check_origin": "human", "late": False, "awaits": None}
        )
        for item in items
    ]
    if len({criterion.id for criterion in criteria}) < len(criteria):
        raise ValueError("two criteria have the same id")
    return criteria
