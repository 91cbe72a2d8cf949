"""Finds changed files that nothing explains as product, and whether the result needs them.

No list says which files a tool or a test reads. Code is product, except for what `inputs` finds.
Data and settings are product where the PRD asks for them, or where product code that existed before
names them at least as well as the tests do. A new file that only the work names is product if a run
complains as soon as the file is gone. All others are put back together, once; where the result
needs them, a person is asked.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from time import monotonic

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.evidence.findings import tests_changed
from agentrunner.verification.evidence.target import Measured
from agentrunner.verification.file_names import Naming, best, complaints, has_word, naming
from agentrunner.verification.inputs.executed_files import only_reads
from agentrunner.verification.inputs.minimal_set import smallest
from agentrunner.verification.inputs.references import family_by_first_line, family_of
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.proof.old_inputs import SEARCH_SEC, Held, differs, seen_twice
from agentrunner.verification.results.model import Results
from agentrunner.verification.world import InputChange

NEW = "it is new, no product code that stood before and nothing in the task names it"
BY_WORK = "it is new, only code of the work names it, and nothing misses it where it is gone"
OLD = "no product code names it"
MOST_READ = 2_000
"""Files that are searched for a name; in a larger tree only those that were changed."""
MOST_BYTES = 1 << 20
SHORTEST = 3
"""Letters of a folder's name that a sentence can mean."""
PROSE = lazy_regex(r"(?i)\.(?:md|rst|adoc|mdx)$|(?:^|/)(?:LICEN[CS]E|AUTHORS|CHANGE\w*|NEWS)[^/]*$")
LINE_COMMENT = lazy_regex(
    r"(?m)(?:^|(?<=\s))(?:#(?![ \t]*(?:include|define|import|embed)\b)|//|--(?=\s)|<!--).*$"
)
BLOCK_COMMENT = lazy_regex(r"/\*.*?\*/|\"\"\".*?\"\"\"|'''.*?'''", re.DOTALL)


@dataclass(frozen=True)
class Unexplained:
    """Changed paths that nothing explains and that may decide."""

    paths: list[str]
    by_work: frozenset[str]
    """Those that are new and that only code of the work names."""


async def find_unexplained(exam: Examination, case: Case) -> Unexplained:
    """Changed paths that may decide a command and that nothing explains.

    Raises what running in rooms raises.
    """
    found = await asyncio.to_thread(_unexplained, exam, case)
    new = [path for path in found.paths if path not in exam.world.old_paths]
    if not new:
        return found
    if case.before is not None and case.before.tests:
        missing = _missing_in(case.before, "")
    else:
        before = await exam.run(case.target, exam.world.old)
        missing = _missing_in(before.results, _output(before))
    return replace(found, paths=_without_missed(found.paths, new, missing))


async def hold_at_once(exam: Examination, case: Case, found: Unexplained) -> Held | None:
    """Run the command with old inputs and without unexplained files at once; None if that differs.

    Where it is as green as with both, neither has to be asked alone: of the tests that are not
    among the old ones it is only asked whether they pass without the files. Raises what running in
    rooms raises.
    """
    world, now = exam.world, case.now
    if now is None or not found.paths or world.kept == world.new:
        return None
    both = await exam.run(
        case.target, await asyncio.to_thread(_put_back, exam, world.kept, found.paths)
    )
    problem = await asyncio.to_thread(differs, exam, case, both)
    if both.results is None or problem:
        return None
    old = both.results.names
    green = [name for name in now.names if now.passed(name)]
    if any(name in old and not both.results.passed(name) for name in green):
        return None
    if own := [name for name in green if name not in old]:
        tree = await asyncio.to_thread(_put_back, exam, world.new, found.paths)
        without = await exam.run(case.target, tree, own)
        if without.results is None or not all(map(without.results.passed, own)):
            return None
    return Held(both.results, red=not both.passed)


