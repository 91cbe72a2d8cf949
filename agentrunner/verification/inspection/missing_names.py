"""What the requirements name as new, and what nobody wrote."""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from functools import partial

from agentrunner.git.snapshots import Snapshots
from agentrunner.text.mentions import alone
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.file_names import PAGES
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.tokens import without_comments
from agentrunner.verification.syntax.words import (
    names_of_criterion,
    options,
    quoted_lists,
    signatures,
    stated_names,
    things,
    without_unwanted,
)

NOWHERE = "`{}`, which the requirements name, is nowhere in the tree"
MOST_READ = 500_000
"""Bytes of a file that are searched."""
MOST_FILES = 5_000


def missing_names(
    snapshots: Snapshots,
    old_tree: str,
    new_tree: str,
    asked: str,
    checked: str = "",
    criteria: Sequence[str] = (),
) -> str:
    """What a text names as it is to be called or given, and what neither tree has; else "".

    A name in `checked`, the commands of people's checks, is decided by these. In the work a comment
    or a page of documentation names what is called, and is not it. A name in back quotes with which
    one of `criteria`, those of people without a check, begins has to stand somewhere.

    These are functions with their parameters, options, what is called an attribute, a header or
    the like, exceptions, variables, files and services that are to be used. What the tree before
    the run has may have been removed on purpose. Blocks. Raises GitFailed and OSError.
    """
    asked = without_unwanted(asked)
    named = {one: text for one, text in signatures(asked).items() if not _is_pythons_own(text)}
    given = {one: text for one, text in options(asked).items() if not _is_in(checked, text)}
    called = things(asked)
    others = stated_names(asked)
    called |= {one: one for text in criteria for one in _own_names(text, checked)}
    if not (named or given or called or others or quoted_lists(asked)):
        return ""
    new, old = snapshots.list(new_tree), snapshots.list(old_tree)
    was, now = (partial(_not_in, snapshots.reader(tree)) for tree in (old_tree, new_tree))
    changed = [path for path, entry in new.items() if old.get(path) != entry]
    code, plain = _by_grammar(changed)
    old_code, old_plain = _by_grammar(old)
    pages = {one: text for one, text in others.items() if text.endswith(PAGES)}
    others = {one: text for one, text in others.items() if one not in pages}
    wanted = {_defined(one): text for one, text in named.items()}
    # A parameter of that name was none before either.
    wanted = was(old_code, now(code, wanted))
    wanted = {_word(one): text for one, text in named.items() if text in wanted.values()}
    wanted = was(old_plain, now(plain, wanted))
    spelt = {_spelt(one): text for one, text in given.items()}
    spelt |= {_in_any_case(one): text for one, text in called.items()}
    spelt |= {re.compile(to_bytes(one)): text for one, text in others.items()}
    spelt = now(changed, spelt, code=True)
    spelt |= now(changed, {re.compile(to_bytes(one)): text for one, text in pages.items()})
    spelt = was(old, spelt)
    missing = [*wanted.values(), *spelt.values()]
    for row in quoted_lists(asked):
        listed = {re.compile(to_bytes(re.escape(one))): f'"{one}"' for one in row}
        absent = now(changed, listed, code=True)
        if absent and len(absent) < len(listed):  # what is given by these words is given in part
            missing += was(old, absent).values()
    return NOWHERE.format(missing[0]) if missing else ""


def _own_names(criterion: str, checked: str) -> list[str]:
    """The names that a criterion is about and that its check does not have."""
    return [
        name
        for name in names_of_criterion(without_unwanted(criterion))
        if not (keyword.iskeyword(name) or hasattr(builtins, name) or _is_in(checked, name))
    ]


def _is_pythons_own(signature: str) -> bool:
    """Whether a function is of Python or its library: `math.isclose(a, b)` says what is meant."""
    first = re.split(r"\W", signature, maxsplit=1)[0]
    return first in sys.stdlib_module_names or hasattr(builtins, first)


def _defined(name: str) -> re.Pattern[bytes]:
    """Where a name may be defined: a parameter or a value of that name is no function."""
    return re.compile(to_bytes(rf"{alone(name, joined='')}[\"'\]]*\s*[(=:<\[{{]"))


def _word(name: str) -> re.Pattern[bytes]:
    """A name in PHP, Ruby and the like: `$times` is a variable, and no function."""
    return re.compile(to_bytes(alone(name, joined="", before="$")))


def _spelt(option: str) -> re.Pattern[bytes]:
    """An option as programs spell it: with its dashes, in quotes, or as a name that is declared
    (`dry_run: bool`, `dryRun = `)."""
    name = option.replace("-", "[-_]?")
    return re.compile(
        to_bytes(rf"--{name}\b|[\"']{name}[\"']|(?<![\w.]){name}\s*[:=](?!=)"), re.IGNORECASE
    )


def _in_any_case(name: str) -> re.Pattern[bytes]:
    """A name as it may be spelt: `aria-label`, `ariaLabel`, `ARIA_LABEL`."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name)
    pattern = "[-_]?".join(map(re.escape, re.split(r"[-_]+", parts.strip("-_"))))
    return re.compile(to_bytes(pattern), re.IGNORECASE)


def _is_in(checked: str, name: str) -> bool:
    return bool(re.search(alone(name), checked))


def _by_grammar(paths: Collection[str]) -> tuple[list[str], list[str]]:
    """Files in a language with a grammar, and the others."""
    code = [path for path in paths if language_of(path) is not None]
    return code, [path for path in paths if language_of(path) is None]


def _not_in(
    read: ReadFile,
    paths: Iterable[str],
    wanted: dict[re.Pattern[bytes], str],
    *,
    code: bool = False,
) -> dict[re.Pattern[bytes], str]:
    """Those of the patterns that no file has; with `code` comments and documents do not count."""
    for path in sorted(paths)[:MOST_FILES]:
        if not wanted:
            break
        text = b""  # of a page only its own name, where code is looked for
        if not (code and path.endswith(PAGES)):
            text = (read(path) or b"")[:MOST_READ]
            text = without_comments(path, text) if code else text
        text = to_bytes(path) + b"\n" + text
        wanted = {one: what for one, what in wanted.items() if not one.search(text)}
    return wanted
