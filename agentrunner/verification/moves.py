"""Tests that stand somewhere else now, word for word. Pure, but for reading files of two trees."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from agentrunner.verification.checks import ReadFile
from agentrunner.verification.results.model import Results, TestResult
from agentrunner.verification.results.names import PARAMETERS, own_name
from agentrunner.verification.syntax.carried import carried, lines_of_imports
from agentrunner.verification.syntax.definitions import definition, definitions
from agentrunner.verification.syntax.languages import language_of

SCRIPT_PLACE = re.compile(
    r"""(?:(?:\b__DIR__|\bdirname\(\s*__FILE__\s*\))\s*\.\s*)?(["'])(/?\.{1,2}/[^"']*)\1"""
)
"""A place beside the file that names it; PHP's begin with a slash."""
PYTHON_PLACE = re.compile(r"(?m)^from (\.+)([\w.]*)")
WORD = re.compile(r"\w+|\W")
QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`]*`")
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
        places = [found.get((form, _parameters(name)), []) for form in _forms(text, renames)]
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


def _forms(text: str, renames: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A definition as it was, with each module named anew, and with all that only moved."""
    yield text
    for one in renames:
        yield _renamed(text, one)
    for one in renames:
        if re.split(r"[/.]", one[0])[-1] == re.split(r"[/.]", one[1])[-1]:
            text = _renamed(text, one)
    yield text


def renamed_modules(deleted: Sequence[str], added: Sequence[str]) -> list[tuple[str, str]]:
    """Names of modules that may have become others: each that went, with each that came.

    One that came under the name of one that went is named by its place, as imports write it.
    """
    old_paths, new_paths = ([_without_ending(path) for path in some] for some in (deleted, added))
    pairs = [
        (_stem(old), _stem(new)) if _stem(old) != _stem(new) else (old, new)
        for old in old_paths
        for new in new_paths
        if _stem(old) and _stem(new) and old != new
    ]
    moved = [pair for pair in pairs if "/" in f"{pair[0]}{pair[1]}"]
    dotted = [(old.replace("/", "."), new.replace("/", ".")) for old, new in moved]
    return list(dict.fromkeys([*moved, *dotted, *pairs]))[:MOST_RENAMES]


def asked_moves(
    words: Sequence[str], text: str, deleted: Sequence[str], added: Sequence[str]
) -> list[tuple[str, str]]:
    """Names of modules that became others just as a PRD wants, as imports write them.

    `words` are the places it wants something moved to or from. A file counts that went from a
    place that `text` names to the very same one below such a place.
    """
    pairs: list[tuple[str, str]] = []
    for old, new in (
        (old, new)
        for old in map(_without_ending, deleted[:MOST])
        for new in map(_without_ending, added[:MOST])
        if old != new
    ):
        for word in dict.fromkeys(form for one in words for form in (one, one.replace(".", "/"))):
            home, found, rest = f"/{new}/".partition(f"/{_without_ending(word)}/")
            rest = f"/{rest}".rstrip("/")
            # Written in full, or from a folder that it was in before: `ledger.money` below src.
            if not found or not f"/{old}".startswith(f"{home}/") or not f"/{old}".endswith(rest):
                continue
            was = f"/{old}".removesuffix(rest).strip("/")
            if was == _without_ending(word) or not _names(text, was or old):
                continue
            pairs += _as_imported(*((was, new.removesuffix(rest)) if was else (old, new)))
    return list(dict.fromkeys(pairs))[:MOST_RENAMES]


def _names(text: str, place: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(_stem(place))}(?!\w)", text))


def _as_imported(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Two places as imports write them: from the root, or from a folder that both lie in."""
    one, other = old.split("/"), new.split("/")
    for at in range(min(len(one), len(other))):
        for joint in "/.":
            yield joint.join(one[at:]), joint.join(other[at:])
        if one[at] != other[at]:
            return


def imports_follow(
    path: str, before: bytes, after: bytes, renames: Sequence[tuple[str, str]]
) -> bool:
    """Whether a file differs by its imports alone, and these by modules that moved (`renames`)."""
    language = language_of(path)
    if language is None or not renames:
        return False
    if (text := carried(before, after, language)) is None:
        return False
    if text != carried(after, after, language):
        return False
    was, now = lines_of_imports(before, language), lines_of_imports(after, language)
    if was is None or now is None:
        return False
    one, other = ({_placed(line, path) for line in lines} for lines in (was, now))
    left = one - other
    ways = [{_renamed(line, names) for names in renames} & other for line in left]
    return all(ways) and other - one <= set().union(*ways)


def names_follow(before: bytes, after: bytes, renames: Mapping[str, str]) -> bool:
    """Whether a file differs by names in code alone, each as it is to be called (`renames`)."""
    one, other = (text.decode("utf-8", "replace") for text in (before, after))
    if not renames or QUOTED.findall(one) != QUOTED.findall(other):
        return False
    was, now = WORD.findall(one), WORD.findall(other)
    changed = {pair for pair in zip(was, now, strict=False) if pair[0] != pair[1]}
    return len(was) == len(now) and bool(changed) and changed <= set(renames.items())


def _stem(path: str) -> str:
    return path.rpartition("/")[2]


def _without_ending(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{name.partition('.')[0]}"


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
        forms = set(_forms(_whole(before, path), renames))
        return any(
            before == source or _whole(source, other) in forms for other, source in others.items()
        )
    found = {
        (name, _placed(text, other))
        for other, source in others.items()
        if language_of(other) == language
        for name, text in definitions(source, language).items()
    }
    for name, text in tests.items():
        if not any((name, form) in found for form in _forms(_placed(text, path), renames)):
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
    if source is None:
        return None
    if language is None:  # without a grammar a test is what its whole file says
        return f"{own_name(test.name)}\n{_whole(source, path)}"
    text = definition(source, language, test.name)
    return text if text is None else _placed(text, path)


def _whole(source: bytes, path: str) -> str:
    """The text of a file, with relative places as paths from the root of the repository."""
    return _placed(source.decode("utf-8", "replace"), path)


def _placed(text: str, path: str) -> str:
    """The text of a test with relative imports as paths from the root of the repository."""
    folder = posixpath.dirname(path)

    def python(found: re.Match[str]) -> str:
        up = "/".join([".."] * (len(found[1]) - 1))
        place = posixpath.normpath(posixpath.join(folder, up, found[2].replace(".", "/")))
        return f"from /{place}"

    def script(found: re.Match[str]) -> str:
        return f"'/{posixpath.normpath(posixpath.join(folder, found[2].lstrip('/')))}'"

    return SCRIPT_PLACE.sub(script, PYTHON_PLACE.sub(python, text))
