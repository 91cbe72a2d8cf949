"""Existing tests that were adapted to the work: what a change of them may be. Pure.

Where the PRD asks in ordinary words for tests to be adapted, a file of tests may change if all of
its tests are still there, nothing but imports changed beside them, and each value that a test lost
or got is one that the PRD states. Whether the old wording fails on the new code, and the new one
on the old code, is seen by running both.
"""

from __future__ import annotations

import ast
import re
from collections import Counter

from agentrunner.verification.syntax.carried import (
    bound_otherwise,
    defined_instead,
    places_of_imports,
)
from agentrunner.verification.syntax.definitions import definitions
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.find import standing
from agentrunner.verification.syntax.languages import parse

VALUE = re.compile(
    r"\"[^\"\n]*\"|'[^'\n]*'|(?<![\w.])\d[\w.]*"
    r"|\b(?:True|False|None|true|false|null|nil|undefined)\b"
)


def adapted_in(before: bytes, after: bytes, language: str, wanted: str) -> set[str]:
    """Names of the tests of a file that were adapted to what is wanted.

    The empty set where none was, and where anything else changed that `wanted` does not explain.
    """
    old, new = definitions(before, language), definitions(after, language)
    changed = {name for name, text in old.items() if new.get(name) != text}
    if not changed or not changed <= new.keys() or not old.keys() <= new.keys():
        return set()
    if _beside_tests(before, language) != _beside_tests(after, language):
        return set()
    if defined_instead(before, after, language) or bound_otherwise(before, after, language, wanted):
        return set()
    if any(_unstated(old[name], new[name], wanted) for name in changed):
        return set()
    return changed


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
    return text.decode("utf-8", "replace").split()


def _unstated(before: str, after: str, wanted: str) -> bool:
    """Whether a test lost or got a value that is not stated in what is wanted."""
    was, now = (Counter(VALUE.findall(text)) for text in (before, after))
    for value in [*(was - now), *(now - was)]:
        bare = value.strip("\"'")
        if not bare or not re.search(rf"(?<![\w.]){re.escape(bare)}(?!\w)", wanted):
            return True
    return False
