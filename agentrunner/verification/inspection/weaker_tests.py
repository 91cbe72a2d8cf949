"""Tests that stood and ask for less now, though they held as they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agentrunner.text.sentences import sentences
from agentrunner.verification.inspection.collateral import asks_for_less
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.asserts import asserts_of
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.test_finder import all_tests

WEAKER = (
    "`{}` of {} does not ask for `{}` any more, which holds, and the requirements do not speak of"
    " that"
)
Asked = dict[str, tuple[Counter[str], int]]
"""By test: its assertions, and how many of them compare with a value."""


def weaker_test(paths: Iterable[str], was: ReadFile, now: ReadFile, wanted: str) -> str:
    """Which test of these files asserts or compares less than it did; else "". Blocks.

    What stands elsewhere in the changed files now is not gone.
    """
    if any("test" in one.lower() and asks_for_less(one) for one in sentences(wanted)):
        return ""
    known = {one: (_asked(one, was(one)), _asked(one, now(one))) for one in paths}
    stand = {text for _, after in known.values() for each, _ in after.values() for text in each}
    for path, (before, after) in known.items():
        for name, (texts, compared) in before.items():
            still = after.get(name)
            if still is None or (still[0].total() >= texts.total() and still[1] >= compared):
                continue
            for text in texts:
                if text not in stand:
                    return WEAKER.format(name, path, text[:100])
    return ""


def _asked(path: str, source: bytes | None) -> Asked:
    found: Asked = {}
    language = language_of(path)
    for test in all_tests(source, language) if source is not None and language else ():
        stated = asserts_of(test)
        texts = Counter(" ".join(test.parsed.text(one.node).split()) for one in stated)
        found[test.span.name] = (texts, sum(bool(one.expected) for one in stated))
    return found
