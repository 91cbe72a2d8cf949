"""The note's sentences: verdict, decisions to make, next commands, other facts.

Sentences are keys of the phrase tables with values, so that both languages say the same.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import assert_never, cast

from agentrunner.config.budget_kinds import BUDGET_KINDS
from agentrunner.git.staging import commit_commands
from agentrunner.notes.note_model import (
    CriterionRow,
    Label,
    Line,
    TestFacts,
    fell_short,
    line,
    next_step_of,
)
from agentrunner.notes.sources import NoteSources, local_time
from agentrunner.results import CriterionResult, InboxItem
from agentrunner.state.decisions import about_check
from agentrunner.state.evidence_words import LESS_THAN_PROVEN
from agentrunner.state.lifecycle import EndName, end_of
from agentrunner.state.people import IN_WORDS
from agentrunner.state.run_state import Criterion, Finding
from agentrunner.verification.criterion_status import WORD, is_mapped_by_planner
from agentrunner.verification.evidence.findings import approval_of
from agentrunner.verification.verdict import worker_trouble

MAX_UNSEEN = 3
"""Files that are named as not shown to the judge."""
MAX_DECIDE = 5
MAX_NOTES = 60
MAX_CARRIED = 40
"""Most files that are named."""
KNOWN_FINDINGS = frozenset(
    {
        "tests_changed",
        "protected_path",
        "dependencies_changed",
        "tree_changed_by_checks",
        "checks_wrote_files",
    }
)
KNOWN_REASONS = frozenset(
    {"loop_limit", "aborted", "cancelled", "environment_not_ready", *BUDGET_KINDS}
)


def label_of(reading: NoteSources) -> Label:
    """Return the label at the top of the note."""
    result, verdict = reading.result, reading.context.get("verdict")
    if reading.waiting:
        return "WAITING"
    end = end_of(result.state)
    if end is None:
        return "STOPPED"
    if end.next_step == "use":
        unproven = verdict is not None and verdict.reason == "unproven"
        if unproven or result.reason == "unproven":
            return "UNPROVEN"
    return cast(EndName, str(result.state))


def verdict(
    reading: NoteSources, criteria: Sequence[CriterionRow], test: TestFacts | None
) -> tuple[Line, ...]:
    """Return what was executed and with which outcome; nothing from the model."""
    executed = [row for row in criteria if row.evidence in ("checked", "tested")]
    green = sum(row.status == "passed" for row in executed)
    lines: list[Line] = []
    if executed and green == len(executed):
        lines.append(line("checks_all", n=green))
    elif executed:
        lines.append(line("checks_some", green=green, n=len(executed)))
    elif criteria:
        lines.append(line("checks_none"))
    if test is not None:
        lines.append(_tests_in_short(test))
    evidence = reading.context.get("evidence")
    if evidence is not None:
        lines.append(line("on_tree", tree=evidence.tree[:7]))
    return tuple(lines)


def _tests_in_short(test: TestFacts) -> Line:
    if not test.green:
        return line("tests_red", command=test.command)
    if test.known_count:
        return line("tests_known", n=test.known_count)
    if test.passed is None:
        return line("tests_green", command=test.command)
    return line("tests_all", n=test.passed)


def basis(reading: NoteSources, criteria: Sequence[CriterionRow], label: Label) -> tuple[Line, ...]:
    """Return what the verdict leaves to words, and why the run ended or does not continue."""
    lines: list[Line] = []
    judged = sum(row.critical and row.evidence == "judged" for row in criteria)
    if judged:
        lines.append(line("judged_criteria", n=judged))
    elif label == "COMPLETE" and reading.result.grade in LESS_THAN_PROVEN:
        lines.append(line(f"rests_{reading.result.grade}"))
    lines += _withdrawn_checks(reading)
    if label == "UNPROVEN":
        lines.append(line("unproven"))
    if label == "WAITING":
        lines.append(line("waiting_nothing_runs"))
    if label == "STOPPED":
        lines.append(line("stopped"))
    if fell_short(label):
        lines += _why_it_ended(reading)
    if error := reading.result.error:
        lines.append(line("words", text=error.message))
    return tuple(lines)


def _withdrawn_checks(reading: NoteSources) -> list[Line]:
    """Return whose checks were withdrawn or replaced after work had begun, and by whom."""
    late = [c for c in reading.context.get("criteria", []) if c.former and c.former[-1].worker_runs]
    lines = []
    for by in ("planner", "person"):
        ids = [one.id for one in late if one.former[-1].by == by]
        if ids:
            lines.append(line(f"checks_taken_back_{by}", ids=", ".join(ids[:10])))
    return lines


def _why_it_ended(reading: NoteSources) -> list[Line]:
    ended = reading.context.get("verdict")
    reason = str((ended.reason if ended else "") or reading.result.reason or "")
    text = ended.text if ended else ""
    # "budget: wall_sec" names the budget that is spent.
    known = reason.removeprefix("budget: ")
    if known not in KNOWN_REASONS:
        return [line("words", text=text or reason)] if text or reason else []
    lines = [line(f"reason_{known}")]
    if known in ("aborted", "cancelled") and text:
        lines.append(line("words", text=text))
    run = reading.context.get("run")
    return [*lines, line("not_accepted")] if run and run.accepting else lines


def decide(
    reading: NoteSources, criteria: Sequence[CriterionRow], test: TestFacts | None, label: Label
) -> tuple[Line, ...]:
    """Return what a person has to look at, most serious first; for FAILED, what is missing."""
    if reading.waiting:
        lines = _question(reading.waiting)
    elif label == "STOPPED":
        lines = [line("decide_stopped")]
    else:
        failed = next_step_of(label) == "retry"
        lines = [*_red_lines(criteria, test)]
        ill = failed or reading.result.reason == "stuck"
        trouble = worker_trouble(reading.context.get("recent") or ()) if ill else ""
        lines += [line("words", text=trouble)] if trouble else []
        lines += [
            _finding(one)
            for one in _findings(reading)
            if one.blocks or not failed or one.code in ("checkout_lacks", "empty_folders")
        ]
        lines += [] if failed else _judged_lines(criteria)
        lines += [
            line("decide_open", id=row.id, text=row.description)
            for row in criteria
            if row.critical and row.evidence == "none"
        ]
        if fell_short(label):
            lines += _proof_or_words(reading, alone=not lines)
    if len(lines) > MAX_DECIDE:
        lines = [*lines[: MAX_DECIDE - 1], line("decide_more", n=len(lines) - MAX_DECIDE + 1)]
    if lines:
        return tuple(lines)
    if reading.spec.part_of:
        return (line("decide_plan"),)
    return (line("decide_committed" if reading.result.commit else "decide_nothing"),)


def _judged_lines(criteria: Sequence[CriterionRow]) -> list[Line]:
    return [
        line("decide_judged", id=row.id, text=row.description.rstrip(".。"))
        for row in criteria
        if row.critical and row.evidence == "judged" and row.status != "failed"
    ]


def _question(waiting: InboxItem) -> list[Line]:
    kind = "check" if about_check(waiting.kind, waiting.subject) else waiting.kind
    lines = [line(f"question_{kind}", text=waiting.text)]
    if waiting.options:
        numbered = [f"{n} {option}" for n, option in enumerate(waiting.options, start=1)]
        lines.append(line("question_options", options=numbered))
    return lines


def _red_lines(criteria: Sequence[CriterionRow], test: TestFacts | None) -> list[Line]:
    lines = []
    if test is not None and test.exit_code == 0 and test.finding:
        lines.append(line("missing_finding", command=test.command, text=test.finding))
    elif test is not None and not test.green:
        key = "missing_test_named" if test.failing and not test.red else "missing_test"
        lines.append(line(key, command=test.command, exit=test.exit_code, names=test.failing[:3]))
        lines += [line("missing_red", name=one.title, text=one.message) for one in test.red[:3]]
    lines += [
        line("missing_criterion", id=row.id, text=row.description)
        for row in criteria
        if row.critical and row.status == "failed"
    ]
    return lines


def _findings(reading: NoteSources) -> list[Finding]:
    evidence = reading.context.get("evidence")
    approved = reading.context.get("approved") or []
    if evidence is None:
        return []
    return [f for f in evidence.findings if approval_of(f, evidence.tree) not in approved]


def _finding(finding: Finding) -> Line:
    if finding.code in KNOWN_FINDINGS and finding.paths:
        more = max(0, len(finding.paths) - 3)
        return line(f"finding_{finding.code}", paths=finding.paths[:3], more=more)
    return line("words", text=finding.message)


def _proof_or_words(reading: NoteSources, *, alone: bool) -> list[Line]:
    test = reading.result.test
    turned = test.turned if test else []
    if not (reading.result.proof or turned) and reading.spec.completion != "judged":
        return [line("missing_proof")]
    ended = reading.context.get("verdict")
    words = (ended.missing or [ended.text]) if ended and alone else []
    return [line("words", text=text) for text in words if text]


def proof(reading: NoteSources, item: CriterionResult, criterion: Criterion | None) -> Line:
    """Return what was run or read for a criterion, and its outcome."""
    evidence, kind = reading.context.get("evidence"), item.evidence
    outcomes = {check.criterion_id: check for check in (evidence.checks if evidence else ())}
    outcome = outcomes.get(item.id)
    if criterion is not None and criterion.awaits and item.status != "passed":
        awaited = criterion.awaits
        return line(f"proof_awaits_{awaited.kind}", what=awaited.what or "?")
    if kind in ("checked", "tested") and outcome is not None:
        key = "proof_ran_red_before" if outcome.before == "red" else "proof_ran"
        detail = outcome.detail if outcome.exit_code is None else str(outcome.exit_code)
        return line(key, what=outcome.what, found=detail or outcome.outcome)
    mapped = criterion if criterion and is_mapped_by_planner(criterion) else None
    if kind == "tested" and mapped is not None and mapped.tests:
        return line("proof_mapped", text=mapped.proof)
    if kind == "tested" and evidence is not None and evidence.test is not None:
        return line("proof_ran", what=evidence.test.command, found=str(evidence.test.exit_code))
    if kind == "judged":
        return _judged(reading, item, criterion.proof if criterion else "")
    if kind == "none" and outcome is not None and outcome.outcome == "passed":
        return line("proof_green_before", what=outcome.what)
    text = (criterion.proof if criterion else "") or item.detail
    return line("words", text=text) if text else line("proof_none")


def _judged(reading: NoteSources, item: CriterionResult, text: str) -> Line:
    """Return that it is the model's judgement, and how much of the change the model saw.

    `text` says what code found out about the criterion, and why that is not enough.
    """
    if item.status == "failed":
        return line("proof_called_failed")
    if text and not text.startswith(WORD):
        return line("proof_judged_why", text=text)
    assessment = reading.context.get("assessment")
    if assessment is not None and assessment.blind:
        return line("proof_judged_blind")
    if assessment is not None and assessment.unseen:
        more = assessment.unseen_count - MAX_UNSEEN
        names = [*assessment.unseen[:MAX_UNSEEN], *([f"+{more}"] if more > 0 else [])]
        return line("proof_judged_part", names=", ".join(names))
    return line("proof_judged")


def commands(
    reading: NoteSources, criteria: Sequence[CriterionRow], label: Label
) -> tuple[Line, ...]:
    """Return commands to paste, at most four."""
    run = shlex.quote(reading.result.run_id or "")
    waiting = reading.waiting
    if reading.spec.part_of:
        return _commands_of_plan(reading, run, criteria, label)
    if waiting:
        one = f"{run} --id {shlex.quote(waiting.id)}"
        answers = (
            [line("do_answer", command=f'agentrunner answer {one} "…"')]
            if waiting.kind in IN_WORDS
            else [
                line("do_approve", command=f"agentrunner approve {one}"),
                line("do_reject", command=f'agentrunner reject {one} --reason "…"'),
            ]
        )
        return (*answers, line("do_show", show=f"agentrunner show {run}",
                               cancel=f"agentrunner cancel {run}"))  # fmt: skip
    look = _look(reading, run)
    match next_step_of(label):
        case None:
            return (line("do_resume", command=f"agentrunner resume {run}"), *look)
        case "retry":
            return (
                line("do_logs", command=f"agentrunner logs {run}"),
                line("do_hint", command=f'agentrunner resume {run} -m "…" --max-loops 3'),
                *look,
            )
        case "review":
            send_back = line("do_send_back", command=f'agentrunner resume {run} -m "…"')
            return (_accept(run, criteria), send_back, *look)
        case "use":
            return _to_use(reading, look)
        case other:
            assert_never(other)


def _look(reading: NoteSources, run: str) -> tuple[Line, ...]:
    """How to see the changes and take them back; nothing where there are none."""
    result = reading.result
    if not (result.changed_files or result.commit):
        return ()
    return (line("do_look", diff=f"agentrunner diff {run}", undo=f"agentrunner undo {run}"),)


def _to_use(reading: NoteSources, look: tuple[Line, ...]) -> tuple[Line, ...]:
    if made := reading.result.commit:
        outside = reading.result.worktree
        branch, name = shlex.quote(made.branch), made.id[:10]
        take = f"git merge {branch}" if outside else f"git show {name}"
        return (*look, line("do_merge" if outside else "do_look_commit", command=take))
    result = reading.result
    commands = commit_commands(result.to_commit, folder=result.repo)
    commit = line("do_commit", command=" && ".join(commands))
    return (*look, commit) if reading.in_git and look and result.to_commit else look


def _accept(run: str, criteria: Sequence[CriterionRow]) -> Line:
    open_ids = [row.id for row in criteria if row.critical and row.needs_eyes][:10]
    ids = "".join(f" {shlex.quote(one)}" for one in open_ids)
    return line("do_accept", command=f'agentrunner accept {run}{ids} --reason "…"')


def _commands_of_plan(
    reading: NoteSources, run: str, criteria: Sequence[CriterionRow], label: Label
) -> tuple[Line, ...]:
    """Return the commands for a plan's task: messages go to the plan, which continues with them."""
    say = f"agentrunner plan answer {shlex.quote(reading.spec.task_id)}"
    see = line("do_see", diff=f"agentrunner diff {run}")
    go_on = line("do_resume", command="agentrunner plan run")
    if reading.waiting and reading.waiting.kind in IN_WORDS:
        return (line("do_answer", command=f'{say} "…"'), go_on, see)
    if reading.waiting:
        no = line("do_reject", command=f'{say} "no: …"')
        return (line("do_approve", command=f"{say} yes"), no, go_on, see)
    match next_step_of(label):
        case None:
            return (go_on, see)
        case "retry":
            logs = line("do_logs", command=f"agentrunner logs {run}")
            return (logs, line("do_hint", command=f'{say} "…"'), go_on, see)
        case "review":
            return (_accept(run, criteria), line("do_send_back", command=f'{say} "…"'), go_on, see)
        case "use":
            return (see, line("do_plan", command="agentrunner plan status"))
        case other:
            assert_never(other)


