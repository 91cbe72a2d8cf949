"""The last screen: what is proven, what is not, and what to do next, in at most 24 lines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from agentrunner.money.amount import Amount, amount_of_entry, least_usd, total
from agentrunner.screens.approval import verbatim
from agentrunner.screens.criteria import ROWS, criteria_rows, open_where_not_shown
from agentrunner.screens.diff import with_short_ids
from agentrunner.screens.layout import (
    PLAIN,
    WIDTH,
    Paint,
    clamped,
    count,
    flat,
    headed,
    labelled,
    spread,
    thousands,
    tilde,
    worked_and_waited,
)
from agentrunner.screens.next_steps import result_steps
from agentrunner.screens.red_tests import red_lines
from agentrunner.state.evidence_words import LESS_THAN_PROVEN
from agentrunner.state.lifecycle import NOT_STARTED, UNDONE, end_of, only_by_name
from agentrunner.state.red_tests import MOST
from agentrunner.text.lazy_regex import lazy_regex

if TYPE_CHECKING:  # looking at runs must not load the models
    from agentrunner.results import BillEntry, Result, TestSummary, TokenCount, UsageTotals

_MOST_ROWS = 20

_MISSING = 6
"""Lines for what is missing, so that one sentence may take more than each of three."""
AT_WORK = "still working, though AgentRunner was stopped; agentrunner resume takes it over"
_LOOK = 2
_LINES = 24
_SENTENCE_END = lazy_regex(r"(?<=\S[.!?])\s+(?=[A-Z])")
_COMMAND = lazy_regex(r"`?\bagentrunner ")
_COMMAND_LINES = 3
"""Lines of what follows from a command on that stay whole, also where fewer are left."""
_REDS = 3
"""Lines that criteria leave to red tests, if there are any."""


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

    `at_work` is whether its worker is at work though nobody drives the run.

    `warnings` are those of this run. `target` names the run in the commands at the end, if it is
    not the newest. `all_rows` lifts the limit of 24 lines (`show`). `git` is how git
    is called for this repository; "" where there is none.
    """
    if only_by_name(result.reason):
        target = target or str(result.run_id)
    lines = [*_head(result, width, paint, driven), ""]
    lines += _wait_lines(result, width, timezone, driven)
    if at_work:
        lines += [*labelled("worker", AT_WORK, width), ""]
    missing = missing_sentences(result)
    stopped = headline(result, driven) == "STOPPED" and not at_work
    if stopped and not (result.reason or result.error or result.waiting_until):
        missing = [_REASONS["interrupted"], *missing]
    listed = [] if result.state == "COMPLETE" else missing if all_rows else missing[:3]
    begins, most_lines = len(lines), sum(len(labelled("", one, width)) for one in listed)
    if listed:
        lines += [*_missing_lines(listed, width, most_lines if all_rows else _MISSING), ""]
    criteria = open_where_not_shown(
        result.acceptance_criteria, result.completion, proven=bool(result.proofs)
    )
    test = result.test
    reds = [red.as_dict() for red in test.red] if test else []
    if criteria:
        kept_free = 0 if all_rows else min(len(reds), _REDS)
        room = len(criteria) if all_rows else ROWS - (len(lines) - 2) - kept_free
        lines += [*criteria_rows(criteria, width, paint, max(room, 3)), ""]
    tests, facts = _tests_line(result, width), _facts(result, warnings, width, home, all_rows)
    end = ["", *result_steps(result, target, width, git, driven)]
    free = _LINES - sum(map(len, (lines, tests, facts, end)))
    if test and reds and (all_rows or free > 0):
        rest = f"agentrunner logs{f' {target}' if target else ''} --tests"
        total = max(test.failed or 0, len(reds))
        most = MOST if all_rows else min(MOST, free)
        most -= not all_rows and total > most >= free and most > 1  # the count takes a line too
        known = test.known_red
        tests += red_lines(reds, total, width, most=most, whole=all_rows, rest=rest, known=known)
    if listed and not all_rows:
        rows = len(_missing_lines(listed, width, _MISSING))
        free = _LINES - sum(map(len, (lines, tests, facts, end)))
        # The last words of a sentence may be those that decide: what is free is for them.
        more = _missing_lines(listed, width, _MISSING, free)
        if len(more) < most_lines or len(listed) < len(missing):
            all_of_it = (f"agentrunner show{f' {target}' if target else ''}", "all of it")
            whole = ["", *result_steps(result, target, width, git, driven, first=all_of_it)]
            free -= len(whole) - len(end)
            if free >= 0:
                more, end = _missing_lines(listed, width, _MISSING, free), whole
        lines[begins : begins + rows] = more
    return "\n".join([*lines, *tests, *facts, *end])


