"""Existing tests that were adapted to the work: what a change of them may be. Pure.

Where the PRD asks in ordinary words for tests to be adapted, a file of tests may change if all of
its tests are still there, nothing but imports changed beside them, and each value that a test lost
or got is one that the PRD states. A value that it does not state may give way to a stated one
where the PRD names what it belongs to. Whether the old wording fails on the new code, and the new
one on the old code, is seen by running both.
"""

from __future__ import annotations

import ast
import re
from collections import Counter

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inputs.wanted_tests import differs_by_snapshots
from agentrunner.verification.syntax.definitions import definitions
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.imports import (
    bound_otherwise,
    defined_instead,
    places_of_imports,
)
from agentrunner.verification.syntax.languages import parse
from agentrunner.verification.syntax.test_finder import standing
from agentrunner.verification.test_changes.reworded_texts import WantedValues, reworded
from agentrunner.verification.test_changes.stated_values import (
    ASKS,
    PARAMETER_NAMES,
    TOKEN,
    VALUE,
    WORD,
    unstated,
)

IMPORT = "from "
"""What a line of a definition begins with that says where a name comes from."""


def adapted_in(before: bytes, after: bytes, language: str, wanted: WantedValues) -> set[str]:
    """Names of the tests of a file that were adapted to what is wanted.

    The empty set where none was, and where anything else changed that `wanted` does not explain.
    """
    pairs = _changed_tests(before, after, language, wanted.text)
    return set() if any(unstated(*pair, wanted) for pair in pairs.values()) else set(pairs)


def reworded_in(before: bytes, after: bytes, language: str, wanted: WantedValues) -> set[str]:
    """Names of the tests of a file whose texts changed just as is stated, with no word of tests.

    The empty set where none was, and where anything else changed.
    """
    pairs = _changed_tests(before, after, language, wanted.text)
    for was, now in pairs.values():
        known = was.splitlines()
        lines = (one for one in now.splitlines() if one in known or not one.startswith(IMPORT))
        if not reworded(was, "\n".join(lines), wanted):
            return set()
    return set(pairs)


def _changed_tests(
    before: bytes, after: bytes, language: str, wanted: str
) -> dict[str, tuple[str, str]]:
    """The texts of the tests that say something else now, before and after, by name.

    Empty where a test is gone, or where anything beside the tests and their imports changed.
    """
    old, new = definitions(before, language), definitions(after, language)
    changed = {name for name, text in old.items() if new.get(name) != text}
    if not changed or not changed <= new.keys() or not old.keys() <= new.keys():
        return {}
    if _beside_tests(before, language) != _beside_tests(after, language):
        return {}
    if defined_instead(before, after, language) or bound_otherwise(before, after, language, wanted):
        return {}
    return {name: (old[name], new[name]) for name in changed}


def exchanged_values(
    before: bytes, after: bytes, language: str
) -> list[tuple[str, str, str]] | None:
    """What stands before each value that another took the place of in tests, with both values.

    None where the tests differ by anything else.
    """
    old, new = definitions(before, language), definitions(after, language)
    found: list[tuple[str, str, str]] = []
    for name, text in old.items():
        was, now = (TOKEN.findall(one) for one in (text, new.get(name, "")))
        if len(was) != len(now):
            return None
        subject = ""
        for one, other in zip(was, now, strict=True):
            if one == other:
                subject = one if WORD.fullmatch(one) else subject
            elif VALUE.fullmatch(one) and VALUE.fullmatch(other):
                found.append((subject, one, other))
            else:
                return None
    return found


TURNS = lazy_regex(
    r"\b(?:return|if|unless|else|try|except|catch|rescue|pass|skip\w*|and|or|break|continue)\b"
    r"|[|]{2}|&&|\?|!(?!=)|\bnot\b"
)
"""By which a test asks only sometimes, or asks for something else."""


def has_same_values(before: str, after: str) -> bool:
    """Whether a test has just the values that it had, and asks at all."""
    was, now = (VALUE.findall(PARAMETER_NAMES.sub("", text)) for text in (before, after))
    old, new = (Counter(TURNS.findall(VALUE.sub("", text))) for text in (before, after))
    return Counter(was) == Counter(now) and new <= old and bool(ASKS.search(VALUE.sub("", after)))


def adapts_snapshots(before: bytes, after: bytes, language: str) -> bool:
    """Whether the tests that a file had differ by nothing but the inline snapshots in them."""
    old, new = definitions(before, language), definitions(after, language)
    pairs = [(_dense(text), _dense(new.get(name, ""))) for name, text in old.items()]
    return all(was == now or differs_by_snapshots(was, now) for was, now in pairs)


def _dense(text: str) -> bytes:
    """A test without the blanks around brackets and dots that `definitions` sets."""
    return to_bytes(re.sub(r"\s*([().])\s*", r"\1", text))


def with_guarded_imports(source: bytes, language: str) -> bytes | None:
    """The text with imports that may fail, so that tests which need none of them still run.

    None where the language knows no such thing; only Python does.
    """
    if language != "python" or (places := places_of_imports(source, language)) is None:
        return None
    edits = [Edit(start, end, _guarded(text)) for start, end, text in places]
    return applied(source, edits)


def _guarded(text: str) -> str:
    """Import statements of Python in which each name by itself may be missing."""
    lines = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return text
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in node.names:
                one = ast.unparse(
                    ast.Import([name])
                    if isinstance(node, ast.Import)
                    else ast.ImportFrom(node.module, [name], node.level)
                )
                lines.append(f"try:\n    {one}\nexcept ImportError:\n    pass")
    return "\n".join(lines)


def _beside_tests(source: bytes, language: str) -> list[str]:
    """The words of a file without its tests and imports."""
    parsed = parse(source, language)
    if parsed is None:
        return []
    ranges = [(one.span.start, one.span.end) for one in standing(parsed)]
    ranges += [(start, end) for start, end, _ in places_of_imports(source, language) or ()]
    text = bytearray(source)
    for start, end in ranges:
        text[start:end] = b" " * (end - start)
    return [word for word in text.decode("utf-8", "replace").split() if word not in (";", ",")]
