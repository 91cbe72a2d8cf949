"""A run that waits for a person: the paused screen, and inline questions."""

from __future__ import annotations

import json

from agentrunner.errors.workers import WorkerModelRefused
from agentrunner.results import InboxItem, Result
from agentrunner.screens.approval import beginning, subject_lines, verbatim
from agentrunner.screens.layout import (
    PLAIN,
    WIDTH,
    Paint,
    count,
    flat,
    headed,
    hung,
    unbroken,
    worked_and_waited,
    wrap,
)
from agentrunner.screens.next_steps import next_lines
from agentrunner.state.decisions import about_check, fields_of
from agentrunner.state.people import CHECK_AFTER, EDITABLE, IN_WORDS

_NAMES = {
    "plan": "plan approval",
    "worker": "worker approval",
    "complete": "approval of completion",
    "tests_changed": "what decides was changed, or is in doubt",
    "protected_path": "a protected path was changed",
    "network": "a host is asked for",
    "budget": "a budget is spent",
    "worker_failed": "the worker could not work",
    "planner": "the planner gave no answer",
    "tests_could_not_run": "some tests cannot run here",
}
_FINDINGS = {
    "tests_gone": "tests that ran before are missing or skipped",
    "flaky": "a test is green once and red once",
    "packages_changed": "tests or tools were installed anew",
    "editable_install": "tests may import another folder",
    "work_unasked": "requested work may be missing",
    "work_beside": "the work touches what it was not asked to",
    "only_in_tests": "the work may pass in tests alone",
    "work_not_lasting": "the work may not last",
    "not_built_again": "tests may load what old sources were built to",
    "work_pinned": "the work may fit the tests alone",
    "dependencies_changed": "dependencies were changed",
    "checkout_lacks": "a checkout may lack files",
    "empty_folders": "a checkout lacks empty folders",
    "submodule_changed": "work in a submodule is not handed over",
    "not_held": "files cannot be handed over",
    "links_out": "links lead out of what is handed over",
    "not_in_git": "git ignores what was asked for",
    "unkept": "files are too large to be verified",
    "setup_failed": "the set-up fails on what is handed over",
}
"""By code of a finding: what an approval is about, where that is not what decides."""
_YES_AND_NO = {
    "worker_failed": ("try again", "end it: FAILED"),
    "tests_could_not_run": ("continue without them", "end it: FAILED"),
}
"""What a yes and a no do, where they are not about a text to be approved."""
OURS = ("budget", "planner")
"""Questions in words that do not come from the planner."""
SHOWN = 600
"""Most characters shown of a planner's last answer; `show --json` has more."""
QUESTION_PROMPT = "your answer (empty leaves it waiting) > "
QUESTION_PROMPT_OF_CUT = "your answer (p shows it whole, empty leaves it waiting) > "
SHOWS_DIFF = frozenset({"complete", "tests_changed", "protected_path", "worker_failed"})
"""Approvals about work that already exists."""


def letters(kind: str) -> dict[str, str]:
    """The possible answers to an approval of this kind, by letter."""
    return {
        "y": "approve",
        **({"e": "edit"} if kind in EDITABLE else {}),
        **({"p": "whole prompt"} if kind == "worker" else {}),
        **({"d": "diff"} if kind in SHOWS_DIFF else {}),
        "n": "reject with a reason",
        "q": "leave it waiting",
    }


def approval_prompt(kind: str) -> str:
    """Return the prompt that explains the letters."""
    items = (unbroken(f"[{letter}] {what}") for letter, what in letters(kind).items())
    return "  ".join(items) + " > "


def paused_screen(
    result: Result,
    *,
    where: str,
    prompt: str = "",
    width: int = WIDTH,
    paint: Paint = PLAIN,
    target: str = "",
    brief: bool = False,
) -> str:
    """Show what is asked, that waiting costs nothing, and the commands to answer.

    `where` names the machine that holds the state: "hana@devbox"; `prompt` is the worker's prompt,
    if that is to be approved. `brief` leaves out what was just shown in the same terminal.
    """
    waiting = result.waiting
    assert waiting is not None, "a run that waits"
    lines = [*_head(result, waiting.kind, width, paint), ""]
    if not brief and waiting.kind in IN_WORDS:
        lines += [*_question_text(waiting, width), *_options(waiting, width), ""]
    elif not brief:
        lines += [*_approval_text(waiting, prompt, width, result), ""]
    lines += [
        *wrap(
            "Nothing is running and nothing is being spent. It waits as long as you like.",
            width,
            "  ",
        ),
        f"  State is on this machine only: {flat(where)}.",
        "",
    ]
    return "\n".join([*lines, *_next(result, waiting, target, width)])


