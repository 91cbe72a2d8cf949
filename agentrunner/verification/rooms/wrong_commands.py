"""Whether a command itself is wrong, so that nothing a worker does to the product turns it green.

A planner invents options, targets, scripts and modules. Its command then fails before the work as
one that asks for something does. The tools tell the two apart in words of their own; these count
only where they are about the command itself and not about the product.
"""

from __future__ import annotations

import configparser
import json
import posixpath
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agentrunner.verification.results.commands import Run, runs_of
from agentrunner.verification.results.files import MOST_READ, read_plain
from agentrunner.verification.results.names import uncoloured
from agentrunner.verification.rooms.misused_tools import complaint_of, holds_only_texts

MISSING = re.compile(
    r"(?m)^(?:\S*?(?:sh|env): )?(?:(?:line )?\d+: )?['\"`‘]?(?P<program>[^\s:'\"’]+)['\"’]?: "
    r"(?:command not found|not found|No such file or directory|Permission denied|inaccessible .*)$"
)
"""What shells and `env` say of a program that they cannot start."""
NO_TARGET = (
    re.compile(r"(?m)^\w*make(?:\[\d+\])?: \*\*\* No rule to make target ['`](?P<name>[^']+)'\..*"),
    re.compile(r"(?m)^\w*make: \*\*\* (?P<what>No targets specified and no makefile found)\..*$"),
    re.compile(r"(?m)^\w*make: (?P<name>[^\s:]+): No such file or directory$"),
    re.compile(r"(?m)^npm (?:ERR!|error) Missing script: [\"']?(?P<name>[^\"'\s]+)[\"']?.*$"),
    re.compile(r"(?m)^error Command \"(?P<name>.+)\" not found\.$"),
    re.compile(r"(?m)^\s*(?:×|ERR_PNPM_NO_SCRIPT)\s+Missing script: (?P<name>\S+).*$"),
    re.compile(r"(?m)^Don't know how to build task '(?P<name>[^']+)'.*$"),
    re.compile(r"(?m)^(?P<what>No Rakefile found).*$"),
    re.compile(r"(?m)^error: [Jj]ustfile does not contain recipe [`'](?P<name>[^`']+)[`'].*$"),
)
"""What tools say of a target or script that they do not have."""
MANIFESTS = {"make": "Makefile", "gmake": "Makefile", "rake": "Rakefile", "just": "justfile"}
PACKAGE_SCRIPTS = frozenset({"npm", "yarn", "yarnpkg", "pnpm", "bun"})
INTERPRETERS = re.compile(
    r"(?:python[\d.]*|pypy[\d.]*|sh|bash|dash|zsh|ksh|node|ruby|perl|php|lua|Rscript|deno|bun)$"
)
NO_SCRIPT = re.compile(
    r"(?i)can't open file|cannot open|can't open|no such file|cannot find module|not found|"
    r"could not open"
)
"""What interpreters say in the line that names the script they were to run."""
NO_MODULE = re.compile(r"(?m)^(?!E\s).*\bNo module named '?(?P<module>[\w.]+)'?")
INLINE_FRAME = re.compile(r'File "<(?:string|stdin)>", line \d+')
FRAME = re.compile(r'(?m)^ +File "(?P<file>[^"]+)", line \d+')
NODE_MODULE = re.compile(
    r"Cannot find (?:module|package) '(?P<module>[^'./][^']*)'"
    r"(?:\n(?:.*\n)*?Require stack:\n- .*\[eval\]|.* imported from \S*\[eval\d*\])"
)
SYNTAX = (
    re.compile(r'\A(?:(?!Traceback)[^\n]*\n)*? +File "<(?:string|stdin)>", line \d+\n'
               r"(?:[^\n]*\n){0,3}?(?P<words>(?:Syntax|Indentation|Tab)Error: [^\n]*)"),
    re.compile(r"(?m)^\[eval\](?:-wrapper)?:\d+\n(?:.*\n){0,5}?(?P<words>SyntaxError: (?!.*JSON).*)"
               r"\n\s+at (?:makeContextifyScript|new Script|createScript|wrapSafe|compile)"),
    re.compile(r"(?m)^(?P<words>-e:\d+: .*syntax error.*)$"),
    re.compile(r"(?m)^(?P<words>-e: -e:\d+: syntax errors? found.*)$"),
    re.compile(r"(?m)^(?P<words>syntax error at -e line \d+.*)$"),
    re.compile(r"(?m)^(?P<words>Can't find string terminator .* at -e line \d+.*)$"),
    re.compile(r"(?m)^(?:PHP )?(?P<words>Parse error: .* in Command line code.*)$"),
    re.compile(r"(?m)^(?P<words>(?:ba|da|z|k)?sh: (?:-c: )?(?:line )?\d+: [Ss]yntax error.*)$"),
    re.compile(r"(?m)^(?P<words>[gmn]?awk: (?:cmd\. )?line:? ?\d+: .*syntax error.*)$"),
    re.compile(r"(?m)^(?P<words>sed: -e expression #\d+, char \d+: .*)$"),
    re.compile(r"(?m)^(?P<words>jq: error: syntax error.*)$"),
    re.compile(r"(?m)^(?P<words>grep: (?:[Uu]nmatched|[Ii]nvalid|Trailing backslash).*)$"),
)  # fmt: skip
"""What interpreters say of the program that a command holds itself, and not of a file."""
HAS_PROGRAM = re.compile(r"(?:^|\s)-(?:[a-z]*[cepr]|-eval|-print)\b|<<|\b(?:awk|sed|jq|grep)\b")
UNKNOWN_WORD = re.compile(
    r"(?im)^.*?(?:unrecogni[sz]ed|unknown|invalid|illegal|unexpected|bad|no such|ambiguous|"
    r"not defined|unsupported)\b[^\n]*?"
    r"\b(?:options?|arguments?|flags?|switch|(?:sub)?commands?|predicate|primary)"
    r"(?:: | -- | provided but not defined: | )['\"`‘]?(?P<word>[^\s'\"`’,]+).*$"
    r"|^flag provided but not defined: (?P<flag>\S+)$"
)
"""What most tools say of an option or command that they do not know."""
USAGE = re.compile(
    r"(?im)^(?:usage: (?:\S*/)?(?P<program>[\w.+-]+)\b|try '(?P<tool>[\w.+-]+) -).*$"
)
"""How a tool begins to explain itself where it was called wrongly."""


