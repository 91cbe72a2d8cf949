"""Whether the failure that a claimed test had once would still make it red.

Code of the product may stand around an assertion: a decorator, a context manager, what calls a
callback. One that catches errors by what they say lets just the known one pass. So the assertion
that was red is made to fail with the very values that it was red with, on the new code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from agentrunner.verification.evidence.target import Target
from agentrunner.verification.proof.edited_tests import EditedTests, unchanged_tests
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.results.names import all_pass
from agentrunner.verification.syntax.replayed_assertions import (
    ending,
    equalities,
    helper,
    sides_in,
    telling_sides,
    with_sides,
)


async def swallowed(exam: Examination, target: Target, places: Mapping[str, Sequence[str]]) -> str:
    """Why a claimed test would be green with the very failure that it had; "" where none would.

    `places` are the names of tests that were red and pass now, by file. Raises what running in
    rooms raises.
    """
    world = exam.world
    tests = await asyncio.to_thread(unchanged_tests, places, world, equalities)
    if not tests:
        return ""
    name = f"agentrunner_{exam.unknown.make()}"
    edited = EditedTests(exam, target, helper)
    numbers = [(test, index) for test in tests for index in range(len(test.before))]
    telling = [
        (test, telling_sides(test.before[index], test.language, number, name))
        for number, (test, index) in enumerate(numbers)
    ]
    seen = await edited.measure(world.old, tests, telling, name)
    red: dict[str, tuple[int, tuple[str, str]]] = {}
    for result in seen.results.red if seen.results else ():
        for number, sides in sides_in(result.message).items():
            if number < len(numbers):
                red.setdefault(numbers[number][0].name, (numbers[number][1], sides))
    tests = [one for one in tests if one.name in red]
    for tree, stays in ((world.new, True), (world.old, False)):
        if not tests:
            return ""
        edits = []
        for test in tests:
            index, texts = red[test.name]
            each = (test.after if stays else test.before)[index]
            edits += [(test, edit) for edit in with_sides(each, texts)]
        ran = await edited.measure(tree, tests, edits, name)
        tests = [
            one for one in tests
            if ran.results is not None and all_pass([one.name], ran.results) is stays
        ]  # fmt: skip
    # One by one: each ends its process.
    for test in tests:
        index, (first, second) = red[test.name]
        end = (test, ending(test.after[index], name))
        ran = await edited.measure(world.new, [test], [end], name)
        if ran.results is None or not all_pass([test.name], ran.results):
            return (
                f"{test.name} was red in line {test.before[index].line}, where it compared {first}"
                f" with {second}, and would be green now with just these values: the work catches"
                " that error"
            )
    return ""
