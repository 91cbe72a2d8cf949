"""Programs inside what a command runs: make recipes, npm scripts and shell scripts. Pure.

They are written out like those inside a command, and put back where they were.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_text
from agentrunner.verification.inputs.idle_recipes import MAKEFILE
from agentrunner.verification.inputs.inline_programs import (
    VARIABLE,
    ProgramPlace,
    without_unread,
    written_out,
)
from agentrunner.verification.inputs.tree import folder_of
from agentrunner.verification.syntax.programs import program_language

RECIPE = lazy_regex(r"(?m)^\t[@+ \t]*(?P<shell>[^\s@+-](?:[^\n\\]|\\(?:.|\n))*)")
"""A recipe line whose exit code counts, with its continuation lines."""
MOST_BYTES = 200_000


@dataclass(frozen=True)
class Carrier:
    """A file that contains programs."""

    path: str
    kind: str
    """"make", "json" or "sh"."""
    source: str
    text: str
    """The source with calls of files where its programs were."""
    files: Mapping[str, bytes]
    places: tuple[ProgramPlace, ...]
    blind: str
    """The source with `false` in place of programs that the shell changes before they run."""

    @property
    def unread(self) -> bool:
        """Whether there is such a program."""
        return self.blind != self.source

    def put_back(self, text: str, files: Mapping[str, bytes]) -> str:
        """Return a version of the file with these texts of its programs where they were."""
        head = ""
        for one in self.places:
            program = to_text(files[one.path])
            made = one.with_text(program)
            if self.kind == "make" and "\n" in made:
                name = re.sub(r"\W", "_", one.path)
                head += f"define {name}\n{_written(program, 'make')}\nendef\nexport {name}\n"
                made = f'{one.before} "${name}"'
            text = text.replace(_written(one.call, self.kind), _written(made, self.kind))
        return head + text

    def failing(self, paths: Collection[str]) -> str:
        """Return the file with `false` in place of some of its programs."""
        text = self.text
        for one in self.places:
            if one.path in paths:
                text = text.replace(_written(one.call, self.kind), "false ")
        return self.put_back(text, self.files)

    def only(self, paths: Collection[str]) -> Carrier:
        """Return the same carrier with only some of its programs."""
        places = tuple(one for one in self.places if one.path in paths)
        others = tuple(one for one in self.places if one.path not in paths)
        text = replace(self, places=others).put_back(self.text, self.files)
        files = {path: source for path, source in self.files.items() if path in paths}
        return replace(self, text=text, files=files, places=places)


def carrier_of(path: str, source: bytes, stem: str) -> Carrier | None:
    """Return what a recipe or script contains, its programs in files named after `stem`."""
    if len(source) > MOST_BYTES:
        return None
    kind = "make" if MAKEFILE.fullmatch(path) else ""
    kind = kind or ("json" if path.rpartition("/")[2] == "package.json" else "")
    if not kind and program_language(path, source) == "sh":
        kind = "sh"
    if not kind:
        return None
    whole = text = blind = to_text(source)
    files: dict[str, bytes] = {}
    places: list[ProgramPlace] = []
    for number, (piece, shell) in enumerate(_pieces(whole, kind)):
        blind = blind.replace(piece, _written(without_unread(shell), kind))
        made = written_out(shell, folder_of(path), f"{stem}{number}_")
        if made is not None and made.files:
            text = text.replace(piece, _written(made.shell, kind))
            files |= made.files
            places += made.places
    if not files and blind == whole:
        return None
    return Carrier(path, kind, whole, text, files, tuple(places), blind)


def _pieces(text: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the shell texts in a file: as written there, and as the shell gets them."""
    if kind == "sh":
        yield text, text
    elif kind == "make":
        for hit in RECIPE.finditer(text):
            shell = hit["shell"].replace("$$", "\0").replace("$", VARIABLE).replace("\0", "$")
            yield hit["shell"], shell
    else:
        try:
            scripts = json.loads(text).get("scripts", {})
            several = [one for one in scripts.values() if isinstance(one, str)]
        except (ValueError, AttributeError):
            return
        for one in several:
            if _written(one, kind) in text:
                yield _written(one, kind), one


def _written(shell: str, kind: str) -> str:
    """Return a shell text as it is written in such a file."""
    if kind == "make":
        return shell.replace("$", "$$").replace(VARIABLE, "$")
    return json.dumps(shell, ensure_ascii=False)[1:-1] if kind == "json" else shell
