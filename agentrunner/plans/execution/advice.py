"""Advice about missing settings of a plan, given before anything is spent."""

from __future__ import annotations

import shlex
from pathlib import Path

from agentrunner.config.spec import TaskSpec
from agentrunner.discovery.outside import not_taken_along
from agentrunner.discovery.repository import detect_tests
from agentrunner.git.private_clone import BRANCHES, CloneStore
from agentrunner.plans.execution.branch import BRANCH
from agentrunner.plans.execution.task_spec import criteria_of
from agentrunner.plans.plan import Plan
from agentrunner.text.unicode import to_text
from agentrunner.verification.evidence.checks import is_executable

UNPROVEN = "No test command and no check of a criterion: nothing of the plan proves its merges."


def advice(clone: CloneStore, spec: TaskSpec, plan: Plan) -> list[str]:
    """Return sentences for a person; `spec` is any task of the plan, whose branch exists.

    Blocks.
    """
    messages = unproven(clone.repo, spec, plan)
    if spec.task.setup is None:
        head = clone.resolve(f"{BRANCHES}{BRANCH}")
        out = clone.git.run("ls-tree", "-z", "--name-only", head)
        present = {to_text(name) for name in out.split(b"\0")}
        messages += not_taken_along(clone.repo, present, "--setup {}")
    return messages


def unproven(repo: Path, spec: TaskSpec, plan: Plan) -> list[str]:
    """Return a notice where no test or check of the plan runs on a merged tree."""
    test = spec.task.test
    texts = [text for task in plan.tasks for text in plan.design_of(task).acceptance_criteria]
    if test or any(is_executable(criterion.check, test) for criterion in criteria_of(texts)):
        return []
    found = detect_tests(repo)
    if found is None:
        return [UNPROVEN]
    return [f"{UNPROVEN} --test {shlex.quote(found.command)} would ({found.where})."]
