"""VALIDATING: gather evidence, and answer a request for completion with it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from langgraph.types import Command

from agentrunner.errors.repositories import GitFailed
from agentrunner.errors.runs import BaselineGone
from agentrunner.execution.asking import keeping
from agentrunner.execution.assessing import assess
from agentrunner.execution.check_faults import lost_in_mid_run, tried_by_people
from agentrunner.execution.decisions import messages, why_not_acceptable
from agentrunner.execution.deps import Deps, Update
from agentrunner.execution.egress import answered_about_host
from agentrunner.execution.finding_diffs import diff_of
from agentrunner.execution.questions import answered, question, remark, subject_of
from agentrunner.execution.stuck import after_worker
from agentrunner.execution.worker_record import note_foreign_edits
from agentrunner.git.user_config import git_settings
from agentrunner.planners.base import answers_from_facts
from agentrunner.state.lifecycle import REFUSED_COMPLETION, TaskState
from agentrunner.state.people import QuestionKind
from agentrunner.state.run_state import (
    Acceptance,
    Baseline,
    Criterion,
    Evidence,
    Finding,
    TaskContext,
    Verdict,
    updated,
)
from agentrunner.state.summary import REFUSED
from agentrunner.storage.failpoints import reach
from agentrunner.storage.run_log import RunLog
from agentrunner.text.sentences import in_a_row
from agentrunner.verification.criterion_status import settle
from agentrunner.verification.evidence.findings import (
    EXAMINED,
    allowed_paths,
    approval_of,
    fingerprint,
    question_about,
)
from agentrunner.verification.evidence.outside_work import with_outside_work, without_credit
from agentrunner.verification.inputs.globs import matches
from agentrunner.verification.trees import WorkerChange
from agentrunner.verification.verdict import Judgement, complete, end_at_limit, judge, not_accepted

MOST_APPROVED = 20
"""Findings that are remembered as allowed."""
KEPT = ("evidence", "tree", "acceptances", "baseline")
"""What is kept of this step where the assessing planner is unavailable, so that it is measured
once."""


async def validate(state: TaskContext, deps: Deps) -> Command[str]:
    """Gather evidence about the tree; when completion is requested, decide if it is enough."""
    replied = answered_about_host(state)
    replied |= messages(updated(state, replied), deps)
    replied |= await _renew_old_baseline(updated(state, replied), deps)
    state = updated(state, replied)
    tried, asked = await tried_by_people(state, deps, "validate")
    if asked is not None:
        return Command(update={**replied, **tried, "question": asked}, goto="planner")
    replied |= tried
    state = updated(state, replied)
    evidence = await _evidence(state, deps)
    update: Update = {**replied, "evidence": evidence, "tree": evidence.tree_after or evidence.tree}
    if evidence is not state.get("evidence"):
        asked = await lost_in_mid_run(state, deps, evidence)
        if asked is not None:
            return Command(update={**update, "question": asked}, goto="planner")
    if acceptances := _date_acceptances(state, deps, evidence):
        update["acceptances"] = acceptances
    now = updated(state, update)
    reach("during_validation")
    if not state.get("wants_completion"):
        update["criteria"] = _settled(now, deps)
        update |= after_worker(now, deps.spec.runner.stuck_after)
        return Command(update=update, goto="decide")
    return await _answer_request(now, deps, update)


async def _answer_request(state: TaskContext, deps: Deps, update: Update) -> Command[str]:
    """Answer a request for completion: refuse it, ask a person, or grant it."""
    evidence = state["evidence"]
    assert evidence is not None
    again = state.get("refused_tree") == evidence.tree
    answered_now, rejection = _replied(state)
    update |= answered_now
    if rejection:
        return _refused(state, deps, update, [rejection])
    state = updated(state, update)
    judgement = _judged(state, deps)
    if judgement.red:
        return _refused(state, deps, update, judgement.red)
    update["evidence"] = evidence = await _examined(state, deps, evidence)
    state = updated(state, update)
    judgement = _judged(state, deps)
    if judgement.open:
        return await _open_finding(state, deps, update, judgement)
    if not _assessed(state, evidence):
        with keeping(cast("Update", {name: update.get(name) for name in KEPT if name in update})):
            asking = updated(state, {"criteria": _settled(state, deps)})
            update |= await assess(asking, deps)
        state = updated(state, update)
    judgement = _judged(state, deps)
    update["criteria"] = _settled(state, deps)
    if not judgement.complete:
        return _refused(state, deps, update, judgement.missing, idle=again and _from_facts(deps))
    return await _granted(state, deps, update)


def _from_facts(deps: Deps) -> bool:
    """Whether the planner would only ask for the same again, as no work has followed."""
    candidates = deps.panel.role_candidates("meta").candidates
    return all(answers_from_facts(one.client) for one in candidates)


def _replied(state: TaskContext) -> tuple[Update, str]:
    """Return the update of a person's answer to a finding or completion, and why they said no."""
    answer = answered(state, "tests_changed", "protected_path", "complete")
    if answer is None:
        return {}, ""
    if answer.decision == "reject":
        return {"answer": None}, f"A person said no: {answer.text or 'no reason given'}"
    subject = subject_of(state)
    names = [str(subject.get("finding") or answer.id), *map(str, subject.get("others", []))]
    return {"answer": None, "approved": [*state.get("approved", []), *names][-MOST_APPROVED:]}, ""


