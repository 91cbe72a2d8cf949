"""The text of a pull or merge request: the plan's tree, its notes and proofs. Pure.

All texts in it come from people, models and workers. Each is shown as code, on one line, with its
mentions and references broken, so that none notifies anybody, closes anything or is read as HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from agentrunner.notes.markdown import code
from agentrunner.plans.execution.commit_message import harmless
from agentrunner.plans.plan import Plan, PlanTaskStatus, status_word

MAX_CHARACTERS = 60_000
"""GitHub accepts 65,536."""
MAX_PROOFS = 5
TITLE_WIDTH = 100
LINE_WIDTH = 300
_CUT = "\n…and more than fits here.\n"


class TaskReport(Struct, frozen=True):
    """The result of a task's run."""

    run_id: str = ""
    text: str = ""
    """The verdict, one sentence."""
    proof: Sequence[str] = ()
    files: int = 0
    """How many files were changed."""


def request_title(plan: Plan, redact: Callable[[str], str]) -> str:
    """Return the title: the goal on one line, as far as it fits."""
    return harmless(redact(plan.goal), TITLE_WIDTH) or "A plan carried out by AgentRunner"


def request_body(
    plan: Plan,
    reports: Mapping[str, TaskReport],
    questions: Sequence[str],
    redact: Callable[[str], str],
) -> str:
    """Return the text under the title. `reports` are by task id; `questions` are still open."""

    def shown(text: str) -> str:
        return str(code(harmless(redact(text), LINE_WIDTH)))

    done = sum(task.status == PlanTaskStatus.COMPLETE for task in plan.tasks.values())
    lines = [
        f"**Goal:** {shown(plan.goal)}" if plan.goal else "",
        "",
        f"{done} of {len(plan.tasks)} tasks are complete and part of this branch.",
        "",
        *_tree(plan, shown),
        *_proofs(plan, reports, shown),
    ]
    if questions:
        lines += ["", "### Open questions", "", *(f"- {shown(text)}" for text in questions)]
    lines += ["", "Made by AgentRunner; `agentrunner show RUN` tells the whole story of a run."]
    return _bounded(lines)


def _tree(plan: Plan, shown: Callable[[str], str]) -> Iterator[str]:
    """Yield the plan as a nested list."""
    for node_id, depth in plan.outline():
        node, indent = plan.nodes[node_id], "  " * depth
        title = shown(plan.designs[node_id].title)
        if node.task_id is None:
            yield f"{indent}- {title}"
            continue
        status = plan.shown_status(node.task_id)
        tick = "x" if status == PlanTaskStatus.COMPLETE else " "
        word = (
            "" if status == PlanTaskStatus.COMPLETE else f" ({status_word(status, driven=False)})"
        )
        yield f"{indent}- [{tick}] {node.task_id} {title}{word}"


def _proofs(
    plan: Plan, reports: Mapping[str, TaskReport], shown: Callable[[str], str]
) -> Iterator[str]:
    task_ids = [task_id for task_id in plan.task_order() if task_id in reports]
    if task_ids:
        yield from ("", "### What proves it", "")
    for task_id in task_ids:
        report = reports[task_id]
        files = f"{report.files} {'file' if report.files == 1 else 'files'}"
        yield f"- {task_id}, run {shown(report.run_id)}, {files}: {shown(report.text)}"
        yield from (f"  - {shown(line)}" for line in report.proof[:MAX_PROOFS])


def _bounded(lines: Sequence[str]) -> str:
    """Return the text, cut between lines: a cut code span would affect what follows."""
    text = ""
    for line in lines:
        if len(text) + len(line) + 1 > MAX_CHARACTERS - len(_CUT):
            return text + _CUT
        text += f"{line}\n"
    return text.strip() + "\n"
