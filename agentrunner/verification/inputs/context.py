"""What the search has found so far: inputs, executed programs, shell texts still to follow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from msgspec import Struct, field

from agentrunner.verification.inputs.globs import inside, is_glob, literal
from agentrunner.verification.inputs.model import Input, Kind
from agentrunner.verification.inputs.shell import Step, steps_of
from agentrunner.verification.inputs.tree import Tree, above, is_inside, join

MOST_TEXTS = 300
"""The most shell texts that are followed; a command that runs more is not understood anyway."""

SETTINGS = "{.toml,.ini,.cfg,.json,.jsonc,.json5,.yml,.yaml,.xml,.xml.dist,.conf}"
SCRIPTED = "{.js,.cjs,.mjs,.ts,.cts,.mts,.py,.rb,.json,.jsonc,.toml,.yml,.yaml,.local}"
OWN_CONFIG = (
    "{name}" + SETTINGS,
    ".{name}" + SETTINGS,
    ".{name}?(rc)?(.json|.jsonc|.yml|.yaml|.js|.cjs|.mjs|.ts|.toml)",
    "?(.){name}.{config,setup,workspace,settings}" + SCRIPTED,
)
"""How tools name their configuration files, derived from the tool's own name."""


def positional(words: Sequence[str], valued: Collection[str] = ()) -> list[str]:
    """Return the words that are no option, and no value of one that takes its value separately."""
    found, at = [], 0
    while at < len(words):
        if words[at] in valued:
            at += 1
        elif not words[at].startswith("-"):
            found.append(words[at])
        at += 1
    return found


class ShellText(Struct, frozen=True):
    """A shell text that is run: where, by whom, and the folder that contains its script."""

    shell: str
    folder: str
    by: str
    script_folder: str = ""
    arguments: tuple[str, ...] = ()


class Executed(Struct, frozen=True):
    """A program of the tree that a command runs."""

    path: str
    """The script, or the source file with the entry point of a built program."""
    step: Step
    by: str


