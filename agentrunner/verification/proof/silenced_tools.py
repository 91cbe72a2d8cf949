"""Commands that are green as the work tells a tool, or the program itself, to say nothing.

A type checker, a linter or a spelling checker obeys comments (`# type: ignore`, `// NOLINT`). Which
ones, no list can hold. The comments that the work added are taken out, and what its language has
for silencing (a pragma, `as any`); types that it took away are put back. Where the command then
reports what it reported before the work, it is they that turned it green. Tests with names have to
fail once more without that code.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import pairwise

from msgspec import Struct

from agentrunner.state.run_state import Finding
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.evidence.findings import tests_changed
from agentrunner.verification.evidence.target import Measured, Target
from agentrunner.verification.inputs.shell import Span, piped_commands
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.silenced_warnings import (
    WANTS_SILENCE,
    added_silenced_warnings,
    lost_types,
)
from agentrunner.verification.syntax.tokens import added_comments, lexical_family
from agentrunner.verification.trees import with_edits
from agentrunner.verification.world import InputChange

MARK = "agentrunner-spoke"
RECORDED = (
    '{{ {{ {command}\n}}; printf "{mark} code %s\\n" "$?" >&2; }} |'
    ' {{ agentrunner_all=$(cat; echo .); printf "{mark} size %s\\n" "${{#agentrunner_all}}" >&2;'
    ' printf "%s" "${{agentrunner_all%.}}" | head -n 20 | sed "s/^/{mark} line /" >&2;'
    ' printf "%s" "${{agentrunner_all%.}}"; }}'
)
"""A command whose exit code and output are recorded beside passing the output on."""
EXCLUDES_LINES = lazy_regex(r"\bgrep\s+(?:-\w+\s+)*(?:-\w*v|--invert-match)")
"""A search for lines that do not match: a check that uses it wants every line to match."""
MOST_SILENT = 4


class _Record(Struct, frozen=True):
    """What the programs of a command did, all together."""

    codes: tuple[int, ...]
    size: int
    lines: tuple[str, ...]

    @property
    def ended_well(self) -> bool:
        return not any(self.codes)


KEY = lazy_regex(r"\s*[\"']?([A-Za-z][\w.-]*)[\"']?\s*[=:]")
CODE = lazy_regex(r"\b(?=\w*\d)(?=\w*[A-Za-z])\w{3,}\b")
"""What a tool calls one of its rules: F401, py311."""
SECTION = lazy_regex(r"\s*+(?:\[.*\]\s*|[{}]?\s*)")
BESIDE = "it says more than what was asked for"
MOST_LINES = 2_000

MOST_FILES = 200
MOST_TRIED = 6
"""So many comments are taken out one by one, to name the one that matters."""
PLACED = lazy_regex(r":\d+|\bline \d+|^\s*\d+:\d+|\(\d+(?:,\d+)?\):? ", re.IGNORECASE)
"""What a line of output has that reports something at a place of a source."""
WHY = "{} says `{}`, and without that `{}` reports what it reported before the run: {}"
RED = "{} says `{}`, and without that {} fails: what it complained of is silenced, not fixed"


class _Silencer(Struct, frozen=True):
    """A comment, or code that silences, which the work added."""

    path: str
    line: int
    text: str
    edit: Edit


async def find_silenced_tools(
    exam: Examination, case: Case, names: Sequence[str], asked: str
) -> str:
    """Why green tests, or a green command without `names`, are taken to be silenced; else "".

    Where `asked` asks for silence, code may do that. Raises what running in rooms raises.
    """
    code = await asyncio.to_thread(_added_code, exam) if not WANTS_SILENCE.search(asked) else []
    if code and (names or any(lexical_family(one.path) == "shell" for one in code)):
        tree = await asyncio.to_thread(_without, exam, code)
        if red := await exam.first_red(case, tree, names):
            return RED.format(f"{code[0].path}:{code[0].line}", code[0].text, red)
    return "" if names else await _silenced_command(exam, case.target, code)


async def _silenced_command(exam: Examination, target: Target, code: Sequence[_Silencer]) -> str:
    added = [*code, *await asyncio.to_thread(_added_comments, exam)]
    if not added:
        return ""
    without = await _run_without(exam, target, added)
    if without.passed:
        return ""
    before = reports(await exam.run(target, exam.world.old))
    if not (again := before & reports(without)):
        return ""
    for one in added[:MOST_TRIED] if len(added) > 1 else ():
        alone = await _run_without(exam, target, [one])
        if not alone.passed and (found := before & reports(alone)):
            return _why(one, target, found)
    return _why(added[0], target, again)


def _why(one: _Silencer, target: Target, reports: set[str]) -> str:
    text = " ".join(one.text.encode("latin-1").decode("utf-8", "replace").split())[:80]
    return WHY.format(f"{one.path}:{one.line}", text, target.shell, min(reports)[:200])


async def _run_without(exam: Examination, target: Target, some: Sequence[_Silencer]) -> Measured:
    return await exam.run(target, await asyncio.to_thread(_without, exam, some))


def reports(measured: Measured) -> set[str]:
    """What the output reports at places of sources, without their numbers.

    A tool that writes the place alone in a line (`--> app.py:1:8`) says above what is there.
    """
    lines = f"{measured.ran.stdout}\n{measured.ran.stderr}".splitlines()
    found = set()
    for above, line in pairwise(["", *lines]):
        if PLACED.search(line):
            text = line if _has_words(line) else f"{above} {line}"
            if _has_words(text):
                found.add(" ".join(re.sub(r"\d+", "N", text).split()))
    return found


def _has_words(text: str) -> bool:
    return len(re.findall(r"[A-Za-z]{2,}", text)) > 2


def _added_code(exam: Examination) -> list[_Silencer]:
    """The code of the work that silences. Blocks."""
    world = exam.world
    return [
        _Silencer(path, one.line, one.text, one.edit)
        for path in world.product[:MOST_FILES]
        for added in (added_silenced_warnings, lost_types)
        for one in added(path, world.was(path) or b"", world.now(path) or b"")
    ]


def _added_comments(exam: Examination) -> list[_Silencer]:
    """The comments that only the new product has. Blocks."""
    world = exam.world
    return [
        _Silencer(path, after.count(b"\n", 0, start) + 1, text, Edit(start, start + len(text), ""))
        for path in world.product[:MOST_FILES]
        if (after := world.now(path)) is not None
        for start, text in added_comments(path, world.was(path) or b"", after)
        if not (start == 0 and text.startswith("#!"))
    ]


def _without(exam: Examination, some: Sequence[_Silencer]) -> str:
    """The tree that is handed over without these comments. Blocks."""
    edits = {one.path: [other.edit for other in some if other.path == one.path] for one in some}
    return with_edits(exam.world.snapshots, exam.world.new, edits)


async def find_unasked_settings(exam: Examination, case: Case, asked: str) -> Finding | None:
    """A finding about settings that keep a command without test names from saying what it said.

    Raises what running in rooms raises.

    A linter or a type checker has no test that stood before, so what the worker wrote may be its
    set-up, which was asked for. It is not where the tool, with its settings as they were, reports
    what it reported before the run. Settings that the requirements speak of stay as the worker left
    them.
    """
    tree, changes = await asyncio.to_thread(_with_old_settings, exam, case, asked)
    if not changes:
        return None
    ran = await exam.run(case.target, tree)
    if ran.passed:
        return None
    again = reports(await exam.run(case.target, exam.world.old)) & reports(ran)
    if not again:
        return None
    return tests_changed(case.target, changes, min(again)[:200], cut=False, lines="")


def _with_old_settings(exam: Examination, case: Case, asked: str) -> tuple[str, list[InputChange]]:
    """The new tree with the inputs as they were, but for settings that were asked for. Blocks.

    Also of a file that was asked for other settings are as they were.
    """
    world = exam.world
    inputs = [exam.differential.inputs(tree, [case.target]) for tree in (world.old, world.new)]
    permitted = exam.differential.permitted(world.allowed) & world.old_paths
    made: dict[str, bytes] = {}
    changes = []
    for one in [
        *(one for one in world.changes if not one.understood),
        *(InputChange(path, BESIDE, "modified") for path in sorted(permitted)),
    ]:
        before, after = world.was(one.path) or b"", world.now(one.path)
        found = next(filter(None, (some.input_at(one.path) for some in inputs)), None)
        if found is None or found.kind != "config" or after == before:
            continue
        if after is None and one.path in permitted:
            continue
        kept = _with_settings_of(before, after or b"", asked)
        stands = after if one.path in permitted else before
        if kept is not None and kept != stands:
            made[one.path] = kept
        if kept != after:
            changes.append(one)
    return world.snapshots.with_texts(world.kept, made), changes


def _with_settings_of(before: bytes, after: bytes, asked: str) -> bytes | None:
    """The old settings with those new ones that a text speaks of; None where it speaks of none."""
    try:
        old, new = before.decode().splitlines(keepends=True), after.decode().splitlines(True)
    except UnicodeDecodeError:
        return None
    if max(len(old), len(new)) > MOST_LINES:
        return None
    lines = list(_lines(old, new, asked.casefold()))
    if not before and all(map(SECTION.fullmatch, lines)):
        return None
    return to_bytes("".join(lines))


def _lines(old: list[str], new: list[str], asked: str) -> Iterator[str]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from old[a:b]
            continue
        keys = {key for line in new[c:d] if _speaks_of(asked, line) and (key := _key(line))}
        yield from (line for line in old[a:b] if _key(line) not in keys)
        yield from (line for line in new[c:d] if SECTION.fullmatch(line) or _speaks_of(asked, line))


def _key(line: str) -> str:
    found = KEY.match(line)
    return found[1] if found else ""


def _speaks_of(asked: str, line: str) -> bool:
    """Whether a text has all words of a setting's key, or the code of a rule that it names."""
    words = re.split(r"[._-]+", _key(line).casefold())
    if all(word and re.search(rf"\b{re.escape(word)}\b", asked) for word in words):
        return True
    return any(re.search(rf"\b{one[0].casefold()}\b", asked) for one in CODE.finditer(line))


