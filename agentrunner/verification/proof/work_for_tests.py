"""Whether the work is right only where tests run.

Product code can notice that it is tested: by a variable of the test tool, by its name in the list
of loaded modules, by a function of the tests. Such a word in the work is exchanged for one that
nobody knows. Where the tests then fail, it is the word that lets them pass.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from agentrunner.git.snapshots import Snapshots
from agentrunner.sandboxes.requests import PLAIN
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.file_names import TEXTS, has_word
from agentrunner.verification.inputs.interpreters import INTERPRETERS
from agentrunner.verification.inputs.kept_tests import IMPORT_LINE
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.inputs.test_detection import (
    added_lines,
    built_for_tests,
    called_in,
    defined_by_tests,
    imported_words,
    is_quoted_in,
    named_modules,
    path_words,
    taken_from_tests,
    variables,
    with_other_words,
    words_of_tools,
)
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.regions import without_regions
from agentrunner.verification.world import SnapshotTrees

HEAD_BYTES = 600
MADE = lazy_regex(
    rb"(?i)@generated\b|\b(?:do not|don't) edit\b"
    rb"|(?:^|[#/*;\"'-]|\bis|\bwas|\bfile)[ \t]*(?:code )?"
    rb"(?:auto-?\s?)?generated (?:\w+ ){0,3}(?:by|from|with)\b",
    re.MULTILINE,
)
"""What the head of a file says where another file is its source."""
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


SHELL = lazy_regex(r"#!.*\b(?:ba|da|z|k)?sh\b")
MOST_READ = 200_000
"""Bytes of a file that are looked at."""
MOST_FILES = 3_000
MOST_WORDS = 6
"""Words that are exchanged one by one."""
WHY = (
    "{} has to do with `{}`, which neither the task nor the code before the run names, and without"
    " that {} fails: the work may be right only where tests run"
)


class _Marks(Struct, frozen=True):
    """Words of the work, each with the file that has it, and the texts of the new tests."""

    words: Mapping[str, str]
    texts: str = ""


async def right_only_in_tests(
    exam: Examination, case: Case, names: Sequence[str], own: Sequence[str], asked: str
) -> str:
    """Why the work is taken to be right only in tests; "" for none.

    `names` are claimed tests that turned green, `own` those of the worker; without both the command
    is asked as a whole. Tests that passed before are asked as well: work that breaks them may
    exchange what they ask. `asked` is what people ask for. Raises what running in rooms raises.
    """
    marks = await asyncio.to_thread(_marks, exam, case, asked)
    if not marks.words:
        return ""
    stood = _passed_both_times(case)

    async def first_red(words: Collection[str]) -> str:
        tree = await asyncio.to_thread(_without, exam, words)
        seen = await exam.run(case.target, tree, () if stood else [*names, *own])
        if seen.results is None or not (names or own):
            return "" if seen.passed else f"`{case.target.shell}`"
        red = [name for name in [*names, *stood] if not seen.results.passed(name)]
        # A variable that the worker's own test sets is a part of what it asks.
        if not all(has_word(word, marks.texts) for word in words):
            red += [name for name in own if not seen.results.passed(name)]
        return red[0] if red else ""

    if not await first_red(marks.words):
        return ""
    for word, path in list(marks.words.items())[:MOST_WORDS]:
        if red := await first_red([word]):
            return WHY.format(path, word, red)
    return ""


def _passed_both_times(case: Case) -> list[str]:
    if case.before is None or case.now is None:
        return []
    tests = case.before.tests
    return [one.name for one in tests if one.outcome == "passed" and case.now.passed(one.name)]


def _marks(exam: Examination, case: Case, asked: str) -> _Marks:
    """The words of the work by which it may notice that it is tested. Blocks."""
    world, was, read = exam.world, exam.world.was, exam.world.now
    snapshots = world.snapshots
    changed = [path for path in world.product if _is_code(path, read(path))][:MOST_FILES]
    lines = {path: added_lines(_text(was(path)), _text(read(path))) for path in changed}
    if not any(lines.values()):
        return _Marks({})
    inputs = exam.differential.inputs(world.old, [case.target])
    counted = {path: inputs.input_at(path) for path in sorted(world.old_paths)}
    others = [path for path, one in counted.items() if one is None or one.region]
    tests = [path for path, one in counted.items() if one and not one.region and one.kind == "test"]
    helpers = [path for path, one in counted.items() if one and one.kind == "fixture"]
    module = ""
    tools = path_words(tests) - path_words([*others, *changed])
    if case.now and not INTERPRETERS.match(case.now.reader):
        tools.add(case.now.reader)
        module = case.now.reader
    old_tests = _texts(snapshots, world.old, tests)
    of_tests_alone = [*old_tests, *_texts(snapshots, world.old, helpers)]
    defined, called = defined_by_tests(of_tests_alone), called_in(old_tests)
    work = [_text(read(path)) for path in changed]
    modules = imported_words(old_tests) - imported_words(work) - path_words([*others, *changed])
    read_of_environment: dict[str, str] = {}
    of_tests: dict[str, str] = {}
    built: dict[str, str] = {}
    for path, added in lines.items():
        whole = _text(read(path))
        shell = family_of(path) == "shell" or SHELL.match(whole) is not None
        for word in variables(added, shell=shell, text=whole) - PLAIN:
            read_of_environment[word] = path
        used = [line for line in added if not IMPORT_LINE.match(line)]
        words = words_of_tools(added, tools, called) | words_of_tools(used, modules, called)
        words |= named_modules(used, module)
        for word in words | taken_from_tests(added, defined):
            of_tests[word] = path
        built |= dict.fromkeys(built_for_tests(added), path)
    if not read_of_environment and not of_tests:
        return _Marks(built)
    sources = [path for path in others if family_of(path)]
    inside = [path for path in sources if (one := counted[path]) and one.region]
    plain = [path for path in sources if path not in inside]
    code = "\n".join(
        [
            *_texts(snapshots, world.old, plain),
            *(_text(without_regions(was(path) or b"", language_of(path))) for path in inside),
        ]
    )
    documents = [path for path in others if not family_of(path)]
    named = "\n".join([asked, code, *old_tests, *_texts(snapshots, world.old, documents)])
    found = built | {
        word: path for word, path in read_of_environment.items() if not has_word(word, named)
    }
    found |= {
        word: path
        for word, path in of_tests.items()
        if not has_word(word, asked)
        and not has_word(word, code)
        and not any(is_quoted_in(word, text) for text in of_tests_alone)
    }
    new = [change.path for change in world.changes if change.test]
    return _Marks(found, "\n".join(_texts(snapshots, world.new, new)))


def _without(exam: Examination, words: Collection[str]) -> str:
    """The tree that is handed over, with other words in place of these. Blocks."""
    world = exam.world
    end = f"_{exam.unknown.make()}"
    made: dict[str, bytes] = {}
    for path in world.product:
        before, after = world.was(path), world.now(path)
        if after is None or not _is_code(path, after):
            continue
        # Latin-1 keeps every byte as it is.
        old, new = (before or b"").decode("latin-1"), after.decode("latin-1")
        if (text := with_other_words(old, new, words, end)) != new:
            made[path] = text.encode("latin-1")
    return world.snapshots.with_texts(world.new, made)


def _texts(snapshots: Snapshots, tree: str, paths: Sequence[str]) -> list[str]:
    return [_text(one) for one in snapshots.read_many(tree, paths[:MOST_FILES]).values()]


def _is_code(path: str, source: bytes | None) -> bool:
    return bool(family_of(path)) or (source or b"").startswith(b"#!")


def _text(source: bytes | None) -> str:
    return (source or b"")[:MOST_READ].decode("latin-1")


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
    sources = [path for path in world.product if not path.endswith(TEXTS)]
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
