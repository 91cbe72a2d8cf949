"""Tests that stand somewhere else now, word for word. Pure, but for reading files of two trees."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

from agentrunner.verification.checks import ReadFile
from agentrunner.verification.results.model import Results, TestResult
from agentrunner.verification.results.names import PARAMETERS
from agentrunner.verification.syntax.definitions import definition, definitions
from agentrunner.verification.syntax.languages import language_of

SCRIPT_PLACE = re.compile(r"""(["'])(\.{1,2}/[^"']*)\1""")
PYTHON_PLACE = re.compile(r"(?m)^from (\.+)([\w.]*)")
MOST_RENAMES = 50
MOST = 200
"""Names that are looked for elsewhere."""


def moved_to(
    lost: Sequence[str],
    before: Results,
    now: Results,
    cwd: str,
    read_old: ReadFile,
    read_new: ReadFile,
    renames: Sequence[tuple[str, str]] = (),
) -> dict[str, str]:
    """For those of `lost` that pass under another name with the same definition, that name.

    In a definition a module may have another name now (`renames`). A test that still has its name
    and is skipped is nowhere else, a case keeps its parameters, and one name stands for one test.
    """
    known, there = before.names, now.names
    others = [test for test in now.tests if test.name not in known and test.outcome == "passed"]
    found: dict[tuple[str, str], list[str]] = {}
    for test in others[:MOST]:
        if text := _definition(test, cwd, read_new):
            found.setdefault((text, _parameters(test.name)), []).append(test.name)
    by_name = {test.name: test for test in before.tests}
    pairs = {}
    for name in lost[:MOST]:
        if not found or name not in by_name or name in there:
            continue
        if (text := _definition(by_name[name], cwd, read_old)) is None:
            continue
        forms = [text, *(_renamed(text, one) for one in renames)]
        places = [found.get((form, _parameters(name)), []) for form in forms]
        if names := next(filter(None, places), None):
            pairs[name] = names.pop(0)
    return pairs


def _parameters(name: str) -> str:
    """Which case of a test it is."""
    part = PARAMETERS.search(name)
    return part[0] if part else ""


def _renamed(text: str, names: tuple[str, str]) -> str:
    """A definition in which a module has another name."""
    return re.sub(rf"(?<!\w){re.escape(names[0])}(?!\w)", names[1], text)


def renamed_modules(deleted: Sequence[str], added: Sequence[str]) -> list[tuple[str, str]]:
    """Names of modules that may have become others: each that went, with each that came."""
    stems = [
        [path.rpartition("/")[2].partition(".")[0] for path in some] for some in (deleted, added)
    ]
    pairs = [(old, new) for old in stems[0] for new in stems[1] if old and new and old != new]
    return list(dict.fromkeys(pairs))[:MOST_RENAMES]


def says_the_same(
    path: str,
    before: bytes,
    others: Mapping[str, bytes],
    renames: Sequence[tuple[str, str]] = (),
) -> bool:
    """Whether each test of a file stands in one of `others` as it was; else the whole file does.

    What a test rests on is compared with it, and modules may have another name (`renames`).
    """
    language = language_of(path)
    tests = definitions(before, language) if language else {}
    if language is None or not tests:
        return before in others.values()
    found = {
        (name, _placed(text, other))
        for other, source in others.items()
        if language_of(other) == language
        for name, text in definitions(source, language).items()
    }
    for name, text in tests.items():
        form = _placed(text, path)
        if not any((name, one) in found for one in (form, *(_renamed(form, r) for r in renames))):
            return False
    return True


def not_moved(
    lost: Sequence[str],
    before: Results,
    now: Results,
    cwd: str,
    read_old: ReadFile,
    read_new: ReadFile,
    renames: Sequence[tuple[str, str]] = (),
) -> list[str]:
    """Those of `lost` that do not pass under another name with the same definition."""
    moved = moved_to(lost, before, now, cwd, read_old, read_new, renames)
    return [name for name in lost if name not in moved]


def _definition(test: TestResult, cwd: str, read: ReadFile) -> str | None:
    path = posixpath.normpath(posixpath.join(cwd, test.file)) if test.file else ""
    language, source = language_of(path), read(path) if path else None
    text = definition(source, language, test.name) if language and source is not None else None
    return text if text is None else _placed(text, path)


def _placed(text: str, path: str) -> str:
    """The text of a test with relative imports as paths from the root of the repository."""
    folder = posixpath.dirname(path)

    def python(found: re.Match[str]) -> str:
        up = "/".join([".."] * (len(found[1]) - 1))
        place = posixpath.normpath(posixpath.join(folder, up, found[2].replace(".", "/")))
        return f"from /{place}"

    def script(found: re.Match[str]) -> str:
        return f"'/{posixpath.normpath(posixpath.join(folder, found[2]))}'"

    return SCRIPT_PLACE.sub(script, PYTHON_PLACE.sub(python, text))
