"""Checks that are green where a program says nothing: has it nothing to say, or is it dead?

`! report | grep -v EUR` holds for a report whose lines all end with EUR, for one that prints
nothing, and for one that dies first. Whether silence satisfies a command is tried: nothing is put
in the place of the programs whose output it looks at. Then it counts how these end and what they
print, before and after.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentrunner.verification.inputs.speakers import Span, speakers
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.target import Measured, Target

MARK = "agentrunner-spoke"
LISTENED = (
    '{{ {{ {command}\n}}; printf "{mark} code %s\\n" "$?" >&2; }} |'
    ' {{ agentrunner_all=$(cat; echo .); printf "{mark} size %s\\n" "${{#agentrunner_all}}" >&2;'
    ' printf "%s" "${{agentrunner_all%.}}" | head -n 20 | sed "s/^/{mark} line /" >&2;'
    ' printf "%s" "${{agentrunner_all%.}}"; }}'
)
"""A command whose exit code and output are written down beside what reads it."""
BUT = re.compile(r"\bgrep\s+(?:-\w+\s+)*(?:-\w*v|--invert-match)")
"""What wants each line to be like something."""
MOST_LINES = 4


@dataclass(frozen=True)
class _Spoke:
    """What the programs of a command did, all together."""

    codes: tuple[int, ...]
    size: int
    lines: tuple[str, ...]

    @property
    def is_well(self) -> bool:
        """Whether all ended well."""
        return not any(self.codes)


async def gone_silent(exam: Examination, target: Target) -> str:
    """Why a green command is satisfied by silence alone; "" for none.

    Raises what runs in rooms raise.
    """
    places = speakers(target.shell)
    if not places:
        return ""
    old, new = exam.world.old, exam.world.new

    async def with_all(text: str, tree: str = new) -> Measured:
        shell = _with(target.shell, places, [text] * len(places))
        return await exam.run(replace(target, shell=shell), tree)

    if not (await with_all("false")).passed:
        return ""
    texts = [_listened(target.shell[left:right]) for left, right in places]
    listening = replace(target, shell=_with(target.shell, places, texts))
    now = _spoke(await exam.run(listening, new))
    if now is None or now.size:
        return ""
    was = _spoke(await exam.run(listening, old))
    if was is None or not was.size:
        return ""
    what = f"`{target.shell[slice(*places[0])].strip()}`"
    if not now.is_well:
        return f"{what} ends with {max(now.codes)} and prints nothing any more, which satisfies it"
    if not was.is_well:
        return ""  # what it printed was what was wrong
    silent = f"{what} prints nothing at all any more, which satisfies it"
    if BUT.search(target.shell) or len(places) > 1:
        return silent
    for line in was.lines[:MOST_LINES]:
        text = re.sub(r"([\\\"$`])", r"\\\1", line)  # a shell's text may stand between plain quotes
        if "'" not in line and (await with_all(f'printf "%s\\n" "{text}"')).passed:
            return silent
    return ""


def _with(shell: str, places: Sequence[Span], texts: Sequence[str]) -> str:
    parts, at = [], 0
    for (left, right), text in zip(places, texts, strict=True):
        parts += [shell[at:left], text, " "]
        at = right
    return "".join([*parts, shell[at:]])


def _listened(command: str) -> str:
    return LISTENED.format(command=command.rstrip(), mark=MARK)


def _spoke(ran: Measured) -> _Spoke | None:
    """What was written down; None where nothing was."""
    text = f"{ran.ran.stdout}\n{ran.ran.stderr}"
    codes = [int(hit) for hit in re.findall(rf"{MARK} code (\d+)", text)]
    sizes = [int(hit) - 1 for hit in re.findall(rf"{MARK} size (\d+)", text)]
    lines = [hit for hit in re.findall(rf"{MARK} line (.*)", text) if hit]
    if not codes or not sizes:
        return None
    return _Spoke(tuple(codes), sum(sizes), tuple(dict.fromkeys(lines)))