async def find_silent_program(exam: Examination, target: Target) -> str:
    """Why a green command is satisfied by silence alone; "" where it is not.

    Raises what running in rooms raises.

    `! report | grep -v EUR` passes for a report whose lines all end with EUR, for one that prints
    nothing, and for one that dies first. Whether silence satisfies a command is tried: the programs
    whose output it looks at are replaced by `false`. If it does, their exit codes and their output
    before and after the work decide.
    """
    places = piped_commands(target.shell)
    if not places:
        return ""
    old, new = exam.world.old, exam.world.new

    async def with_programs_replaced(text: str) -> Measured:
        shell = _with_texts_at(target.shell, places, [text] * len(places))
        return await exam.run(replace(target, shell=shell), new)

    if not (await with_programs_replaced("false")).passed:
        return ""
    texts = [
        RECORDED.format(command=target.shell[left:right].rstrip(), mark=MARK)
        for left, right in places
    ]
    recording = replace(target, shell=_with_texts_at(target.shell, places, texts))
    now = _parsed_record(await exam.run(recording, new))
    if now is None or now.size:
        return ""
    was = _parsed_record(await exam.run(recording, old))
    if was is None or not was.size:
        return ""
    what = f"`{target.shell[slice(*places[0])].strip()}`"
    if not now.ended_well:
        return f"{what} ends with {max(now.codes)} and prints nothing any more, which satisfies it"
    if not was.ended_well:
        return ""  # what it printed before was the complaint itself
    silent = f"{what} prints nothing at all any more, which satisfies it"
    if EXCLUDES_LINES.search(target.shell) or len(places) > 1:
        return silent
    for line in was.lines[:MOST_SILENT]:
        text = re.sub(r"([\\\"$`])", r"\\\1", line)  # a shell's text may stand between plain quotes
        if "'" not in line and (await with_programs_replaced(f'printf "%s\\n" "{text}"')).passed:
            return silent
    return ""


def _with_texts_at(shell: str, places: Sequence[Span], texts: Sequence[str]) -> str:
    parts, at = [], 0
    for (left, right), text in zip(places, texts, strict=True):
        parts += [shell[at:left], text, " "]
        at = right
    return "".join([*parts, shell[at:]])


def _parsed_record(ran: Measured) -> _Record | None:
    """What was recorded in the output; None where nothing was."""
    text = f"{ran.ran.stdout}\n{ran.ran.stderr}"
    codes = [int(hit) for hit in re.findall(rf"{MARK} code (\d+)", text)]
    sizes = [int(hit) - 1 for hit in re.findall(rf"{MARK} size (\d+)", text)]
    lines = [hit for hit in re.findall(rf"{MARK} line (.*)", text) if hit]
    if not codes or not sizes:
        return None
    return _Record(tuple(codes), sum(sizes), tuple(dict.fromkeys(lines)))
