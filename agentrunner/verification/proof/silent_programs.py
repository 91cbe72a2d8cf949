"""Checks that are green where a program prints nothing: has it nothing to report, or is it dead?

`! report | grep -v EUR` passes for a report whose lines all end with EUR, for one that prints
nothing, and for one that dies first. Whether silence satisfies a command is tried: the programs
whose output it looks at are replaced by `false`. If it does, their exit codes and their output
before and after the work decide.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.evidence.target import Measured, Target
from agentrunner.verification.inputs.piped_commands import Span, piped_commands
from agentrunner.verification.proof.examination import Examination

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
MOST_LINES = 4


class _Record(Struct, frozen=True):
    """What the programs of a command did, all together."""

    codes: tuple[int, ...]
    size: int
    lines: tuple[str, ...]

    @property
    def ended_well(self) -> bool:
        """Whether all programs ended with 0."""
        return not any(self.codes)


async def find_silent_program(exam: Examination, target: Target) -> str:
    """Why a green command is satisfied by silence alone; "" where it is not.

    Raises what running in rooms raises.
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
    texts = [_recorded(target.shell[left:right]) for left, right in places]
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
    for line in was.lines[:MOST_LINES]:
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


def _recorded(command: str) -> str:
    return RECORDED.format(command=command.rstrip(), mark=MARK)


def _parsed_record(ran: Measured) -> _Record | None:
    """What was recorded in the output; None where nothing was."""
    text = f"{ran.ran.stdout}\n{ran.ran.stderr}"
    codes = [int(hit) for hit in re.findall(rf"{MARK} code (\d+)", text)]
    sizes = [int(hit) - 1 for hit in re.findall(rf"{MARK} size (\d+)", text)]
    lines = [hit for hit in re.findall(rf"{MARK} line (.*)", text) if hit]
    if not codes or not sizes:
        return None
    return _Record(tuple(codes), sum(sizes), tuple(dict.fromkeys(lines)))