@dataclass(frozen=True)
class WrongCommand:
    """Why a command cannot decide anything about the product as it is."""

    text: str
    """What the tool says."""
    lacks: tuple[str, ...] = ()
    """The files, targets or words that it lacks; a task that speaks of one may have it written."""
    file: str = ""
    """What would be written then, as people read it: a script, a target and where it belongs."""
    folder: bool = False
    """Whether what it lacks is a folder that a test tool was to look into."""
    common: bool = False
    """Whether what it lacks may be a common word (a target `test`): to be spoken of it has to
    stand beside its tool or in quotes."""


def wrong_command(
    shell: str, exit_code: int, output: str, repo: Path, cwd: str = "."
) -> WrongCommand | None:
    """Why a command that failed on the tree before the work is itself at fault; None if it is not.

    In a repository that holds nothing but texts everything is still to be written.
    """
    if not exit_code or holds_only_texts(repo):
        return None
    text = uncoloured(output).replace("\r\n", "\n")
    runs = runs_of(shell, cwd, partial(read_plain, repo, most=MOST_READ))
    finders: tuple[Callable[[], Iterator[WrongCommand]], ...] = (
        lambda: _wrong_program_text(shell, text),
        lambda: _not_started(shell, runs, text, repo),
        lambda: _no_script(runs, text, repo),
        lambda: _no_target(shell, runs, text),
        lambda: _no_module(shell, runs, text, repo),
        lambda: _misused(shell, exit_code, text, repo, cwd),
        lambda: _wrong_words(shell, runs, text, repo),
    )
    return next((found for find in finders for found in find()), None)


def _wrong_program_text(shell: str, output: str) -> Iterator[WrongCommand]:
    """A syntax error in the program that the command holds."""
    if HAS_PROGRAM.search(shell):
        for pattern in SYNTAX:
            if hit := pattern.search(output):
                yield WrongCommand(hit["words"].strip())


def _not_started(shell: str, runs: list[Run], output: str, repo: Path) -> Iterator[WrongCommand]:
    """A program of the command that the shell could not start."""
    words = {word for run in runs for word in run.words[:1]}
    for hit in MISSING.finditer(output):
        program = hit["program"]
        # What an earlier part of the command was to build is missing because that part failed.
        if "/" in program and program != runs[0].words[0]:
            continue
        if program in words and program in shell:
            path = posixpath.normpath(program)
            yield WrongCommand(hit[0].strip(), (posixpath.basename(path), path), path)


