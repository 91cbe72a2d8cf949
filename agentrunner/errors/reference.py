"""The codes of all errors, and their pages: what `agentrunner explain` prints."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from inspect import cleandoc

from agentrunner import errors
from agentrunner.errors.error import AgentRunnerError

HEADING = """# Error codes

An error is printed as `error[CODE]: sentence`, with its place and one thing to try.
`agentrunner explain CODE` prints its part of this page. The exit code follows from the class:
2 is for what was asked, 5 for the machine, 1 for a task that failed.

<!-- `python scripts/error_page.py` writes this page; a test holds it to the classes. -->
"""
Kind = type[AgentRunnerError]


def by_code() -> dict[str, Kind]:
    """Every code with its class, sorted; of classes that share one, the first."""
    for module in pkgutil.iter_modules(errors.__path__, f"{errors.__name__}."):
        import_module(module.name)
    found = {kind.code: kind for kind in reversed([*with_own_code()])}
    return dict(sorted(found.items()))


def with_own_code(kind: Kind = AgentRunnerError) -> Iterator[Kind]:
    """Yield this class and those below it, of this package, that do not share a base's code."""
    ours = kind.__module__.startswith(f"{errors.__name__}.")
    if ours and all(getattr(base, "code", "") != kind.code for base in kind.__bases__):
        yield kind
    for below in kind.__subclasses__():
        yield from with_own_code(below)


def old_codes() -> dict[str, str]:
    """Earlier spellings, and the code that each has become; a subclass has none of its base."""
    own = ((code, vars(kind).get("old_codes", ())) for code, kind in by_code().items())
    return {old: code for code, olds in own for old in olds}


def by_what() -> dict[str, list[str]]:
    """Every code below what its errors are about, which is what its module says of itself."""
    groups: dict[str, list[str]] = {}
    for code, kind in by_code().items():
        about, _, _ = (import_module(kind.__module__).__doc__ or "").partition("\n")
        groups.setdefault(about, []).append(code)
    return dict(sorted(groups.items(), reverse=True))  # what people write comes before replies


def page(kind: Kind) -> str:
    """What an error of this class means and what to do, as Markdown."""
    return f"# {kind.code}\n\n{_text(kind)}\n"


def whole_page() -> str:
    """The reference of all codes, as Markdown."""
    parts = [f"## {code}\n\nExit code {kind.exit_code}.\n\n{_text(kind)}\n"
             for code, kind in by_code().items()]  # fmt: skip
    return "\n".join([HEADING, *parts])


def _text(kind: Kind) -> str:
    return "{}\n\n**What to do.** {}".format(*meaning_and_advice(kind))


def meaning_and_advice(kind: type[Exception]) -> tuple[str, str]:
    """What an error of this class means, and what to do: that of its base if it does not say."""
    meaning, _, advice = cleandoc(kind.__doc__ or "").partition("\n\n")
    return meaning, advice or meaning_and_advice(kind.__mro__[1])[1]