async def hold_without(exam: Examination, case: Case, found: Unexplained) -> bool:
    """Whether the command has the same result without unexplained changes; else adds a finding.

    Raises what running in rooms raises.
    """
    paths, world = found.paths, exam.world

    async def run_without(subset: Sequence[str]) -> tuple[str, Measured]:
        tree = await asyncio.to_thread(_put_back, exam, world.new, subset)
        without = await exam.run(case.target, tree)
        return await asyncio.to_thread(_problem, exam, case, without), without

    if not paths:
        return True
    problem, without = await run_without(paths)
    if problem and (named := found.by_work.intersection(paths)):
        missing = _missing_in(without.results, _output(without))
        remaining = _without_missed(paths, sorted(named), missing)
        if remaining != paths:
            paths = remaining
            problem, without = await run_without(paths) if paths else ("", without)
    if problem and case.now is not None:  # else it has no names, of which one may be red by chance
        tree = await asyncio.to_thread(_put_back, exam, world.new, paths)
        problem, _ = await seen_twice(exam, case, tree, without)
    if not problem:
        return True

    async def is_red(subset: Sequence[str]) -> bool:
        return bool((await run_without(subset))[0])

    deadline = monotonic() + min(SEARCH_SEC, 10 + 5 * case.seconds)
    smallest_set, cut = await smallest(paths, is_red, deadline)
    after = await asyncio.to_thread(exam.world.snapshots.list, world.new)
    changes = [
        InputChange(path, BY_WORK if path in found.by_work else NEW, "added")
        if path not in world.old_paths
        else InputChange(path, OLD, "modified" if path in after else "deleted")
        for path in smallest_set
    ]
    finding = tests_changed(case.target, changes, problem, cut=cut, lines="")
    return not exam.report.stopped_by(finding, case.target.id)


def _problem(exam: Examination, case: Case, without: Measured) -> str:
    """What fails without these files; "" for nothing. Blocks."""
    if case.now is None and not without.passed:
        return f"exit {without.ran.exit_code}"
    return differs(exam, case, without)


def _put_back(exam: Examination, tree: str, paths: Sequence[str]) -> str:
    """A tree, with these paths as they were before the run. Blocks."""
    snapshots = exam.world.snapshots
    old = snapshots.list(exam.world.old)
    return snapshots.combine(tree, {path: old.get(path) for path in paths})


class _Texts(Struct):
    """Texts that may explain a file, read once: code without comments, by path."""

    asked: str
    """The text of everything that was asked for."""
    product: dict[str, str]
    """Product code that existed before."""
    data: dict[str, str]
    """Data, settings and pages of the product that existed before."""
    work: dict[str, str]
    """Product code of the work."""
    deciding: dict[str, str]
    """Tests, recipes and scripts that existed before, and the command under the key ""."""


def _unexplained(exam: Examination, case: Case) -> Unexplained:
    """Changed paths that may decide and that nothing explains. Blocks."""
    world, differential = exam.world, exam.differential
    wanted = differential.wanted_paths(world.product)
    changed = [path for path in world.product if path not in wanted.union(world.allowed)]
    programs = _programs(exam, changed)
    data = [path for path in changed if not (family_of(path) or path in programs)]
    code = [path for path in changed if path not in data and path not in world.old_paths]
    if not data and not code:
        return Unexplained([], frozenset())
    texts = _texts(exam, case, data)
    only_reads_files = only_reads(case.target.shell)
    found, by_work = [], set()
    for path in data:
        name, is_new = path.rpartition("/")[2], path not in world.old_paths
        if is_new and (
            naming(path, texts.asked).leads_there
            or _is_one_more(path, world.old_paths, texts.asked, texts.deciding)
        ):
            continue
        if (only_reads_files and not name.startswith(".")) or naming(
            path, case.target.shell
        ).in_full:
            continue  # the command is about this file
        tests = best(path, texts.deciding)
        # Data beside it reads nothing, so that only its whole name says something there.
        by_data = any(naming(path, text).in_full for text in texts.data.values())
        if by_data or _explains(best(path, texts.product), tests):
            continue
        found.append(path)
        if is_new and not name.startswith(".") and _explains(best(path, texts.work), tests):
            by_work.add(path)
    all_texts = [
        *texts.product.values(), *texts.data.values(), *texts.work.values(), texts.asked,
    ]  # fmt: skip
    for path in code:
        if _is_in_a_new_folder_that_is_named(path, world.old_paths, texts.asked):
            continue
        stem = path.rpartition("/")[2].partition(".")[0]
        if any(has_word(stem, text) for text in texts.deciding.values()) and not any(
            has_word(stem, text) for text in all_texts
        ):
            found.append(path)
    return Unexplained(found, frozenset(by_work))