def _no_script(runs: list[Run], output: str, repo: Path) -> Iterator[WrongCommand]:
    """A script that an interpreter of the command was to run, and that is not there."""
    for run in runs[:1]:
        script = _script_of(run)
        if not script or (repo / run.folder / script).exists():
            continue
        for line in output.splitlines():
            if script.removeprefix("./") in line and NO_SCRIPT.search(line):
                path = posixpath.normpath(posixpath.join(run.folder, script))
                yield WrongCommand(line.strip(), (posixpath.basename(path), path), path)


def _script_of(run: Run) -> str:
    """The file that an interpreter runs; "" where it runs none, or a program given in words."""
    if not INTERPRETERS.match(run.program) or len(run.words) < 2:
        return ""
    word = next((one for one in run.words[1:] if not one.startswith("-")), "")
    before = run.words[1 : run.words.index(word)] if word else ()
    return (
        "" if any(re.fullmatch(r"-\w*[cempr]|--(?:eval|print|test)", b) for b in before) else word
    )


def _no_target(shell: str, runs: list[Run], output: str) -> Iterator[WrongCommand]:
    """A target of make or a script of a package that the command names and nothing defines."""
    words = _words(shell)
    tools = [run.program for run in runs] + [posixpath.basename(word) for word in words[:1]]
    for pattern in NO_TARGET:
        hit = pattern.search(output)
        if hit is None:
            continue
        name = hit.groupdict().get("name") or ""
        if name and name not in words:
            continue  # what one of the product's own recipes needs
        tool = next((one for one in tools if one in MANIFESTS or one in PACKAGE_SCRIPTS), "")
        file = MANIFESTS.get(tool, "package.json")
        where = f"{file}: {name}" if name else file
        yield WrongCommand(hit[0].strip(), (name or file,), where, common=bool(name))


def _no_module(shell: str, runs: list[Run], output: str, repo: Path) -> Iterator[WrongCommand]:
    """A module that the command itself runs or imports, and that the repository does not hold."""
    hit = NO_MODULE.search(output)
    if hit is not None:
        module, top = hit["module"], hit["module"].partition(".")[0]
        # Named with -m, or imported by the program that the command holds, and by no file.
        frames = [one["file"] for one in FRAME.finditer(output[: hit.start()])]
        asked = any(run.python and run.python[0] == f"-m {module}" for run in runs)
        inline = bool(frames) and all(INLINE_FRAME.match(f'File "{f}", line 1') for f in frames)
        named = re.search(rf"(?<![\w.]){re.escape(top)}(?!\w)", shell)
        if (asked or (inline and named)) and not _is_own_module(top, runs, repo):
            yield WrongCommand(hit[0].strip(), (top,), f"{module.replace('.', '/')}.py")
    if (hit := NODE_MODULE.search(output)) and hit["module"] in shell:
        yield WrongCommand(hit[0].splitlines()[0].strip(), (hit["module"],), hit["module"])


def _is_own_module(top: str, runs: list[Run], repo: Path) -> bool:
    """Whether the repository holds a module or package of this name, in a usual place."""
    folders = {".", "src", "lib", "python", *(run.folder for run in runs)}
    places = [repo / folder for folder in folders]
    places += [place for place in sorted(repo.glob("*/")) if place.is_dir()]
    return any((place / top).is_dir() or (place / f"{top}.py").exists() for place in places)


def _misused(
    shell: str, exit_code: int, output: str, repo: Path, cwd: str
) -> Iterator[WrongCommand]:
    """What a known tool says of the whole command: its project, its folder, an option."""
    complaint = complaint_of(shell, exit_code, output, repo, cwd, anywhere=True)
    if complaint is not None:
        lacks = complaint.lacks
        own, _, handed_on = shell.partition(" -- ")
        if lacks and all(word in handed_on.split() and word not in own.split() for word in lacks):
            return  # what stands behind "--" is for what the tool starts
        file = next((name for name in lacks if name and not name.startswith("-")), "")
        common = "." not in file
        folder = common and bool(re.search(r"directory not found|no such", complaint.text, re.I))
        yield WrongCommand(complaint.text, lacks, file, folder=bool(file) and folder, common=common)


