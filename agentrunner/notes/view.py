"""From a run to its note's content: `build_view` joins the result, the state and the run log."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agentrunner.config.spec import TaskSpec
from agentrunner.money.amount import Amount, amount_of_entry, least_usd, total
from agentrunner.notes import sentences
from agentrunner.notes.note_model import (
    BillLine,
    CommandRow,
    CriterionRow,
    Line,
    Log,
    NoteView,
    PersonRow,
    PlannerCallRow,
    RedRow,
    RunFigures,
    Shown,
    TestFacts,
    WorkerRunRow,
    line,
)
from agentrunner.notes.sources import NoteSources, attachment, local_time, period
from agentrunner.results import BillEntry, Result
from agentrunner.state.decisions import words_of
from agentrunner.state.lifecycle import LEAST_WAIT_SEC
from agentrunner.state.people import People
from agentrunner.state.red_tests import as_values, first_line, how_many, shown_red, title_of
from agentrunner.state.run_state import RedTest, TaskContext
from agentrunner.state.state_model import FileRef
from agentrunner.storage.run_log import History
from agentrunner.text.cut import cut
from agentrunner.text.terminal import cell_width, sanitize

MAX_PLANNER_CALLS = 200
MAX_RUNS = 100
MAX_COMMANDS = 10
MAX_CHANGES = 10
MAX_DECISIONS = 20
FULL_ENTRIES = 10
"""How many of the newest calls and runs a full note shows with their text."""

MAX_CRITERIA = 200
MAX_FAILING = 10
MAX_BILL = 60
MAX_RISKS = 3
PERSON_CHARS = 1000
PERSON_LINES = 40
PRD_BYTES = 128 * 1024
SUMMARY_CHARS = 2000


def build_view(
    result: Result,
    context: TaskContext,
    spec: TaskSpec,
    history: History,
    *,
    host: str,
    now: datetime,
    tail: Callable[[FileRef], str],
    redact: Callable[[str], str] = str,
    in_git: bool = True,
) -> NoteView:
    """Return the content of a run's note at this moment, at its end or while it waits.

    `result` is the run's present state. `host` is the `user@machine` where commands must be given.
    `now` is an aware time; all times are shown in its zone. `tail` reads the end of a file of the
    run's folder, and is only called for what is shown. Without `in_git` no commit is offered.
    Terminal controls are removed from all texts, which then pass through `redact`.
    """
    reading = NoteSources(result, context, spec, history, now, tail, in_git)
    label = sentences.label_of(reading)
    log = build_log(reading)
    criteria = _criteria(reading)
    test = _test(reading)
    people = context.get("people") or People()
    run = context.get("run")
    started = run.started_at if run else ""
    ended = label not in ("WAITING", "STOPPED")
    view = NoteView(
        run_id=result.run_id or "",
        task_id=spec.task_id,
        title=spec.title,
        repo=spec.shown_repo,
        host=host,
        state=str(result.state or ""),
        label=label,
        started_at=local_time(started, now),
        finished_at=local_time(now.isoformat(), now) if ended else "",
        period=period(started, now),
        tree=_tree(context),
        verdict=sentences.verdict(reading, criteria, test),
        basis=sentences.basis(reading, criteria, label),
        decide=sentences.decide(reading, criteria, test, label),
        criteria=tuple(criteria[:MAX_CRITERIA]),
        criteria_omitted=max(0, len(criteria) - MAX_CRITERIA),
        test=test,
        proof=tuple(result.proof),
        facts=_facts(reading),
        bill=_bill(reading),
        bill_omitted=max(0, len(result.bill) - MAX_BILL),
        risks=_risks(reading)[:MAX_RISKS],
        commands=sentences.commands(reading, criteria, label),
        summary=summary_of(reading)[:SUMMARY_CHARS],
        prd_summary=prd_summary(spec.prd_text),
        prd_text=cut_bytes(spec.prd_text, PRD_BYTES),
        people=_people(reading),
        people_older=tuple(one.line for one in people.older[-PERSON_LINES:]),
        people_omitted=people.omitted + max(0, len(people.older) - PERSON_LINES),
        log=replace(log, notes=sentences.notes(reading)),
        full=spec.runner.note.detail == "full",
    )
    safe: NoteView = map_texts(view, lambda text: redact(sanitize(text)))
    return safe


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Copy a record, mapping or sequence with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Line):
        # The key is our own and names a phrase.
        return Line(value.key, {key: map_texts(item, change) for key, item in value.values.items()})
    if names := _field_names(value):
        return type(value)(**{name: map_texts(getattr(value, name), change) for name in names})
    if isinstance(value, list | tuple):
        return tuple(map_texts(item, change) for item in value)
    return value


def _field_names(value: Any) -> Sequence[str]:
    if isinstance(value, Struct):
        return value.__struct_fields__
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value)]
    return ()


def prd_summary(text: str) -> str:
    """Return the first paragraph of prose of a PRD, or its first heading if there is none."""
    headings: list[str] = []
    paragraph: list[str] = []
    # Before lines are joined: an unfinished control string hides what follows in its line.
    for row in sanitize(text).splitlines():
        stripped = row.strip().lstrip("> ")
        if stripped.startswith("#"):
            headings.append(stripped.lstrip("#").strip())
        elif stripped:
            paragraph.append(stripped)
            continue
        if paragraph:
            break
    summary = _joined(paragraph) or (headings[0] if headings else "")
    return cut(summary, 400)


def _joined(lines: Sequence[str]) -> str:
    """Join lines; between wide characters, as in Japanese, without a space."""
    text = ""
    for row in lines:
        wide = text and cell_width(text[-1]) == cell_width(row[0]) == 2
        text += row if wide or not text else f" {row}"
    return text


def cut_bytes(text: str, limit: int) -> str:
    """Cut `text` to `limit` bytes of UTF-8, with an ellipsis line if something is left out."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= limit else raw[:limit].decode("utf-8", "ignore") + "\n…"


