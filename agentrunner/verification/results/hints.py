"""What a test command does not report, and what would make it: a hint for readers of red results.

Pure.
"""

from __future__ import annotations

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.model import Results

CARGO_STOPPED = lazy_regex(r"(?m)^error: test failed, to rerun pass ")
CARGO_RAN_ALL = lazy_regex(r"(?m)^error: \d+ targets? failed:$")
MINITEST = lazy_regex(r"(?m)^\d+ (?:runs|tests), \d+ assertions, \d+ failures, ")


def hint_of(shell: str, exit_code: int, tail: str, results: Results | None) -> str:
    """One sentence without a full stop; "" where there is nothing to say."""
    stopped = CARGO_STOPPED.search(tail) and not CARGO_RAN_ALL.search(tail)
    if exit_code and stopped and "--no-fail-fast" not in shell:
        return (
            "cargo stops at the first test program that fails, so the later ones did not run;"
            " `--no-fail-fast` runs them all"
        )
    if results is None and MINITEST.search(tail):
        return (
            "nothing is known by the names of its tests, as totals are all that it reports;"
            " Minitest from 5 on, with its plug-ins, and test-unit give the names (`--verbose`"
            " shows them)"
        )
    return ""
