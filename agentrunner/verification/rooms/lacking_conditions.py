"""What a sandbox does not give and tests ask for before the first of them runs.

It is told by the words of the operating system, which are the same for all languages: a network, a
place to write, a display; and by those of compiler and linker about a library of the system. A test
that itself asks for one of them is red, like any other.
"""

from __future__ import annotations

from pathlib import PurePath

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import speaks_of
from agentrunner.verification.results.model import TestResult

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


def condition_lacked_by(test: TestResult, wanted: str) -> str:
    """The line that says what a test lacked before it could begin; else "".

    It then broke outside of itself, as its file was loaded or its place was set up. A file of tests
    that `wanted`, the text of the task, names may be what is to be fixed.
    """
    name = PurePath((test.file or test.name).partition("::")[0]).name
    hit = SHORTAGE.search(test.message) if test.outcome == "error" else None
    return hit[0].strip() if hit and not speaks_of(wanted, name) else ""
