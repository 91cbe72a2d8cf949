"""Finds ignored binary files that were built, before the run, from sources that the work changes.

Which they are is told by the names in them. Everything here blocks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from agentrunner.folders import walk
from agentrunner.git.snapshots import Snapshots
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.rooms.room import Rooms
from agentrunner.verification.rooms.sealed import Sealed
from agentrunner.verification.syntax.code_equality import is_same_code
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.tokens import without_comments
from agentrunner.verification.trees import NATIVE

COMPILED = ("go", "rust", "java")
DEFINED = lazy_regex(
    rb"\b(?:c?p?def)\s+(?:[\w*]+\s+)*?(\w{3,})\s*\("  # Cython
    rb"|\bfunc\s*\([^()]*\)\s*(\w{3,})\s*\("  # Go, of a type
    rb"|\b(\w{3,})\s*(?:<[^<>;{}]*>)?\([^;{}]*\)[^;{}()]*\{"
)
"""The head of a function: its name, its parameters and the beginning of its body."""
CONTROL = frozenset({b"for", b"while", b"switch", b"match", b"catch", b"select", b"synchronized"})
LARGEST = 64 << 20
"""Bytes of a file that is taken for a build."""
MOST_READ = 1 << 30
"""Bytes of binary files that are read in all."""
MOST_FILES = 200


def is_compiled(path: str) -> bool:
    """Whether a file is a source of a language that is compiled to binary files."""
    return bool(NATIVE.search(path)) or language_of(path) in COMPILED


class IgnoredBuilds:
    """Finds such files for one run. What a source is built to is read once: both were before it."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._known: dict[tuple[object, str, str], list[str]] = {}

    def of(self, old: str, new: str, sources: Iterable[str]) -> dict[str, list[str]]:
        """Ignored binary files of before the run that hold what these sources define, with those.

        `old` is the tree before the run, `new` the one after it. A source in which only comments
        and empty lines differ is built to the same.
        """
        sealed, snapshots = self._rooms.sealed, self._rooms.snapshots
        read, read_new = snapshots.reader(old), snapshots.reader(new)
        version = sealed.version if sealed.made else None
        changed = [path for path in sources if not is_built_alike(path, read(path), read_new(path))]
        keys = {path: (version, old, path) for path in changed}
        unread = {
            path: names
            for path, key in keys.items()
            if key not in self._known and (names := names_defined(read(path) or b""))
        }
        if unread:
            found = _builds_of(unread, _ignored_binaries(snapshots, sealed, old))
            self._known |= {keys[path]: builds for path, builds in found.items()}
        related: dict[str, list[str]] = {}
        for path, key in keys.items():
            for build in self._known.get(key, ()):
                related.setdefault(build, []).append(path)
        return related


def _builds_of(
    names: Mapping[str, Collection[bytes]], binaries: Iterable[tuple[str, bytes, bool]]
) -> dict[str, list[str]]:
    """By source, the binary files that hold what it defines."""
    found: dict[str, list[str]] = {source: [] for source in names}
    left, builds = MOST_READ, 0
    for path, content, packages in binaries:
        left -= len(content)
        if left < 0 or builds >= MOST_FILES:
            break
        related = [
            source
            for source, words in names.items()
            if (not packages or is_called_after(path, source)) and holds(content, words)
        ]
        builds += bool(related)
        for source in related:
            found[source].append(path)
    return found


def is_built_alike(path: str, before: bytes | None, after: bytes | None) -> bool:
    """Whether a source is built to the same: in Go comments are tags, elsewhere they are not."""
    if before == after or before is None or after is None:
        return before == after
    language = language_of(path)
    if language is not None:
        return language != "go" and is_same_code(before, after, language)
    return _lines_of_code(path, before) == _lines_of_code(path, after)


def _lines_of_code(path: str, source: bytes) -> list[bytes]:
    """Lines without comments, of a language that is not parsed: C, Cython."""
    lines = zip(source.split(b"\n"), without_comments(path, source).split(b"\n"), strict=True)
    return [_indented(written, line) for written, line in lines if line.strip()]


def _indented(written: bytes, code: bytes) -> bytes:
    """A line of code, as far to the right as what is written there begins, if that is a comment."""
    indent = len(written) - len(written.lstrip())
    return (
        written[:indent] + code[indent:].strip() if code[indent:][:1].isspace() else code.rstrip()
    )


def names_defined(source: bytes) -> set[bytes]:
    """The names of the functions that a source defines, without short ones."""
    return {name for hit in DEFINED.findall(source) for name in hit if name} - CONTROL


def holds(content: bytes, names: Collection[bytes]) -> bool:
    """Whether most of the names are in a binary file, as words or within mangled ones."""
    # What is before a name is looked at last: a pattern that begins with a text is found fast.
    words = (rb"%b(?![a-z_])(?<![A-Za-z_]%b)" % ((re.escape(name),) * 2) for name in names)
    return 2 * sum(bool(re.search(word, content)) for word in words) > len(names)


def is_called_after(build: str, source: str) -> bool:
    """Whether a file in a package folder has the name of a source or of a folder around it."""
    stem = PurePosixPath(build).name.partition(".")[0].removeprefix("lib").lstrip("_")
    place = PurePosixPath(source)
    return stem in {place.stem.lstrip("_"), *place.parent.parts}


def _ignored_binaries(
    snapshots: Snapshots, sealed: Sealed, old: str
) -> Iterator[tuple[str, bytes, bool]]:
    """Binary files that git ignores, as they were before the run; and whether packages they are."""
    ignored = sorted(snapshots.ignored_paths(list(snapshots.list(old))))
    sizes = snapshots.sizes(old, ignored)
    for path in ignored:
        if 0 < sizes.get(path, 0) <= LARGEST:
            content = snapshots.read(old, path) or b""
            if b"\0" in content[:4096]:
                yield path, content, False
    for folder, place in sealed.folders():
        if not folder.copied:
            continue
        for inner, _, files in walk(place):
            for name in sorted(files):
                content = _binary(Path(inner, name))
                if content:
                    below = Path(inner, name).relative_to(place)
                    yield f"{folder.name}/{below}", content, folder.packages


def _binary(path: Path) -> bytes:
    """The content of a binary file; empty for any other, and for one that is too large."""
    try:
        if path.is_symlink() or not 0 < path.lstat().st_size <= LARGEST:
            return b""
        with path.open("rb") as file:
            head = file.read(4096)
            return head + file.read() if b"\0" in head else b""
    except OSError:
        return b""