def _date_acceptances(state: TaskContext, deps: Deps, evidence: Evidence) -> list[Acceptance]:
    """Return the acceptances, new ones bound to the tree that the person sees now: this one."""
    acceptances = state.get("acceptances", [])
    if not any(not acceptance.tree for acceptance in acceptances):
        return []
    dated = [
        acceptance if acceptance.tree else acceptance.model_copy(update={"tree": evidence.tree})
        for acceptance in acceptances
    ]
    deps.record(state, "acceptance", dated[-1].at, dated[-1])
    return dated


# -- evidence -----------------------------------------------------------------------------------


async def _renew_old_baseline(state: TaskContext, deps: Deps) -> Update:
    """Measure a new baseline on the saved tree, for a run that an older version began.

    That version measured in the repository and by totals, which cannot be compared with today's
    results.
    """
    baseline = state.get("baseline")
    if baseline is None or deps.verifier.has_sealed():
        return {}
    text = "This run was begun by an older version: what was before it is measured anew."
    deps.warn(state, "baseline-renewed", text)
    try:
        renewed = await deps.verifier.look_again(baseline, state["criteria"])
    except GitFailed as error:
        raise BaselineGone(
            "This run was begun by an older version, and what was before it cannot be measured"
            f" anew: {error.message} It is shown, and not resumed.",
            remedy=f"agentrunner show {state['run'].run_id}; agentrunner run begins anew",
        ) from error
    return {"baseline": renewed, "evidence": None, "assessment": None}


async def _examined(state: TaskContext, deps: Deps, evidence: Evidence) -> Evidence:
    """Return the evidence with all a verdict needs, made once per tree and set of approvals."""
    approved = state.get("approved", [])
    allowed = allowed_paths(evidence, approved)
    if evidence.examined and not _newly_allowed(evidence, approved):
        return evidence
    reach("before_proof")
    baseline = state.get("baseline") or Baseline(tree=evidence.tree)
    number = state["counters"].worker_runs
    key = f"{number}-{evidence.tree[:12]}-{len(approved)}"
    prover = await asyncio.to_thread(lambda: deps.prover.prover)
    examined = without_credit(
        await prover.prove(
            state["criteria"], baseline, evidence, allowed, approved,
            step=f"{key}-{state['counters'].loops}",
        )
    )  # fmt: skip
    reach("after_proof")
    deps.record(state, "proof", key, {**examined.model_dump(mode="json"), "round": number})
    for finding in examined.findings:
        if finding not in evidence.findings:
            deps.warn(state, finding.code, finding.message)
    return examined


def _newly_allowed(evidence: Evidence, approved: Sequence[str]) -> bool:
    """Whether a person has meanwhile allowed what an examination found."""
    return any(
        finding.blocks
        and finding.code in EXAMINED
        and approval_of(finding, evidence.tree) in approved
        and not set(finding.paths).issubset(evidence.allowed)
        for finding in evidence.findings
    ) or any(
        finding.code in EXAMINED
        and not finding.paths
        and approval_of(finding, evidence.tree) in approved
        for finding in evidence.findings
    )