def _missing_lines(listed: Sequence[str], width: int, room: int, free: int = 0) -> list[str]:
    """Return what is missing in about `room` lines, of which short sentences leave long ones more.

    Each has two at least. `free` more are for those that are cut, the first of them first.
    """
    needed = [len(labelled("", sentence, width)) for sentence in listed]
    fair = max(2, room // len(listed))
    spare = room - sum(min(need, fair) for need in needed)
    lines = []
    for index, (sentence, need) in enumerate(zip(listed, needed, strict=True)):
        label = "" if index else "Missing:"
        most = fair + max(spare, 0)
        spare -= max(min(need, most) - fair, 0)
        block = _fitting(label, sentence, width, most)
        longer = _fitting(label, sentence, width, max(most, len(block)) + max(free, 0))
        if 0 < len(longer) - len(block) <= free:
            free -= len(longer) - len(block)
            block = longer
        lines += block
    return lines


SOME_NAME = 10
"""Columns of the first line that are left for a task's name, however narrow it is."""


def headline(result: Result, driven: bool = False) -> str:
    """Return a word for the state, with a special one for what code could not prove."""
    end = end_of(result.state)
    if driven and end is None:
        return "WAITING" if result.waiting_until else "RUNNING"
    if result.reason == "not_started":
        return NOT_STARTED.upper()
    if end is None or result.reason == "interrupted":
        return "STOPPED"
    if result.undone:
        return f"{end.word.upper()}, {UNDONE.upper()}"
    unproven = end.next_step == "use" and result.reason == "unproven"
    return end.word.upper() + (" (UNPROVEN)" if unproven else "")


def _head(result: Result, width: int, paint: Paint, driven: bool) -> list[str]:
    word = headline(result, driven)
    names = " · ".join(flat(name) for name in (result.task_id, result.title) if name)
    right = worked_and_waited(result.duration_sec, result.waited_sec)
    if result.worker_runs is not None:
        right.append(count(result.rounds_done, "round"))
    if result.test and result.test.known_red:
        right.append(count(result.test.how_many("known_red"), "known red"))
    critical = [one for one in result.acceptance_criteria if one.critical]
    judged = sum(one.evidence == "judged" for one in critical)
    if judged and word == "COMPLETE":
        right.append(f"{judged} of {len(critical)} judged")
    elif word == "COMPLETE" and result.grade in LESS_THAN_PROVEN:
        word += f" ({result.grade})"
    while len(right) > 1 and len(word) + len(", ".join(right)) + SOME_NAME > width:
        del right[1 if right[1].startswith("waited") else 0]
    first, *below = headed(word, names, ", ".join(right), width)
    end = end_of(result.state)
    tone = end.tone if end and headline(result, driven) == end.word.upper() else "warn"
    return [first.replace(word, paint.toned(tone, word), 1), *below]


def _wait_lines(result: Result, width: int, timezone: tzinfo | None, driven: bool) -> list[str]:
    """Return until when a run waits without a person; if nobody drives it, it must be resumed."""
    if not result.waiting_until:
        return []
    until = datetime.fromisoformat(result.waiting_until).astimezone(timezone)
    text = (
        f"until {until:%Y-%m-%d %H:%M:%S}, for a quota or a provider; then it continues by itself"
    )
    if not driven:
        text = f"until {until:%Y-%m-%d %H:%M:%S}; agentrunner resume waits for what is left"
    return [*labelled("waiting", text, width), ""]


def _fitting(label: str, text: str, width: int, most: int) -> list[str]:
    """Like `clamped`, but the last of several sentences stays whole: it says why, or what to do.

    What it is about is cut instead, which may be a long list of names; `show` has it. A long last
    sentence is cut, too, before the command that it names.
    """
    *about, last = _SENTENCE_END.split(text)
    if not about or len(labelled(label, text, width)) <= most:
        return clamped(label, text, width, most)
    command = _COMMAND.search(last)
    room = max(most - 1, _COMMAND_LINES if command else 1)
    if command and len(labelled("", last, width)) > room:
        about.append(last[: command.start()].rstrip())
        last = last[command.start() :]
    end = clamped("", last, width, room)
    return [*clamped(label, " ".join(about), width, max(most - len(end), 1)), *end]


def missing_sentences(result: Result) -> list[str]:
    """Return what is missing for COMPLETE, from the facts of the result, each once."""
    sentences = list(dict.fromkeys(_missing_facts(result)))
    return [
        one
        for one in sentences
        if not any(one.rstrip(".") in other for other in sentences if other != one)
    ]


def _missing_facts(result: Result) -> list[str]:
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
            word = "fails" if criterion.status == "failed" else "has no evidence yet"
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
        for text in (*_judged(result), *findings, *warnings, *_mapped(result))
        if not all(part in flat(missing_text) for part in flat(text).split("; "))
    ]
    look = list(dict.fromkeys(seen))
    shown = look if all_rows else look[:_LOOK]
    for index, text in enumerate(shown):
        lines.append(spread(f"  {'' if index else 'look':<9}{flat(text)}", "", width))
    for finding in result.findings if all_rows else ():
        if finding.diff:
            lines += ["", *verbatim(with_short_ids(finding.diff).rstrip("\n"), width, "    "), ""]
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
    text += "; no test names: the exit code counts" * (not test.reader)
    if _is_excused(test):
        number = test.how_many("known_red")
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


