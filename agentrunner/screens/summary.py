"""The last screen: what is proven, what is not, and what to do next, in at most 24 lines."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING, assert_never

from agentrunner.git.staging import commit_command
from agentrunner.screens.bill import bill_lines, cost_line
from agentrunner.screens.layout import (
    PLAIN,
    WIDTH,
    Paint,
    cell,
    clamped,
    count,
    fit,
    flat,
    labelled,
    pasteable,
    spread,
    tilde,
    worked_and_waited,
    wrap,
)
from agentrunner.screens.red_tests import red_lines
from agentrunner.state.lifecycle import UNDONE, end_of, rounds_of
from agentrunner.state.red_tests import MOST
from agentrunner.text.terminal import cell_width, shorten

if TYPE_CHECKING:  # looking at runs must not load the models
    from agentrunner.results import CriterionResult, Result, TestSummary

_ROWS = 9
"""Criteria shown before the rest is summed up, so that the screen stays within 24 lines."""
_NARROW = 60
"""Width in cells below which a criterion takes several lines."""
_MISSING = 6
"""Lines for what is missing, so that one sentence may take more than each of three."""
AT_WORK = "still working, though AgentRunner was stopped; agentrunner resume takes it over"
_LOOK = 2
_LINES = 24
_REDS = 3
"""Lines that criteria leave to red tests, if there are any."""
_IDS = 4


def summary_screen(
    result: Result,
    *,
    warnings: Sequence[str] = (),
    width: int = WIDTH,
    paint: Paint = PLAIN,
    home: str = "",
    target: str = "",
    all_rows: bool = False,
    git: str = "git",
    driven: bool = False,
    at_work: bool = False,
    timezone: tzinfo | None = None,
) -> str:
    """Show the end of a run, or its present state; `driven` while a process works on it.

    `at_work` is whether its worker goes on though nobody drives the run.

    `warnings` are those of this run. `target` names the run in the commands at the end, if it is
    not the newest. `all_rows` lifts the limit of 24 lines (`show`). `git` is how git
    is called for this repository; "" where there is none.
    """
    lines = [_head(result, width, paint, driven), ""]
    lines += _wait_lines(result, width, timezone, driven)
    if at_work:
        lines += [*labelled("worker", AT_WORK, width), ""]
    missing = missing_sentences(result)
    if result.state != "COMPLETE" and missing:
        shown = missing if all_rows else missing[:3]
        for index, sentence in enumerate(shown):
            label = "" if index else "Missing:"
            fold = labelled if all_rows else partial(clamped, most=max(2, _MISSING // len(shown)))
            lines += fold(label, sentence, width)
        lines.append("")
    criteria = open_where_not_shown(
        result.acceptance_criteria, result.completion, proven=bool(result.proofs)
    )
    test = result.test
    reds = [red.as_dict() for red in test.red] if test else []
    if criteria:
        kept_free = 0 if all_rows else min(len(reds), _REDS)
        room = len(criteria) if all_rows else _ROWS - (len(lines) - 2) - kept_free
        lines += [*criteria_rows(criteria, width, paint, max(room, 3)), ""]
    tests, facts = _tests_line(result, width), _facts(result, warnings, width, home, all_rows)
    end = ["", *_next(result, target, width, git, driven)]
    free = _LINES - sum(map(len, (lines, tests, facts, end)))
    if test and reds and (all_rows or free > 0):
        rest = f"agentrunner logs{f' {target}' if target else ''} --tests"
        total = max(test.failed or 0, len(reds))
        most = MOST if all_rows else min(MOST, free)
        most -= not all_rows and total > most >= free and most > 1  # the count takes a line too
        label = "known" if _is_excused(test) else "red"
        tests += red_lines(reds, total, width, most=most, whole=all_rows, rest=rest, label=label)
    return "\n".join([*lines, *tests, *facts, *end])


SOME_NAME = 10
"""Columns of the first line that are left for a task's name, however narrow it is."""