def notes(reading: NoteSources) -> tuple[Line, ...]:
    """Return what else the next reader should know, in the order of the log."""
    history, now = reading.history, reading.now
    answers = {record.key: record.data for record in history.answers}
    lines = []
    recorded = history.of("person")  # these have a section of their own
    known = {record.key.partition("-")[0] for record in recorded}
    accepted = {r.data.get("at") for r in recorded if r.data.get("kind") == "acceptance"}
    for record in history.questions:
        if record.key in known:
            continue
        lines.append(line("note_question", text=record.data.get("text")))
        if answer := answers.get(record.key):
            decision = answer.get("decision") or "answer"
            lines.append(line(f"note_{decision}", text=answer.get("text") or ""))
    for record in history.of("wait"):
        data = record.data
        lines.append(line("note_wait", since=local_time(str(data.get("since")), now),
                         until=local_time(str(data.get("until")), now),
                         text=data.get("reason")))  # fmt: skip
    for record in history.human_edits:
        paths = list(map(str, record.data.get("paths") or ()))
        key = "note_later_edit" if record.data.get("ended") else "note_human_edit"
        lines.append(line(key, paths=paths[:5], more=max(0, len(paths) - 5)))
    for record in history.acceptances:
        data = record.data
        if data.get("at") in accepted:
            continue
        key = "note_accepted" if data.get("criteria") else "note_accepted_whole"
        lines.append(line(key, ids=data.get("criteria") or [], by=data.get("by"),
                         at=local_time(str(data.get("at") or record.at), now),
                         reason=data.get("reason")))  # fmt: skip
    lines += [line("note_warning", text=record.data.get("message")) for record in history.warnings]
    lines += [
        line("note_comment", id=criterion.id, text=criterion.comment)
        for criterion in reading.context.get("criteria") or ()
        if criterion.comment
    ]
    return (*_landing(reading), *lines[-MAX_NOTES:])


def _landing(reading: NoteSources) -> list[Line]:
    """Return where the work went, and which files of the checkout were and were not part of it."""
    landing, made = reading.spec.landing, reading.result.commit
    lines = []
    if made:
        lines.append(line("note_commit", commit=made.id, branch=made.branch))
    if landing and landing.carried:
        more = max(0, len(landing.carried) - MAX_CARRIED) + landing.carried_more
        lines.append(line("note_carried", paths=landing.carried[:MAX_CARRIED], more=more))
    if landing and landing.left:
        lines.append(line("note_left", paths=landing.left[:MAX_CARRIED]))
    return lines