def _tree(context: TaskContext) -> str:
    evidence = context.get("evidence")
    return (evidence.tree if evidence else context.get("tree") or "")[:7]


def _criteria(reading: NoteSources) -> list[CriterionRow]:
    known = {criterion.id: criterion for criterion in reading.context.get("criteria") or []}
    rows = []
    for item in reading.result.acceptance_criteria:
        criterion = known.get(item.id)
        strict = reading.spec.completion == "strict"
        refused = strict and item.critical and item.evidence == "judged"
        status: Shown = "open" if item.status == "unknown" else item.status
        rows.append(
            CriterionRow(
                id=item.id,
                description=item.description,
                critical=item.critical,
                status="open" if status == "passed" and refused else status,
                evidence=item.evidence,
                proof=sentences.proof(reading, item, criterion),
                grade=item.grade,
            )
        )
    return rows


def _test(reading: NoteSources) -> TestFacts | None:
    evidence, baseline = reading.context.get("evidence"), reading.context.get("baseline")
    outcome = evidence.test if evidence else None
    if outcome is None:
        return None
    before = baseline.test if baseline else None
    shown, known = shown_red(outcome), frozenset(outcome.known_red)
    # Without messages, the names in `failing` are enough.
    red = _rows(one for one in shown if one.name not in known) if outcome.red else ()
    return TestFacts(
        command=outcome.command,
        exit_code=outcome.exit_code,
        passed=outcome.passed,
        failed=outcome.failed,
        finding=outcome.finding,
        failing=tuple(name for name in outcome.failing if name not in known)[:MAX_FAILING],
        red=red,
        red_more=max(0, how_many(outcome) - outcome.how_many("known_red") - len(red)) if red else 0,
        known=_rows(one for one in shown if one.name in known),
        known_count=outcome.how_many("known_red"),
        before_exit=before.exit_code if before else None,
        before_passed=before.passed if before else None,
        before_failed=before.failed if before else None,
        added=evidence.tests_added if evidence else 0,
        seconds=outcome.duration_sec,
        output=attachment(outcome.output, reading),
        tail=outcome.tail,
        named=bool(outcome.reader),
    )


