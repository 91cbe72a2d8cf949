"""What tools say of how they were called: what a command lacks, or a word that they do not know.

Each says it in words of its own. Something that the tests start may print the same words. So it
counts only where it is true of the command itself: the project is not where the command runs, or
the unknown word is one of the command's. pytest has an exit code for such an end, npm a report that
stands in place of any output of a script.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path, PurePath

from msgspec import Struct

from agentrunner.folders import walk
from agentrunner.registry import GRADLE_FILES
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import speaks_of
from agentrunner.verification.results.commands import Run, runs_of
from agentrunner.verification.results.files import MOST_READ, read_plain
from agentrunner.verification.results.model import TestResult
from agentrunner.verification.results.names import uncoloured
from agentrunner.verification.results.shell import words_of

UNRESOLVED = lazy_regex(
    r"(?m)^\[ERROR\] "
    r"(?:(?:Failed to execute goal [^:\n]\S* .*: Execution \S+ of goal \S+ failed: )?"
    r"Plugin \S+ or one of its dependencies could not be resolved"
    r"|No plugin found for prefix|Error resolving version for plugin"
    r"|Failed to execute goal on project \S+: Could not resolve dependencies for project).*"
    r"(?:offline mode|[Cc]ould not transfer|[Uu]nknown host|[Nn]ame resolution|[Cc]onnect).*$"
    r"|^\[(?:FATAL|ERROR)\] Non-resolvable parent POM .*"
    r"(?:offline mode|[Cc]ould not transfer).*$"
    r"|^\[ERROR\] Unresolveable build extension: (?!.*Could not find artifact).*?(?= @ *$| *$)"
    r"|^\[ERROR\] Could not create local repository at .*$"
    r"|^[^\S\n]*> ?.*\bNo cached version (?:of \S+ )?available for offline mode\.?$"
    r"|^[^\S\n]*> Could not (?:HEAD|GET) '\S+'\.\n.*$"
)
"""Messages of Maven and Gradle where a part of themselves or a dependency cannot be fetched: no
test ran. For a version that was never published they have another message, and that is red."""
NOT_FETCHED = (
    lazy_regex(
        r"(?m)^(?:go: |\S+\.go:\d+:\d+: )(?:\S+@v\S+: .*(?:\bdial tcp\b|lookup disabled|\bzip: )"
        r"|\w+ \S+/cache/download/\S*: ).*$"
    ),
    lazy_regex(
        r"(?m)^(?:go: |\S+\.go:\d+:\d+: ).*\bmissing (?P<file>go\.sum) entry\b.*(?:\n\t.+)?$"
    ),
    lazy_regex(r"(?m)^error: failed to download `.*$|^[^\S\n]*download of \S+ failed$"),
    lazy_regex(r"(?m)^The git source \S+ is not yet checked out\b.*$"),
    lazy_regex(
        r"(?m)^(?P<fault>error: [^\n]*)\n(?:(?!error: )[^\n]*\n)*?[^\n]*"
        r"(?:you're using offline mode \(|but --offline was specified)"
    ),
    lazy_regex(r"(?m)^.*(?:you're using offline mode \(|but --offline was specified).*$"),
    lazy_regex(r"(?m)^\[ERROR\] error reading \S+/\.m2/\S+\.jar; .*$"),
)
"""Messages of Go, Cargo, Bundler and Maven's compiler. Where there is a `fault`, it says which
package it is."""
INSTALLED_IN_PART = lazy_regex(
    r"(?m)^(?P<fault>(?:Error: )?Cannot find module '\S+')\s*\n"
    r"Require stack:\s*\n- \S*/node_modules/\S+$"
)
"""Node's message about a module that an installed package, the first of the stack, asks for."""

SHORTAGE = lazy_regex(
    r"(?im)^.*(?:temporary failure in name resolution|name or service not known"
    r"|network is unreachable|no route to host|\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH)\b"
    r"|failed to lookup address information|no space left on device|disk quota exceeded"
    r"|read-only file system|(?:open|connect to|access)(?: X server)? display"
    r"|no display name and ).*$"
    r"|^.*fatal error: \S+: No such file or directory(?=\n.*#\s*include\s*<)"
    r"|^.*ld: cannot find -l\S+.*$|^Package \S+ was not found in the pkg-config search path.*$"
)
"""The line with such words. A header between quotes is the project's own, maybe not yet written."""