def headline(result: Result, driven: bool = False) -> str:
    """Return a word for the state, with a special one for what code could not prove."""
    end = end_of(result.state)
    if driven and end is None:
        return "WAITING" if result.waiting_until else "RUNNING"
    if end is None or result.reason == "interrupted":
        return "STOPPED"
    if result.undone:
        return f"{end.word.upper()}, {UNDONE.upper()}"
    unproven = end.next_step == "use" and result.reason == "unproven"
    return end.word.upper() + (" (UNPROVEN)" if unproven else "")


def _head(result: Result, width: int, paint: Paint, driven: bool) -> str:
    word = headline(result, driven)
    names = " · ".join(flat(name) for name in (result.task_id, result.title) if name)
    right = worked_and_waited(result.duration_sec, result.waited_sec)
    if result.worker_runs is not None:
        right.append(count(rounds_of(result.loops or 0, result.worker_runs), "round"))
    if result.test and result.test.known_red:
        right.append(count(len(result.test.known_red), "known red"))
    critical = [one for one in result.acceptance_criteria if one.critical]
    judged = sum(one.evidence == "judged" for one in critical)
    if judged and word == "COMPLETE":
        right.append(f"{judged} of {len(critical)} judged")
    while len(right) > 1 and len(word) + len(", ".join(right)) + SOME_NAME > width:
        del right[1 if right[1].startswith("waited") else 0]
    line = spread(f"{word}  {names}", ", ".join(right), width)
    end = end_of(result.state)
    tone = end.tone if end and word == end.word.upper() else "warn"
    return line.replace(word, paint.toned(tone, word), 1)


def _wait_lines(result: Result, width: int, timezone: tzinfo | None, driven: bool) -> list[str]:
    """Return until when a run waits without a person; if nobody drives it, it must be resumed."""
    if not result.waiting_until:
        return []
    until = datetime.fromisoformat(result.waiting_until).astimezone(timezone)
    text = f"until {until:%Y-%m-%d %H:%M:%S}, for a quota or a provider; then it goes on by itself"
    if not driven:
        text = f"until {until:%Y-%m-%d %H:%M:%S}; agentrunner resume waits for what is left"
    return [*labelled("waiting", text, width), ""]


def missing_sentences(result: Result) -> list[str]:
    """Return what is missing for COMPLETE, from the facts of the result."""
    error, test = result.error, result.test
    if result.missing:
        why = [result.text] if result.text and result.reason == "stuck" else []
        return [*why, *result.missing]
    sentences = [error.message] if error else []
    sentences += [text] if (text := _reason_text(result)) and not error else []
    if test and not _is_excused(test) and (test.exit_code != 0 or test.failed):
        since = " (red since before the run)" if test.baseline_exit_code else ""
        since = since if test.measured else f" ({_NOT_MEASURED})"
        sentences.append(f"`{test.command}` exits {test.exit_code}{since}")
    for criterion in result.acceptance_criteria:
        if criterion.critical and criterion.status != "passed":
            word = "fails" if criterion.status == "failed" else "is not shown"
            detail = f": {criterion.detail}" if criterion.detail else ""
            sentences.append(f"{criterion.id} {word}{detail}")
    return sentences


_REASONS = {
    "loop_limit": "the limit of rounds is reached.",
    "aborted": "the planner gave up.",
    "cancelled": "it was cancelled.",
    "interrupted": "it was interrupted; the run is kept.",
    "unproven": "nothing was executed that shows this run's work.",
}


def _reason_text(result: Result) -> str:
    reason = result.reason or ""
    if result.text:
        return result.text
    if reason.startswith("budget: "):
        return f"the budget {reason.removeprefix('budget: ')} is spent."
    return _REASONS.get(reason, reason.replace("_", " "))


def open_where_not_shown(
    criteria: Sequence[CriterionResult], completion: str | None, *, proven: bool
) -> list[CriterionResult]:
    """Return the criteria; one that a planner calls passed and code calls not shown is open.

    `completion` is the mode in force; `proven` is whether anything of the run is proven.
    """
    weak = completion == "strict" or (completion == "evidence" and not proven)
    return [
        one.model_copy(update={"status": "unknown"})
        if weak and one.critical and (one.status, one.evidence) == ("passed", "judged")
        else one
        for one in criteria
    ]


