"""What the planner is shown of the repository before the run: files, set-up, and tests by name."""

from __future__ import annotations

import json
from pathlib import Path

from agentrunner.config.kinds import planner_kind
from agentrunner.discovery.planning_context import repository_context
from agentrunner.execution.deps import Deps
from agentrunner.execution.planner_checks import asked_by_people
from agentrunner.execution.seeing import CONTEXT_FILE
from agentrunner.prompts import ContextBudget
from agentrunner.prompts.context_budget import UNKNOWN, fitted
from agentrunner.state.run_state import Baseline
from agentrunner.state.short_names import further, shortened
from agentrunner.verification.results.model import Results

MOST_RED, MOST_GREEN = 100, 40
"""How many names of red and of green tests a planner is shown."""
LEAST_RED = 5
"""The same where its context is short."""


def repository_for_planner(
    deps: Deps, baseline: Baseline, names: Results | None, budget: ContextBudget
) -> dict[str, object] | None:
    """Return what the planner is told of the repository, within the budget, and save it. Blocks.

    Returns None where no candidate that plans calls a model.
    """
    known = repository_before(deps, baseline, budget)
    if known is None:
        return None
    if names is not None:
        known["tests"] = with_ids(names_for_planner(names, budget))
    if budget.known:
        known = fitted(known, budget.repository)
    keep_context(deps, baseline, known)
    return known


def names_for_planner(results: Results, budget: ContextBudget = UNKNOWN) -> dict[str, object]:
    """Return test names of the suite for a prompt, red ones first, cut to the limits above."""
    red = list(dict.fromkeys(test.name for test in results.red))
    green = [test.name for test in results.tests if test.outcome == "passed"]
    most_red, most_green = MOST_RED, MOST_GREEN
    if budget.known:
        most_red = min(MOST_RED, max(LEAST_RED, budget.repository // 80))
        most_green = min(MOST_GREEN, budget.repository // 160)
    return {
        "red_now": red[:most_red],
        "passing_now": green[:most_green],
        "in_all": len(results.tests),
    }


def with_ids(tests: dict[str, object]) -> dict[str, object]:
    """Return the names of tests, each with an id that stands for it from then on.

    A plan maps criteria to tests by these ids: names are text of the repository, and no schema is
    made of that.
    """
    ids = further(tests, {}, 1)
    by_name = {name: test_id for test_id, name in ids.items()}
    return {**({"ids": ids} if ids else {}), **shortened(tests, by_name)}


def repository_before(
    deps: Deps, baseline: Baseline, budget: ContextBudget = UNKNOWN
) -> dict[str, object] | None:
    """Return what a model should know of the repository before the run; each call gives the same.

    Returns None where no candidate that plans calls a model.
    """
    runner = deps.spec.runner
    candidates = (runner.profiles.plan or runner.profiles.meta).candidates
    kinds = {candidate.kind for candidate in candidates} or {runner.meta.kind}
    if not any(planner_kind(kind).calls_model for kind in kinds):
        return None
    kept = deps.folder.root / CONTEXT_FILE
    if kept.exists():
        known = json.loads(kept.read_bytes())
        if known["tree"] == baseline.tree:
            return dict(known["facts"])
    return repository_context(
        deps.snapshots, baseline.tree, Path(deps.spec.repo), deps.redactor.redact,
        asked_by_people(deps), budget.repository // 3,
    )  # fmt: skip


def keep_context(deps: Deps, baseline: Baseline, known: dict[str, object]) -> None:
    """Save what the planner was shown, test names too: each later prompt begins with it."""
    kept = deps.folder.root / CONTEXT_FILE
    facts = {name: value for name, value in known.items() if name != "tests"}
    text = json.dumps({"tree": baseline.tree, "facts": facts, "told": known}, ensure_ascii=False)
    if not kept.exists() or kept.read_text("utf-8") != text:
        deps.folder.write(CONTEXT_FILE, text)
