"""What was asked for, as texts and as names of tests. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agentrunner.config.spec import TaskSpec
from agentrunner.state.run_state import Criterion


def wanted_by(spec: TaskSpec, criteria: Sequence[Criterion]) -> list[str]:
    """All texts that say what is asked for: PRD, title, criteria and what their checks look for.

    The test command says how tests are run, and is left out where a planner quotes it.
    """
    texts = [spec.prd_text, spec.title]
    command = spec.task.test.command if spec.task.test else ""
    for one in criteria:
        values = one.check.model_dump(exclude={"kind"}, exclude_defaults=True) if one.check else {}
        checked = "\n".join(map(str, values.values()))
        for text, origin in ((one.description, one.origin), (checked, one.check_origin)):
            texts.append(text.replace(command, "") if command and origin == "model" else text)
        texts.append(one.detail)
    return texts


def mapped_by(criteria: Sequence[Criterion]) -> set[str]:
    """Names of tests that criteria stand on."""
    return {name for criterion in criteria for name in criterion.tests}