MISUSED = "the tool says: "
PYTEST_USAGE = 4
"""pytest's exit code for a command line or configuration that it cannot use."""
PYTEST_SAYS = lazy_regex(
    r"(?m)^ERROR: (?:usage: .*\n(?:.*\n)*?.*: (?P<why>error: .+)|(?!usage:)(?P<what>.+))$"
)
"""How pytest reports it. A conftest that cannot be imported has the same exit code and another
report: that may be a module that is still to be written."""
MAKE_SAYS = lazy_regex(r"(?m)^\w*make(?:\[\d+\])?: \*\*\* \[.*\] Error (?P<code>\d+)$")
MODULES = ("-m pytest", "-m py.test")
NPM_SAYS = lazy_regex(
    r"npm (?:ERR!|error) (?:(?P<field>code|syscall|path|errno) |(?:enoent|JSON\.parse) )?"
    r"(?P<text>.*)"
)
OWN_FAULT = lazy_regex(r"E(?!LIFECYCLE)[A-Z_]+")
"""npm's codes of what it could not do itself; a script that failed has a number, or ELIFECYCLE."""
NPM_WARNS = lazy_regex(r"npm (?:WARN|warn|notice)\b")
MANIFEST = "package.json"
TEXTS = frozenset({".md", ".txt", ".rst", ".yaml", ".yml"})
MISSING = lazy_regex(
    r"(?m)^(?:.*?: )?(?:line \d+: |\d+: )?['\"`‘]?(?P<program>[^\s:'\"’]+)['\"’]?: "
    r"(?:command not found|not found|No such file or directory"
    r"|(?P<there>Permission denied|inaccessible .*))$"
)
"""What shells, `env` and make say of a program that they cannot start."""
NO_TARGET = tuple(
    (lazy_regex(rf"(?m)^{says}"), place)
    for says, place in (
        (
            r"\w*make(?P<inner>\[\d+\])?: \*\*\* No rule to make target ['`](?P<name>[^']+)'.*",
            "Makefile",
        ),
        (r"\w*make: \*\*\* No targets specified and no makefile found\..*$", "Makefile"),
        (r"npm (?:ERR!|error) Missing script: [\"']?(?P<name>[^\"'\s]+)[\"']?.*$", "package.json"),
        (r"error Command \"(?P<name>.+)\" not found\.$", "package.json"),  # Yarn
        (r"[^\S\n]*(?:×|ERR_PNPM_NO_SCRIPT)\s+Missing script: (?P<name>\S+).*$", "package.json"),
        (r"Don't know how to build task '(?P<name>[^']+)'.*$", "Rakefile"),
        (r"No Rakefile found.*$", "Rakefile"),
        (
            r"error: .*[Jj]ustfile does not contain recipe [`'](?P<name>[^`']+)[`'].*$",
            "justfile",
        ),
    )
)
"""What tools say of a target or script that they do not have, and where that would stand."""
NO_MODULE = lazy_regex(r"(?m)^(?!E\s).*\bNo module named '?(?P<module>[\w.]+)'?")
NO_SUCH_FILE = lazy_regex(
    r"(?i)no such file|not found|cannot|can't|could not|does not exist|error processing file"
)
"""What programs say in the line that names the file they were to read or run."""
MOST_FOLDERS = 500
MOST_LOOKED_AT = 5_000
"""Files and folders in which sources are looked for; in more there may be some."""
NO_FOLDER = lazy_regex(
    r"(?:.*: )?cd: (?:can't cd to (?P<plain>.+)|(?P<other>.+): (?:No such file or|Not a) directory)"
)
"""What shells say of a folder that they cannot enter."""
MARKS = lazy_regex(
    r"^(?:\[(?:ERROR|FATAL)\] )+| @(?: * -> \[Help \d+\])?\s*$| -> \[Help \d+\]\s*$|(?<!\s)\s+$"
)
"""What Maven puts around a message."""


