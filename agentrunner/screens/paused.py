"""A run that waits for a person: the paused screen, and the question asked inline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentrunner.screens.approval import subject_lines, verbatim
from agentrunner.screens.layout import (
    PLAIN,
    WIDTH,
    Paint,
    count,
    flat,
    spread,
    worked_and_waited,
    wrap,
)
from agentrunner.screens.summary import Result, next_lines
from agentrunner.state.lifecycle import rounds_of
from agentrunner.state.run_state import IN_WORDS

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
}
OURS = ("budget", "planner")
"""Questions in words that the planner does not ask."""
SHOWN = 600
"""Characters of a planner's last answer on the screen; `show --json` has more."""
QUESTION_PROMPT = "your answer (empty leaves it waiting) > "


SHOWS_DIFF = frozenset({"complete", "tests_changed", "protected_path", "worker_failed"})
"""Approvals that are about work which is there already."""


def letters(kind: str) -> dict[str, str]:
    """What may be typed at an approval of this kind, by letter; only a plan can be edited."""
    return {
        "y": "approve",
        **({"e": "edit"} if kind == "plan" else {}),
        **({"d": "diff"} if kind in SHOWS_DIFF else {}),
        "n": "reject with a reason",
        "q": "leave it waiting",
    }


def approval_prompt(kind: str) -> str:
    """What the letters mean."""
    return "  ".join(f"[{letter}] {what}" for letter, what in letters(kind).items()) + " > "


def paused_screen(
    result: Result,
    *,
    where: str,
    prompt: str = "",
    width: int = WIDTH,
    paint: Paint = PLAIN,
    target: str = "",
) -> str:
    """What is asked, what waiting costs (nothing), and the command that answers.

    `where` names the machine that holds the state: "hana@devbox"; `prompt` is the worker's, where
    that is what is to be approved.
    """
    waiting: Mapping[str, Any] = result.get("waiting") or {}
    approval = bool(waiting) and waiting["kind"] not in IN_WORDS
    lines = [_head(result, str(waiting.get("kind")), width, paint), ""]
    shown = _approval_text(waiting, prompt, width, result) if approval else None
    lines += shown or _question_text(waiting, width)
    lines += [
        "",
        *wrap(
            "Nothing is running and nothing is being spent. It waits as long as you like.",
            width,
            "  ",
        ),
        f"  State is on this machine only: {flat(where)}.",
        "",
    ]
    return "\n".join([*lines, *_next(result, approval, target, width)])


def _head(result: Result, kind: str, width: int, paint: Paint) -> str:
    subject = _NAMES.get(kind) or str(result.get("title") or "")
    names = " · ".join(flat(text) for text in (str(result.get("run_id")), subject) if text)
    loops, runs = (int(result.get(name) or 0) for name in ("loops", "worker_runs"))
    right = count(rounds_of(loops, runs), "round")
    times = worked_and_waited(result.get("duration_sec"), result.get("waited_sec"))
    right = ", ".join([right, *times])
    line = spread(f"WAITING FOR YOU  {names}", right, width)
    return line.replace("WAITING FOR YOU", paint.warn("WAITING FOR YOU"), 1)


def _question_text(waiting: Mapping[str, Any], width: int) -> list[str]:
    asker = "" if waiting.get("kind") in OURS else ", from the planner"
    lines = [f"  Question{asker}:", *wrap(str(waiting.get("text")), width, "    ")]
    lines += _last_answer(waiting, width)
    for number, option in enumerate(waiting.get("options") or [], start=1):
        lines += wrap(f"{number}  {option}", width, "      ")
    return lines


def _last_answer(waiting: Mapping[str, Any], width: int) -> list[str]:
    """What the planner said last, where that could not be used; cut, and nothing of it hidden."""
    if waiting.get("kind") != "planner" or not waiting.get("subject"):
        return []
    said = str(json.loads(str(waiting["subject"])).get("last_answer") or "")
    cut = said[:SHOWN] + ("…" if len(said) > SHOWN else "")
    return ["", "    Its last answer:", *verbatim(cut, width, "      "), ""] if cut else []


def _approval_text(
    waiting: Mapping[str, Any], prompt: str, width: int, result: Mapping[str, Any] | None = None
) -> list[str]:
    """The subject first and the question last: that is what one sees of a long one."""
    lines: list[str] = []
    if waiting.get("subject"):
        kind, subject = str(waiting.get("kind")), str(waiting["subject"])
        lines += [*subject_lines(kind, subject, prompt, width, result), ""]
    lines += wrap(str(waiting.get("text")), width, "  ")
    return [*lines, f"  id {flat(str(waiting.get('id')))}"]


def _next(result: Result, approval: bool, target: str, width: int) -> list[str]:
    waiting = result.get("waiting") or {}
    name = f" {target}" if target else ""
    if approval:
        steps = [
            (f"agentrunner approve{name} --id {flat(str(waiting.get('id')))}", "exactly this"),
            (
                f'agentrunner reject{name} --id {flat(str(waiting.get("id")))} --reason "..."',
                "say what is wrong",
            ),
        ]
    elif waiting.get("kind") == "budget":
        more, stop = waiting.get("options") or ["NAME=+AMOUNT", "stop"]
        steps = [
            (f'agentrunner answer{name} "{more}"', "or any other amount"),
            (f"agentrunner answer{name} {stop}", "end here, FAILED"),
        ]
    elif waiting.get("kind") == "planner":
        steps = _in_its_place(waiting, name, str(result.get("run_id")))
    elif waiting.get("options"):
        steps = [(f"agentrunner answer{name} 1", 'or in your own words: answer "..."')]
    else:
        steps = [(f'agentrunner answer{name} "..."', "in your own words")]
    if result.get("worker_runs"):
        steps.append((f"agentrunner diff{name}", "the work so far"))
    if result.get("part_of"):
        return next_lines([*steps, ("agentrunner plan run", "then the plan goes on")], width)
    return next_lines([*steps, (f"agentrunner cancel{name}", "end here")], width)


def _in_its_place(waiting: Mapping[str, Any], name: str, run_id: str) -> list[tuple[str, str]]:
    steps = [
        (f"agentrunner answer{name} again", "ask it again, once that is put right"),
        (f'agentrunner answer{name} "model: NAME"', "ask another model of the same kind"),
        (
            f"agentrunner resume {flat(run_id)} --planner KIND --planner-model NAME",
            "ask another planner",
        ),
        (f'agentrunner answer{name} "worker: PROMPT"', "order the next worker run yourself"),
    ]
    if "complete" in (waiting.get("options") or []):
        steps.append((f"agentrunner answer{name} complete", "ask for completion yourself"))
    return steps


def approval_screen(
    kind: str,
    waiting: Mapping[str, Any],
    prompt: str = "",
    width: int = WIDTH,
    result: Mapping[str, Any] | None = None,
) -> str:
    """What an inline approval is about: the subject itself, every control character visible.

    What is shown is read from the canonical JSON that will be executed, not from a description.
    `result` is how the run stands, where that is known.
    """
    head = [f"  {_NAMES.get(kind, kind)}", ""]
    return "\n".join([*head, *_approval_text({**waiting, "kind": kind}, prompt, width, result), ""])


def asked_screen(text: str, options: list[str], width: int = WIDTH, kind: str = "") -> str:
    """A question in words, asked inline."""
    return "\n".join(_question_text({"text": text, "options": options, "kind": kind}, width))
