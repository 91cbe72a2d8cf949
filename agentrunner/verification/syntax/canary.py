"""Change the expected value of a claimed test that keeps its own name.

An honest product does not produce that value, so a sound test tool reports the test as failed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.assertions import Stated
from agentrunner.verification.syntax.asserts import asserts_of, certainty
from agentrunner.verification.syntax.edits import Canary, Edit, canary_of, line_of
from agentrunner.verification.syntax.languages import (
    Parsed,
    arguments_of,
    enclosing,
    field,
    inside,
    parts_of,
    walk,
)
from agentrunner.verification.syntax.test_spans import Found
from agentrunner.verification.syntax.values import another, assigned, is_literal, leaf

_COPY = lazy_regex(r"#\d+$")
"""What Go adds to the name of a sub-test that occurs again."""
_Change = Callable[[Found, Stated], Iterator[list[Edit]]]


def changed_literal(found: Found, red: Collection[str] = ()) -> Canary | None:
    """Return the source with the expected value of one assertion of this test changed.

    Assertions that are always reached come first, and among them those on lines of `red` (the text
    of lines that were red before), then the last one. Its literal becomes another one of the same
    type (`kind` "literal"): a number, a string, a boolean, a null value, one item of a collection.
    The literal is in the assertion, or else reaches it through a variable, a call or a table of
    cases. If there is none, the assertion is negated (`kind` "outcome"). For a test made by a macro
    the last literal passed to the macro is changed (`kind` "case"), which nothing says is an
    expected value. None if the test has no assertion that can be changed.
    """
    stated = asserts_of(found)
    if found.function.type == "macro_invocation":
        changes: tuple[tuple[str, _Change], ...] = (("case", _direct_literal),)
    else:
        changes = (
            ("literal", _direct_literal),
            ("literal", _passed_literal),
            ("outcome", _opposite),
        )

    stated.sort(
        key=lambda assertion: (certainty(found.body, assertion.node), -assertion.node.start_byte)
    )
    were_red = [
        assertion
        for assertion in stated
        if certainty(found.body, assertion.node) == 0 and _was_red(found, assertion, red)
    ]
    by_value = tuple(change for change in changes if change[0] == "literal")
    return _first_canary(found, by_value, were_red) or _first_canary(
        found, changes, [*were_red, *stated]
    )


def leaves_row(found: Found, name: str, canary: Canary) -> bool:
    """Return whether a canary leaves the row of this test as it was.

    Such a row, of a table of cases, has the test's own part of its name as a text, and nothing that
    was changed. A row whose expected value is worked out has no literal to be changed.
    """
    if len(found.span.parts) < 2:
        return False
    own = _COPY.sub("", name.rpartition("/")[2])
    for row in _rows(found.whole):
        if any(text.replace(" ", "_") == own for text in _names_of(found.parsed, row)):
            return not any(
                row.start_byte <= edit.start and edit.end <= row.end_byte for edit in canary.edits
            )
    return False


def _rows(whole: Node) -> Iterator[Node]:
    """Yield the rows of all tables of a Go function."""
    for table in walk(whole):
        if table.type == "composite_literal":
            yield from parts_of(table, "body")


def _names_of(parsed: Parsed, row: Node) -> Iterator[str]:
    """Yield the texts among the key and the cells of a row, by which its test may be called."""
    key = field(row, "key")
    for cell in [*([key] if key is not None else []), *leaf_row(row)]:
        value = leaf(field(cell, "value") or cell)
        if value is not None and "string" in value.type:
            yield parsed.text(value)[1:-1]


def changed_where_red(found: Found, red: Collection[str]) -> Canary | None:
    """Do the same for an assertion that was red before, and that a test can pass without reaching.

    It is inside a loop, a branch or a callback. None if there is none.
    """
    if not red or found.function.type == "macro_invocation":
        return None
    stated = [
        assertion
        for assertion in asserts_of(found)
        if certainty(found.body, assertion.node) and _was_red(found, assertion, red)
    ]
    changes = (("outcome", _opposite), ("literal", _direct_literal), ("literal", _passed_literal))
    return _first_canary(found, changes, stated)


def _first_canary(
    found: Found,
    changes: Sequence[tuple[str, _Change]],
    stated: Sequence[Stated],
) -> Canary | None:
    for kind, change in changes:
        for assertion in stated:
            for edits in change(found, assertion):
                made = _canary(found, kind, assertion, edits)
                if made is not None:
                    return made
    return None


def _direct_literal(found: Found, stated: Stated) -> Iterator[list[Edit]]:
    """Yield edits of a literal written in the assertion."""
    for wanted in stated.expected:
        edit = _changed_leaf(found.parsed, wanted)
        if edit is not None:
            yield [edit]


def _changed_leaf(parsed: Parsed, expression: Node | None) -> Edit | None:
    literal = leaf(expression)
    return another(parsed, literal) if literal is not None else None


def _passed_literal(found: Found, stated: Stated) -> Iterator[list[Edit]]:
    """Yield edits of a literal that a variable, case table or call hands to the assertion."""
    parsed = found.parsed
    for wanted in stated.expected:
        if wanted.type == "identifier" and _only_expected(found, parsed.text(wanted)):
            edit = _changed_leaf(parsed, assigned(parsed, found.body, parsed.text(wanted)))
            if edit is None and found.whole != found.body:
                edit = _changed_leaf(parsed, assigned(parsed, found.whole, parsed.text(wanted)))
            if edit is not None:
                yield [edit]
        name = field(wanted, "field")
        if wanted.type == "selector_expression" and name is not None:
            rows = list(_column(parsed, found.whole, parsed.text(name)))
            if rows:
                yield rows
    for wanted in stated.expected[:1]:
        for one in arguments_of(wanted):
            edit = _changed_leaf(parsed, one)
            if edit is not None and is_literal(leaf(one) or one):
                yield [edit]


def _only_expected(found: Found, name: str) -> bool:
    """Whether a variable is used only as an expected value and in messages."""
    stated = asserts_of(found)
    wanted = {node.id for one in stated for node in one.expected}
    for node in walk(found.body):
        if node.type != "identifier" or found.parsed.text(node) != name or node.id in wanted:
            continue
        if _is_target(node):
            continue
        around = [one for one in stated if inside(one.node, node)]
        if not around or any(inside(part, node) for one in around for part in one.operands):
            return False
    return True


def _is_target(node: Node) -> bool:
    """Whether an identifier is the target of an assignment."""
    lists = ("expression_list", "pattern_list")
    parent = next((one for one in enclosing(node) if one.type not in lists), None)
    target = next(
        (one for name in ("left", "name", "pattern") if (one := field(parent, name)) is not None),
        None,
    )
    return target is not None and inside(target, node)


def _column(parsed: Parsed, whole: Node, name: str) -> Iterator[Edit]:
    """Yield edits that change one column in all tables of a Go function."""
    for table in walk(whole):
        if table.type != "composite_literal":
            continue
        fields = [
            parsed.text(one)
            for part in walk(table)
            if part.type == "field_declaration"
            for one in part.children_by_field_name("name")
        ]
        for row in parts_of(table, "body") if name in fields else []:
            values = leaf_row(row)
            keyed = [one for one in values if one.type == "keyed_element"]
            if keyed:
                cells = [field(one, "value") for one in keyed if parsed.text(one, "key") == name]
            else:
                cells = list(values[fields.index(name) :][:1])
            for cell in cells:
                edit = _changed_leaf(parsed, cell)
                if edit is not None:
                    yield edit


def leaf_row(row: Node) -> list[Node]:
    """Return the elements of one row of a table: `{"a", 1}`, `{name: "a"}`, `"key": {…}`."""
    node: Node | None = row
    while node is not None and node.type != "literal_value":
        inner = field(node, "value") or field(node, "body")
        node = inner or next(iter(node.named_children), None)
    return node.named_children if node is not None else []


def _opposite(_: Found, stated: Stated) -> Iterator[list[Edit]]:
    """Yield the edits that make the assertion state the opposite."""
    if stated.turned:
        yield list(stated.turned)


def _canary(found: Found, kind: str, stated: Stated, edits: list[Edit]) -> Canary | None:
    parsed, span = found.parsed, found.span
    line = line_of(stated.node)
    what = "the contrary is asserted" if kind == "outcome" else "another value is expected"
    shown = " ".join(parsed.text(stated.node).split())
    description = f"{what} in {span.name} (line {line}: {shown[:120]})"
    return canary_of(parsed, span.name, kind, edits, description, line)


def _was_red(found: Found, stated: Stated, red: Collection[str]) -> bool:
    """Whether the text of an assertion contains one of these lines, or is part of one."""
    lines = [line.strip() for line in found.parsed.text(stated.node).splitlines()]
    return any(line in red or any(line in one for one in red) for line in lines if len(line) > 3)