class Complaint(Struct, frozen=True):
    """What a tool says of the whole command."""

    text: str
    lacks: tuple[str, ...]
    """The files, or the word, that it lacks; a task that names one may be about to write it."""
    place: str = ""
    """The file in which what it lacks would stand, of a target or script."""
    inner: bool = False
    """Whether it is about what the command's own tool calls in turn."""


class Project(Struct, frozen=True):
    """How tools say that there is no project, and the files that make one, as globs."""

    programs: str
    """Their names, with blanks between."""
    says: str
    files: str


class Unknown(Struct, frozen=True):
    """How tools say that they do not know a word of the command, which is the pattern's group."""

    programs: str
    says: str


NODE_FILES = "package.json package.json5 package.yaml"
CODE = frozenset(
    f".{ending}"
    for ending in "js mjs cjs jsx ts mts cts tsx java kt kts groovy scala rs go py rb cs fs vb"
    " ex exs php".split()
)
"""Endings of the sources that such projects hold. A repository without any has its project still to
be written, and the command is red."""

PROJECTS = (
    Project(
        "cargo",
        r"error: (?:could not find `Cargo\.toml` in .*|manifest path `.*` does not exist)",
        "Cargo.toml",
    ),
    Project(
        "go gotestsum",
        r"go: (?:go\.mod file not found|cannot find main module).*"
        r"|pattern \S+: directory prefix \S+ does not contain (?:main module|modules listed).*",
        "go.mod go.work",
    ),
    Project("mvn mvnw mvnd", r".*\bthere is no POM in this directory.*", "pom.xml"),
    Project("yarn yarnpkg", r"error Couldn't find a package\.json file in .*", NODE_FILES),
    Project("yarn", r"Usage Error: No project found in .*", NODE_FILES),
    Project("pnpm", r".*?(?P<words>No package\.json\b.* was found) in .*", NODE_FILES),
    Project(
        "gradle gradlew",
        r"Directory '.*' does not contain a Gradle build\.|Task '.*' not found in root project .*",
        " ".join(GRADLE_FILES),
    ),
    Project("tox", r"ERROR: tox config file .* not found", "tox.ini pyproject.toml setup.cfg"),
    Project(
        "tox", r"ERROR: No pyproject\.toml or setup\.py file found\..*", "pyproject.toml setup.py"
    ),
    Project("bundle rspec rake ruby", r"Could not locate Gemfile.*", "Gemfile gems.rb"),
    Project(
        "dotnet",
        r"MSBUILD : error MSB1003: .*",
        "*.csproj *.fsproj *.vbproj *.sln *.slnx *.proj",
    ),
    Project("mix", r"\*\* \(Mix\) Could not find a Mix\.Project.*", "mix.exs"),
    Project("composer", r"Composer could not find a composer\.json file.*", "composer.json"),
)

UNKNOWN = (
    Unknown(
        "cargo pnpm",
        r"error: (?:no such (?:sub)?command: `(\S+)`|unexpected argument '(\S+)' found"
        r"|Found argument '(\S+)' which wasn't expected.*|no \S+ target named `(\S+)`.*"
        r"|package ID specification `(\S+)` did not match any packages)",
    ),
    Unknown(
        "go",
        r"go (\S+): unknown command|flag provided but not defined: (\S+)"
        r"|stat \S*?([^/\s]+): directory not found|pattern (\S+): lstat .*: no such file .*",
    ),
    Unknown(
        "mvn mvnw mvnd",
        r".*\bUnrecognized option: (\S+)|Unknown lifecycle phase \"(\S+)\".*"
        r"|POM file (\S+) specified with the -f.* does not exist"
        r"|Could not find the selected project in the reactor: (\S+)",
    ),
    Unknown(
        "gradle gradlew", r"Task '(\S+)' not found in .*|Unknown command-line option '(\S+)'\."
    ),
    Unknown("npm", r"Unknown command: \"(\S+)\""),
    Unknown("yarn yarnpkg", r"error Directory \"\S*?([^/\s]+)\" doesn't exist"),
    Unknown("node", r"\S*node: bad option: (\S+)"),
    Unknown("jest", r"\s*Unrecognized option \"(\S+)\"\..*"),
    Unknown("vitest", r"CACError: Unknown option `(\S+)`"),
    Unknown("rspec", r"invalid option: (\S+)"),
    Unknown("unittest", r".*: error: unrecognized arguments: (\S+).*"),
    Unknown(
        "docker",
        r"docker: unknown command: docker (\S+)|docker: '(\S+)' is not a docker command\..*",
    ),
    Unknown("make gmake", r"g?make: unrecognized option '(\S+)'"),
)