class Context(Struct):
    """Collects what the commands lead to."""

    tree: Tree
    inputs: dict[str, Input] = field(default_factory=dict)
    places: dict[str, Input] = field(default_factory=dict)
    collected: dict[str, str] = field(default_factory=dict)
    """Test files of the tree, and why."""
    named: dict[str, str] = field(default_factory=dict)
    """Folders that a command or its configuration names as test folders."""
    roots: set[str] = field(default_factory=set)
    """Folders in which tools look for tests."""
    executed: list[Executed] = field(default_factory=list)
    starters: set[str] = field(default_factory=set)
    """Programs that start a test tool themselves."""
    data: dict[str, str] = field(default_factory=dict)
    """Files that are passed to a program, and how."""
    loaded: set[str] = field(default_factory=set)
    """Code that is loaded for the tests as if each of them imported it."""
    programs: set[str] = field(default_factory=set)
    scripts: set[str] = field(default_factory=set)
    python_path: set[str] = field(default_factory=set)
    """Folders in which Python looks for modules before anywhere else."""
    built: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By path of a program that a command builds: its sources."""
    written: set[str] = field(default_factory=set)
    """Files that the commands write themselves."""
    copies: dict[str, str] = field(default_factory=dict)
    """By word for a copy that a command makes: the file it is a copy of."""
    product_programs: set[str] = field(default_factory=set)
    """Sources of programs that the project builds for more than its tests."""
    only_tested: set[str] = field(default_factory=set)
    """Sources from which only test programs are built."""
    _waiting: deque[ShellText] = field(default_factory=deque)
    _seen: set[ShellText] = field(default_factory=set)

    def add(
        self,
        path: str,
        why: str,
        kind: Kind,
        *,
        region: bool = False,
        part: str = "",
        itself: bool = False,
        compares: str = "",
    ) -> None:
        """Count one file of the tree as an input; the first reason stays, parts are merged.

        A reason for which all of the file counts takes the place of one for which a part does.
        """
        if not is_inside(path) or not self.tree.exists(path):
            return
        old = self.inputs.get(path)
        all_of_it = old is not None and (
            (old.region and not region)
            or (old.itself and not itself)
            or (bool(old.compares) and not compares)
        )
        if old is None or all_of_it:
            functions = (compares,) if compares else ()
            old = Input(path, why, kind, region=region, itself=itself, compares=functions)
            self.inputs[path] = old
        elif compares and old.compares and compares not in old.compares:
            self.inputs[path] = old = replace(old, compares=(*old.compares, compares))
        if part and part not in old.parts:
            self.inputs[path] = replace(old, parts=(*old.parts, part))

    def collect(self, glob: str, why: str, kind: Kind = "test") -> None:
        """Count every file that matches a glob, including files that do not exist yet."""
        if not is_inside(glob.replace("[", "")) or glob in self.inputs:
            return
        found = self.tree.matching(glob)
        entry = Input(glob, why, kind, exists=bool(found))
        if is_glob(glob, self.tree.paths):
            (self.inputs if found else self.places).setdefault(glob, entry)
        elif found:
            self.add(glob, why, kind)
        if kind == "test":
            for path in found:
                self.collected.setdefault(path, why)

    def place(self, path: str, why: str, kind: Kind = "config") -> None:
        """Count a file that a tool reads if it exists; a new one counts as well."""
        if is_glob(path, self.tree.paths):
            self.collect(path, why, kind)
        elif self.tree.exists(path):
            self.add(path, why, kind)
        elif is_inside(path):
            self.places.setdefault(path, Input(path, why, kind, exists=False))

    def use(self, program: str, folder: str, *names: str) -> None:
        """A tool runs in a folder: count its configuration there and in the folders above."""
        self.programs.add(program)
        why = f"configuration that {program} reads"
        for place in above(folder):
            for pattern in OWN_CONFIG:
                self.place(inside(place, pattern.replace("{name}", literal(program))), why)
            for name in names:
                self.place(inside(place, name), why)

    def place_above(
        self, folder: str, names: Iterable[str], why: str, kind: Kind = "config"
    ) -> None:
        """Count files that a tool reads in a folder, or in one above it, if they exist there.

        A folder that is none of the tree is a glob, as a loop over folders has it.
        """
        for place in above(folder):
            below = inside if place in self.tree.folders else join
            for name in names:
                self.place(below(place, name), why, kind)

    def collect_named(self, path: str, tool: str, by: str, *globs: str) -> None:
        """Count a file that a command names; of a folder what the tool collects in it by globs."""
        if path in self.tree.paths:
            self.collect(path, f"{by} names it")
        else:
            self.name_folder(path, f"{tool} collects it")
            for glob in globs:
                why = f"{tool} collects {glob.rpartition('/')[2]}"
                self.collect(inside(path, glob), why)

    def files_of(self, step: Step, words: Sequence[str], *options: str) -> Iterator[str]:
        """Yield the files of the tree that these options name: `-c FILE`."""
        for option, value in pairwise(words):
            if option in options and (path := self.file(step.folder, value)):
                yield path

    def name_folder(self, folder: str, why: str) -> None:
        """Record that a command or its configuration names this folder as a test folder."""
        if folder and folder in self.tree.folders:
            self.named.setdefault(folder, why)

    def follow(self, text: ShellText) -> None:
        """Queue a shell text that is run as well."""
        if text not in self._seen and len(self._seen) < MOST_TEXTS:
            self._seen.add(text)
            self._waiting.append(text)

    def steps(self) -> Iterable[tuple[Step, ShellText]]:
        """Yield the simple commands of everything that is run, as long as new ones turn up."""
        while self._waiting:
            text = self._waiting.popleft()
            for step in steps_of(
                text.shell,
                text.folder,
                expand=self.tree.expand,
                script_folder=text.script_folder,
                arguments=text.arguments,
            ):
                self.written.update(step.writes)
                yield step, text

    def execute(self, path: str, step: Step, by: str) -> None:
        """Record that a program of the tree is run."""
        if self.tree.exists(path):
            self.executed.append(Executed(path, step, by))

    def existing(self, folder: str, word: str) -> str | None:
        """Return the file or folder of the tree that a word names, None if there is none."""
        path = join(folder, word)
        known = path in self.tree.folders or (is_inside(path) and self.tree.exists(path))
        return path if known else None

    def named_by(self, step: Step, words: Sequence[str], valued: Collection[str] = ()) -> list[str]:
        """Return the files and folders that the command names."""
        found = (word.partition(":")[0] for word in positional(words, valued))
        return [path for word in found if (path := self.existing(step.folder, word))]

    def file(self, folder: str, word: str) -> str | None:
        """Return the file of the tree that a word names, None if there is none."""
        path = self.existing(folder, word)
        return path if path in self.tree.paths else None


Handler = Callable[[Context, Step, list[str], str], None]
"""Handles a program with its arguments: context, step, arguments, who runs it."""


def handlers(*rows: tuple[str, Handler]) -> dict[str, Handler]:
    """Return handlers by program, given the names of programs for each."""
    return {name: handler for names, handler in rows for name in names.split()}
