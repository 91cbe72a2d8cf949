"""Whether a test is red on the old code. Pure.

Where it runs there and fails, that the work is missing is seen with the functions of the work
emptied. What does not run there has to lack a name that the work adds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agentrunner.state.red_tests import first_line
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.evidence.target import Measured
from agentrunner.verification.results.model import TestResult

MISSING = lazy_regex(
    r"ImportError|ModuleNotFoundError|cannot find|Cannot find|not found|unresolved|undefined"
    r"|NameError|AttributeError|is not defined|is not a function|has no attribute|cannot import"
    r"|does not provide an export|no field|no method|undeclared|E0\d{3}|cannot find symbol"
    r"|is not exported|Undefined subroutine|Can't locate"
)
"""Messages of red tests that name something which does not exist."""
DOUBLED = lazy_regex(
    r"`(\w+)` is defined multiple times|duplicate definitions with name `(\w+)`"
    r"|\b(\w+) redeclared|redefinition of \W?(\w+)"
)
"""Messages of compilers about a name that two places define: the tests bring their own."""
BAD_SYNTAX = lazy_regex(
    r"^.*SyntaxError: (?!.*(?:does not provide an export|[Nn]amed export )).*$", re.MULTILINE
)
"""A file that cannot be parsed; an export that is missing in an ES module has the same kind."""
JAVASCRIPT = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx")
MOST_SEEN = 200
"""Characters of the reason that was seen, in a refusal."""


def why_not_red_on_old_code(
    names: Sequence[str], old: Measured, files: Mapping[str, TestResult], names_of_work: set[str]
) -> dict[str, str]:
    """Why each test is not red on the old code because of the work; "" where it is."""
    if old.results is None:
        if old.passed:
            return dict.fromkeys(names, "it passes on the old code as well")
        text = old.ran.stdout + old.ran.stderr
        return {
            name: ""
            if _names_missing(text, names_of_work, files[name].file)
            else "the tests do not run on the old code"
            for name in names
        }
    broken = [test for test in old.results.red if test.outcome == "error"]
    found = {}
    for name in names:
        results = old.results.named(name)
        if results and all(test.outcome == "passed" for test in results):
            found[name] = "it passes on the old code as well"
            continue
        red = [test for test in results if test.red]
        if any(test.outcome == "failed" for test in red):
            found[name] = ""
            continue
        of_this_file = [test for test in broken if test.file == files[name].file or not test.file]
        text = "\n".join(test.message for test in [*red, *of_this_file])
        text = text or old.ran.stdout + old.ran.stderr
        seen = [*red, *of_this_file]
        if of_this_file:  # a report that was cut off says less than what stands above it
            lines = (old.ran.stdout + old.ran.stderr).splitlines()
            text += "\n" + "\n".join(one for one in lines if MISSING.search(one))
        is_missing = _names_missing(text, names_of_work, files[name].file)
        found[name] = "" if is_missing else _why_unsound(seen)
    return found


def _why_unsound(seen: Sequence[TestResult]) -> str:
    """What was seen of a test that is not red on the old code because of the work."""
    if not seen:
        return "on the old code it is not run"
    reason = first_line("\n".join(test.message for test in seen))
    return (
        "on the old code it fails for a reason that is not the work"
        + (f", {reason[:MOST_SEEN]}" if reason else "")
        + "; to settle it, write a test that fails there by an assertion or because a name"
        " that the work adds is missing"
    )


def _names_missing(text: str, names_of_work: set[str], file: str = "") -> bool:
    """Whether an output contains a name that the work adds.

    What the old code and the tests both define is not missing: the tests try their own double. The
    path of the test's own file in JavaScript does not count, which Node's messages contain:
    `ship.test.js` is not about `ship` because of its name.
    """
    doubled = {name for found in DOUBLED.findall(text) for name in found if name}
    text = BAD_SYNTAX.sub("", text)
    if file.endswith(JAVASCRIPT):
        text = re.sub(rf"(?<![\w./-])(?:file://)?(?:/\S*/|\./)?{re.escape(file)}\b", "", text)
    return names_of_work.isdisjoint(doubled) and not names_of_work.isdisjoint(
        re.findall(r"\w+", text)
    )