def misused(
    shell: str, exit_code: int, output: str, repo: Path, wanted: str, cwd: str = "."
) -> str:
    """The tool's own words that it was called wrongly; "" where it does not say so.

    `cwd` is the folder of the repository in which the command runs. What `wanted`, the text of the
    PRD, names may still be written, and so may everything in a repository that holds nothing but
    texts, or that holds no code yet: there the command is red.
    """
    found = complaint_of(shell, exit_code, output, repo, cwd)
    if found is None or holds_only_texts(repo):
        return ""
    return "" if any(speaks_of(wanted, name) for name in found.lacks) else f"{MISUSED}{found.text}"


def complaint_of(
    shell: str,
    exit_code: int,
    output: str,
    repo: Path,
    cwd: str = ".",
    *,
    anywhere: bool = False,
) -> Complaint | None:
    """What the tool says of its call, with the names that it lacks; None where it says nothing.

    `anywhere` also takes a missing project for wrong where the repository has no code yet.
    """
    runs = runs_of(shell, cwd, partial(read_plain, repo, most=MOST_READ))
    words = _pytest(runs, exit_code, output) or _npm(exit_code, output)
    manifest = MANIFEST in words and not (repo / cwd / MANIFEST).exists()
    if manifest and not anywhere and not has_code(repo):
        words = ""
    if words:
        names = [*_named(words, shell), *([MANIFEST] if manifest else [])]
        return Complaint(words, tuple(dict.fromkeys(names)))
    if not exit_code:
        return None
    lines = [MARKS.sub("", line) for line in uncoloured(output).splitlines()]
    return (
        next(_no_folder(shell, lines, repo / cwd), None)
        or next(_no_project(runs, lines, repo, anywhere=anywhere), None)
        or next(_unknown(runs, lines), None)
    )


def missing_programs(output: str, *, or_closed: bool = False) -> Iterator[re.Match[str]]:
    """What is said of programs that cannot be started; `or_closed`: also of those that exist."""
    return (hit for hit in MISSING.finditer(output) if or_closed or not hit["there"])


def missing_targets(output: str) -> Iterator[Complaint]:
    """What is said of targets and scripts that nothing defines."""
    for pattern, place in NO_TARGET:
        for hit in pattern.finditer(output):
            groups = hit.groupdict()
            lacks = (groups["name"],) if groups.get("name") else ()
            yield Complaint(hit[0].strip(), lacks, place, bool(groups.get("inner")))


def _pytest(runs: list[Run], exit_code: int, output: str) -> str:
    made = list(MAKE_SAYS.finditer(output))
    if (int(made[0]["code"]) if made else exit_code) != PYTEST_USAGE:
        return ""
    if not any(
        run.program in ("pytest", "py.test") or (run.python or ("",))[0] in MODULES for run in runs
    ):
        return ""
    words = PYTEST_SAYS.search(output)
    return (words["what"] or words["why"]).strip() if words else ""


def _npm(exit_code: int, output: str) -> str:
    """What npm reports before any script was started; it names its fault by a code."""
    lines = [line for line in output.splitlines() if line.strip() and not NPM_WARNS.match(line)]
    if not exit_code or not lines or not NPM_SAYS.fullmatch(lines[0].strip()):
        return ""
    report = [hit for line in lines if (hit := NPM_SAYS.fullmatch(line.strip()))]
    codes = [hit["text"] for hit in report if hit["field"] == "code"]
    if len(report) < len(lines) or not any(OWN_FAULT.fullmatch(code) for code in codes):
        return ""
    return next((hit["text"] for hit in report if not hit["field"] and hit["text"].strip()), "")


