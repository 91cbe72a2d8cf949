"""What an input of the proof is, and the list of inputs that is worked out before a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.globs import glob_regex, is_glob, matches

PYTHON_TWIN = lazy_regex(r"(/__init__\.py|\.(cpython-\d+[\w-]*|abi3)\.so|\.so|\.pyc|\.pyd)$")
JS_TWIN = lazy_regex(r"(/index)?\.([cm]?[jt]sx?|json|node)$")
C_HEADERS = frozenset(
    f"{name}.h"
    for name in """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp
    signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath
    threads time uchar unistd wchar wctype""".split()
)
"""The headers of the C standard, and the POSIX header that ends programs."""
JS_ENDINGS = (".js", ".json", ".ts", ".tsx", ".mjs", ".cjs", "/index.js", "/index.ts")

Kind = Literal["test", "fixture", "config", "runner", "recipe"]
"""`test` is collected or decides; `fixture` is read or imported by tests; `config` configures the
tool; `runner` is a script that a command runs; `recipe` says what is run (Makefile, package.json).
"""


@dataclass(frozen=True)
class Input:
    """A file, or a glob of files, that decides what the verifying commands say."""

    path: str
    """A file, or a glob anchored at the repository root: `tests/**/test_*.py`, `golden/**`."""
    why: str
    """The reason, one clause for people: "the test command names it"."""
    kind: Kind
    exists: bool = True
    """Whether the tree before the run has such a file; if not, it is a place where tools look."""
    region: bool = False
    """Only the tests inside the file count; the rest of it is product."""
    old_only: bool = False
    """For a glob: only files that existed before the run count."""
    parts: tuple[str, ...] = ()
    """For a recipe: the targets or scripts that the commands use."""
    itself: bool = False
    """The file is only compared with a copy of itself, made by the same command."""
    compares: tuple[str, ...] = ()
    """Only these functions of the file count, and what they use: they compare for a test."""


@dataclass
class Inputs:
    """What counts as tests, what as product, and what is unclear."""

    deciding: list[Input]
    """All inputs of the proof, of every kind."""
    product: list[Input]
    """What could be mistaken for a test but is product, with the reason; also declared globs."""
    unsure: list[Input]
    """Taken as product. If one of these changed, the evidence counts as shown, not as proven."""
    programs: frozenset[str] = frozenset()
    """Base names of the programs that the commands run, whose configuration counts."""
    possible: list[Input] = field(default_factory=list)
    """Where tools look for files that do not exist yet, such as a new `pytest.ini`."""
    import_folders: frozenset[str] = frozenset()
    """Folders that Python searches first for modules."""
    provided_names: frozenset[str] = frozenset()
    """Modules that imports find outside the tree today."""
    declared_tests: Sequence[str] = ()
    declared_product: Sequence[str] = ()
    before: frozenset[str] = frozenset()
    """All paths of the tree before the run."""
    beside: frozenset[str] = frozenset()
    """Code that only tests use, while what was asked for names other code. Taken as product, but if
    only its change turns a test, that proves nothing.
    """
    scripts: frozenset[str] = frozenset()
    """Names of the package scripts that the commands run, including their pre and post scripts."""

    def __post_init__(self) -> None:
        self._exact: Mapping[str, Input] = {
            one.path: one
            for one in reversed([*self.deciding, *self.possible])
            if not is_glob(one.path, self.before)
        }
        self._globs: list[tuple[re.Pattern[str], Input]] = [
            (glob_regex(one.path), one)
            for one in [*self.deciding, *self.possible]
            if is_glob(one.path, self.before)
        ]
        self._product = {one.path for one in [*self.product, *self.unsure]}

    def input_at(self, path: str) -> Input | None:
        """Return why a path of the tree is an input of the proof, None if it is product.

        A path that does not exist yet counts only if a tool would collect or read it.
        """
        if matches(path, self.declared_product):
            return None
        for pattern in self.declared_tests:
            if matches(path, [pattern]):
                return Input(path, f"task.test.paths says so ({pattern})", "test")
        if path in self._product:
            return None
        if found := self._exact.get(path):
            return found
        for regex, entry in self._globs:
            if (not entry.old_only or path in self.before) and regex.match(path):
                return entry
        if path in self.before:
            return None
        return self._takes_the_place(path) or self._shadows(path)

    def _shadows(self, path: str) -> Input | None:
        """Return an input if imports would find this new module or header instead of today's."""
        if path.rpartition("/")[2] in C_HEADERS:
            return Input(path, "it may stand before the system's header of that name", "runner")
        place = path.removesuffix("/__init__.py").removesuffix(".py")
        folder, _, name = place.rpartition("/")
        if place == path or name not in self.provided_names or folder not in self.import_folders:
            return None
        return Input(path, f"it would stand before the {name} that imports find today", "runner")

    def _takes_the_place(self, path: str) -> Input | None:
        """Return an input if imports would find this new file instead of an existing input."""
        for twin in twins(path):
            if twin in self.before and (old := self.input_at(twin)):
                return Input(path, f"it would stand before {twin}: {old.why}", "runner")
        return None

    def is_unsure(self, path: str) -> Input | None:
        """Return why a path taken as product may decide after all, None if nothing says so."""
        if matches(path, [*self.declared_product, *self.declared_tests]):
            return None
        return next((one for one in self.unsure if one.path == path), None)


def twins(path: str) -> list[str]:
    """Return the other files that the import of `path` may have found before `path` existed."""
    if found := PYTHON_TWIN.search(path):
        stem = path[: found.start()]
        return (
            [f"{stem}.py", f"{stem}/__init__.py"] if found[1] != "/__init__.py" else [f"{stem}.py"]
        )
    if found := JS_TWIN.search(path):
        return [path[: found.start()] + ending for ending in JS_ENDINGS]
    return []
