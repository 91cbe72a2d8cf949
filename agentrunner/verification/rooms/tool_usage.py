"""What build and test tools say of a command without its project, or with a word unknown to them.

Each says it in words of its own. Something that the tests start may print the same words. So it
counts only where it is true of the command itself: the project is not where the command runs, or
the unknown word is one of the command's.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agentrunner.registry import GRADLE_FILES
from agentrunner.verification.results.commands import Run, runs_of
from agentrunner.verification.results.files import MOST_READ, read_plain
from agentrunner.verification.results.names import uncoloured

MOST_FOLDERS = 500
MOST_LOOKED_AT = 5_000
"""Files and folders in which sources are looked for; in more there may be some."""
NO_FOLDER = re.compile(
    r"(?:.*: )?cd: (?:can't cd to (?P<plain>.+)|(?P<other>.+): (?:No such file or|Not a) directory)"
)
"""What shells say of a folder that they cannot enter."""
MARKS = re.compile(r"^(?:\[(?:ERROR|FATAL)\] )+|(?: @ *)?(?: -> \[Help \d+\])?\s*$")
"""What Maven puts around a message."""


@dataclass(frozen=True)
class Complaint:
    """What a tool says of the whole command."""

    text: str
    lacks: tuple[str, ...]
    """The files, or the word, that it lacks; a task that names one may be about to write it."""


@dataclass(frozen=True)
class Project:
    """How tools say that there is no project, and the files that make one, as globs."""

    programs: tuple[str, ...]
    says: str
    files: tuple[str, ...]
    sources: str
    """Endings of the sources that such a project holds. Where the repository has neither these nor
    such a project, both are still to be written, and the command is red."""


@dataclass(frozen=True)
class Unknown:
    """How tools say that they do not know a word of the command, which is the pattern's group."""

    programs: tuple[str, ...]
    says: str


NODE_FILES = ("package.json", "package.json5", "package.yaml")
NODE = "js mjs cjs jsx ts mts cts tsx"
JVM = "java kt kts groovy scala"

PROJECTS = (
    Project(
        ("cargo",),
        r"error: (?:could not find `Cargo\.toml` in .*|manifest path `.*` does not exist)",
        ("Cargo.toml",),
        "rs",
    ),
    Project(
        ("go", "gotestsum"),
        r"go: (?:go\.mod file not found|cannot find main module).*"
        r"|pattern \S+: directory prefix \S+ does not contain (?:main module|modules listed).*",
        ("go.mod", "go.work"),
        "go",
    ),
    Project(("mvn", "mvnw", "mvnd"), r".*\bthere is no POM in this directory.*", ("pom.xml",), JVM),
    Project(
        ("yarn", "yarnpkg"), r"error Couldn't find a package\.json file in .*", NODE_FILES, NODE
    ),
    Project(("yarn",), r"Usage Error: No project found in .*", NODE_FILES, NODE),
    Project(("pnpm",), r".*?(?P<words>No package\.json\b.* was found) in .*", NODE_FILES, NODE),
    Project(
        ("gradle", "gradlew"),
        r"Directory '.*' does not contain a Gradle build\.|Task '.*' not found in root project .*",
        GRADLE_FILES,
        JVM,
    ),
    Project(
        ("tox",),
        r"ERROR: tox config file .* not found",
        ("tox.ini", "pyproject.toml", "setup.cfg"),
        "py",
    ),
    Project(
        ("tox",),
        r"ERROR: No pyproject\.toml or setup\.py file found\..*",
        ("pyproject.toml", "setup.py"),
        "py",
    ),
    Project(
        ("bundle", "rspec", "rake", "ruby"),
        r"Could not locate Gemfile.*",
        ("Gemfile", "gems.rb"),
        "rb",
    ),
    Project(
        ("dotnet",),
        r"MSBUILD : error MSB1003: .*",
        ("*.csproj", "*.fsproj", "*.vbproj", "*.sln", "*.slnx", "*.proj"),
        "cs fs vb",
    ),
    Project(("mix",), r"\*\* \(Mix\) Could not find a Mix\.Project.*", ("mix.exs",), "ex exs"),
    Project(
        ("composer",), r"Composer could not find a composer\.json file.*", ("composer.json",), "php"
    ),
)

UNKNOWN = (
    Unknown(
        ("cargo", "pnpm"),
        r"error: (?:no such (?:sub)?command: `(\S+)`|unexpected argument '(\S+)' found"
        r"|Found argument '(\S+)' which wasn't expected.*|no \S+ target named `(\S+)`.*"
        r"|package ID specification `(\S+)` did not match any packages)",
    ),
    Unknown(
        ("go",),
        r"go (\S+): unknown command|flag provided but not defined: (\S+)"
        r"|stat \S*?([^/\s]+): directory not found|pattern (\S+): lstat .*: no such file .*",
    ),
    Unknown(
        ("mvn", "mvnw", "mvnd"),
        r".*\bUnrecognized option: (\S+)|Unknown lifecycle phase \"(\S+)\".*"
        r"|POM file (\S+) specified with the -f.* does not exist"
        r"|Could not find the selected project in the reactor: (\S+)",
    ),
    Unknown(
        ("gradle", "gradlew"),
        r"Task '(\S+)' not found in .*|Unknown command-line option '(\S+)'\.",
    ),
    Unknown(("npm",), r"Unknown command: \"(\S+)\""),
    Unknown(("yarn", "yarnpkg"), r"error Directory \"\S*?([^/\s]+)\" doesn't exist"),
    Unknown(("node",), r"\S*node: bad option: (\S+)"),
    Unknown(("jest",), r"\s*Unrecognized option \"(\S+)\"\..*"),
    Unknown(("vitest",), r"CACError: Unknown option `(\S+)`"),
    Unknown(("rspec",), r"invalid option: (\S+)"),
    Unknown(("unittest",), r".*: error: unrecognized arguments: (\S+).*"),
    Unknown(
        ("docker",),
        r"docker: unknown command: docker (\S+)|docker: '(\S+)' is not a docker command\..*",
    ),
    Unknown(("make", "gmake"), r"g?make: unrecognized option '(\S+)'"),
)