def _rows(reds: Iterable[RedTest]) -> tuple[RedRow, ...]:
    return tuple(RedRow(title_of(red), first_line(str(red["message"]))) for red in as_values(reds))


def _facts(reading: NoteSources) -> RunFigures:
    result, spec = reading.result, reading.spec
    evidence = reading.context.get("evidence")
    changes = [change for run in reading.worker_runs for change in run.get("changes") or ()]
    return RunFigures(
        loops=result.loops or 0,
        worker_runs=result.worker_runs or 0,
        meta_calls=result.meta_calls or 0,
        tokens=result.usage.tokens,
        seconds=result.duration_sec or 0,
        waited=waited if (waited := result.waited_sec or 0) >= LEAST_WAIT_SEC else 0,
        worker=" ".join(filter(None, (spec.runner.worker.kind, spec.runner.worker.model))),
        meta=" ".join(filter(None, (spec.runner.meta.kind, spec.runner.meta.model))),
        sandbox=spec.runner.sandbox.kind,
        network=spec.runner.sandbox.network.policy if spec.runner.sandbox.network else "none",
        completion=spec.completion,
        changed=tuple(result.changed_files),
        deleted=tuple(result.deleted_files),
        added_lines=sum(change.get("added") or 0 for change in changes),
        removed_lines=sum(change.get("removed") or 0 for change in changes),
        protected_touched=any(
            finding.code == "protected_path" for finding in (evidence.findings if evidence else ())
        ),
    )


def _people(reading: NoteSources) -> tuple[PersonRow, ...]:
    people = reading.context.get("people") or People()
    return tuple(
        PersonRow(
            at=local_time(one.at, reading.now),
            by=one.by,
            asked=one.asked,
            decision=one.decision,
            text=words_of(one) if len(one.text) <= PERSON_CHARS else one.text[:PERSON_CHARS] + "…",
        )
        for one in people.recent
    )


def _bill(reading: NoteSources) -> tuple[BillLine, ...]:
    """Return the bill's lines; lines left out are still in the sum."""
    rows = reading.result.bill
    lines = [bill_line(row) for row in rows[-MAX_BILL:]]
    return (*lines, sum_of(rows)) if len(rows) > 1 else tuple(lines)


def bill_line(row: BillEntry) -> BillLine:
    """Convert a row of a result's bill."""
    who = " ".join(filter(None, (row.role, row.candidate, row.run)))
    return _line_of(who, amount_of_entry(row), row.usd)


def sum_of(rows: Sequence[BillEntry]) -> BillLine:
    """Add up rows of a bill (at least one), without a role and model."""
    amounts = [amount_of_entry(row) for row in rows]
    return _line_of("", dataclasses.replace(total(amounts), model=""), least_usd(amounts))


def _line_of(who: str, amount: Amount, usd: float | None) -> BillLine:
    return BillLine(
        who=who,
        model=amount.model,
        calls=amount.calls,
        tokens_in=amount.input_tokens,
        tokens_out=amount.output_tokens,
        known=amount.known,
        unknown_calls=amount.unknown_calls,
        usd=usd,
        unpriced=amount.unpriced_calls > 0,
        subscription=amount.subscription,
        tokens_cached=amount.cached_tokens,
    )


def _risks(reading: NoteSources) -> tuple[str, ...]:
    assessment = reading.context.get("assessment")
    return tuple(assessment.risks) if assessment else ()


