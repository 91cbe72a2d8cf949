"""What happens while a plan is carried out, one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentrunner.screens.layout import count, flat


def event_line(event: Mapping[str, Any], *, chat: bool = False) -> str:
    """A line for people; "" for an event that says nothing new to them."""
    task = flat(str(event.get("task_id") or ""))
    match event.get("event"):
        case "plan_started":
            notices = "".join(f" {flat(str(text))}" for text in event["notices"])
            return f"{count(len(event['tasks']), 'task')} to carry out.{notices}"
        case "plan_task":
            detail = flat(str(event.get("detail") or ""))
            return f"{task} {event['status']}" + (f": {detail}" if detail else "")
        case "plan_question":
            command = "/answer" if chat else "agentrunner plan answer"
            return f"{task} asks: {flat(str(event['text']))}  ({command} {event['question']} TEXT)"
        case "plan_fixing":
            return f"{task} goes into another round: {flat(str(event['evidence']))[:200]}"
        case "plan_landed":
            return f"{task} is part of the plan's branch."
        case "plan_published":
            return f"Branch {flat(str(event['branch']))} is at {str(event['commit'])[:10]}."
        case "plan_delivered":
            onto = f" It is part of {flat(str(event['onto']))}." if event["onto"] else ""
            opened = f" Request: {flat(str(event['request']))}" if event["request"] else ""
            return f"{onto}{opened}".strip()
        case "warning":
            return f"Warning: {flat(str(event['message']))}"
    return ""


def end_line(result: Mapping[str, Any]) -> str:
    """What carrying a plan out came to, from its `plan_result`."""
    statuses = list(result["tasks"].values())
    told = [f"{statuses.count(one)} {one}" for one in dict.fromkeys(statuses)]
    parts = [f"The plan has come to a rest: {', '.join(told)}."]
    if result.get("branch"):
        parts.append(f"Branch {flat(str(result['branch']))}.")
    if result.get("questions"):
        parts.append(f"{count(len(result['questions']), 'question')} for you.")
    if result.get("budget_spent"):
        parts.append(f"The budget {result['budget_spent']} is spent.")
    return " ".join(parts)
