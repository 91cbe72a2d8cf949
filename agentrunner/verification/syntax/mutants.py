"""Make small changes to lines that a worker changed; a strong proof turns red at each."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from agentrunner.verification.syntax.changes import changes_at, skipped
from agentrunner.verification.syntax.edits import Edit, applied, still_parses
from agentrunner.verification.syntax.languages import parse, walk
from agentrunner.verification.syntax.regions import regions_of_tests

_LINES = 20_000
"""The most lines of a file for a line-by-line diff."""


@dataclass(frozen=True)
class Mutant:
    """A source with one small change."""

    source: bytes
    line: int
    """The changed line, counted from 1."""
    description: str
    """What is there now and what was there before, for messages."""


def mutants(before: bytes | None, after: bytes, language: str, most: int) -> list[Mutant]:
    """Return at most `most` mutants of a file, on lines that `before` does not have.

    They are spread over those lines: every line gets one before any gets two. Comments, docstrings,
    imports, types and tests within the file are left alone. Mutants that no longer parse are left
    out. The same input makes the same mutants in the same order.
    """
    parsed = parse(after, language)
    if parsed is None or most <= 0:
        return []
    lines = changed_lines(before, after)
    tests = regions_of_tests(after, language)
    by_line: dict[int, list[tuple[str, list[Edit]]]] = {}
    for node in walk(parsed.root, lambda one: not skipped(parsed, one)):
        line = node.start_point[0] + 1
        if line not in lines or any(one.holds(node.start_byte) for one in tests):
            continue
        if not skipped(parsed, node):
            by_line.setdefault(line, []).extend(changes_at(parsed, node))
    found: list[Mutant] = []
    seen = {after}
    for line, description, edits in _spread(by_line, most):
        if len(found) == most:
            break
        changed = applied(after, edits)
        if changed not in seen and still_parses(parsed, changed):
            seen.add(changed)
            found.append(Mutant(changed, line, f"line {line}: {description}"))
    return found


def changed_lines(before: bytes | None, after: bytes) -> set[int]:
    """Return the lines of `after` that are new or differ from `before`, counted from 1."""
    new = after.split(b"\n")
    if before is None:
        return set(range(1, len(new) + 1))
    old = before.split(b"\n")
    if max(len(old), len(new)) > _LINES:
        known = set(old)
        return {index for index, line in enumerate(new, 1) if line not in known}
    found: set[int] = set()
    for kind, _, _, start, end in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if kind in ("insert", "replace"):
            found.update(range(start + 1, end + 1))
    return found


def _spread(
    by_line: dict[int, list[tuple[str, list[Edit]]]], most: int
) -> Iterator[tuple[int, str, list[Edit]]]:
    """Yield the first change of each line, then the second of each, …; every n-th line first."""
    lines = [line for line in sorted(by_line) if by_line[line]]
    step = -(-len(lines) // most) if lines else 1
    order = [line for first in range(step) for line in lines[first::step]]
    for rank in range(max((len(one) for one in by_line.values()), default=0)):
        for line in order:
            if rank < len(by_line[line]):
                yield line, *by_line[line][rank]