def _named(words: str, shell: str) -> list[str]:
    """The files, folders and tests that a message names, by their last names."""
    given = {word.rstrip("/") for word in words_of(shell)}
    tokens = [word.strip("'\"`(),:") for word in words.split()]
    paths = [word for word in tokens if word.rstrip("/") in given or "/" in word or "." in word]
    return [Path(re.sub(r":\d+$", "", path).rpartition("::")[2]).name for path in paths]


def holds_only_texts(repo: Path) -> bool:
    """Whether a repository holds no file but texts, so that everything is still to be written."""
    try:
        return all(
            entry.name.startswith(".") or (entry.is_file() and entry.suffix in TEXTS)
            for entry in repo.iterdir()
        )
    except OSError:
        return False


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
        folders = [run.folder for run in runs if _words(run).intersection(project.programs.split())]
        files = project.files.split()
        if not folders or not (hit := _first(project.says, lines)):
            continue
        if any(_is_project(repo, folder, files) for folder in folders):
            continue
        text = hit.groupdict().get("words") or hit[0]
        if not any(name in text for name in files):
            text = f"{text} ({files[0]})"
        elsewhere = next(_below(repo, files), "")
        if not elsewhere and not anywhere and not has_code(repo):
            continue
        name, place = posixpath.basename(elsewhere), posixpath.dirname(elsewhere)
        yield Complaint(f"{text}; {name} is in {place}" if place else text, tuple(files))


def _unknown(runs: list[Run], lines: list[str]) -> Iterator[Complaint]:
    for unknown in UNKNOWN:
        of_tool = [run for run in runs if _words(run).intersection(unknown.programs.split())]
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


def _is_project(repo: Path, folder: str, files: Sequence[str]) -> bool:
    """Whether a folder or one above it, up to the repository's, holds one of the files."""
    place = repo / folder
    above = [one for one in (place, *place.parents) if one == repo or repo in one.parents]
    return any(next(one.glob(name), None) for one in above for name in files)


def has_code(repo: Path) -> bool:
    """Whether a repository holds a source of any language, as far as it is looked at."""
    looked = 0
    for place, folders, names in walk(repo):
        folders[:] = sorted(name for name in folders if _is_own(Path(place, name)))
        if any(posixpath.splitext(name)[1] in CODE for name in names):
            return True
        looked += 1 + len(names)
        if looked > MOST_LOOKED_AT:
            return True
    return False


def _below(repo: Path, files: Sequence[str]) -> Iterator[str]:
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


def condition_lacked_by(test: TestResult, wanted: str) -> str:
    """The line that says what a test lacked before it could begin; else "".

    It then broke outside of itself, as its file was loaded or its place was set up. A file of tests
    that `wanted`, the text of the task, names may be what is to be fixed.

    It is told by the words of the operating system, which are the same for all languages: a
    network, a place to write, a display; and by those of compiler and linker about a library of the
    system. A test that itself asks for one of them is red, like any other.
    """
    name = PurePath((test.file or test.name).partition("::")[0]).name
    hit = SHORTAGE.search(test.message) if test.outcome == "error" else None
    return hit[0].strip() if hit and not speaks_of(wanted, name) else ""


def unfetched(output: str, wanted: str) -> str:
    """The message about a package that could not be fetched, in the words of any tool; else "".

    A lock file that `wanted`, the text of the task, names may be what the worker is to write.

    Such a package is in no cache here, or only in part. One that no manifest names is red, in other
    words: that is for the worker to add.
    """
    for pattern in NOT_FETCHED:
        found = pattern.search(output)
        parts = found.groupdict() if found else {}
        if found and not speaks_of(wanted, parts.get("file") or ""):
            return " ".join((parts.get("fault") or found[0]).split())
    if why := unresolved(output):
        return why
    if partly := INSTALLED_IN_PART.search(output):
        return f"{partly['fault']}, which an installed package needs: node_modules is incomplete"
    return ""


def unresolved(output: str) -> str:
    """The message of Maven or Gradle about a part of the build that could not start; else ""."""
    found = UNRESOLVED.search(output)
    return " ".join(found[0].split()) if found else ""