def _wrong_words(shell: str, runs: list[Run], output: str, repo: Path) -> Iterator[WrongCommand]:
    """An option or a command that a tool from outside of the repository does not know."""
    words, own = _words(shell), own_programs(repo)
    foreign = {run.program for run in runs if not _is_own_run(run, own, repo)}
    if len(foreign) < len({run.program for run in runs}) or not foreign:
        return
    explained = any((hit["program"] or hit["tool"]) in foreign for hit in USAGE.finditer(output))
    may_be_ours = not explained and any(_starts_product(run, own, repo) for run in runs)
    for hit in UNKNOWN_WORD.finditer(output):
        if may_be_ours and not any(hit[0].startswith(f"{program}: ") for program in foreign):
            continue
        word = (hit["word"] or hit["flag"]).rstrip(":.")
        forms = {word, f"-{word}", f"--{word}"}
        short = re.compile(rf"-\w*{re.escape(word)}" if len(word) == 1 else r"(?!)")
        if any(
            given in forms or given.startswith(f"{word}=") or short.match(given) for given in words
        ):
            yield WrongCommand(hit[0].strip(), (word.lstrip("-"),), common=True)
    for hit in USAGE.finditer(output):
        if (hit["program"] or hit["tool"]) in foreign:
            yield WrongCommand(hit[0].strip())


def _is_own_run(run: Run, own: frozenset[str], repo: Path) -> bool:
    """Whether a run is one of the product: a path, a script, a module or a program of its own."""
    if "/" in run.words[0] and not run.words[0].startswith("/"):
        return True
    if run.program in own:
        return True
    python = run.python
    if python is not None and python[0].startswith("-m "):
        return _is_own_module(python[0][3:].partition(".")[0], [run], repo)
    # A file, written or not: what it does not know yet may be what the task asks for.
    return bool(_script_of(run)) or bool(python)


def _starts_product(run: Run, own: frozenset[str], repo: Path) -> bool:
    """Whether a tool is given something of the repository, which it may start: `go run .`.

    What follows `--` is for what it starts.
    """
    return "--" in run.words or any(
        word in own or (not word.startswith("-") and Path(repo, word).exists())
        for word in run.words
        if not word.startswith("/")
    )


def own_programs(repo: Path) -> frozenset[str]:
    """The programs that the repository's own package installs, by their names."""
    names: set[str] = set()
    read = partial(read_plain, repo, most=MOST_READ)
    texts = {
        name: (read(name) or b"").decode("utf-8", "replace")
        for name in ("pyproject.toml", "setup.cfg", "setup.py", "package.json", "Cargo.toml",
                     "go.mod")
    }  # fmt: skip
    for name in ("pyproject.toml", "Cargo.toml"):
        names |= _programs_of_toml(texts[name])
    for text in (texts["setup.cfg"], texts["setup.py"]):
        names |= set(re.findall(r"(?m)^\s*['\"]?([\w.-]+)\s*=\s*[\w.]+:\w+", text))
        names |= set(re.findall(r"(?m)^\s*name\s*=\s*['\"]?([\w.-]+)", text))
    names |= _programs_of_package(texts["package.json"])
    names |= set(re.findall(r"(?m)^module \S*?([\w.-]+)\s*$", texts["go.mod"]))
    names |= {place.name for place in repo.glob("cmd/*/")}
    return frozenset(names)


def _programs_of_toml(text: str) -> set[str]:
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, configparser.Error):
        return set()
    tool = found.get("tool")
    poetry = tool.get("poetry") if isinstance(tool, dict) else None
    tables = [found.get("project"), found.get("package"), poetry, *(found.get("bin") or [])]
    names: set[str] = set()
    for table in tables:
        if isinstance(table, dict):
            scripts = table.get("scripts")
            names |= set(scripts) if isinstance(scripts, dict) else set()
            names |= {str(table["name"])} if "name" in table else set()
    return names


def _programs_of_package(text: str) -> set[str]:
    try:
        found = json.loads(text)
    except ValueError:
        return set()
    if not isinstance(found, dict):
        return set()
    binaries = found.get("bin")
    names = {str(found["name"]).rpartition("/")[2]} if "name" in found else set()
    return names | (set(binaries) if isinstance(binaries, dict) else set())


def _words(shell: str) -> list[str]:
    try:
        return shlex.split(shell)
    except ValueError:
        return shell.split()
