"""Reads TAP, the Test Anything Protocol, versions 12 to 14, with subtests."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct, field

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.model import Results, TestResult
from agentrunner.verification.results.names import made, uncoloured

LINE = lazy_regex(
    r"^( *)(not ok|ok)\b *(\d*) *(?:- )?(.*?)"
    r"(?:(?: +|(?<=[ \d]))# *(skip\w*|todo)\b.*|# *(?:time=|in )[\d.]+ *\w*)?$",
    re.IGNORECASE,
)
PLAN = lazy_regex(r"^( *)1\.\.(\d+)(?: *# *(\w+))?")
SPEAKS_TAP = lazy_regex(r"^[^\S\n]*(?:TAP version \d|1\.\.\d|(?:not )?ok +\d)", re.MULTILINE)
"""What no tool leaves out, and a script that only prints "ok" does not write."""
SUBTEST = lazy_regex(r"^( *)# Subtest:? *(.*)$")
TITLED = lazy_regex(r"TAP version \d+\s*\n(?:\s*\n)*# (?!Subtest)")
"""How tape and what speaks like it begin: the tests are titles in comments, and what TAP counts are
their assertions, most of which are described alike ("should be equal")."""
NESTED = lazy_regex(r"^(?: *# Subtest| +(?:not )?ok\b)", re.MULTILINE)
"""What only TAP with subtests has: its comments are no titles, also where it begins with one."""
TITLE = lazy_regex(r"^# (?:(SKIP|TODO) )?(\S.*)$")
OF_ALL = ("failed", "xfailed", "skipped", "xpassed", "passed")
"""A test with several assertions has the first of these outcomes that one of them has: none that
need not hold hides behind those that passed."""


class Stream(Struct):
    """What one TAP stream reports."""

    tests: list[TestResult] = field(default_factory=list)
    complete: bool = True
    any: bool = False
    """Whether the text is TAP at all."""


def parse(lines: Iterable[str], program: str = "") -> Stream:
    """The tests of one stream, named by program, parents' titles, and own title or number.

    Where titles stand in comments, as tape writes them, a test is what stands under a title, and is
    named by it. Of several comments in a row the first is the title. As the tests and the product
    print comments too, nobody knows whose a failed assertion is: the stream is then not complete.
    """
    stream = Stream()
    titles: dict[int, str] = {}
    counted: dict[int, int] = {}
    planned: int | None = None
    lines = list(lines)
    text = "\n".join(lines)
    titled = TITLED.search(text) is not None and not NESTED.search(text)
    awaits_title = True
    asserted: dict[str, set[str]] = {}
    for line in lines:
        if hit := PLAN.match(line):
            stream.any = True
            if not hit[1]:
                planned = (planned or 0) + int(hit[2][:9])
                if hit[2] == "0" and program:
                    stream.tests.append(made(program, "skipped", program))
        elif hit := SUBTEST.match(line):
            titles[len(hit[1])] = hit[2].strip()
        elif line.startswith("TAP version"):
            awaits_title = True
        elif titled and (hit := TITLE.match(line)):
            title = hit[2].strip()
            if hit[1]:
                asserted.setdefault(title, set()).add(_outcome("not ok", hit[1]))
            if awaits_title and hit[1] != "SKIP":  # nothing stands under one that is skipped
                titles, awaits_title = {0: title}, False
        elif line.startswith("Bail out!"):
            stream.any, stream.complete = True, False
        elif hit := LINE.match(line):
            stream.any = True
            depth, word, directive = len(hit[1]), hit[2].lower(), hit[5]
            # Titles of subtests come before them, in some tools as deep as their parent's line.
            sums_up = [each for each in counted if each > depth]
            for deeper in {*sums_up, *(each for each in titles if each > depth)}:
                titles.pop(deeper, None)
                counted.pop(deeper, None)
            counted[depth] = counted.get(depth, 0) + 1
            if titled and titles.get(0):
                asserted.setdefault(titles[0], set()).add(_outcome(word, directive))
                awaits_title = True
                continue
            title = hit[4].strip().replace("\\#", "#") or hit[3] or str(counted[depth])
            if titles.get(depth) == title:
                del titles[depth]
            parents = [parents for _, parents in sorted(titles.items())]
            name = " > ".join(part for part in (program, *parents, title) if part)
            if not sums_up or word != "ok" or directive:
                stream.tests.append(made(name, _outcome(word, directive), program))
    for title, outcomes in asserted.items():
        name = f"{program} > {title}" if program else title
        first = next(one for one in OF_ALL if one in outcomes)
        stream.tests.append(made(name, first, program))
        stream.complete &= first != "failed"
    if stream.any and (planned is None or planned != counted.get(0, 0)):
        stream.complete = False
    return stream


def _outcome(word: str, directive: str | None) -> str:
    match (directive or "").upper():
        case word_of if word_of.startswith("SKIP"):
            return "skipped"
        case "TODO":
            return "xfailed" if word == "not ok" else "xpassed"
    return "passed" if word == "ok" else "failed"


def read_tap(text: str, reader: str, exit_code: int) -> Results | None:
    """The results in printed TAP, which the product can print as well; None without any TAP."""
    text = uncoloured(text)
    stream = parse(text.splitlines())
    if not stream.any or not SPEAKS_TAP.search(text):
        return None
    complete = stream.complete and not (exit_code and not any(t.red for t in stream.tests))
    return Results(reader, tuple(stream.tests), weak=True, complete=complete)
