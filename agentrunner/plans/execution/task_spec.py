"""Turns a task of a plan into one that can be run. Pure except for the files that settings name."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.markdown import detect_language
from agentrunner.config.prd import read_item
from agentrunner.config.spec import Check, CriterionSpec, TaskSpec
from agentrunner.discovery.candidates import detect_test
from agentrunner.errors import AgentRunnerError, UsageError
from agentrunner.plans.execution.plan_settings import PlanSettings
from agentrunner.plans.plan import Plan
from agentrunner.prompts import render


def task_spec(
    plan: Plan,
    task_id: str,
    settings: PlanSettings,
    *,
    repo: Path,
    environ: Mapping[str, str],
    evidence: str = "",
    marked: Sequence[str] = (),
    broken: Sequence[Mapping[str, Any]] = (),
) -> TaskSpec:
    """Return the task file for a task of the plan, read like any other.

    `repo` is its work tree; `evidence` says why its earlier work could not be merged. `marked` are
    files that have conflict marks now, `broken` criteria of others that it has to make true again.
    Raises UsageError for settings that are not valid.
    """
    design = plan.design_of(task_id)
    task: dict[str, object] = {
        "id": task_id,
        "title": design.title,
        "repo": str(repo),
        "prd": {"text": requirements(plan, task_id, evidence)},
        "acceptance_criteria": [
            criterion.model_dump(exclude_defaults=True, exclude={"line"})
            for criterion in [
                *criteria_of(design.acceptance_criteria),
                *_unmarked(marked),
                *map(CriterionSpec.model_validate, broken),
            ]
        ],
    }
    if settings.setup:
        task["setup"] = {"command": settings.setup}
    return _read_task(task, settings, environ)


def kinds_of(settings: PlanSettings, repo: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the kinds of planner and worker of tasks with these settings, by section.

    {} where they cannot be read as they are. Blocks.
    """
    task: dict[str, object] = {"title": "-", "repo": str(repo), "prd": {"text": "-"}}
    with contextlib.suppress(AgentRunnerError):
        runner = _read_task(task, settings, environ).runner
        return {"meta": runner.meta.kind, "worker": runner.worker.kind}
    return {}


def _read_task(
    task: Mapping[str, object], settings: PlanSettings, environ: Mapping[str, str]
) -> TaskSpec:
    return load_task(
        TaskSource("stdin", json.dumps({"version": "1", "task": task}, ensure_ascii=False)),
        overrides=list(settings.overrides.values()),
        options=settings.options,
        environ=environ,
        cwd=Path(settings.base_dir),
        detect_test=detect_test,
        auto=True,
    )


def requirements(plan: Plan, task_id: str, evidence: str = "") -> str:
    """Return the PRD of a task, in the language of its own title and description."""
    design = plan.design_of(task_id)
    hint = design.suggested_impl
    before = (plan.design_of(other).title for other in design.dependencies)
    return render(
        "task_prd",
        detect_language(f"{design.title}\n{design.description}"),
        task_id=task_id,
        title=_line(design.title),
        description=_quoted(design.description),
        goal=_line(plan.goal),
        phase=_line(design.phase_name),
        milestone=_line(design.milestone),
        done_before=", ".join(map(_line, before)),
        language_hint=_line(hint.language) if hint else "",
        files=", ".join(f"`{_line(path)}`" for path in hint.file_paths) if hint else "",
        constraints=[_line(text) for text in hint.constraints] if hint else [],
        evidence=_quoted(evidence),
    )


def criteria_of(texts: Iterable[str]) -> list[CriterionSpec]:
    """Return the criteria of a plan, each read like an item of a PRD where it is one.

    A planner may have written a check that cannot be read; then only the description stays. An id
    that is given twice counts once.
    """
    found: list[CriterionSpec] = []
    for criterion in _read(texts):
        used = {other.id.casefold() for other in found}
        repeated = criterion.id.casefold() in used
        found.append(criterion.model_copy(update={"id": "" if repeated else criterion.id}))
    return found


def _unmarked(files: Sequence[str]) -> Iterator[CriterionSpec]:
    """Yield the criterion that is red until a conflict is resolved, so that this is proven."""
    if files:
        names = " ".join(map(shlex.quote, files))
        yield CriterionSpec(
            description=f"The conflict is solved: no mark is left in {', '.join(files)}.",
            check=Check(kind="command", run=f"! grep -nE '^(<<<<<<<|>>>>>>>) ' -- {names}"),
        )


def _read(texts: Iterable[str]) -> Iterator[CriterionSpec]:
    for text in filter(str.strip, texts):
        try:
            yield read_item(text, "the plan", 1)
        except UsageError:
            yield CriterionSpec(description=text.strip())


def _line(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    """Return a text as a quotation: its headings, lists and fences are then none of the PRD's."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().split("\n")) if text else ""
