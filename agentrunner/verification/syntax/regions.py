"""Find tests inside product files, and exchange them for those of another version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec import Struct
from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_text
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    field,
    once_per_file,
    parse,
    walk,
)
from agentrunner.verification.syntax.test_finder import attribute_path, attributes


class Region(Struct, frozen=True):
    """A part of a product file that is a test. Offsets are in bytes."""

    start: int
    end: int
    kind: str
    """"module", "item", "doctest", "case", "function", "main" or "block"."""
    name: str
    """The name of the module, class or function; with `kind` it is unique in the file."""

    def holds(self, offset: int) -> bool:
        """Whether what begins at this offset is part of the test."""
        return self.start <= offset < self.end


def regions_of_tests(source: bytes, language: str | None) -> list[Region]:
    """Return the tests in a file, in source order.

    Rust: items under `#[cfg(test)]` and `#[test]`, and examples in doc comments. Python: doctests,
    test cases, test functions and the block that runs them. JavaScript and TypeScript: blocks under
    `import.meta.vitest`. Other languages keep their tests in separate files.
    """
    parsed = parse(source, language) if language in _FINDERS else None
    return _regions_in(parsed) if parsed is not None else []


def is_in_test(parsed: Parsed, node: Node) -> bool:
    """Whether a node belongs to one of these tests."""
    regions = _regions_in(parsed) if parsed.language in _FINDERS else []
    return any(one.holds(node.start_byte) for one in regions)


def without_regions(source: bytes, language: str | None) -> bytes:
    """Return the file without its tests."""
    regions = regions_of_tests(source, language)
    return applied(source, (Edit(one.start, one.end, "") for one in regions))


def with_regions_of(source: bytes, other: bytes, language: str) -> bytes:
    """Return the file with its tests replaced by those of another version.

    Tests that the other version lacks are removed. Tests that only it has are appended to the file,
    except examples of docstrings and doc comments: those stay removed.
    """
    here, there = regions_of_tests(source, language), regions_of_tests(other, language)
    unused = {(one.kind, one.name): one for one in reversed(there)}
    edits = []
    for region in here:
        old = unused.pop((region.kind, region.name), None)
        former = to_text(other[old.start : old.end]) if old else ""
        edits.append(Edit(region.start, region.end, former))
    changed = applied(source, edits)
    missing = [one for one in there if (one.kind, one.name) in unused and one.kind != "doctest"]
    for one in sorted(missing, key=lambda region: region.kind == "main"):
        text = other[one.start : one.end].strip(b"\r\n")
        ends = [here.start for here in regions_of_tests(changed, language) if here.kind == "main"]
        at = ends[-1] if ends else len(changed)  # tests after the code that starts them are not run
        before, after = changed[:at].rstrip(b"\n"), changed[at:].lstrip(b"\n")
        changed = before + b"\n\n\n" + text + b"\n" + (b"\n\n" + after if after else b"")
    return changed


@once_per_file
def _regions_in(parsed: Parsed) -> list[Region]:
    """Return the tests in a file, the outermost ones."""
    found, regions = _FINDERS[parsed.language](parsed), list[Region]()
    for one in sorted(found, key=lambda region: (region.start, -region.end)):
        if not regions or one.start >= regions[-1].end:
            regions.append(one)
    return regions


# Rust ---------------------------------------------------------------------------------------------

_CFG_TEST = lazy_regex(r"#\s*\[\s*cfg\s*\(.*\btest\b")


def _rust(parsed: Parsed) -> Iterator[Region]:
    for node in walk(parsed.root, lambda one: one.type not in ("block", "token_tree")):
        if not node.type.endswith(("_item", "_declaration", "_definition")):
            continue
        marks = [] if node.type == "attribute_item" else attributes(node)
        for mark in marks:
            name = attribute_path(parsed, mark).split("::")[-1]
            under = name == "cfg" and bool(_CFG_TEST.match(parsed.text(mark)))
            under = under and "not(test" not in parsed.text(mark).replace(" ", "")
            if under or name == "test":
                kind = "module" if node.type == "mod_item" else "item"
                named = parsed.text(node, "name") or parsed.text(node, "type")
                yield _region(parsed, marks[0], node, kind, named or parsed.text(node)[:200])
                break
    yield from _rust_examples(parsed)


def _rust_examples(parsed: Parsed) -> Iterator[Region]:
    """Yield fenced examples in doc comments, each named by the item below it and a number."""
    lines = parsed.source.split(b"\n")
    at, opened, number = 0, -1, 0
    for index, line in enumerate(lines):
        match = re.match(rb"\s*//[/!]\s*(```|~~~)", line)
        if match and opened < 0:
            opened = at
        elif match:
            number += 1
            below = (one.strip() for one in lines[index + 1 :])
            item = next((one for one in below if not one.startswith((b"//", b"#"))), b"")
            head = item.split(b"{")[0].split(b"(")[0].decode("utf-8", "replace").strip()
            yield Region(opened, at + len(line) + 1, "doctest", f"{head}#{number}")
            opened = -1
        if not re.match(rb"\s*//[/!]", line):
            number, opened = 0, -1
        at += len(line) + 1


# Python -------------------------------------------------------------------------------------------


def _python(parsed: Parsed) -> Iterator[Region]:
    for node in walk(parsed.root):
        if node.type == "string":
            yield from _examples(parsed, node)
    for node in parsed.root.named_children:
        inner = field(node, "definition") or node
        name = parsed.text(inner, "name")
        if inner.type == "class_definition":
            if name and "TestCase" in parsed.text(inner, "superclasses"):
                yield _region(parsed, node, node, "case", name)
        elif inner.type == "function_definition":
            if name.startswith("test_"):
                yield _region(parsed, node, node, "function", name)
        elif inner.type == "if_statement" and _is_main(parsed, inner):
            yield _region(parsed, node, node, "main", "__main__")


def _is_main(parsed: Parsed, node: Node) -> bool:
    return "__name__" in parsed.text(node, "condition") and bool(
        re.search(r"\b(unittest|doctest|pytest)\b", parsed.text(node, "consequence"))
    )


def _examples(parsed: Parsed, string: Node) -> Iterator[Region]:
    """Yield the examples of a docstring, from the first prompt to the last line of output."""
    statement = string.parent
    text = parsed.source[string.start_byte : string.end_byte]
    if statement is None or statement.type != "expression_statement" or b">>>" not in text:
        return
    block = statement.parent
    owner = block.parent if block is not None and block.type == "block" else None
    found = re.compile(rb"(?m)^[ \t]*>>> .*(?:\r?\n[ \t]*(?!\"\"\"|''')\S.*)*\r?\n?")
    for number, match in enumerate(found.finditer(text)):
        closing = max(text.rfind(b'"""'), text.rfind(b"'''"))
        end = min(match.end(), closing) if closing > match.start() else match.end()
        label = f"{parsed.text(owner, 'name')}#{number}"
        yield Region(string.start_byte + match.start(), string.start_byte + end, "doctest", label)


# JavaScript and TypeScript ------------------------------------------------------------------------


def _script(parsed: Parsed) -> Iterator[Region]:
    for node in parsed.root.named_children:
        text = parsed.text(node, "condition").replace(" ", "")
        if node.type == "if_statement" and "import.meta.vitest" in text:
            yield _region(parsed, node, node, "block", "vitest")


def _region(parsed: Parsed, first: Node, last: Node, kind: str, name: str) -> Region:
    """Return a region of whole lines, if nothing else is on them."""
    source, start, end = parsed.source, first.start_byte, last.end_byte
    line = source[:start].rpartition(b"\n")[2]
    if not line.strip():
        start -= len(line)
        if source[end : end + 1] == b"\n":
            end += 1
        elif source[end : end + 2] == b"\r\n":
            end += 2
    return Region(start, end, kind, name)


_FINDERS: dict[str, Callable[[Parsed], Iterator[Region]]] = {
    "python": _python,
    "rust": _rust,
    **dict.fromkeys(SCRIPTS, _script),
}
