"""Tests inside of product files: Rust's test modules and the examples in Python's docstrings."""

from __future__ import annotations

import ast
import re

from agentrunner.evidence.inputs.kept import Around, Kept, old, whole
from agentrunner.evidence.inputs.kept_tests import NEW_TESTS, keep_tests

RUST_MODULE = re.compile(
    r"^[ \t]*#\[cfg\((?:all\()?\s*test\b[^\]]*\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?"
    r"(?:mod\s+(\w+)\s*\{|(?:fn|impl|use|struct|const|static|type|macro_rules!)[^\n]*)",
    re.MULTILINE,
)
RUST_TEST = re.compile(r"^[ \t]*#\[(?:\w+::)*test(?:\([^\]]*\))?\]", re.MULTILINE)


def keep_region(before: str, after: str, around: Around) -> Kept:
    """The new product with the old tests that stand in the same file."""
    if around.path.endswith(".rs"):
        return _rust(before, after, around)
    if around.path.endswith(".py"):
        return _examples(before, after)
    return old(before)


def _rust(before: str, after: str, around: Around) -> Kept:
    one, two = rust_regions(before), rust_regions(after)
    was, now = [before[a:b] for a, b in one], [after[a:b] for a, b in two]
    if was == now and rust_examples(before) == rust_examples(after):
        return whole(after, "the tests inside stay as they were")
    if not was and now:
        return whole(after, NEW_TESTS)
    fits = keep_tests("\n".join(was), "\n".join(now), around).understood
    if fits and rust_examples(before) == rust_examples(after):
        return whole(after, NEW_TESTS)
    bare, end = [], 0
    for a, b in two:
        bare.append(after[end:a])
        end = b
    product = "".join([*bare, after[end:]])
    return Kept((product.rstrip("\n") + "\n\n" + "\n\n".join(was) + "\n").encode())


def rust_regions(text: str) -> list[tuple[int, int]]:
    """Spans of what is compiled for tests alone: `#[cfg(test)] mod`, and functions of tests."""
    found: list[tuple[int, int]] = []
    starts = [m.start() for pattern in (RUST_MODULE, RUST_TEST) for m in pattern.finditer(text)]
    for start in sorted(starts):
        if not found or start >= found[-1][1]:
            found.append((start, _item_end(text, start)))
    return found


def rust_examples(text: str) -> list[str]:
    """The examples in documentation comments."""
    lines = "\n".join(m[1] for m in re.finditer(r"^\s*//[/!] ?(.*)$", text, re.MULTILINE))
    return re.findall(r"```(?!text|ignore)\w*\n(.*?)```", lines, re.DOTALL)


def _item_end(text: str, at: int) -> int:
    """Where the item that begins at `at` ends: its closing brace, or a semicolon before one."""
    depth = 0
    token = re.compile(
        r"//[^\n]*|/\*.*?\*/|b?r(#*)\".*?\"\1|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'|[{};]",
        re.DOTALL,
    )
    for found in token.finditer(text, at):
        if found[0] == "{":
            depth += 1
        elif found[0] == "}":
            depth -= 1
            if depth <= 0:
                return found.end()
        elif found[0] == ";" and depth == 0:
            return found.end()
    return len(text)


def _examples(before: str, after: str) -> Kept:
    """The new file with the old docstrings of what has examples in the old one."""
    try:
        one, two = _docstrings(before), _docstrings(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return old(before)
    was = {name: text for name, (_, text) in one.items() if ">>>" in text}
    if all(name in two and two[name][1] == text for name, text in was.items()):
        return whole(after, "the examples inside stay as they were")
    lines = after.split("\n")
    places = [(two[name][0], one[name][0]) for name in was if name in two]
    source = before.split("\n")
    for (first, last), (start, end) in sorted(places, reverse=True):
        lines[first - 1 : last] = source[start - 1 : end]
    return Kept("\n".join(lines).encode())


def _docstrings(text: str) -> dict[str, tuple[tuple[int, int], str]]:
    """By qualified name: the lines of a docstring, and its text."""
    found: dict[str, tuple[tuple[int, int], str]] = {}

    def walk(node: ast.AST, name: str) -> None:
        body = getattr(node, "body", [])
        if body and isinstance(body, list) and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[name] = ((value.lineno, value.end_lineno or value.lineno), value.value)
        for child in body if isinstance(body, list) else []:
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                walk(child, f"{name}.{child.name}")

    walk(ast.parse(text), "")
    return found
