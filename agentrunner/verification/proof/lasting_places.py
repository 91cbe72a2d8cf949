"""Whether the work stands where it lasts: not only in a file that the next build writes over, and
not only in settings that tests alone read.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.inputs.test_detection import path_words
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.world import SnapshotTrees

HEAD_BYTES = 600
MADE = lazy_regex(
    rb"(?i)@generated\b|\b(?:do not|don't) edit\b"
    rb"|(?:^|[#/*;\"'-]|\bis|\bwas|\bfile)[ \t]*(?:code )?"
    rb"(?:auto-?\s?)?generated (?:\w+ ){0,3}(?:by|from|with)\b",
    re.MULTILINE,
)
"""What the head of a file says where another file is its source."""
DOCUMENTS = frozenset({".md", ".rst", ".txt"})
MOST_TRIED = 3
IN_MADE = (
    "all of the work stands in {}, which says of itself that it is made from something else: the"
    " next build takes the work away"
)
OF_TESTS = "{} is read by tests alone, it seems: with {} in its place, which is unchanged, {} fails"


class _Settings(Struct, frozen=True):
    """A changed file of data that is named after tests, and one of its kind that is not."""

    path: str
    other: str


async def why_not_lasting(exam: Examination, case: Case, names: Sequence[str], asked: str) -> str:
    """Why the work is taken not to last; "" where nothing says so.

    `names` are the tests that the proof rests on; without names it is the command as a whole.
    `asked` is what people ask for. Raises what running in rooms raises.
    """
    if made := await asyncio.to_thread(_made_alone, exam, asked):
        return IN_MADE.format(made)
    world = exam.world
    for one in await asyncio.to_thread(_settings_of_tests, exam, case, asked):
        before = await asyncio.to_thread(_with_content, world, one.path, world.old, one.path)
        if not await exam.first_red(case, before, names):
            continue  # the work stands elsewhere
        other = await asyncio.to_thread(_with_content, world, one.path, world.new, one.other)
        if red := await exam.first_red(case, other, names):
            return OF_TESTS.format(one.path, one.other, red)
    return ""


def _made_alone(exam: Examination, asked: str) -> str:
    """A file that is made from another, where the work has changed no other source. Blocks."""
    world = exam.world
    sources = [path for path in world.product if PurePosixPath(path).suffix not in DOCUMENTS]
    made = [path for path in sources if MADE.search((world.was(path) or b"")[:HEAD_BYTES])]
    if not made or len(made) < len(sources) or any(path in asked for path in made):
        return ""
    return made[0]


def _settings_of_tests(exam: Examination, case: Case, asked: str) -> list[_Settings]:
    """Changed data that is named as tests are, beside unchanged data of its kind. Blocks."""
    world = exam.world
    changed = [path for path in world.product if path in world.old_paths and not family_of(path)]
    if not changed:
        return []
    inputs = exam.differential.inputs(world.new, [case.target])
    of_tests = path_words(one.path for one in inputs.deciding if one.kind in ("test", "runner"))
    paths = sorted(world.snapshots.list(world.new).keys() - set(world.product))
    found = []
    for path in changed:
        if path in asked or path_words([_own_name(path)]).isdisjoint(of_tests):
            continue
        found += [
            _Settings(path, other)
            for other in paths
            if _kind(other) == _kind(path) and path_words([_own_name(other)]).isdisjoint(of_tests)
        ]
    return found[:MOST_TRIED]


def _kind(path: str) -> tuple[str, str]:
    """The folder of a file, and what it shares with others of its kind: `.yaml`, or `.env`."""
    folder, _, name = path.rpartition("/")
    if name.startswith("."):
        return folder, ".".join(name.split(".")[:2])
    return folder, PurePosixPath(name).suffix


def _own_name(path: str) -> str:
    """What a file's name says beside its kind: `test` of `settings.test.yaml` and `.env.test`."""
    return path.rpartition("/")[2].replace(_kind(path)[1], "", 1)


def _with_content(world: SnapshotTrees, path: str, tree: str, other: str) -> str:
    """The tree that is handed over, with what a tree has at `other` at a path. Blocks."""
    return world.snapshots.combine(world.new, {path: world.snapshots.list(tree)[other]})
