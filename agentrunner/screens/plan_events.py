"""Events of a plan's execution, one line each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agentrunner.plans.plan import FELL_SHORT, PlanTaskStatus, status_word
from agentrunner.screens.layout import count, flat
from agentrunner.text.terminal import shorten

if TYPE_CHECKING:
    from agentrunner.results import PlanResult

EVIDENCE_CELLS = 300


def event_line(event: Mapping[str, Any], *, chat: bool = False, before: str = "") -> str:
    """Return a line for people; "" for an event that tells them nothing new.

    What `before`, the line above it on the same task, says already is not said again.
    """
    task = flat(str(event.get("task_id") or ""))
    match event.get("event"):
        case "plan_started":
            notices = "".join(f" {flat(str(text))}" for text in event["notices"])
            return f"{_start_line(event)}{notices}"
        case "plan_task":
            detail = flat(str(event.get("detail") or ""))
            known = PlanTaskStatus.FIXING if detail else PlanTaskStatus.COMPLETE
            if event["status"] == known:
                return ""  # the next event says it: another round, or merged
            when = f", again at {local(event['retry_at']):%H:%M}" if event.get("retry_at") else ""
            new = detail and detail not in before
            if detail and not new and event["status"] == PlanTaskStatus.BLOCKED:
                return ""  # its question is the line above
            line = f"{task} {status_word(event['status'], '', driven=True)}{when}"
            return f"{line}: {detail}" if new else line if line != before else ""
        case "plan_question":
            command = "/answer" if chat else "agentrunner plan answer"
            answer = f"{command} {event['question']} TEXT"
            if event["status"] in FELL_SHORT:  # the next event says how it ended
                return f"{task} waits for you: {answer}"
            text = str(event["text"]).strip()
            # Elsewhere the end of it, or the prompt, shows the question whole.
            asked = flat(text) if chat else shorten(flat(text.partition("\n")[0]), EVIDENCE_CELLS)
            return f"{task} asks: {asked}  ({answer})"
        case "plan_fixing":
            why = flat(str(event["evidence"]).strip().partition("\n")[0])
            return f"{task} goes into another round: {shorten(why, EVIDENCE_CELLS)}"
        case "plan_landed":
            if not event["commit"]:
                return f"{task} is done, in the folder itself."
            return f"{task} is part of the plan's branch."
        case "plan_published":
            return f"Branch {flat(str(event['branch']))} is at {str(event['commit'])[:10]}."
        case "plan_delivered":
            onto = f" It is part of {flat(str(event['onto']))}." if event["onto"] else ""
            opened = f" Request: {flat(str(event['request']))}" if event["request"] else ""
            return f"{onto}{opened}".strip()
        case "warning":
            run = flat(str(event.get("run_id") or ""))
            return f"Warning{f', {run}' if run else ''}: {flat(str(event['message']))}"
        case "waiting":
            until = f"{local(event['until']):%H:%M:%S}"
            return f"{flat(str(event['run_id']))} waits until {until}: {flat(str(event['reason']))}"
    return ""


def local(stamp: object) -> datetime:
    """Convert to the person's local time."""
    return datetime.fromisoformat(str(stamp)).astimezone()


def _start_line(event: Mapping[str, Any]) -> str:
    """Return how many tasks there are, and what will happen to them."""
    done, waiting, behind = (len(event.get(name, ())) for name in ("done", "waiting", "behind"))
    ready = len(event["tasks"]) - done - waiting - behind
    tasks = count(len(event["tasks"]), "task")
    if ready == len(event["tasks"]):
        return f"{tasks} to carry out."
    parts = [
        f"{done} complete" if done else "",
        f"{ready} to carry out" if ready else "",
        f"{waiting} {'waits' if waiting == 1 else 'wait'} for your answer" if waiting else "",
        f"{behind} behind {'it' if waiting == 1 else 'them'}" if behind else "",
    ]
    return f"{tasks}: {', '.join(filter(None, parts))}."


def end_line(result: PlanResult) -> str:
    """Return the outcome of executing a plan, as sentences."""
    words = [
        status_word(status, "others" if task_id in result.blocked else "", driven=False)
        for task_id, status in result.tasks.items()
    ]
    counts = [f"{words.count(one)} {one}" for one in dict.fromkeys(words)]
    parts = [f"The plan run has ended: {', '.join(counts)}."]
    if result.branch:
        parts.append(f"Branch {flat(result.branch)}.")
    if result.questions:
        parts.append(f"{count(len(result.questions), 'question')} for you.")
    if result.budget_spent:
        parts.append(f"The budget {result.budget_spent} is spent.")
    return " ".join(parts)