def _mapped(result: Result) -> list[str]:
    """Return which criteria rest on tests that only the planner said to be about them."""
    ids = [
        one.id
        for one in result.acceptance_criteria
        if one.mapped_by == "planner" and (one.status, one.evidence) == ("passed", "tested")
    ]
    whose = "its test is" if len(ids) == 1 else "their tests are"
    return [f"{', '.join(ids)}: {whose} mapped by the planner"] if ids else []


def _judged(result: Result) -> list[str]:
    ids = [
        criterion.id
        for criterion in result.acceptance_criteria
        if criterion.evidence == "judged" and criterion.critical
    ]
    verb = "rests" if len(ids) == 1 else "rest"
    return [f"{', '.join(ids)} {verb} on the planner's word"] if ids else []


def cost_line(result: Result) -> str:
    """Return tokens of planner and workers, the source of these figures, and the money."""
    usage, rows = result.usage, result.bill
    begun = bool(rows or result.meta_calls or result.worker_runs)
    if (rows or not begun) and not any(map(_cost_something, rows)):
        # Calls of an outage cost as little as those of a planner that is no model.
        return "none: no tokens were used" if rows else "none: no model was asked"
    planner = [row for row in rows if row.role != "worker"]
    worker = [row for row in rows if row.role == "worker"]
    of_planner = _with_source(_tokens(usage.meta), planner)
    of_worker = _with_source(_tokens(usage.worker), worker)
    text = f"planner {of_planner}, worker {of_worker}"
    return text + ("" if rows else " (reported)") + _money(usage, rows)


def _cost_something(row: BillEntry) -> bool:
    """Whether a model was called, or may have been."""
    tokens = row.input_tokens + row.output_tokens
    return bool(tokens or row.subscription or row.usd or row.known != "counted")


def bill_lines(result: Result) -> list[str]:
    """Return a line for each role, model and worker run, newest last; [] if nothing is known."""
    left = len(result.bill) - _MOST_ROWS
    older = [f"and {left} older lines: agentrunner show --json"] if left > 0 else []
    return older + [_line(row) for row in result.bill[-_MOST_ROWS:]]


def _line(row: BillEntry) -> str:
    who = " ".join(flat(name) for name in (row.role, row.run, row.model) if name)
    if row.candidate and row.role != "worker":
        who += f" ({flat(row.candidate)})"
    calls = "calls not counted" if row.calls is None else count(row.calls, "call")
    tokens = _with_source(f"{row.input_tokens + row.output_tokens:,}", [row])
    return f"{who}: {calls}, {tokens}{_cached(row)}, {_price([row])}"


def _cached(row: BillEntry) -> str:
    """Return the share of input from the provider's cache, if it is reported."""
    if not row.cached_tokens or not row.input_tokens:
        return ""
    return f" ({min(100, round(100 * row.cached_tokens / row.input_tokens))} % of the input cached)"


def _with_source(tokens: str, rows: Sequence[BillEntry]) -> str:
    """Return the number of tokens, with what is to be known of it where it was not counted."""
    whole = total(_amounts(rows))
    match whole.known:
        case "counted":
            return f"{tokens} tokens"
        case "reported":
            return f"{tokens} tokens (reported)"
    return f"at least {tokens} tokens (no usage reported for {count(whole.unknown_calls, 'call')})"


def _money(usage: UsageTotals, rows: Sequence[BillEntry]) -> str:
    if rows:
        return f", {_price(rows)}"
    if usage.usd is not None:
        return f", {usage.usd:.2f} USD"
    # An unknown price is not 0; without any call there is no price.
    return ", price unknown" * bool(usage.tokens)


def _price(rows: Sequence[BillEntry]) -> str:
    """Return the money of paid calls, and which roles use a subscription; never 0 for either."""
    paid = [row for row in rows if not row.subscription]
    words = []
    usd = least_usd(_amounts(paid))
    unpriced = total(_amounts(paid)).unpriced_calls > 0
    if usd:
        words.append(f"{'at least ' * unpriced}{usd:.2f} USD")
    elif unpriced:
        words.append("price unknown")
    if len(paid) < len(rows):
        roles = dict.fromkeys(row.role for row in rows if row.subscription)
        whose = f"{' and '.join(roles)} " * bool(paid)
        words.append(f"{whose}in your subscription")
    return ", ".join(words) or "no cost"


def _amounts(rows: Sequence[BillEntry]) -> list[Amount]:
    return [amount_of_entry(row) for row in rows]


def _tokens(usage: TokenCount) -> str:
    return "an unknown number of" if usage.known is None else thousands(usage.known)
