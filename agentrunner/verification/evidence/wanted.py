"""What was asked for: its texts, and the names of tests that stand for it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agentrunner.config.spec import TaskSpec
from agentrunner.state.run_state import Criterion
from agentrunner.text.lazy_regex import lazy_regex

ALWAYS = lazy_regex(
    r"(?i)\b(?:always|never|every(?:one|body|thing)?|all|any(?:one|body|thing)?|no longer"
    r"|(?:no|any) ?more|gone|turned off|constant\w*|returns? (?:true|false|null|none|\d)"
    r"|unconditional\w*|remov\w+|drop\w*|disabl\w+|retir\w+|stub\w*)\b|常に|必ず|すべて|全て|削除|廃止"
)
"""Words of a text that wants one answer for whatever is handed in."""


def wants_one_answer(text: str) -> bool:
    """Whether a text may want a function to answer the same for whatever it is handed."""
    return ALWAYS.search(text) is not None


def wanted_by(spec: TaskSpec, criteria: Sequence[Criterion]) -> list[str]:
    """All texts that say what is asked for: PRD, title, criteria and what their checks look for.

    A planner may quote the test command, which only says how tests are run: that is left out.
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
    """Names of tests that criteria are mapped to."""
    return {name for criterion in criteria for name in criterion.tests}


def named_by(criteria: Sequence[Criterion]) -> set[str]:
    """Names of tests that people named for criteria, as they wrote them."""
    return {name for criterion in criteria for name in criterion.tests_of_person}