def about(waiting: InboxItem) -> str:
    """Return in a few words what is asked; "" for a kind that has none."""
    if about_check(waiting.kind, waiting.subject):
        return "a check cannot run"
    code = str(fields_of(waiting.subject).get("code", ""))
    return _FINDINGS.get(code) or _NAMES.get(waiting.kind, "")


def _head(result: Result, kind: str, width: int, paint: Paint) -> list[str]:
    waiting = result.waiting
    subject = (about(waiting) if waiting else _NAMES.get(kind)) or result.title or ""
    names = " · ".join(flat(text) for text in (str(result.run_id), subject) if text)
    rounds = count(result.rounds_done, "round")
    right = ", ".join([rounds, *worked_and_waited(result.duration_sec, result.waited_sec)])
    first, *below = headed("WAITING FOR YOU", names, right, width)
    return [first.replace("WAITING FOR YOU", paint.warn("WAITING FOR YOU"), 1), *below]


def _question_text(waiting: InboxItem, width: int) -> list[str]:
    asker = "" if waiting.kind in OURS else ", from the planner"
    lines = [f"  Question{asker}:", *wrap(waiting.text, width, "    ")]
    return lines + _last_answer(waiting, width)


def _options(waiting: InboxItem, width: int) -> list[str]:
    options = enumerate(waiting.options, start=1)
    return [line for one in options for line in wrap("{}  {}".format(*one), width, "      ")]


def _last_answer(waiting: InboxItem, width: int) -> list[str]:
    """Show the planner's last, unusable answer; cut, with control characters visible."""
    if waiting.kind != "planner":
        return []
    answer = str(fields_of(waiting.subject).get("last_answer") or "")
    cut = answer[:SHOWN] + ("…" if len(answer) > SHOWN else "")
    return ["", "    Its last answer:", *verbatim(cut, width, "      "), ""] if cut else []


def _approval_text(
    waiting: InboxItem,
    prompt: str,
    width: int,
    result: Result | None = None,
    left_out: int = 0,
    *,
    folded: bool = False,
) -> list[str]:
    """Show the subject first and the question last, where a reader of a long text ends.

    The question of a worker's order is its reason, and comes first.
    """
    value = _UNTOLD[waiting.kind](waiting) if waiting.kind in _UNTOLD else waiting.subject
    subject = subject_lines(waiting.kind, value, prompt, width, result, left_out, folded=folded)
    text, end = wrap(waiting.text, width, "  "), f"  id {flat(waiting.id)}"
    if waiting.kind == "worker":
        return [*text, "", *subject, end]
    return [*subject, *[""] * bool(subject), *text, end]


def _order_untold(waiting: InboxItem) -> str:
    """Return the subject without the reason of the order, where the question's text ends in it."""
    fields = fields_of(waiting.subject)
    order = fields.get("order")
    if not isinstance(order, dict) or not waiting.text.endswith(f": {order.get('reason')}"):
        return waiting.subject
    return json.dumps({**fields, "order": {**order, "reason": ""}})


def _tests_untold(waiting: InboxItem) -> str:
    """Return the subject without what the question's own text names: tests, and why."""
    fields, text = fields_of(waiting.subject), " ".join(waiting.text.split())
    if not fields:
        return waiting.subject
    for key in ("tests", "why"):
        if isinstance(names := fields.get(key), list):
            fields[key] = [one for one in names if " ".join(str(one).split()) not in text]
    return json.dumps(fields) if any(fields.values()) else ""


_UNTOLD = {"worker": _order_untold, "tests_could_not_run": _tests_untold}
"""By kind of question: its subject without what its text says, too."""


def _next(result: Result, waiting: InboxItem, target: str, width: int) -> list[str]:
    name = f" {target}" if target else ""
    if waiting.kind not in IN_WORDS:
        yes, no = _YES_AND_NO.get(waiting.kind, ("exactly this", "say what is wrong"))
        steps = [
            (f"agentrunner approve{name} --id {flat(waiting.id)}", yes),
            (f'agentrunner reject{name} --id {flat(waiting.id)} --reason "..."', no),
        ]
        if waiting.kind == "worker_failed" and _is_about_model(waiting):
            again = f"agentrunner resume {flat(str(result.run_id))} --model NAME"
            steps.insert(1, (again, "try it with another model"))
    elif waiting.kind == "budget":
        more, stop = waiting.options or ["NAME=+AMOUNT", "stop"]
        steps = [
            (f'agentrunner answer{name} "{more}"', "or any other amount"),
            (f"agentrunner answer{name} {stop}", "end here, FAILED"),
        ]
    elif waiting.kind == "planner":
        steps = _planner_steps(waiting, name, str(result.run_id))
    elif waiting.options:
        steps = [(f"agentrunner answer{name} 1", 'or in your own words: answer "..."')]
    else:
        steps = [(f'agentrunner answer{name} "..."', "in your own words")]
    if result.worker_runs:
        steps.append((f"agentrunner diff{name}", "the work so far"))
    if result.part_of:
        return next_lines([*steps, ("agentrunner plan run", "then the plan continues")], width)
    return next_lines([*steps, (f"agentrunner cancel{name}", "end here")], width)


