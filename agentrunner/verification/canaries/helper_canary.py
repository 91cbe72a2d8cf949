"""Makes the functions fail with which claimed tests ask, where these assert nothing themselves.

A test that only says `expectOrder(compare, list)` has no value that can be changed. What it calls
lies in the tests' own files: where that fails at once, the test has to be red. A product that put
something else in its place keeps it green.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.canaries.canary_trees import CommandOnTrees
from agentrunner.verification.syntax.asserts import asserts_of, certainty
from agentrunner.verification.syntax.context import imports_in
from agentrunner.verification.syntax.edits import Edit, applied, indent_of, replaced
from agentrunner.verification.syntax.functions import functions_of
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    field,
    language_of,
    parse,
    statements,
    walk,
)
from agentrunner.verification.syntax.test_finder import find_test

THROWS = {
    "python": "raise AssertionError('made to fail')",
    "go": '{ panic("made to fail") }',
    **dict.fromkeys(SCRIPTS, '{ throw new Error("made to fail"); }'),
}
GLOBAL = lazy_regex(r"(?:global|globalThis|window)\.\w+")
PACKAGE = lazy_regex(rb"(?m)^package \w+\n")
MOST_FILES = 300
NOT_ASKED = "{} passes although `{}`, which it asks with, fails"


async def helper_not_asked(command: CommandOnTrees, places: Mapping[str, Sequence[str]]) -> str:
    """Why a claimed test at `places` cannot fail by what it calls; "" for none.

    Raises what running in rooms raises.
    """
    asked = await asyncio.to_thread(_asked_with, command, places)
    if not asked:
        return ""
    wanted = {(path, name) for helpers in asked.values() for path, name in helpers}
    tree, failing = await asyncio.to_thread(_failing, command, wanted)
    names = [test for test, helpers in asked.items() if any(one in failing for one in helpers)]
    if not names:
        return ""
    seen = await command.on(tree, names)
    for name in names:
        if seen.results is not None and seen.results.passed(name):
            return NOT_ASKED.format(name, asked[name][0][1])
    return ""


Helpers = list[tuple[str, str]]
"""Functions, each by its file and its name."""


def _asked_with(command: CommandOnTrees, places: Mapping[str, Sequence[str]]) -> dict[str, Helpers]:
    """The helpers that tests without assertions of their own always call, by test. Blocks."""
    read = command.read
    found: dict[str, Helpers] = {}
    files: dict[str, Parsed] | None = None
    for path, names in places.items():
        parsed = _parsed(path, read(path))
        if parsed is None:
            continue
        for name in names:
            called = _called(parsed, name)
            if not called:
                continue
            if files is None:
                files = _files_of_tests(command)
            helpers = [one for each in called for one in _defining(each, path, parsed, files)]
            if helpers:
                found[name] = helpers
    return found


def _files_of_tests(command: CommandOnTrees) -> dict[str, Parsed]:
    read, counts = command.read, command.inputs.input_at
    entries = command.world.snapshots.list(command.world.new)
    paths = [path for path in sorted(entries) if language_of(path) in THROWS]
    counted = [path for path in paths if (one := counts(path)) and not one.region]
    made = {path: _parsed(path, read(path)) for path in counted[:MOST_FILES]}
    return {path: parsed for path, parsed in made.items() if parsed is not None}


def _parsed(path: str, source: bytes | None) -> Parsed | None:
    language = language_of(path)
    known = language in THROWS and source is not None
    return parse(source or b"", language or "") if known else None


def _called(parsed: Parsed, name: str) -> list[str]:
    """Names of functions that a test without assertions always calls."""
    found = find_test(parsed.source, parsed.language, name)
    if found is None or asserts_of(found):
        return []
    called = []
    imported = imports_in(parsed)
    for node in walk(found.body):
        callee = field(node, "function") if node.type in ("call", "call_expression") else None
        if callee is None or certainty(found.body, node):
            continue
        if callee.type in ("member_expression", "attribute"):
            member = parsed.text(callee, "property") or parsed.text(callee, "attribute")
            if parsed.text(callee, "object") in imported:
                called.append(member)
        elif callee.type == "identifier":
            called.append(parsed.text(callee))
    return called


def _defining(
    name: str, path: str, parsed: Parsed, files: Mapping[str, Parsed]
) -> Iterator[tuple[str, str]]:
    """Where test code defines a name that is called in a file: there, or for all files."""
    if any(one.last_name == name for one in functions_of(parsed)):
        if path in files:
            yield path, name
        return
    imported = imports_in(parsed)
    if name in imported:
        origin, _, name = imported[name].rpartition(" ")
        modules = [origin]
    else:
        modules = [origin.partition(" ")[0] for origin in imported.values()]
    package = PACKAGE.search(parsed.source) if parsed.language == "go" else None
    for other, one in files.items():
        beside = package is not None and posixpath.dirname(other) == posixpath.dirname(path)
        beside = beside and package is not None and package[0] in one.source
        known = beside or any(_is_module(module, other, path) for module in modules if module)
        for function in functions_of(one):
            is_global = known or GLOBAL.fullmatch(function.name) is not None
            if is_global and function.last_name == name:
                yield other, name
                break


def _is_module(module: str, other: str, path: str) -> bool:
    """Whether a file at `path` means the file `other` by the name of a module."""
    if quoted := re.search(r"[\"']([^\"']+)[\"']", module):
        module = quoted[1]
    stem = re.sub(r"(?:/index|/__init__)?\.\w+$", "", other)
    if module.startswith(("./", "../")):
        place = posixpath.normpath(posixpath.join(posixpath.dirname(path), module))
        return stem == re.sub(r"\.[cm]?[jt]sx?$", "", place)
    wanted = module.strip(".").replace(".", "/")
    return bool(wanted) and f"/{stem}".endswith(f"/{wanted}")


def _failing(
    command: CommandOnTrees, wanted: Collection[tuple[str, str]]
) -> tuple[str, set[tuple[str, str]]]:
    """The new tree in which these functions fail at once, and those that do. Blocks."""
    read = command.read
    changed: dict[str, bytes] = {}
    failing: set[tuple[str, str]] = set()
    for path in sorted({path for path, _ in wanted}):
        parsed = _parsed(path, read(path))
        if parsed is None:
            continue
        edits: list[Edit] = []
        for function in functions_of(parsed):
            name = function.last_name
            if (path, name) not in wanted or any(
                edit.start <= function.body.start_byte < edit.end for edit in edits
            ):
                continue
            throw = THROWS[parsed.language]
            if parsed.language == "python":
                kept = statements(function.body)
                if not kept or indent_of(parsed, kept[0]) is None:
                    continue
                edits.append(Edit(kept[0].start_byte, kept[-1].end_byte, throw))
            else:
                edits.append(replaced(function.body, throw))
            failing.add((path, name))
        if edits:
            changed[path] = applied(parsed.source, edits)
    return command.world.snapshots.with_texts(command.world.new, changed), failing