def complaint(
    shell: str, output: str, repo: Path, cwd: str = ".", *, anywhere: bool = False
) -> Complaint | None:
    """What a tool of the command says of the command itself; None where it says nothing of it.

    `anywhere`: a missing project counts where the repository holds no source of its language too.
    """
    runs = runs_of(shell, cwd, partial(read_plain, repo, most=MOST_READ))
    lines = [MARKS.sub("", line) for line in uncoloured(output).splitlines()]
    return (
        next(_no_folder(shell, lines, repo / cwd), None)
        or next(_no_project(runs, lines, repo, anywhere=anywhere), None)
        or next(_unknown(runs, lines), None)
    )


def _no_folder(shell: str, lines: list[str], start: Path) -> Iterator[Complaint]:
    """What the shell says of a folder that the command itself enters."""
    for line in lines:
        hit = NO_FOLDER.fullmatch(line)
        folder = (hit["plain"] or hit["other"]) if hit else ""
        entered = re.search(rf"\bcd\s+[\"']?{re.escape(folder)}(?![^\s\"';&|)])", shell)
        if folder and entered and not (start / folder).is_dir():
            yield Complaint(line.strip(), (posixpath.basename(folder.rstrip("/")),))


def _no_project(
    runs: list[Run], lines: list[str], repo: Path, *, anywhere: bool
) -> Iterator[Complaint]:
    for project in PROJECTS:
        folders = [run.folder for run in runs if set(project.programs) & _words(run)]
        if not folders or not (hit := _first(project.says, lines)):
            continue
        if any(_is_project(repo, folder, project.files) for folder in folders):
            continue
        text = hit.groupdict().get("words") or hit[0]
        if not any(name in text for name in project.files):
            text = f"{text} ({project.files[0]})"
        elsewhere = next(_below(repo, project.files), "")
        if not elsewhere and not anywhere and not has_sources(repo, project.sources):
            continue
        name, place = posixpath.basename(elsewhere), posixpath.dirname(elsewhere)
        yield Complaint(f"{text}; {name} is in {place}" if place else text, project.files)


def _unknown(runs: list[Run], lines: list[str]) -> Iterator[Complaint]:
    for unknown in UNKNOWN:
        of_tool = [run for run in runs if set(unknown.programs) & _words(run)]
        words = {word for run in of_tool for word in _words(run)}
        if not words or not (hit := _first(unknown.says, lines)):
            continue
        word = next(group for group in hit.groups() if group)
        forms = {word, f"--{word}", f"./{word}", f"{word}/"}
        if forms & words or any(given.startswith(f"{word}=") for given in words):
            name = posixpath.basename(word.removesuffix("/..."))
            yield Complaint(hit[0].strip(), (name,))


def _words(run: Run) -> set[str]:
    """The words of a program and of what leads to it, with programs by their names."""
    outer = run.outer.texts if run.outer else []
    return {form for word in (*run.words, *outer) for form in (word, posixpath.basename(word))}


def _first(pattern: str, lines: list[str]) -> re.Match[str] | None:
    return next((hit for line in lines if (hit := re.fullmatch(pattern, line))), None)


def _is_project(repo: Path, folder: str, files: tuple[str, ...]) -> bool:
    """Whether a folder or one above it, up to the repository's, holds one of the files."""
    place = repo / folder
    above = [one for one in (place, *place.parents) if one == repo or repo in one.parents]
    return any(next(one.glob(name), None) for one in above for name in files)


def has_sources(repo: Path, endings: str) -> bool:
    """Whether a repository holds a source with one of these endings, as far as it is looked at."""
    wanted = tuple(f".{ending}" for ending in endings.split())
    looked = 0
    for place, folders, names in os.walk(repo):
        folders[:] = sorted(name for name in folders if _is_own(Path(place, name)))
        if any(name.endswith(wanted) for name in names):
            return True
        looked += 1 + len(names)
        if looked > MOST_LOOKED_AT:
            return True
    return False


def _below(repo: Path, files: tuple[str, ...]) -> Iterator[str]:
    """The paths of such files in the folders of the repository and in theirs."""
    folders = [place for place in sorted(repo.glob("*/")) if _is_own(place)]
    folders += [place for one in folders for place in sorted(one.glob("*/")) if _is_own(place)]
    for folder in folders[:MOST_FOLDERS]:
        for name in files:
            for found in sorted(folder.glob(name)):
                yield found.relative_to(repo).as_posix()


def _is_own(place: Path) -> bool:
    return (
        place.is_dir()
        and not place.is_symlink()
        and not place.name.startswith(".")
        and place.name not in ("node_modules", "target", "vendor")
    )
