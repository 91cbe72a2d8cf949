"""Tools that are green by settings which nobody asked for: `ignore = ["F401"]`, a new `ruff.toml`.

A linter or a type checker has no test that stood before, so what the worker wrote may be its
set-up, which was asked for. It is not where the tool, with its settings as they were, reports what
it reported before the run. Settings that the requirements speak of stay as the worker left them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from agentrunner.state.run_state import Finding
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.evidence.findings import tests_changed
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.silenced_tools import reports
from agentrunner.verification.world import InputChange

KEY = lazy_regex(r"\s*[\"']?([A-Za-z][\w.-]*)[\"']?\s*[=:]")
CODE = lazy_regex(r"\b(?=\w*\d)(?=\w*[A-Za-z])\w{3,}\b")
"""What a tool calls one of its rules: F401, py311."""
SECTION = lazy_regex(r"\s*(?:\[.*\]\s*|[{}]?\s*)")
BESIDE = "it says more than what was asked for"
MOST_LINES = 2_000


async def find_unasked_settings(exam: Examination, case: Case, asked: str) -> Finding | None:
    """A finding about settings that keep a command without test names from saying what it said.

    Raises what running in rooms raises.
    """
    tree, changes = await asyncio.to_thread(_with_old_settings, exam, case, asked)
    if not changes:
        return None
    ran = await exam.run(case.target, tree)
    if ran.passed:
        return None
    again = reports(await exam.run(case.target, exam.world.old)) & reports(ran)
    if not again:
        return None
    return tests_changed(case.target, changes, min(again)[:200], cut=False, lines="")


def _with_old_settings(exam: Examination, case: Case, asked: str) -> tuple[str, list[InputChange]]:
    """The new tree with the inputs as they were, but for settings that were asked for. Blocks.

    Also of a file that was asked for other settings are as they were.
    """
    world = exam.world
    inputs = [exam.differential.inputs(tree, [case.target]) for tree in (world.old, world.new)]
    permitted = exam.differential.permitted(world.allowed) & world.old_paths
    made: dict[str, bytes] = {}
    changes = []
    for one in [
        *(one for one in world.changes if not one.understood),
        *(InputChange(path, BESIDE, "modified") for path in sorted(permitted)),
    ]:
        before, after = world.was(one.path) or b"", world.now(one.path)
        found = next(filter(None, (some.input_at(one.path) for some in inputs)), None)
        if found is None or found.kind != "config" or after == before:
            continue
        if after is None and one.path in permitted:
            continue
        kept = _with_settings_of(before, after or b"", asked)
        stands = after if one.path in permitted else before
        if kept is not None and kept != stands:
            made[one.path] = kept
        if kept != after:
            changes.append(one)
    return world.snapshots.with_texts(world.kept, made), changes


def _with_settings_of(before: bytes, after: bytes, asked: str) -> bytes | None:
    """The old settings with those new ones that a text speaks of; None where it speaks of none."""
    try:
        old, new = before.decode().splitlines(keepends=True), after.decode().splitlines(True)
    except UnicodeDecodeError:
        return None
    if max(len(old), len(new)) > MOST_LINES:
        return None
    lines = list(_lines(old, new, asked.casefold()))
    if not before and all(map(SECTION.fullmatch, lines)):
        return None
    return to_bytes("".join(lines))


def _lines(old: list[str], new: list[str], asked: str) -> Iterator[str]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from old[a:b]
            continue
        keys = {key for line in new[c:d] if _speaks_of(asked, line) and (key := _key(line))}
        yield from (line for line in old[a:b] if _key(line) not in keys)
        yield from (line for line in new[c:d] if SECTION.fullmatch(line) or _speaks_of(asked, line))


def _key(line: str) -> str:
    found = KEY.match(line)
    return found[1] if found else ""


def _speaks_of(asked: str, line: str) -> bool:
    """Whether a text has all words of a setting's key, or the code of a rule that it names."""
    words = re.split(r"[._-]+", _key(line).casefold())
    if all(word and re.search(rf"\b{re.escape(word)}\b", asked) for word in words):
        return True
    return any(re.search(rf"\b{one[0].casefold()}\b", asked) for one in CODE.finditer(line))