async def _evidence(state: TaskContext, deps: Deps) -> Evidence:
    """Return the evidence for the present tree, measured anew where there is none.

    Red results are measured again when completion is requested: they may have been flaky.
    """
    tree, suspicions = await asyncio.to_thread(
        lambda: (deps.snapshots.take().tree, _suspicions(deps))
    )
    known = state.get("evidence")
    careful = bool(state.get("wants_completion"))
    same = known is not None and not known.stale and tree in (known.tree, known.tree_after)
    if (
        known is not None
        and same
        and not (careful and known.red)
        and suspicions == list(filter(_is_suspicion, known.findings))
    ):
        return known
    edited = await asyncio.to_thread(note_foreign_edits, state, deps, tree)
    baseline = state.get("baseline") or Baseline(tree=tree)
    evidence = await deps.verifier.measure(
        state["criteria"],
        baseline,
        worker_changes(deps.log),
        suspicions=suspicions,
        careful=careful,
    )
    if state["run"].accepting:
        own = set(baseline.test_writes)
        evidence = with_outside_work(evidence, known, [path for path in edited if path not in own])
    number = state["counters"].worker_runs
    deps.record(
        state, "evidence", f"{number}-{evidence.tree[:12]}",
        {**evidence.model_dump(mode="json"), "round": number},
    )  # fmt: skip
    for finding in evidence.findings:
        deps.warn(state, finding.code, finding.message)
    return evidence


def worker_changes(log: RunLog) -> list[WorkerChange]:
    """Return the trees around every worker run, over all attempts.

    Earlier versions also ran rounds of checks in the repository, which changed it as workers do.
    """
    fields = {"worker_run": ("tree_before", "tree_after"), "evidence": ("tree", "tree_after")}
    found = []
    for record in log.records(*fields):
        before, after = (record.data.get(key) for key in fields[record.kind])
        if before and after and (before != after or record.kind == "worker_run"):
            found.append(WorkerChange(str(before), str(after)))
    return found


def _suspicions(deps: Deps) -> list[Finding]:
    """Return findings that no tree shows: installed packages and git settings. Blocks."""
    runs = deps.log.records("worker_run")
    found = [Finding.model_validate(item) for run in runs for item in run.data.get("findings", [])]
    before: dict[str, str] = {}
    for run in runs:
        before = {**run.data.get("git_before", {}), **before}
    now = git_settings(Path(deps.spec.repo), before)
    allowed = deps.spec.task.allow_changes
    changed = [p for p in sorted(before) if now.get(p, "") != before[p] and not matches(p, allowed)]
    if changed:
        message = f"Git folders whose settings run code were changed: {', '.join(changed[:5])}"
        found.append(Finding(code="protected_path", message=message, paths=changed[:50]))
    return [finding for index, finding in enumerate(found) if finding not in found[:index]]


def _is_suspicion(finding: Finding) -> bool:
    """Whether a finding comes from `_suspicions`: no tree has a path that ends in `.git`."""
    git = any(path.lower().endswith(".git") for path in finding.paths)
    return finding.code == "dependencies_changed" or (finding.code == "protected_path" and git)


def _settled(state: TaskContext, deps: Deps) -> list[Criterion]:
    return settle(
        state["criteria"],
        state.get("evidence"),
        state.get("assessment"),
        deps.spec.task.test,
        state.get("acceptances", []),
    )


def _judged(state: TaskContext, deps: Deps) -> Judgement:
    evidence = state["evidence"]
    assert evidence is not None
    return judge(
        _settled(state, deps),
        evidence,
        deps.spec.completion,
        approved=state.get("approved", []),
        acceptances=state.get("acceptances", []),
        trial=deps.spec.is_trial,
    )


# -- the planner's assessment ----------------------------------------------------------------------


def _assessed(state: TaskContext, evidence: Evidence) -> bool:
    """Whether this tree needs no assessment: it has one, or a person looked at it and accepted it.

    Accepting a single criterion during a run covers only that criterion.
    """
    assessment = state.get("assessment")
    if assessment is not None and assessment.tree == evidence.tree:
        return True
    covers_all = bool(state["run"].accepting)
    acceptances = state.get("acceptances", [])
    return any(
        acceptance.tree == evidence.tree and (covers_all or not acceptance.criteria)
        for acceptance in acceptances
    )


# -- the three answers --------------------------------------------------------------------------


