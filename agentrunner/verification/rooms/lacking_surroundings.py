"""What a sandbox does not give and tests ask for before the first of them runs.

It is told by the words of the operating system, which are the same for all languages: a network, a
place to write, a display. A test that itself asks for one of them is red, like any other.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from agentrunner.verification.results.model import Results

SHORTAGE = re.compile(
    r"(?im)^.*(?:temporary failure in name resolution|name or service not known"
    r"|network is unreachable|no route to host|\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH)\b"
    r"|failed to lookup address information|no space left on device|disk quota exceeded"
    r"|read-only file system|(?:open|connect to|access)(?: X server)? display"
    r"|no display name and ).*$"
)
"""The line with such words."""


def lacking_surroundings(results: Results, wanted: str = "") -> str:
    """The line that says what is missing, where for want of it no test ran; else "".

    Every test then broke outside of itself, as its file was loaded or its place was set up. A file
    of tests that `wanted`, the text of the task, names may be what is to be mended.
    """
    why = ""
    for test in results.tests:
        if test.outcome == "skipped":
            continue
        hit = SHORTAGE.search(test.message)
        if test.outcome != "error" or hit is None or _named(test.file or test.name, wanted):
            return ""
        why = why or hit[0].strip()
    return why


def _named(file: str, wanted: str) -> bool:
    name = PurePath(file.partition("::")[0]).name
    return bool(name) and name in wanted
