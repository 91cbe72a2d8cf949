"""Whether a command itself is wrong, so that nothing a worker does to the product turns it green.

A planner invents options, targets, scripts and modules. Its command then fails before the work as
one that asks for something does. The tools tell the two apart in words of their own; these count
only where they are about the command itself and not about the product.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.commands import Run, runs_of
from agentrunner.verification.results.files import MOST_READ, read_plain
from agentrunner.verification.results.names import uncoloured
from agentrunner.verification.results.shell import words_of
from agentrunner.verification.rooms.complaints import (
    NO_MODULE,
    NO_SUCH_FILE,
    complaint_of,
    holds_only_texts,
    missing_programs,
    missing_targets,
)
from agentrunner.verification.rooms.own_code import is_own_module, is_own_path, own_programs

INTERPRETERS = lazy_regex(
    r"(?:python[\d.]*|pypy[\d.]*|sh|bash|dash|zsh|ksh|node|ruby|perl|php|lua|Rscript|deno|bun)$"
)
INLINE_FRAME = lazy_regex(r'File "<(?:string|stdin)>", line \d+')
FRAME = lazy_regex(r'(?m)^ +File "(?P<file>[^"]+)", line \d+')
NODE_MODULE = lazy_regex(
    r"Cannot find (?:module|package) '(?P<module>[^'./][^']*)'"
    r"(?:\n(?:.*\n)*?Require stack:\n- .*\[eval\]|.* imported from \S*\[eval\d*\])"
)
SYNTAX = (
    lazy_regex(r'\A(?:(?!Traceback)[^\n]*\n)*? +File "<(?:string|stdin)>", line \d+\n'
               r"(?:[^\n]*\n){0,3}?(?P<words>(?:Syntax|Indentation|Tab)Error: [^\n]*)"),
    lazy_regex(r"(?m)^\[eval\](?:-wrapper)?:\d+\n(?:.*\n){0,5}?(?P<words>SyntaxError: (?!.*JSON).*)"
               r"\n\s+at (?:makeContextifyScript|new Script|createScript|wrapSafe|compile)"),
    lazy_regex(r"(?m)^(?P<words>-e:\d+: .*syntax error.*)$"),
    lazy_regex(r"(?m)^(?P<words>-e: -e:\d+: syntax errors? found.*)$"),
    lazy_regex(r"(?m)^(?P<words>syntax error at -e line \d+.*)$"),
    lazy_regex(r"(?m)^(?P<words>Can't find string terminator .* at -e line \d+.*)$"),
    lazy_regex(r"(?m)^(?:PHP )?(?P<words>Parse error: .* in Command line code.*)$"),
    lazy_regex(r"(?m)^(?P<words>(?:ba|da|z|k)?sh: (?:-c: )?(?:line )?\d+: [Ss]yntax error.*)$"),
    lazy_regex(r"(?m)^(?P<words>[gmn]?awk: (?:cmd\. )?line:? ?\d+: .*syntax error.*)$"),
    lazy_regex(r"(?m)^(?P<words>sed: -e expression #\d+, char \d+: .*)$"),
    lazy_regex(r"(?m)^(?P<words>jq: error: syntax error.*)$"),
    lazy_regex(r"(?m)^(?P<words>grep: (?:[Uu]nmatched|[Ii]nvalid|Trailing backslash).*)$"),
)  # fmt: skip
"""What interpreters say of the program that a command holds itself, and not of a file."""
HAS_PROGRAM = lazy_regex(r"(?:^|\s)-(?:[a-z]*[cepr]|-eval|-print)\b|<<|\b(?:awk|sed|jq|grep)\b")
UNKNOWN_WORD = lazy_regex(
    r"(?im)^.*?(?:unrecogni[sz]ed|unknown|invalid|illegal|unexpected|bad|no such|ambiguous|"
    r"not defined|unsupported)\b[^\n]*?"
    r"\b(?:options?|arguments?|flags?|switch|(?:sub)?commands?|predicate|primary)"
    r"(?:: | -- | provided but not defined: | )['\"`‘]?(?P<word>[^\s'\"`’,]+).*$"
    r"|^flag provided but not defined: (?P<flag>\S+)$"
)
"""What most tools say of an option or command that they do not know."""
USAGE = lazy_regex(
    r"(?im)^(?:usage: (?:\S*/)?(?P<program>[\w.+-]+)\b|try '(?P<tool>[\w.+-]+) -).*$"
)
"""How a tool begins to explain itself where it was called wrongly."""


class WrongCommand(Struct, frozen=True):
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
        lambda: _not_started(shell, runs, text),
        lambda: _no_script(runs, text, repo),
        lambda: _no_target(shell, text),
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


def _not_started(shell: str, runs: list[Run], output: str) -> Iterator[WrongCommand]:
    """A program of the command that the shell could not start."""
    words = {word for run in runs for word in run.words[:1]}
    for hit in missing_programs(output, or_closed=True):
        program = hit["program"]
        if program not in words or program not in shell:
            continue
        # What an earlier part of the command was to build is missing because that part failed.
        if "/" not in program or program == runs[0].words[0]:
            path = posixpath.normpath(program)
            yield WrongCommand(hit[0].strip(), (posixpath.basename(path), path), path)


def _no_script(runs: list[Run], output: str, repo: Path) -> Iterator[WrongCommand]:
    """A script that an interpreter of the command was to run, and that is not there."""
    for run in runs[:1]:
        script = _script_of(run)
        if not script or (repo / run.folder / script).exists():
            continue
        for line in output.splitlines():
            if script.removeprefix("./") in line and NO_SUCH_FILE.search(line):
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


def _no_target(shell: str, output: str) -> Iterator[WrongCommand]:
    """A target of make or a script of a package that the command names and nothing defines."""
    words = words_of(shell)
    for found in missing_targets(output):
        if not found.lacks:
            yield WrongCommand(found.text, (found.place,), found.place)
        # Another is what one of the product's own recipes needs.
        elif (name := found.lacks[0]) in words:
            yield WrongCommand(found.text, (name,), f"{found.place}: {name}", common=True)


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
    return is_own_module(top, repo) or is_own_module(top, repo, {run.folder for run in runs})


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
    words, own = words_of(shell), own_programs(repo)
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
    if is_own_path(run.words[0], repo) or run.program in own:
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
