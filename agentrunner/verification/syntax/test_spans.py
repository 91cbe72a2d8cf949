"""What is known about a test that was found in a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field

from msgspec import Struct
from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.languages import Parsed


class TestSpan(Struct, frozen=True):
    """Where a test is in its source. Offsets are in bytes."""

    __test__ = False

    name: str
    """The name within the file, joined as the language does: `TestX::test_y`, `suite > test`."""
    parts: tuple[str, ...]
    start: int
    """Start of the definition, including its decorators, attributes or annotations."""
    end: int
    line: int
    """Line of the definition, counted from 1."""


class Title(Struct, frozen=True):
    """One part of a test's name."""

    text: str
    pieces: tuple[str, ...]
    """The fixed texts in order. Between two of them stands text that is filled in at run time."""

    @staticmethod
    def plain(text: str) -> Title:
        """Return a title that is fixed text only."""
        return Title(text, (text,))

    @property
    def literal(self) -> int:
        """The number of fixed characters."""
        return sum(map(len, self.pieces))

    def start_in(self, name: str) -> int | None:
        """Return where this title starts if `name` ends with it, None if it does not."""
        *before, last = self.pieces
        if not name.endswith(last):
            return None
        at = len(name) - len(last)
        for piece in reversed(before[1:]):
            at = name.rfind(piece, 0, at)
            if at < 0:
                return None
        if not before:
            return at if _can_begin(name, at) else None
        while (at := name.rfind(before[0], 0, at + len(before[0]))) >= 0:
            if _can_begin(name, at):
                return at
            at -= len(before[0]) + 1
            if at + len(before[0]) < 0:
                break
        return None


def _can_begin(name: str, at: int) -> bool:
    """Whether a part of a name can begin at this offset."""
    return at == 0 or name[at - 1] in " \t/:.#>›»|"


@dataclass(frozen=True)
class Found:
    """A test, or a function that could be meant as one, with its syntax nodes."""

    parsed: Parsed = dataclass_field(repr=False, compare=False)
    span: TestSpan
    titles: tuple[Title, ...]
    whole: Node
    function: Node
    body: Node
    is_test: bool
    """False for a function that is only considered if no test matches a name."""
    inner: bool = False
    """Whether it is a part of a test with a name and body of its own: a subtest in Go."""
    suites: tuple[Node, ...] = ()
    """The calls of the surrounding suites, outermost first (JavaScript)."""
    call: Node | None = None
    """The call that declares the test (JavaScript)."""
    around: tuple[str, ...] = ()
    """Texts handed to surrounding calls that may make suites: `whenAsked("a", () => {…})`."""

    @staticmethod
    def of(
        parsed: Parsed, separator: str, titles: Sequence[Title], whole: Node, function: Node,
        body: Node, is_test: bool, first: Node | None = None,
    ) -> Found:  # fmt: skip
        """Return what is declared by `whole`, before which `first`, an attribute, may stand."""
        start, parts = first or whole, tuple(title.text for title in titles)
        span = TestSpan(
            separator.join(parts), parts, start.start_byte, whole.end_byte, start.start_point[0] + 1
        )
        return Found(parsed, span, tuple(titles), whole, function, body, is_test)

    @staticmethod
    def whole_file(parsed: Parsed) -> Found:
        """Return a file as one test, for what stands outside of tests."""
        root = parsed.root
        span = TestSpan("", (), 0, root.end_byte, 1)
        return Found(parsed, span, (), root, root, root, True)


_STRINGS = ("string", "template_string", "interpreted_string_literal", "raw_string_literal")
_GAPS = lazy_regex(r"%(?:\.\d+)?[a-zA-Z#%]|\$[A-Za-z_][\w.]*|\$#")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "f": "\f", "v": "\v"}


def literal_title(parsed: Parsed, node: Node, formatted: bool = False) -> Title:
    """Return the title that an argument of a declaring call makes.

    `formatted` is set for tables of cases, whose titles can hold `%s` and `$name`.
    """
    pieces: list[str | None] = []
    if node.type in _STRINGS:
        for child in node.named_children:
            if child.type == "escape_sequence":
                pieces.append(_unescaped(parsed.text(child)))
            elif child.type == "template_substitution":
                pieces.append(None)
            else:
                pieces.append(parsed.text(child))
    elif node.type == "binary_expression":
        for side in (node.child_by_field_name("left"), node.child_by_field_name("right")):
            plain = side is not None and side.type in ("string", "template_string")
            pieces.append(literal_title(parsed, side).text if side is not None and plain else None)
    elif node.type in ("identifier", "type_identifier"):
        return Title(parsed.text(node), ("", ""))
    else:
        pieces.append(None)
    return _title(pieces, formatted)


def _title(parts: list[str | None], formatted: bool) -> Title:
    pieces = [""]
    for part in parts:
        first, *rest = ["", ""] if part is None else _GAPS.split(part) if formatted else [part]
        pieces[-1] += first
        pieces += rest
    return Title("".join("…" if part is None else part for part in parts), tuple(pieces))


def _unescaped(text: str) -> str:
    if text[1:2] in ("x", "u"):
        digits = text[2:].strip("{}")
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError):
            return text
    return _ESCAPES.get(text[1:2], text[1:])