def _is_about_model(waiting: InboxItem) -> bool:
    return bool(fields_of(waiting.subject).get("code") == WorkerModelRefused.code)


def _planner_answers(waiting: InboxItem) -> list[tuple[str, str]]:
    """Return all that may be answered in a planner's place, each with what it does."""
    if about_check(waiting.kind, waiting.subject):
        answers = [
            ("again", "try it again, once what it lacks is there"),
            ("check: COMMAND", "another check in its place"),
            ("drop", "continue without it"),
        ]
        if fields_of(waiting.subject).get("asked_for") == CHECK_AFTER:
            answers.append(("accept: REASON", "you looked, and it is met"))
        return answers
    answers = [
        ("again", "ask it again, once that is put right"),
        ("model: NAME", "ask another model of the same kind"),
        ("worker: PROMPT", "order the next worker run yourself"),
    ]
    if "complete" in waiting.options:
        answers.append(("complete", "ask for completion yourself"))
    return answers


def _planner_steps(waiting: InboxItem, name: str, run_id: str) -> list[tuple[str, str]]:
    steps = [
        (f"agentrunner answer{name} " + (f'"{words}"' if " " in words else words), what)
        for words, what in _planner_answers(waiting)
    ]
    if not about_check(waiting.kind, waiting.subject):
        other = f"agentrunner resume {flat(run_id)} --planner KIND --planner-model NAME"
        steps.insert(2, (other, "ask another planner"))
    return steps


def _planner_menu(waiting: InboxItem, width: int) -> list[str]:
    """Return all that may be answered, with the number of what has one, and what it does."""
    answers = [*_planner_answers(waiting), ("end", "end here")]
    longest = max(len(words) for words, _ in answers)
    numbers = {option: number for number, option in enumerate(waiting.options, start=1)}
    lines: list[str] = []
    for words, what in sorted(answers, key=lambda one: numbers.get(one[0], len(answers))):
        lead = f"      {numbers.get(words, ' ')}  {words:<{longest}}  "
        lines += hung(lead, what, width)
    return lines


def approval_screen(
    waiting: InboxItem,
    prompt: str = "",
    width: int = WIDTH,
    result: Result | None = None,
    height: int = 0,
) -> str:
    """Show the subject of an inline approval, every control character visible.

    It is read from the canonical JSON that will be executed, not from a description. `result` is
    the present state of the run, if known. In a terminal of this `height` a worker's prompt is cut
    so that all else fits, with the letters to answer by.
    """
    head = [f"  {about(waiting) or waiting.kind}", ""]
    folded = height > 0
    text = _approval_text(waiting, prompt, width, result, folded=folded)
    room = height - len(head) - 1 - len(wrap(approval_prompt(waiting.kind), width - 4))
    if height and len(text) > room:
        left_out = len(text) - room
        text = _approval_text(waiting, prompt, width, result, left_out, folded=folded)
    return "\n".join([*head, *text, ""])


def asked_screen(waiting: InboxItem, width: int = WIDTH, height: int = 0) -> str:
    """Show a question in words, asked inline: no commands follow that say what may be answered.

    In a terminal of this `height` a long text of the planner's is cut so that all else fits.
    """
    menu = (_planner_menu if waiting.kind == "planner" else _options)(waiting, width)
    text = _question_text(waiting, width)
    room = height - len(menu) - 1 - len(wrap(QUESTION_PROMPT_OF_CUT, width - 4))
    return "\n".join([*(beginning(text, len(text) - room) if height else text), *menu])


def is_cut(waiting: InboxItem, width: int, height: int) -> bool:
    """Whether `asked_screen` shows less than all of a question."""
    return asked_screen(waiting, width) != asked_screen(waiting, width, height)


def whole_question(waiting: InboxItem, width: int) -> str:
    """Return all of a question in words."""
    return "\n".join(_question_text(waiting, width))
