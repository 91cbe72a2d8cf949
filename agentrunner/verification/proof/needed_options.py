"""Whether tests ask what an option is for: one that passes without it as well does not."""

from __future__ import annotations

import asyncio
import re

from agentrunner.text.unicode import to_bytes
from agentrunner.verification.proof.other_tests import PlacedTests
from agentrunner.verification.results.model import Results
from agentrunner.verification.syntax.words import options

SAME = "every test that gives `{}`, which the requirements name, also passes without it"
MOST = 3
"""So many options are tried."""


async def not_asked_for(tests: PlacedTests, asked: str, now: Results) -> str:
    """Why tests do not ask what a new option is for; else "".

    Any test that passes `now` may ask it. Raises what running in rooms raises.
    """
    for name, text in list(options(asked).items())[:MOST]:
        tree = await asyncio.to_thread(_tree_without, tests, name)
        if tree is None:
            continue
        ran = await tests.exam.run(tests.target, tree)
        if ran.results is not None and not any(now.passed(one.name) for one in ran.results.red):
            return SAME.format(text)
    return ""


def _tree_without(tests: PlacedTests, name: str) -> str | None:
    """The new tree whose tests do not give an option that is new; None where none gives one."""
    given = re.compile(to_bytes(rf"--{re.escape(name)}(?![\w-])"))
    world = tests.exam.world
    if not any(
        given.search(world.now(path) or b"") and not given.search(world.was(path) or b"")
        for path in world.product
    ):
        return None
    changed = {
        path: without_option(text, name)
        for path, text in tests.files().items()
        if given.search(text)
    }
    return world.snapshots.with_texts(world.new, changed) if changed else None


def without_option(source: bytes, name: str) -> bytes:
    """A source that does not give an option, with its value: not as an argument, nor in a line."""
    option = rf"--{re.escape(name)}(?:=[^\s\"'`,)\]]*)?"
    alone = rf"[bfr]?(?P<q>[\"'`]){option}(?P=q)"
    for pattern in (
        rf",\s*{alone}",
        rf"{alone}\s*,\s*",
        rf"(?<=[\[(])\s*{alone}\s*(?=[\])])",
        rf"\s{option}(?![\w=-])",
    ):
        source = re.sub(to_bytes(pattern), b"", source)
    return source
