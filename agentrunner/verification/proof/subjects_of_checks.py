"""Programs that people's checks run as what they are about, not as what decides.

`sh deploy.sh a b && test -e b/x` asks what deploy.sh did. Where a program that the requirements
speak of does nothing, and ends well, such a check is red: it is not the program that says yes.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Sequence

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.evidence.target import TEST
from agentrunner.verification.inputs.prd_checks import outside_of_checks
from agentrunner.verification.proof.case import Case
from agentrunner.verification.proof.examination import Examination

SHELL = lazy_regex(rb"#!.*\b(?:ba|da|z|k|a)?sh\b")
NOTHING = b"exit 0\n"
JUDGES = r"\W+(?:\w+\W+){0,4}?(?:pass(?:es)?|succeeds?|green|agrees?|accepts?)\b"
"""What follows the name of a program that has to be content, and may not be rewritten for that."""


async def subjects_of_checks(exam: Examination, cases: Sequence[Case]) -> set[str]:
    """Changed shell programs that checks of people run, and that are the work. Raises what running
    in rooms raises."""
    found: set[str] = set()
    for case in cases:
        if case.now is not None or case.target.id == TEST or case.target.author != "person":
            continue
        for path in await asyncio.to_thread(_candidates, exam, case):
            idle = await asyncio.to_thread(_idle, exam, path)
            if path not in found and not (await exam.run(case.target, idle)).passed:
                found.add(path)
    return found


def _candidates(exam: Examination, case: Case) -> list[str]:
    """Programs that the command runs and the requirements speak of. Blocks."""
    wanted = outside_of_checks(exam.verifier.spec.wanted)
    return [
        one.path
        for one in exam.world.changes
        if one.path in exam.world.old_paths
        and _is_run(one.path, case.target.shell)
        and (one.path.endswith((".sh", ".bash")) or SHELL.match(exam.world.now(one.path) or b""))
        and _is_spoken_of(one.path, wanted)
    ]


def _is_run(path: str, shell: str) -> bool:
    name = re.escape(posixpath.basename(path))
    return bool(re.search(rf"(?:^|[\s;&|(/]){name}(?=[\s;&|)<>]|$)", shell))


def _is_spoken_of(path: str, wanted: str) -> bool:
    name = posixpath.basename(path)
    names = "|".join(re.escape(one) for one in {name, name.partition(".")[0]})
    mention = rf"(?i:(?<![\w-])(?:{names})(?![\w-]))"
    return bool(re.search(mention, wanted)) and not re.search(mention + JUDGES, wanted)


def _idle(exam: Examination, path: str) -> str:
    """The new tree in which a program does nothing. Blocks."""
    text = exam.world.now(path) or b""
    first = text.split(b"\n", 1)[0] + b"\n" if text.startswith(b"#!") else b"#!/bin/sh\n"
    return exam.world.snapshots.with_texts(exam.world.new, {path: first + NOTHING})
