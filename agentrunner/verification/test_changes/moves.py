"""Finds tests that stand elsewhere now, word for word. Pure, but for reading files of two trees."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.file_names import has_word
from agentrunner.verification.results.model import ReadFile, Results, TestResult
from agentrunner.verification.results.names import PARAMETERS, own_name
from agentrunner.verification.syntax.definitions import definition, definitions
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.test_changes.renamed_names import QUOTED

SCRIPT_PLACE = lazy_regex(
    r"""(?:(?:\b__DIR__|\bdirname\(\s*__FILE__\s*\))\s*\.\s*)?(["'])(/?\.{1,2}/[^"']*)\1"""
)
"""A path relative to the file that names it; in PHP it begins with a slash."""
PYTHON_PLACE = lazy_regex(r"(?m)^from (\.+)([\w.]*)")
IMPORTED = lazy_regex(r"(?m)^(from ([\w./]+)(?: (\w+))?)$")
"""Where a definition says that a name is from."""
Pair = tuple[ReadFile, ReadFile]
"""What reads the tree before the run, and what reads one after it."""
Renames = Sequence[tuple[str, str]]
"""Old and new names of what moved."""
MOST_RENAMES = 50
MOST_COMPARED = 200
"""How many lost tests, new tests and files are compared."""


def moved_to(
    lost: Sequence[str], before: Results, now: Results, cwd: str, read: Pair, renames: Renames = ()
) -> dict[str, str]:
    """Where tests went: for those of `lost` that pass under a new name with an equal definition.

    Keys are old names, values new ones. In a definition a module may have another name now
    (`renames`). A test that still has its name and is skipped is not looked for, a case keeps its
    parameters, and one new name stands for one test.
    """
    known, present = before.names, now.names
    new_tests = [test for test in now.tests if test.name not in known and test.outcome == "passed"]
    by_text: dict[tuple[str, str], list[str]] = {}
    for test in new_tests[:MOST_COMPARED]:
        if text := _definition_of(test, cwd, read[1]):
            by_text.setdefault((text, _parameters(test.name)), []).append(test.name)
    by_name = {test.name: test for test in before.tests}
    pairs = {}
    for name in lost[:MOST_COMPARED]:
        if not by_text or name not in by_name or name in present:
            continue
        if (text := _definition_of(by_name[name], cwd, read[0])) is None:
            continue
        places = [by_text.get((form, _parameters(name)), []) for form in forms_of(text, renames)]
        if names := next(filter(None, places), None):
            pairs[name] = names.pop(0)
    return pairs


def _parameters(name: str) -> str:
    """The parameters in a test's name, which say which case it is; "" for none."""
    part = PARAMETERS.search(name)
    return part[0] if part else ""


def renamed_in(text: str, names: tuple[str, str]) -> str:
    """A definition in which one module has its new name."""
    return re.sub(rf"(?<!\w){re.escape(names[0])}(?!\w)", names[1], text)


def forms_of(text: str, renames: Renames) -> Iterator[str]:
    """A definition as it was, with each name renamed, with all moved modules, and with all names
    renamed."""
    yield text
    for one in renames:
        yield renamed_in(text, one)
    for one in renames:
        if re.split(r"[/.]", one[0])[-1] == re.split(r"[/.]", one[1])[-1]:
            text = renamed_in(text, one)
    yield text
    for one in renames:
        text = renamed_in(text, one)
    yield text


def renamed_modules(deleted: Sequence[str], added: Sequence[str]) -> list[tuple[str, str]]:
    """Old and new names that modules may have: each deleted one with each added one.

    In folders they are told apart by their paths, as imports write them.
    """
    old_paths, new_paths = ([_without_ending(path) for path in paths] for paths in (deleted, added))
    pairs = [
        (old, new)
        for old in old_paths
        for new in new_paths
        if _stem(old) and _stem(new) and old != new
    ]
    pairs.sort(key=_in_common, reverse=True)
    alike = [(old, new) for old, new in pairs if _stem(old) == _stem(new)]
    others = [pair for pair in pairs if pair not in alike]
    stems = [(_stem(old), _stem(new)) for old, new in others]
    others = [pair for pair in others if "/" in f"{pair[0]}{pair[1]}"]
    names = [*alike, *_dotted(alike), *stems, *others, *_dotted(others)]
    return list(dict.fromkeys(names))[:MOST_RENAMES]


def _in_common(paths: tuple[str, str]) -> int:
    """How many characters two paths share at their ends."""
    ends = paths, [path[::-1] for path in paths]
    return sum(len(posixpath.commonprefix(list(one))) for one in ends)


def _dotted(paths: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for old, new in paths:
        yield old.replace("/", "."), new.replace("/", ".")


def asked_moves(
    words: Sequence[str], text: str, deleted: Sequence[str], added: Sequence[str]
) -> list[tuple[str, str]]:
    """Old and new names, as imports write them, of modules that moved just as a PRD wants.

    `words` are the places to or from which it wants something moved. A file counts that went from
    a place that `text` names to the very same place below one of `words`.
    """
    pairs: list[tuple[str, str]] = []
    for old, new in (
        (old, new)
        for old in map(_without_ending, deleted[:MOST_COMPARED])
        for new in map(_without_ending, added[:MOST_COMPARED])
        if old != new
    ):
        for word in dict.fromkeys(form for one in words for form in (one, one.replace(".", "/"))):
            home, found, rest = f"/{new}/".partition(f"/{_without_ending(word)}/")
            rest = f"/{rest}".rstrip("/")
            # Written in full, or from a folder that it was in before: `ledger.money` below src.
            if not found or not f"/{old}".startswith(f"{home}/") or not f"/{old}".endswith(rest):
                continue
            was = f"/{old}".removesuffix(rest).strip("/")
            if was == _without_ending(word) or not has_word(_stem(was or old), text):
                continue
            pairs += _as_imported(*((was, new.removesuffix(rest)) if was else (old, new)))
    return list(dict.fromkeys(pairs))[:MOST_RENAMES]


def _as_imported(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Two places as imports write them: from the root, or from a folder that both lie in."""
    old_parts, new_parts = old.split("/"), new.split("/")
    for index in range(min(len(old_parts), len(new_parts))):
        for joint in "/.":
            yield joint.join(old_parts[index:]), joint.join(new_parts[index:])
        if old_parts[index] != new_parts[index]:
            return


def _stem(path: str) -> str:
    return path.rpartition("/")[2]


def _without_ending(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}{name.partition('.')[0]}"


def says_the_same(
    path: str, before: bytes, others: Mapping[str, bytes], renames: Renames = ()
) -> bool:
    """Whether each test of a file stands unchanged in one of `others`, or else the whole file does.

    What a test rests on is compared with it. Modules may have another name (`renames`).
    """
    language = language_of(path)
    tests = definitions(before, language) if language else {}
    if language is None or not tests:
        forms = set(forms_of(_whole(before, path), renames))
        return any(
            before == source or _whole(source, other) in forms for other, source in others.items()
        )
    found = {
        (name, _canonical(text, other))
        for other, source in others.items()
        if language_of(other) == language
        for name, text in definitions(source, language).items()
    }
    for name, text in tests.items():
        if not any((name, form) in found for form in forms_of(_canonical(text, path), renames)):
            return False
    return True


def not_moved(
    lost: Sequence[str], before: Results, now: Results, cwd: str, read: Pair, renames: Renames = ()
) -> list[str]:
    """Those of `lost` that do not pass under a new name with an equal definition."""
    moved = moved_to(lost, before, now, cwd, read, renames)
    return [name for name in lost if name not in moved]


def _definition_of(test: TestResult, cwd: str, read: ReadFile) -> str | None:
    """A test's definition with relative imports resolved; without a grammar its name and file."""
    path = posixpath.normpath(posixpath.join(cwd, test.file)) if test.file else ""
    language, source = language_of(path), read(path) if path else None
    if source is None:
        return None
    if language is None:  # without a grammar a test is what its whole file says
        return f"{own_name(test.name)}\n{_whole(source, path)}"
    text = definition(source, language, test.name)
    return text if text is None else _canonical(text, path)


def _whole(source: bytes, path: str) -> str:
    """The text of a file, with relative places as paths from the root of the repository."""
    return placed(source.decode("utf-8", "replace"), path)


def _canonical(text: str, path: str) -> str:
    """A definition by what it means: imported from where, and `slug` for `utils.slug`."""
    text = placed(text, path)
    lines: set[str] = set()
    for line, module, name in IMPORTED.findall(text):
        text = text.replace(f"{line}\n", "", 1)
        own = r" \. ".join((name or module).split("."))
        used = rf"{QUOTED.pattern}|(?<![\w.])(?<!\. ){own}(?P<member> \. (?P<part>\w+))?(?!\w)"
        hits = [hit for hit in re.finditer(used, text) if hit[0][0] not in "\"'`"]
        if not hits or not all(hit["part"] for hit in hits):
            lines.add(line)
            continue
        lines |= {f"from {'.'.join(filter(None, (module, name)))} {hit['part']}" for hit in hits}
        text = re.sub(used, lambda hit: hit["part"] or hit[0], text)
    return "\n".join([*sorted(lines), text])


def placed(text: str, path: str) -> str:
    """The text of a test, with relative imports as paths from the root of the repository."""
    folder = posixpath.dirname(path)

    def python(found: re.Match[str]) -> str:
        up = "/".join([".."] * (len(found[1]) - 1))
        place = posixpath.normpath(posixpath.join(folder, up, found[2].replace(".", "/")))
        return f"from /{place}"

    def script(found: re.Match[str]) -> str:
        return f"'/{posixpath.normpath(posixpath.join(folder, found[2].lstrip('/')))}'"

    return SCRIPT_PLACE.sub(script, PYTHON_PLACE.sub(python, text))
