"""Changed files that nothing explains as product: does the result need them?

Which files a tool or a test reads no list tells. Code is product, but for what `inputs` finds. Data
and settings are where the PRD asks for them, or where product code names them: what the work reads,
it names. All others are put back together, once; where the result needs them, a person is asked.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from time import monotonic

from agentrunner.verification.case import Case
from agentrunner.verification.examination import Examination
from agentrunner.verification.findings import tests_changed
from agentrunner.verification.inputs.follow import only_reads
from agentrunner.verification.inputs.leads import family_of
from agentrunner.verification.inputs.smallest import smallest
from agentrunner.verification.old_inputs import SEARCH_SEC, differs
from agentrunner.verification.target import Measured
from agentrunner.verification.world import InputChange

NEW = "it is new, no product code that stood before and nothing in the task names it"
OLD = "no product code names it"
MOST_READ = 2_000
"""Files that are searched for a name; in a larger tree only those that were changed."""
MOST_BYTES = 1 << 20
PROSE = re.compile(r"(?i)\.(?:md|rst|adoc|mdx)$|(?:^|/)(?:LICEN[CS]E|AUTHORS|CHANGE\w*|NEWS)[^/]*$")
LINE_COMMENT = re.compile(
    r"(?m)(?:^|(?<=\s))(?:#(?![ \t]*(?:include|define|import|embed)\b)|//|--(?=\s)|<!--).*$"
)
BLOCK_COMMENT = re.compile(r"/\*.*?\*/|\"\"\".*?\"\"\"|'''.*?'''", re.DOTALL)
NO_FILE = re.compile(
    r"(?i)no such file|not found|cannot find|can't find|could not find|cannot open|can't open"
    r"|no module named|does not exist|doesn't exist|missing|enoent|unresolved|unable to load"
)
"""How tools say that a file is not there."""


async def hold_without_unexplained(exam: Examination, case: Case) -> bool:
    """Whether the command says the same without such changes; else a finding is added.

    Raises what runs in rooms raise.
    """
    paths = await asyncio.to_thread(_unexplained, exam, case)
    if not paths:
        return True
    world = exam.world
    if new := [path for path in paths if path not in world.old_paths]:
        before = await exam.run(case.target, world.old)
        paths = _not_missed(exam, paths, new, f"{before.ran.stdout}\n{before.ran.stderr}")
        if not paths:
            return True
    without = await exam.run(case.target, await asyncio.to_thread(_put_back, exam, paths))
    problem = await asyncio.to_thread(_problem, exam, case, without)
    if not problem:
        return True

    async def is_red(some: Sequence[str]) -> bool:
        kept = await exam.run(case.target, await asyncio.to_thread(_put_back, exam, some))
        return bool(await asyncio.to_thread(_problem, exam, case, kept))

    deadline = monotonic() + min(SEARCH_SEC, 10 + 5 * case.seconds)
    found, cut = await smallest(paths, is_red, deadline)
    after = exam.verifier.snapshots.list(world.new)
    changes = [
        InputChange(path, NEW, "added")
        if path not in world.old_paths
        else InputChange(path, OLD, "modified" if path in after else "deleted")
        for path in found
    ]
    finding = tests_changed(case.target, changes, problem, cut=cut)
    return not exam.report.stopped_by(finding, case.target.id)


def _problem(exam: Examination, case: Case, without: Measured) -> str:
    """What does not hold without them; "" for nothing. Blocks."""
    if case.now is None and not without.passed:
        return f"exit {without.ran.exit_code}"
    return differs(exam, case, without)


def _put_back(exam: Examination, paths: Sequence[str]) -> str:
    """The tree that is handed over with these paths as they were. Blocks."""
    snapshots, world = exam.verifier.snapshots, exam.world
    old = snapshots.list(world.old)
    return snapshots.combine(world.new, {path: old.get(path) for path in paths})


@dataclass
class _Texts:
    """What may explain a file, read once."""

    asked: str
    """All that was asked for."""
    product: str
    """Product code that stood before, without comments."""
    work: str
    """Product code of the work, without comments."""
    deciding: str
    """Tests, recipes and scripts that stood before, and the command."""


def _unexplained(exam: Examination, case: Case) -> list[str]:
    """Changed paths that may decide and that nothing explains. Blocks."""
    world, differential = exam.world, exam.differential
    wished = differential.wished(world.product)
    changed = [path for path in world.product if path not in wished.union(world.allowed)]
    data = [path for path in changed if not family_of(path)]
    code = [path for path in changed if family_of(path) and path not in world.old_paths]
    if not data and not code:
        return []
    texts = _texts(exam, case, data)
    reads = only_reads(case.target.shell)
    found = []
    for path in data:
        name = path.rpartition("/")[2]
        if means(path, texts.asked) and path not in world.old_paths:
            continue
        if reads and not name.startswith("."):
            continue  # it is what the command is about
        if PROSE.search(path) and not means(path, texts.deciding):
            continue
        explains = texts.product
        if path not in world.old_paths and not name.startswith("."):
            explains += texts.work
        if not means(path, explains):
            found.append(path)
    both = texts.product + texts.work
    for path in code:
        stem = path.rpartition("/")[2].partition(".")[0]
        if (
            _has_word(stem, texts.deciding)
            and not _has_word(stem, both)
            and not _has_word(stem, texts.asked)
        ):
            found.append(path)
    return found


def _texts(exam: Examination, case: Case, data: Sequence[str]) -> _Texts:
    world, snapshots = exam.world, exam.verifier.snapshots
    inputs = exam.differential.inputs(world.old, [case.target])
    old = [path for path in sorted(world.old_paths) if path not in data]
    if len(old) > MOST_READ:
        old = [path for path in world.product if path in world.old_paths and path not in data]
        old += [one.path for one in inputs.tests if one.path in world.old_paths]
    product: list[str] = []
    deciding = [case.target.shell]
    for path, raw in snapshots.read_many(world.old, old).items():
        one = inputs.counts(path)
        (product if one is None or one.region else deciding).append(_code(path, raw))
    now = snapshots.read_many(world.new, [path for path in world.product if path not in data])
    work = [_code(path, raw) for path, raw in now.items()]
    asked = [exam.verifier.spec.wanted]
    asked += [f"{one.description}\n{one.detail}" for one in exam.criteria]
    return _Texts("\n".join(asked), "\n".join(product), "\n".join(work), "\n".join(deciding))


def _code(path: str, raw: bytes | None) -> str:
    """The text of a file without comments; "" for what is no text, or only tells people."""
    raw = raw or b""
    if len(raw) > MOST_BYTES or b"\0" in raw[:4096] or PROSE.search(path):
        return ""
    text = BLOCK_COMMENT.sub(" ", raw.decode("utf-8", "replace"))
    return LINE_COMMENT.sub(" ", text)


def means(path: str, text: str) -> bool:
    """Whether a text names a file: itself, or its folder or ending as a literal."""
    pure = PurePosixPath(path)
    if pure.name in text:
        return True
    ending = re.escape(pure.suffix)
    if ending and re.search(rf"[*\"'`}})]{ending}[\"'`)\s]|\*{ending}\b", text):
        return True
    folders = [part for part in pure.parent.parts if len(part) > 2]
    return any(
        re.search(rf"[\"'`/]{re.escape(folder)}(?:[\"'`/*]|$)", text, re.MULTILINE)
        for folder in folders
    )


def _has_word(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _not_missed(
    exam: Examination, paths: Sequence[str], new: Sequence[str], output: str
) -> list[str]:
    """Without new files that the command missed before the run: it asked for them itself."""
    complaints = "\n".join(line for line in output.splitlines() if NO_FILE.search(line))
    missed = {
        path
        for path in new
        if path.rpartition("/")[2] in complaints
        or _has_word(path.rpartition("/")[2].partition(".")[0], complaints)
    }
    return [path for path in paths if path not in missed]
