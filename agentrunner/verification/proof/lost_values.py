"""Claimed tests that no longer ask for a value which the task states, whoever may change them.

The literals of a claimed test before the run that the task states have to stand in some test of the
changed files still. A test may be split, moved or written as a table: nothing is said of its form.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.evidence.findings import tests_reworded
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.syntax.comparisons import literals
from agentrunner.verification.syntax.definitions import definition
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.tokens import Value, lexical_family, number

NUMBER = lazy_regex(r"(?<![\w.,])-?\d+(?:[.,]\d+)?(?![\w])")
LOST = "{} asked for {} before, which the task states, and no test of these files does now"


async def stopped_for_lost_values(exam: Examination, case: Case, asked: str) -> bool:
    """Whether a finding stops the examination, as a value that the task states is asked no more.

    `asked` is what people ask for.
    """
    lost = await asyncio.to_thread(_lost, exam, case, asked)
    if lost is None:
        return False
    name, path, value = lost
    finding = tests_reworded(case.target, [name], [path], LOST.format(name, value))
    return exam.report.stopped_by(finding, case.target.id)


def _lost(exam: Examination, case: Case, asked: str) -> tuple[str, str, str] | None:
    """A claimed test, its file, and a value of it that is lost. Blocks."""
    world, was, now = exam.world, exam.world.was, exam.world.now
    claimed = {
        name: path
        for name in sorted(exam.claims(case).claimed)
        if (path := case.old_files.get(name, "")) and was(path) != now(path)
    }
    if not claimed:
        return None
    inputs = exam.differential.inputs(world.new, [case.target])
    counted = ((path, inputs.input_at(path)) for path in world.snapshots.list(world.new))
    tests = {path for path, one in counted if one and one.kind in ("test", "fixture")}
    asked_now = set(
        _values((path, now(path) or b"") for path in sorted({*tests, *claimed.values()}))
    )
    numbers = {number(hit.replace(",", ".")) for hit in NUMBER.findall(asked)}
    for name, path in claimed.items():
        before, language = was(path) or b"", language_of(path) or ""
        text = (definition(before, language, name) if language else None) or ""
        for value in _values([(path, to_bytes(text))]):
            kind, shown = value
            stated = value in numbers if kind == "number" else len(shown) > 1 and shown in asked
            if stated and value not in asked_now:
                return name, path, shown if kind == "number" else repr(shown)
    return None


def _values(sources: Iterable[tuple[str, bytes]]) -> Iterable[Value]:
    for path, source in sources:
        if (family := lexical_family(path, source)) is not None:
            yield from literals(source, family)
