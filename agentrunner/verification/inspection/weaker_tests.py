"""Tests that stood and ask for less now, though they held as they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from agentrunner.text.sentences import sentences
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inspection.collateral import asks_for_less
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.asserts import asserts_of
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.test_finder import all_tests
from agentrunner.verification.syntax.tokens import Value, lexical_family, tokens, value_of

WEAKER = (
    "`{}` of {} does not ask for `{}` any more, which holds, and the requirements do not speak of"
    " that"
)


class _Asked(Struct, frozen=True):
    """What a test asks."""

    texts: Counter[str]
    """Its assertions."""
    compared: int
    """How many of them compare with a value."""
    values: Counter[Value]
    """The literals of the whole test."""
    by_row: bool
    """Whether it compares two things of which neither has a literal, as for rows of a table."""


def weaker_test(paths: Iterable[str], was: ReadFile, now: ReadFile, wanted: str) -> str:
    """Which test of these files asserts or compares less than it did; else "". Blocks.

    What stands elsewhere in the changed files now is not gone, nor what the rows of a table are.
    """
    if any("test" in one.lower() and asks_for_less(one) for one in sentences(wanted)):
        return ""
    known = {one: (_asked(one, was(one)), _asked(one, now(one))) for one in paths}
    stand = {text for _, after in known.values() for one in after.values() for text in one.texts}
    for path, (before, after) in known.items():
        for name, old in before.items():
            new = after.get(name)
            if (
                new is None
                or (new.texts.total() >= old.texts.total() and new.compared >= old.compared)
                or (new.by_row and old.values <= new.values)
            ):
                continue
            for text in old.texts:
                if text not in stand:
                    return WEAKER.format(name, path, text[:100])
    return ""


def _asked(path: str, source: bytes | None) -> dict[str, _Asked]:
    """What the tests of a file ask, by their names."""
    found: dict[str, _Asked] = {}
    language = language_of(path)
    for test in all_tests(source, language) if source is not None and language else ():
        stated = asserts_of(test)
        texts = [" ".join(test.parsed.text(one.node).split()) for one in stated]
        found[test.span.name] = _Asked(
            Counter(texts),
            sum(bool(one.expected) for one in stated),
            _values(path, test.parsed.text(test.whole)),
            any(
                one.expected and not _values(path, text)
                for one, text in zip(stated, texts, strict=True)
            ),
        )
    return found


def _values(path: str, text: str) -> Counter[Value]:
    read = tokens(to_bytes(text), lexical_family(path) or "script")
    return Counter(value for one in read if (value := value_of(one)))
