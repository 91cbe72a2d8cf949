"""Names and words that the work added, altered, removed or imports. Blocks."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Sequence
from typing import Any

from msgspec import Struct

from agentrunner.state.run_state import Criterion
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.file_names import has_word
from agentrunner.verification.results.files import toml_of
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.calls import names_changed, names_declared, users_of
from agentrunner.verification.syntax.imports import imported
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.words import identifiers
from agentrunner.verification.world import SnapshotTrees

MAIN = lazy_regex(rb"(?m)^[^\S\n]*(?:pub\s+)?(?:async\s+)?fn\s+main\s*\(")
PLACE = lazy_regex(r"(?:(?P<home>.*)/)?src/(?:main\.rs|bin/(?P<name>[^/]+?)(?:\.rs|/main\.rs))")

WORD = lazy_regex(r"[^\W\d]\w{2,}")
MOST_FILES = 2_000
"""Files of code that are searched for the names of data."""
MOST_READ = 500_000
"""Bytes of a file without a grammar that are searched for words."""


class NamesOfWork(Struct, frozen=True):
    """What a test has to be about, by name."""

    changed: set[str]
    """Functions, classes and modules that the work added or altered."""
    imported: set[str]
    """What files of the work import now: tests put doubles in their place."""
    written: set[str]
    """What a test's text may name: the changed ones, those gone, and users of what changed."""
    wanted: set[str]
    """What was changed, or is asked for."""

    @classmethod
    def of(cls, world: SnapshotTrees, asked: str, criteria: Sequence[Criterion]) -> NamesOfWork:
        """Read both trees. Blocks."""
        changed = _changed_names(world, asked)
        touched = _touched_names(world, asked)
        spoken = [asked, *(f"{one.description} {one.detail}" for one in criteria)]
        return cls(
            changed,
            _imported_names(world),
            changed | touched | _removed_names(world),
            changed | touched | {name for text in spoken for name in identifiers(text)},
        )


def _changed_names(world: SnapshotTrees, asked: str) -> set[str]:
    """Names of functions, classes and modules that the work added or altered.

    For files without a grammar all words that are new in them; for others those that are `asked`
    for: a file may give out what another one has.
    """
    found = new_programs(world.product, world.old_paths, world.now)
    for path in world.product:
        stem = posixpath.basename(path).split(".")[0]
        if path not in world.old_paths:
            found |= {stem, *posixpath.dirname(path).split("/")} - {""}
        if language_of(path) is None:
            found |= words_in(world.now(path) or b"") - words_in(world.was(path) or b"")
    for _, language, before, after in world.sources():
        found |= names_changed(before, after, language)
        if before is not None:
            found |= (words_in(after) - words_in(before)) & words_in(to_bytes(asked))
    return found


def _imported_names(world: SnapshotTrees) -> set[str]:
    """Names that files of the work import now: tests put doubles in their place."""
    return {
        name
        for _, language, before, after in world.sources()
        if before is not None
        for name in imported(after, language).keys() - imported(before, language).keys()
    }


def _removed_names(world: SnapshotTrees) -> set[str]:
    """Names that files of the work declared and do not declare any more."""
    found: set[str] = set()
    for path in world.product:
        language, before = language_of(path), world.was(path)
        if language is not None and before is not None:
            after = world.now(path)
            still = names_declared(after, language) if after is not None else set()
            found |= names_declared(before, language) - still
    return found


def new_names(world: SnapshotTrees) -> set[str]:
    """Names that the work declares, and that no file of it declared before."""
    old, new = set[str](), set[str]()
    for _, language, before, after in world.sources():
        old |= names_declared(before or b"", language)
        new |= names_declared(after, language)
    return new - old


def _touched_names(world: SnapshotTrees, asked: str) -> set[str]:
    """Names of functions that use what the work altered beside functions.

    This is a constant of their file, or a file without a grammar, such as a table of settings,
    that their file names. A word of such a file says nothing: a test may read it by itself. Where
    `asked` writes a text of the altered lines, functions that use these functions count as well.
    """
    found: set[str] = set()
    for _, language, before, after in world.sources():
        if before is not None:
            names = names_changed(before, after, language)
            through = _is_written(before, after, asked)
            found |= users_of(after, language, names, through=through)
    data = [
        posixpath.basename(path)
        for path in world.product
        if language_of(path) is None and world.was(path) is not None and world.now(path) is not None
    ]
    return found | (_users_of_data(world, data) if data else set())


def _is_written(before: bytes, after: bytes, asked: str) -> bool:
    """Whether a text in quotes on a line that is new stands in what was asked for.

    As it is written, or as what it means: people write `\\e` where code has `"\\e"`.
    """
    old = set(before.splitlines())
    new = b"\n".join(line for line in after.splitlines() if line not in old)
    texts = re.findall(r"[\"'`]([^\"'`\n]{2,80})[\"'`]", new.decode("utf-8", "replace"))
    texts = [form for one in texts for form in {one, one.replace("\\\\", "\\")} if len(form) > 1]
    return any(has_word(text, asked) for text in texts)


def _users_of_data(world: SnapshotTrees, data: Sequence[str]) -> set[str]:
    """Names of functions in files of code that name data, and of functions that use these.

    Tests that the run changed are left out.
    """
    snapshots = world.snapshots
    was, now = snapshots.list(world.old), snapshots.list(world.new)
    paths = [
        path
        for path in sorted(now)
        if language_of(path) and (path in world.product or was.get(path) == now[path])
    ]
    texts = snapshots.read_many(world.new, paths[:MOST_FILES])
    named = re.compile(to_bytes("|".join(alone(one, before=".") for one in data)))
    found: set[str] = set()
    for path, text in texts.items():
        if text is not None and named.search(text):
            found |= names_declared(text, language_of(path) or "")
    for path, text in texts.items():
        if text is not None and found:
            found |= users_of(text, language_of(path) or "", found)
    return found


def words_in(source: bytes) -> set[str]:
    """Words of three letters or more."""
    return set(WORD.findall(source[:MOST_READ].decode("utf-8", "replace")))


def new_programs(product: Sequence[str], old_paths: Collection[str], read: ReadFile) -> set[str]:
    """Return what Cargo calls the programs whose file with a `main` is new in the product.

    Cargo hands the path of each program of a package to its tests when they are compiled. Without
    the program they are not compiled, and the message contains no more than this name.
    """
    added = [path for path in product if path not in old_paths and path.endswith(".rs")]
    found: set[str] = set()
    for path in added:
        if not MAIN.search(read(path) or b""):
            continue
        if place := PLACE.fullmatch(path):
            found.add(place["name"] or _package(place["home"] or "", read))
        for home in _folders_above(path):
            programs = _manifest(home, read).get("bin")
            for one in programs if isinstance(programs, list) else ():
                if isinstance(one, dict) and posixpath.join(home, str(one.get("path"))) == path:
                    found.add(str(one.get("name")))
    return {f"CARGO_BIN_EXE_{name}" for name in found - {""}}


def _folders_above(path: str) -> list[str]:
    folders = [posixpath.dirname(path)]
    while folders[-1]:
        folders.append(posixpath.dirname(folders[-1]))
    return folders


def _package(home: str, read: ReadFile) -> str:
    package = _manifest(home, read).get("package")
    return str(package.get("name", "")) if isinstance(package, dict) else ""


def _manifest(home: str, read: ReadFile) -> dict[str, Any]:
    return toml_of((read(posixpath.join(home, "Cargo.toml")) or b"").decode("utf-8", "replace"))
