"""Write programs that are part of a command (`python3 -c "…"`) to files. Pure.

A program in a file can be made to fail, one inside a command cannot; hence it is written out.
"""

from __future__ import annotations

import ast
import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.python_source import python_tree
from agentrunner.text.unicode import to_bytes, to_text
from agentrunner.verification.inputs.shell import steps_of
from agentrunner.verification.inputs.tree import join
from agentrunner.verification.syntax.languages import KILLS, program_language

INLINE = lazy_regex(
    r"(?:^|(?<=[\s;&|(/]))"
    r"(?P<program>python[\d.]*|node|nodejs|php[\d.]*|ruby[\d.]*|perl|lua[\d.]*|(?:ba|da)?sh"
    r"|\"?\$(?:\w+|\{\w+(?::?-[\w./-]+)?\})\"?)"
    r"(?P<options>(?:[ \t]+-(?!m\b|f\b)[\w=./:+-]+(?:[ \t]+[\w./][\w./=:-]*)??)*?)"
    r"[ \t]+(?:(?P<option>-\w*[cerp]|--eval|--print)[ \t]*(?=['\"])"
    r"|(?:-[ \t]+)?<<-?[ \t]*(?P<quote>['\"])(?P<mark>\w+)(?P=quote)[ \t]*\n)"
)
"""An interpreter (maybe in a variable) with a program after its option or in a here-document.

Options before it may have a value as a separate word, except those that name what is run.
"""
STEM = "agentrunner_inline_"
"""How the names of written-out files begin; no tree keeps one."""
_FILE = lazy_regex(rf"(?:(?<![\w./-])[\w./-]+/)?{STEM}\w+\.\w+")
TAKES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("python", "sh"), ("c",)), **dict.fromkeys(("ruby", "perl", "lua"), ("e",)),
    "node": ("e", "p"), "php": ("r",),
}  # fmt: skip
"""The last letters of the option that takes a program."""
ENDINGS = {"ruby": ".rb", "perl": ".pl", "lua": ".lua", "sh": ".sh"}
VARIABLE = "\x02"
"""Stands for the `$` of a make variable, which make replaces before the shell gets the text."""
ESCAPED = lazy_regex(r"\\([\"\\$`\n])")
SEMICOLON = lazy_regex(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|;;[&;]?|;(?=[ \t])")
"""What ends a shell statement, and texts in which such a sign does not, or means more than that."""
MODULE = lazy_regex(r"(?m)^[^\S\n]*(?:import\b(?!\s*\()|export\b)|\bawait import\(")
BEHIND = lazy_regex(r"[\s;&|)<>]|$")


@dataclass(frozen=True)
class ProgramPlace:
    """Where a program is in a command."""

    path: str
    """The file its text is written to."""
    before: str
    """What precedes its text: the interpreter with its options."""
    mark: str
    """The end mark of a here-document; "" if the text is quoted."""
    call: str
    """The call that runs it as a file."""

    def with_text(self, text: str) -> str:
        """Return the same command with another program text."""
        text = text.removeprefix("<?php ")
        if self.mark:
            return f"{self.before}{text.rstrip(chr(10))}\n{self.mark}\n"
        return f"{self.before} {shlex.quote(text)}"


class WrittenOut(Struct, frozen=True):
    """A command whose programs are files, and these files by their paths in the repository."""

    shell: str
    files: Mapping[str, bytes]
    places: tuple[ProgramPlace, ...] = ()
    unread: bool = False
    """Whether there is a program that the shell changes before it runs."""

    def put_back(self, files: Mapping[str, bytes]) -> str:
        """Return the original form of the command, with these texts of its programs."""
        shell = self.shell
        for one in self.places:
            text = to_text(files[one.path])
            shell = shell.replace(one.call, one.with_text(text))
        return shell


def written_out(shell: str, cwd: str, stem: str) -> WrittenOut | None:
    """Return a command with its programs moved to files named after `stem`.

    None if it contains none. Programs whose output decides, rather than their exit code, stay. Each
    file is in the folder that its program starts in, which is where it imports from.
    """
    result, folders = _extracted(shell, stem, ()), {}
    for _ in range(2):
        folders = _started(result.shell)
        if not (others := result.files.keys() - folders.keys()):
            break
        excluded = [at for at, one in enumerate(result.places) if one.path in others]
        result = _extracted(shell, stem, excluded)
    if not result.files or not result.files.keys() <= folders.keys():
        return WrittenOut(shell, {}, unread=True) if result.unread or has_unread(shell) else None
    # Whether the rewritten command still contains a program is checked as well.
    inner = (text.decode() for name, text in result.files.items() if name.endswith(".sh"))
    unread = result.unread or any(map(has_unread, (result.shell, *inner)))
    paths = {name: join(join(cwd, folders[name]), name) for name in result.files}
    return WrittenOut(
        result.shell,
        {paths[name]: text for name, text in result.files.items()},
        tuple(replace(one, path=paths[one.path]) for one in result.places),
        unread,
    )


def _extracted(shell: str, stem: str, excluded: Sequence[int]) -> WrittenOut:
    """Do the same without the programs whose numbers are in `excluded`; paths are names."""
    files: dict[str, bytes] = {}
    places: list[ProgramPlace] = []
    parts: list[str] = []
    at, number, unread = 0, -1, False
    while found := INLINE.search(shell, at):
        parts.append(shell[at : found.start()])
        kind = _kind(shell, found)
        read = _read(shell, found, kind)
        number += read is not None
        if read is None or number in excluded:
            unread = unread or (read is None and not found["mark"] and _takes(found, kind))
            at = found.end() if read is None else read[1]
            parts.append(shell[found.start() : at])
            continue
        text, at = read
        ending, text = _as_file(kind, found["options"], text)
        name = f"{stem}{len(files)}{ending}"
        files[name] = to_bytes(text)
        options = re.sub(r"\s+--input-type=\w+", "", found["options"])
        long = (found["option"] or "").startswith("--")
        if not long and (letters := (found["option"] or "").strip("-")[:-1]):
            options += f" -{letters}"
        call = f"{found['program']}{options} ./{name}" + "\n" * bool(found["mark"])
        places.append(ProgramPlace(name, found[0].rstrip(" \t"), found["mark"] or "", call))
        parts.append(call)
    return WrittenOut("".join([*parts, shell[at:]]), files, tuple(places), unread)


def _started(shell: str) -> dict[str, str]:
    """Return, by file name, the folder in which files are started whose exit code decides."""
    steps = [step for step in steps_of(shell) if not step.feeds and not step.into]
    return {word[2:]: step.folder for step in steps for word in step.words if word[:2] == "./"}


def without_unread(shell: str) -> str:
    """Return a text with `false` in place of programs that the shell changes first."""
    return INLINE.sub(
        lambda one: (
            "false" + one[0][len(one["program"]) :]
            if not one["mark"]
            and _takes(one, kind := _kind(shell, one))
            and _in_quotes(shell, one, kind) is None
            else one[0]
        ),
        shell,
    )


def for_people(text: str) -> str:
    """Return a text with "the command" in place of written-out files, which people do not know."""
    return _FILE.sub("the command", text)


def killed_at_once(path: str) -> bytes:
    """Return a program for a written-out file that is killed before it does anything."""
    kill = f"{KILLS[program_language(path)]};\n"
    return to_bytes(f"<?php {kill}" if path.endswith(".php") else kill)


def _kind(shell: str, found: re.Match[str]) -> str:
    """Return the kind of interpreter, "" for none; a variable's value is looked up."""
    program = found["program"].strip('"')
    if program.startswith("$"):
        name, _, other = program.strip("${}").partition("-")
        name = name.rstrip(":")
        given = re.findall(rf"(?:^|[\s;&(]){name}=([\w./-]+)(?=[\s;&])", shell[: found.start()])
        program = posixpath.basename((given or [other])[-1])
    kind = _interpreter_kind(program)
    return kind if kind in TAKES else ""


def _read(shell: str, found: re.Match[str], kind: str) -> tuple[str, int] | None:
    """Return a program and the offset of its end; None if it cannot be read."""
    if not kind:
        return None
    return _in_document(shell, found) if found["mark"] else _in_quotes(shell, found, kind)


def _as_file(kind: str, options: str, text: str) -> tuple[str, str]:
    """Return a program's file ending and text; Python and shell get one statement per line."""
    if kind == "node":
        module = "--input-type=module" in options or MODULE.search(text)
        return (".mjs" if module else ".cjs"), text
    if kind == "python":
        tree = python_tree(text)
        try:
            return ".py", ast.unparse(tree) if tree is not None else text
        except RecursionError:
            return ".py", text
    if kind == "sh" and "\n" not in text:
        return ".sh", SEMICOLON.sub(lambda one: one[0] if len(one[0]) > 1 else "\n", text)
    return (".php", f"<?php {text}") if kind == "php" else (ENDINGS[kind], text)


def _takes(found: re.Match[str], kind: str) -> bool:
    """Whether the option is the one that takes a program."""
    if found["option"] in ("--eval", "--print"):
        return bool(kind)
    return bool(kind) and found["option"].endswith(TAKES[kind])


def has_unread(shell: str) -> bool:
    """Whether a deciding step runs a program from inside the command or from a pipe.

    The same goes for every text that the shell itself runs as a program: `eval`.
    """
    return any(
        _is_unread(step.words) for step in steps_of(shell) if not step.feeds and not step.into
    )


def _is_unread(words: Sequence[str]) -> bool:
    for at, word in enumerate(words):
        if word == "eval" and at == 0:
            return True
        kind = _interpreter_kind(posixpath.basename(word))
        if kind not in TAKES:
            continue
        rest = words[at + 1 :]
        if not rest or rest[0] == "-":
            return True  # it reads its program from a pipe
        for before, one in zip(("", *rest), rest, strict=False):
            if one in ("-m", "-f") or not (one.startswith("-") or before.startswith("-")):
                return False
            if one in ("--eval", "--print") or (
                one.startswith("-") and one[1:2] != "-" and one.endswith(TAKES[kind])
            ):
                return True
        return False
    return False


def _interpreter_kind(program: str) -> str:
    """Return the kind of an interpreter by its name; other names as they are."""
    name = re.sub(r"(?<=[a-z])[\d.]+$", "", program)
    name = "node" if name == "nodejs" else name
    return "sh" if name in ("sh", "bash", "dash", "zsh", "ksh") else name


def _in_document(shell: str, found: re.Match[str]) -> tuple[str, int] | None:
    end = re.compile(rf"^[ \t]*{found['mark']}[ \t]*(?:\n|\Z)", re.MULTILINE)
    closed = end.search(shell, found.end())
    return (shell[found.end() : closed.start()], closed.end()) if closed else None


def _in_quotes(shell: str, found: re.Match[str], kind: str) -> tuple[str, int] | None:
    """Return the program in quotes after an option; None if the shell would change it."""
    if not _takes(found, kind):
        return None
    start = found.end()
    if shell[start] == "'":
        end = shell.find("'", start + 1)
        text = shell[start + 1 : end]
    else:
        closed = re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL).match(shell, start + 1)
        end = closed.end() - 1 if closed else -1
        raw = shell[start + 1 : end]
        if re.search(r"(?<!\\)(?:\\\\)*[$`]", raw):
            return None
        text = ESCAPED.sub(lambda one: "" if one[1] == "\n" else one[1], raw)
    if end < 0 or VARIABLE in text or not BEHIND.match(shell, end + 1):
        return None
    return text, end + 1