def _refused(
    state: TaskContext,
    deps: Deps,
    update: Update,
    reasons: list[str],
    *,
    idle: bool = False,
    alone: bool = False,
) -> Command[str]:
    """Refuse completion: back to the planner with the reasons, or end if no loop is left.

    Where it would be `idle` to go back, the run ends as without a loop. `alone` is whether these
    reasons are all that is missing.
    """
    counters = update.get("counters", state["counters"])
    update = {**update, "wants_completion": False, "criteria": _settled(state, deps)}
    deps.emit("warning", code=REFUSED_COMPLETION, message=in_a_row(reasons)[:1000])
    accepting = state["run"].accepting
    if accepting or idle or counters.loops >= state["run"].max_loops:
        verdict = end_at_limit(
            update["criteria"], state.get("evidence"), _judged(state, deps),
            accepting or "loop_limit", reasons,
        )  # fmt: skip
        if alone:
            verdict = verdict.model_copy(update={"missing": reasons})
        if accepting:
            verdict = not_accepted(verdict)
        return Command(update={**update, "verdict": verdict}, goto="note")
    reason, evidence = REFUSED + in_a_row(reasons), updated(state, update)["evidence"]
    update |= {
        "counters": counters.model_copy(update={"loops": counters.loops + 1}),
        "state": TaskState.FIXING,
        "remarks": remark(state, reason),
        "refused_tree": evidence.tree if evidence else "",
    }
    return Command(update=update, goto="decide")


async def _open_finding(
    state: TaskContext, deps: Deps, update: Update, judgement: Judgement
) -> Command[str]:
    """Report a finding to the planner once; if it asks again with the same one, ask a person.

    A person who accepts is asked at once, about all that is open, and hears what else is missing.
    """
    finding, *others = judgement.open
    accepting = bool(state["run"].accepting)
    others = others if accepting else []
    name = fingerprint(finding)
    known = state.get("told", [])
    if name not in known and not accepting:
        update["told"] = [*known, name][-20:]
        return _refused(state, deps, update, [finding.message])
    asked_about = [finding, *others]
    protected = any(one.code == "protected_path" for one in asked_about)
    kind: QuestionKind = "protected_path" if protected else "tests_changed"
    evidence = state["evidence"]
    assert evidence is not None
    paths = list(dict.fromkeys(path for one in asked_about for path in one.paths))
    whole = finding.model_copy(update={"paths": paths})
    subject = {
        "finding": approval_of(finding, evidence.tree),
        "code": finding.code,
        "paths": paths,
        "tests": list(dict.fromkeys(test for one in asked_about for test in one.tests)),
        "tree": evidence.tree,
        "diff": await asyncio.to_thread(diff_of, state, deps, whole),
    }
    if others:
        subject["others"] = [approval_of(one, evidence.tree) for one in others]
    text = " ".join(map(_question_text, asked_about))
    if accepting and (lacks := [one.text for one in judgement.unproven]):
        text += f" With your yes this is still missing: {in_a_row(lacks)}"
    asked = question(kind, text, subject, state)
    update["criteria"] = _settled(state, deps)
    return Command(update={**update, "question": asked}, goto="approve")


def _question_text(finding: Finding) -> str:
    remedy = finding.remedy
    if not remedy.startswith(("agentrunner ", "task.", "runner.")):
        remedy = remedy[:1].upper() + remedy[1:]
    settles = f" {remedy}." if remedy else ""
    return f"{finding.message.rstrip('.')}. {question_about(finding)}{settles}"


async def _granted(state: TaskContext, deps: Deps, update: Update) -> Command[str]:
    """End the run COMPLETE, after a person's yes where the task asks for one."""
    evidence = state["evidence"]
    assert evidence is not None
    criteria: list[Criterion] = update["criteria"]
    if obstacle := await asyncio.to_thread(why_not_acceptable, state, deps):
        # It was no yes to this tree, and stands for no criterion of it.
        others = [one for one in state.get("acceptances", []) if one.tree != evidence.tree]
        update |= {"acceptances": others}
        return _refused(updated(state, update), deps, update, [obstacle], alone=True)
    verdict: Verdict = complete(criteria, evidence, deps.spec.completion)
    accepted = any(acceptance.tree == evidence.tree for acceptance in state.get("acceptances", []))
    if deps.spec.runner.approve.complete == "always" and not accepted:
        subject = {"tree": evidence.tree, "verdict": verdict.text}
        asked = question("complete", f"Accept it as complete? {verdict.text}", subject, state)
        if asked.id not in state.get("approved", []):
            return Command(update={**update, "question": asked}, goto="approve")
    update |= {"verdict": verdict, "wants_completion": False}
    return Command(update=update, goto="note")
