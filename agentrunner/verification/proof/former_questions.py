"""Whether a claimed test that is green now still asks what it asked when it was red.

A test may expect what a constant of the product says, or loop over rows that the product keeps or
reads for it. Then changing these turns the test green and leaves the product's answer as it was. So
the statement that was red before is made to report the values it asked with, and has to ask with
them again. Values that the PRD wants changed are left alone, and so are those that differ from run
to run.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.sentences import sentences
from agentrunner.verification.evidence.target import Target
from agentrunner.verification.inputs.helper_code import Asked
from agentrunner.verification.proof.edited_tests import (
    EditedTests,
    UnchangedTest,
    unchanged_tests,
)
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.results.names import all_pass
from agentrunner.verification.syntax.asked_again import ask_again, helper, telling, values_in
from agentrunner.verification.syntax.asked_values import AskedCall, asked_calls
from agentrunner.verification.syntax.calls import names_changed
from agentrunner.verification.world import SnapshotTrees

REMOVES_OR_RENAMES = lazy_regex(
    r"(?i)\b(?:remov|delet|drop|obsolete|get rid|no longer|renam|replac)|削除|廃止|改名"
)
VALUE = lazy_regex(r"\"[^\"\n]*\"|'[^'\n]*'|(?<![\w.])\d[\w.]*")
_Test = UnchangedTest[AskedCall]
RedWith = Mapping[str, tuple[int, tuple[object, ...]]]
"""By name of a test: which of its statements was red, and with which values."""


async def not_asked_again(
    exam: Examination, target: Target, places: Mapping[str, Sequence[str]], wanted: str
) -> str:
    """Why a claimed test is green without asking what it asked before; "" where none is.

    `places` are the names of tests that were red and pass now, by file; `wanted` is the text of
    what was asked for. Raises what running in rooms raises.
    """
    tests = await asyncio.to_thread(unchanged_tests, places, exam.world, asked_calls)
    if not tests:
        return ""
    edited = EditedTests(exam, target, helper)
    red_with = await _red_with(edited, tests)
    tests = [one for one in tests if one.name in red_with]
    suspects = await _passing(edited, tests, red_with)
    if not suspects:
        return ""
    suspects = await asyncio.to_thread(
        lambda: [
            one for one in suspects if not _are_values_wanted(one, red_with, exam.world, wanted)
        ]
    )
    again = await _red_with(edited, suspects) if suspects else {}
    for one in suspects:
        if again.get(one.name) == red_with[one.name]:
            index, values = red_with[one.name]
            known = [repr(value) for value in values if value is not None]
            what = f"with {', '.join(known)[:200]}" if known else "there"
            return (
                f"{one.name} was red in line {one.before[index].line} as it asked {what}, and does"
                " not ask so any more"
            )
    return ""


async def _red_with(edited: EditedTests, tests: Sequence[_Test]) -> RedWith:
    name = f"agentrunner_{edited.exam.unknown.make()}"
    return await edited.red_with(tests, name, telling, values_in)


async def _passing(edited: EditedTests, tests: Sequence[_Test], red_with: RedWith) -> list[_Test]:
    """Those that never ask with these values again: made to fail if they do, they pass."""
    if not tests:
        return []
    name = f"agentrunner_{edited.exam.unknown.make()}"
    edits = []
    for test in tests:
        index, values = red_with[test.name]
        edits.append((test, ask_again(test.after[index], test.language, values, name)))
    ran = await edited.measure(edited.exam.world.new, tests, edits, name)
    return [one for one in tests if ran.results and all_pass([one.name], ran.results)]


def _are_values_wanted(test: _Test, red_with: RedWith, world: SnapshotTrees, wanted: str) -> bool:
    """Whether the PRD wants these values, or the code they come from, changed. Blocks."""
    index, values = red_with[test.name]
    names, asked = test.before[index].names, Asked(wanted)
    parts = sentences(wanted, semicolons=True)
    removal_sentences = Asked("\n".join(filter(REMOVES_OR_RENAMES.search, parts)))
    words = [value for value in values if isinstance(value, str) and re.search(r"\w", value)]
    if any(map(removal_sentences.writes, words)):
        return True
    for _, language, before, after in world.sources():
        changed = names & names_changed(before, after, language)
        if any(map(asked.names_code, changed)):
            return True
        new = _literals_given_to(after, changed) - _literals_given_to(before or b"", changed)
        if new and all(map(asked.writes, new)):
            return True
    return False


def _literals_given_to(source: bytes, names: Collection[str]) -> set[str]:
    """The literals in lines that assign something to these names."""
    text = source.decode("utf-8", "replace")
    lines = [
        line
        for line in text.splitlines()
        if any(re.search(rf"\b{re.escape(name)}\b[^=]*=", line) for name in names)
    ]
    return {hit[0].strip("\"'") for line in lines for hit in VALUE.finditer(line)}