def build_log(reading: NoteSources) -> Log:
    """Return the newest calls and runs in order, and how many older ones are left out."""
    calls = [record.data for record in reading.history.meta_calls]
    runs = reading.worker_runs
    old_calls, old_runs = len(calls) - FULL_ENTRIES, len(runs) - FULL_ENTRIES
    decisions = {
        record.data["worker_run_id"]: record.data
        for record in reading.history.decisions
        if record.data.get("worker_run_id")
    }
    return Log(
        meta_calls=tuple(
            _meta_call(data, reading, recent=index >= old_calls) for index, data in enumerate(calls)
        )[-MAX_PLANNER_CALLS:],
        meta_calls_omitted=max(0, len(calls) - MAX_PLANNER_CALLS),
        runs=tuple(
            _run(index + 1, data, decisions, reading, recent=index >= old_runs)
            for index, data in enumerate(runs)
        )[-MAX_RUNS:],
        runs_omitted=max(0, len(runs) - MAX_RUNS),
        decisions=_other_decisions(reading),
    )


def summary_of(reading: NoteSources) -> str:
    """Return the planner's latest text about the whole; what a worker says is told of its run."""
    assessment = reading.context.get("assessment")
    if assessment and assessment.summary:
        return assessment.summary
    return reading.context.get("completion_reason") or ""


def _meta_call(data: Mapping[str, Any], reading: NoteSources, *, recent: bool) -> PlannerCallRow:
    usage = data.get("usage") or {}
    return PlannerCallRow(
        type=str(data.get("type") or ""),
        at=local_time(str(data.get("at") or ""), reading.now),
        seconds=data.get("duration_sec") or 0,
        tokens=(usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0),
        model=str(data.get("model") or ""),
        error=_error(data.get("error")),
        request=attachment(data.get("request"), reading, recent=recent),
        response=attachment(data.get("response"), reading, recent=recent),
    )


def _error(error: object) -> str:
    if isinstance(error, Mapping):
        return ": ".join(str(error[key]) for key in ("code", "message") if error.get(key))
    return str(error or "")


def _run(
    number: int,
    data: Mapping[str, Any],
    decisions: Mapping[str, Mapping[str, Any]],
    reading: NoteSources,
    *,
    recent: bool,
) -> WorkerRunRow:
    commands, changes = data.get("commands") or (), data.get("changes") or ()
    decision = decisions.get(data["worker_run_id"], {})
    return WorkerRunRow(
        number=number,
        id=data["worker_run_id"],
        worker=str(data.get("worker") or ""),
        outcome=str(data.get("outcome") or ""),
        exit_code=data.get("exit_code"),
        started_at=local_time(str(data.get("started_at") or ""), reading.now),
        ended_at=local_time(str(data.get("ended_at") or ""), reading.now),
        seconds=data.get("duration_sec") or 0,
        decision=str(decision.get("reason") or ""),
        patterns=tuple(map(str, decision.get("used_patterns") or ())),
        summary=str(data.get("summary") or ""),
        error=str(data.get("error") or ""),
        commands=tuple(map(_command, commands[-MAX_COMMANDS:])),
        commands_omitted=max(0, len(commands) - MAX_COMMANDS),
        changes=tuple(str(change.get("path") or "") for change in changes[:MAX_CHANGES]),
        changes_omitted=max(0, len(changes) - MAX_CHANGES),
        output=attachment(data.get("output"), reading, recent=recent),
        errors=attachment(data.get("errors"), reading, recent=recent),
    )


def _command(data: Mapping[str, Any]) -> CommandRow:
    """Derive the status from the exit code if the worker gave no more than that."""
    status, exit_code = str(data.get("status") or ""), data.get("exit_code")
    if status in ("", "completed") and exit_code is not None:
        status = "passed" if exit_code == 0 else "failed"
    return CommandRow(str(data.get("command") or ""), status or "?")


def _other_decisions(reading: NoteSources) -> tuple[Line, ...]:
    return tuple(
        line("decision", action=record.data.get("action"), reason=record.data.get("reason") or "")
        for record in reading.history.decisions
        if not record.data.get("worker_run_id")
    )[-MAX_DECISIONS:]