def criteria_rows(
    criteria: Sequence[CriterionResult], width: int, paint: Paint = PLAIN, room: int = _ROWS
) -> list[str]:
    """Return a row per criterion; if there are too many, the settled ones are summed up."""
    shown = list(criteria)
    if len(shown) > room:
        order = sorted(range(len(criteria)), key=lambda index: _settled_rank(criteria[index]))
        shown = [criteria[index] for index in sorted(order[: room - 1])]
    rows = [_cell_texts(criterion) for criterion in shown]
    left_out = len(criteria) - len(shown)
    more = [f"  and {left_out} more: agentrunner show"] * bool(left_out)
    if width < _NARROW:
        pairs = zip(rows, shown, strict=True)
        return [line for row, one in pairs for line in _stacked(row, one, width, paint)] + more
    id_width = min(max((cell_width(row[0]) for row in rows), default=4), 16)
    rest = width - id_width - 22  # what the other columns and the gaps leave
    details = min(max((cell_width(row[4]) for row in rows), default=0), rest * 2 // 5)
    words = min(max((cell_width(row[3]) for row in rows), default=0), rest - details - 2)
    details = rest - words - 2
    lines = []
    for (name, status, evidence, text, detail), criterion in zip(rows, shown, strict=True):
        colour = _colour(criterion, paint)
        lead = f"  {cell(name, id_width)}  {colour(cell(status, 6))}  {cell(evidence, 8)}  "
        lines.append(f"{lead}{cell(text, words)}  {cell(detail, details)}".rstrip())
    return lines + more


def _stacked(
    row: tuple[str, str, str, str, str], criterion: CriterionResult, width: int, paint: Paint
) -> list[str]:
    """Format a criterion in a narrow window: its texts are below its id and status."""
    name, status, evidence, text, detail = row
    below = [shorten(f"    {words}", width) for words in (text, detail) if words]
    return [f"  {name}  {_colour(criterion, paint)(status)}  {evidence}", *below]


def _settled_rank(criterion: CriterionResult) -> int:
    """Sort key: what needs a look comes first."""
    if criterion.status == "passed":
        return 2 if criterion.evidence in ("checked", "tested", "accepted") else 1
    return 0 if criterion.critical else 1


def _cell_texts(criterion: CriterionResult) -> tuple[str, str, str, str, str]:
    status = "open" if criterion.status == "unknown" else criterion.status
    worth = criterion.grade if criterion.grade != "none" else criterion.evidence
    evidence = "-" if worth == "none" else worth
    text = ("" if criterion.critical else "(optional) ") + criterion.description
    detail = criterion.detail or _words(criterion)
    return flat(criterion.id), status, evidence, flat(text), flat(detail)


def _colour(criterion: CriterionResult, paint: Paint) -> Callable[[str], str]:
    if criterion.status == "failed":
        return paint.bad
    proven = criterion.status == "passed" and criterion.evidence != "judged"
    return paint.good if proven else paint.warn


def _words(criterion: CriterionResult) -> str:
    if criterion.evidence == "judged":
        return "the planner's word"
    return "" if criterion.status == "passed" else "not shown"


def _tests_line(result: Result, width: int) -> list[str]:
    return clamped("tests", _tests(result.test), width) if result.test else []


def _facts(
    result: Result, warnings: Sequence[str], width: int, home: str, all_rows: bool
) -> list[str]:
    lines: list[str] = []
    if result.proof:
        # Newly green tests are a proof only once they were examined and confirmed.
        label = "proof" if result.proofs else "green"
        lines += clamped(label, "; ".join(result.proof), width)
    changed, gone = result.changed_files, set(result.deleted_files)
    names = " ".join(flat(name) + " (deleted)" * (name in gone) for name in changed)
    size = f", +{result.lines_added} -{result.lines_removed}" * bool(changed)
    lines.append(spread(f"  files    {len(changed)} changed{size}   {names}".rstrip(), "", width))
    findings = [finding.message for finding in result.findings]
    missing_text = "; ".join(missing_sentences(result))  # already shown above
    seen = [
        text
        for text in (*_judged(result), *findings, *warnings)
        if flat(text) != flat(missing_text)
    ]
    look = list(dict.fromkeys(seen))
    shown = look if all_rows else look[:_LOOK]
    for index, text in enumerate(shown):
        lines.append(spread(f"  {'' if index else 'look':<9}{flat(text)}", "", width))
    lines += clamped("cost", cost_line(result), width)
    for index, text in enumerate(bill_lines(result) if all_rows else ()):
        lines += labelled("" if index else "bill", text, width)
    if commit := result.commit:
        lines.append(f"  commit   {commit.id[:10]} on {flat(commit.branch)}")
    elif result.worktree and not result.part_of:  # a plan removes its work trees
        lines.append(f"  in       {flat(tilde(result.worktree, home))}")
    if result.note:
        note = tilde(result.note, home)
        if result.repo and result.note.startswith(result.repo + "/"):
            note = result.note[len(result.repo) + 1 :]
        lines.append(f"  note     {flat(note)}")
    return lines


_NOT_MEASURED = "before the run; not run since"


def _tests(test: TestSummary) -> str:
    now = _counts(test.passed, test.failed)
    text = now or f"`{test.command}` exits {test.exit_code}"
    if not test.measured:
        return f"{text} {_NOT_MEASURED}"
    before = _counts(test.baseline_passed, test.baseline_failed)
    if not before and test.baseline_exit_code is not None:
        before = f"exit {test.baseline_exit_code}"
    text += f" (before: {before})" if before else ""
    if _is_excused(test):
        number = len(test.known_red)
        text += f"; {number} {'was' if number == 1 else 'were'} red before and still"
        text += f" {'is' if number == 1 else 'are'}"
    return text + (f"; {count(test.added, 'test')} added" if test.added else "")


def _is_excused(test: TestSummary) -> bool:
    """Whether no other tests are red than those that were red before and may be."""
    return bool(test.known_red) and not test.finding


def _counts(passed: int | None, failed: int | None) -> str:
    if passed is None and failed is None:
        return ""
    return f"{passed or 0} passed" + (f", {failed} failed" if failed else "")


def _judged(result: Result) -> list[str]:
    ids = [
        criterion.id
        for criterion in result.acceptance_criteria
        if criterion.evidence == "judged" and criterion.critical
    ]
    verb = "rests" if len(ids) == 1 else "rest"
    return [f"{', '.join(ids)} {verb} on the planner's word"] if ids else []


def _next(result: Result, target: str, width: int, git: str, driven: bool) -> list[str]:
    name = f" {target}" if target else ""
    back = [(f"agentrunner undo{name}", "put the files back")] if result.changed_files else []
    hint = f'agentrunner resume{name} -m "..."'
    end, reason = end_of(result.state), result.reason or ""
    if result.undone:
        return next_lines([(f"agentrunner undo{name}", "brings its files again")], width)
    if result.part_of and (end or not driven):
        return next_lines(_steps_of_plan(result, name), width)
    if end is None and driven:
        return next_lines([(f"agentrunner watch{name}", "see it work")], width)
    if end is None or reason == "interrupted":
        begun = result.state != "PENDING"
        again = (f"agentrunner resume{name}", "go on where it was" if begun else "begin it")
        return next_lines([again, *back] if begun else [again], width)
    match end.next_step:
        case "use":
            steps = _steps_to_use(result, name, git)
        case "review":
            steps = [*_accept_steps(result, name), (hint, "send it back with a remark"), *back]
        case "retry":
            again = (hint, "try again")
            if reason.startswith("budget: "):
                limit = flat(reason.removeprefix("budget: "))
                again = (f"agentrunner resume{name} --budget {limit}=+AMOUNT", "go on with more")
            logs = (f"agentrunner logs{name}", "what the worker did")
            steps = [*_known_reds(result, name), *([logs] if result.worker_runs else []), again]
            steps += back
        case other:
            assert_never(other)
    return next_lines(steps, width)


def _steps_to_use(result: Result, name: str, git: str) -> list[tuple[str, str]]:
    if not (result.changed_files or result.commit):
        return [(f"agentrunner logs{name}", "what happened")]
    steps = [(f"agentrunner diff{name}", "what this run changed")]
    commit = result.commit
    if commit and result.worktree:
        steps.append((f"{git} merge {shlex.quote(commit.branch)}", "take it over"))
    elif commit:
        steps.append((f"{git} show {commit.id[:10]}", "as it was committed"))
    else:
        steps.append((f"agentrunner undo{name}", "put it back"))
    if git and not commit:
        command = commit_command(result.changed_files, git)
        steps.append((command, "nothing was committed for you"))
    return steps


def _accept_steps(result: Result, name: str) -> list[tuple[str, str]]:
    """Return the command for a person's acceptance, where it can count: never for red tests."""
    if result.red:
        return []
    nothing = [] if result.changed_files else ["--unchanged"]
    words = " ".join([f"agentrunner accept{name}", *_review_ids(result), *nothing])
    what = "nothing had to change; ends COMPLETE" if nothing else _YES
    return [(f'{words} --reason "..."', what)]


_YES = "your yes is recorded; COMPLETE, or asks of changed tests"


def _known_reds(result: Result, name: str) -> list[tuple[str, str]]:
    """Return the step for a run where only tests are red that were red before."""
    test = result.test
    if test is None or not test.still_red or test.newly_red or test.gone:
        return []
    if any(one.critical and one.status != "passed" for one in result.acceptance_criteria):
        return []
    command = f'agentrunner accept{name} --known-red NAME --reason "..."'
    return [(command, "red for another reason")]


def _steps_of_plan(result: Result, name: str) -> list[tuple[str, str]]:
    """Return the steps for a plan's task: messages go to the plan, which continues with them."""
    say = f'agentrunner plan answer {flat(str(result.task_id))} "..."'
    go_on = ("agentrunner plan run", "the plan goes on with it")
    end = end_of(result.state)
    match end.next_step if end else None:
        case "use":
            diff = (f"agentrunner diff{name}", "what this run changed")
            lands = ("agentrunner plan run", "lands it, if it has not landed")
            return [diff, ("agentrunner plan status", "what became of it"), lands]
        case "review":
            return [*_accept_steps(result, name), (say, "send it back with a remark"), go_on]
        case "retry":
            logs = (f"agentrunner logs{name}", "what the worker did")
            return [logs, (say, "try again with a hint"), go_on]
        case None:
            return [go_on]
        case other:
            assert_never(other)


def _review_ids(result: Result) -> list[str]:
    """Return ids that need a person's acceptance; [], which means all, if there are too many."""
    ids = [
        flat(criterion.id)
        for criterion in result.acceptance_criteria
        if criterion.critical and (criterion.status != "passed" or criterion.evidence == "judged")
    ]
    return ids if len(ids) <= _IDS else []


def next_lines(steps: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Format `Next:  COMMAND   what it does` with commands in one column and nothing cut.

    A meaning without room beside its command is below it.
    """
    column = _column(steps, width - _LEAD)
    lines = []
    for index, (command, meaning) in enumerate(steps):
        lead = f"{'Next:' if index == 0 else '     '}  "
        if cell_width(command) <= column:
            lines.append(f"{lead}{fit(command, column)}  {flat(meaning)}".rstrip())
        else:
            lines += _in_lines(lead, command, width)
            lines += wrap(meaning, width, " " * (_LEAD + 2))
    return lines


def _in_lines(lead: str, command: str, width: int) -> list[str]:
    first, *rest = pasteable(command, width - _LEAD - 2)
    return [lead + first, *(" " * (_LEAD + 2) + part for part in rest)]


_LEAD = len("Next:  ")


def _column(steps: Sequence[tuple[str, str]], room: int) -> int:
    """The widest command column with room for every meaning beside it; 0 if there is none."""
    beside = sorted(steps, key=lambda step: cell_width(step[0]))
    while beside:
        column = cell_width(beside[-1][0])
        if column + 2 + max(cell_width(flat(meaning)) for _, meaning in beside) <= room:
            return column
        beside.pop()
    return 0
