"""Finds the files that git may have changed on their way into the repository, by its attributes.

Nothing is run. Where a rule is hard to parse, all files below it count as changed: they are then
read, which is never wrong. Standard library only, like everything that `take` needs.
"""
# Paths are bytes here, which pathlib does not take.
# ruff: noqa: PTH111, PTH118

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable

from agentrunner.git.process import read_small
from agentrunner.text.lazy_regex import lazy_regex

CHANGES_CONTENT = lazy_regex(
    rb"(?i)(?:^|\s)(?:filter|ident|eol|crlf|working-tree-encoding)(?:\s|=|$)"
)
"""A rule that sets one of these, or sets it to something; `-filter` and `!filter` do not."""
NAMED_FILE = lazy_regex(rb"(?im)^[^\S\n]*attributesfile\s*=\s*\"?([^\"\n;#]+)")
PLAIN = lazy_regex(rb"[A-Za-z0-9_.*?+@-]+")
"""A pattern that `fnmatch` on the last name interprets as git does."""


class Attributes:
    """The rules of all `.gitattributes`, by the folder they are in, and of the user's own files."""

    def __init__(self) -> None:
        self._names: dict[bytes, list[re.Pattern[bytes]]] = {}
        """By folder: patterns for names of files below it that git may have changed."""
        self._all: list[bytes] = []
        """Folders below which every file counts as changed."""

    def add(self, folder: bytes, text: bytes) -> None:
        """Add the rules for a folder, which is relative to the top of the repository."""
        for line in text.splitlines():
            pattern, _, rules = line.strip().partition(b" ")
            pattern, _, more = pattern.partition(b"\t")
            if pattern.startswith(b"#") or not CHANGES_CONTENT.search(more + b" " + rules):
                continue
            if PLAIN.fullmatch(pattern):
                # Case is ignored: the user's git may ignore it.
                named = re.compile(fnmatch.translate(pattern.decode()).encode(), re.IGNORECASE)
                self._names.setdefault(folder, []).append(named)
            else:
                self._all.append(folder)

    def add_users_own(self, common_dir: bytes, configs: Iterable[bytes]) -> None:
        """Add the rules for the whole repository: those of its `.git`, the user, the machine."""
        home = os.fsencode(os.path.expanduser("~"))
        settings = os.fsencode(os.environ.get("XDG_CONFIG_HOME") or "") or home + b"/.config"
        places = [common_dir + b"/info/attributes", settings + b"/git/attributes"]
        places.append(b"/etc/gitattributes")
        known = (home + b"/.gitconfig", settings + b"/git/config", b"/etc/gitconfig")
        for config in (*configs, *known):
            named = NAMED_FILE.findall(read_small(config) or b"")
            places += [os.path.join(home, os.path.expanduser(name.strip())) for name in named]
        for place in places:
            self.add(b"", read_small(place) or b"")

    def changes(self, path: bytes) -> bool:
        """Whether git's content for a file may differ from the file's own."""
        if not self._names and not self._all:
            return False
        name = path.rpartition(b"/")[2]
        for folder, patterns in self._names.items():
            if _is_below(path, folder) and any(pattern.match(name) for pattern in patterns):
                return True
        return any(_is_below(path, folder) for folder in self._all)


def _is_below(path: bytes, folder: bytes) -> bool:
    return not folder or path.startswith(folder + b"/")