def _is_one_more(path: str, old: Collection[str], asked: str, deciding: Collection[str]) -> bool:
    """Whether the task wants a new one of what a folder without programs that decide holds: "a new
    migration", `migrations/`."""
    pure = PurePosixPath(path)
    kind = re.escape(pure.parent.name.removesuffix("s"))
    order = rf"(?i)\b(?:new|add(?:ing)?|another|further)\s+(?:an?\s+|the\s+)?{kind}s?\b"
    beside = [one for one in old if PurePosixPath(one).parent == pure.parent]
    return (
        len(kind) >= SHORTEST
        and re.search(order, asked) is not None
        and any(one.endswith(pure.suffix) for one in beside)
        and not any(family_of(one) for one in beside if one in deciding)
    )


def _is_in_a_new_folder_that_is_named(path: str, old: Collection[str], asked: str) -> bool:
    """Whether the task names a folder in which nothing stood, with all above: `packages/tax`."""
    return any(
        re.search(rf"(?<![\w./-]){re.escape(str(folder))}(?![\w-])", asked)
        and not any(one.startswith(f"{folder}/") for one in old)
        for folder in PurePosixPath(path).parents[:-1]
    )


def _programs(exam: Examination, changed: Sequence[str]) -> set[str]:
    """Programs without an ending, known by the first line that names their interpreter. Blocks."""
    world, snapshots = exam.world, exam.world.snapshots
    plain = [path for path in changed if "." not in path.rpartition("/")[2]]
    old = [path for path in plain if path in world.old_paths]
    texts = {
        **snapshots.read_many(world.new, [path for path in plain if path not in old]),
        **snapshots.read_many(world.old, old),
    }
    return {path for path, raw in texts.items() if family_by_first_line(_head(raw))}


def _head(raw: bytes | None) -> str:
    return (raw or b"")[:200].decode("utf-8", "replace")


def _explains(product: Naming, tests: Naming) -> bool:
    """Whether product code is what reads a file: it names the file at least as well as tests do.

    By a folder or an ending alone it has to name more of it: a test that walks through all files
    names these as well. Both together are a name that is worked out: `f"locales/{lang}.json"`.
    """
    if product.in_full or (product.folders and product.ending):
        return product.much >= tests.much
    return product.leads_there and product.much > tests.much


def _texts(exam: Examination, case: Case, data: Sequence[str]) -> _Texts:
    world, snapshots = exam.world, exam.world.snapshots
    inputs = exam.differential.inputs(world.old, [case.target])
    old = [path for path in sorted(world.old_paths) if path not in data]
    if len(old) > MOST_READ:
        old = [path for path in world.product if path in world.old_paths and path not in data]
        old += [one.path for one in inputs.deciding if one.path in world.old_paths]
    product: dict[str, str] = {}
    of_data: dict[str, str] = {}
    deciding = {"": case.target.shell}
    for path, raw in snapshots.read_many(world.old, old).items():
        counted = inputs.input_at(path)
        is_code = family_of(path) or family_by_first_line(_head(raw))
        texts = (product if is_code else of_data) if counted is None or counted.region else deciding
        texts[path] = _code(path, raw)
    now = snapshots.read_many(world.new, [path for path in world.product if path not in data])
    work = {path: _code(path, raw) for path, raw in now.items()}
    asked = [exam.verifier.spec.wanted]
    asked += [f"{one.description}\n{one.detail}" for one in exam.criteria]
    return _Texts("\n".join(asked), product, of_data, work, deciding)


def _code(path: str, raw: bytes | None) -> str:
    """The text of a file without comments; "" for binary files and for documentation."""
    raw = raw or b""
    prose = PROSE.search(path) and not family_of(path)
    if len(raw) > MOST_BYTES or b"\0" in raw[:4096] or prose:
        return ""
    text = BLOCK_COMMENT.sub(" ", raw.decode("utf-8", "replace"))
    return LINE_COMMENT.sub(" ", text)


def _output(ran: Measured) -> str:
    return f"{ran.ran.stdout}\n{ran.ran.stderr}"


def _missing_in(results: Results | None, output: str) -> str:
    """What a run reports as missing: in its red tests' messages, where tests have names."""
    if results is not None and results.tests:
        return complaints("\n".join(test.message for test in results.red))
    return complaints(output)


def _without_missed(paths: Sequence[str], candidates: Sequence[str], complained: str) -> list[str]:
    """The paths without those candidates that the run itself complains to miss."""
    missed = {
        path
        for path in candidates
        if naming(path, complained).in_full
        or (family_of(path) and has_word(PurePosixPath(path).stem, complained))
    }
    return [path for path in paths if path not in missed]
