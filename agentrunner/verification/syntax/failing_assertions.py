"""Make each assertion of a whole Python, JavaScript or TypeScript program fail. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct
from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.assertions import Stated, negated
from agentrunner.verification.syntax.asserts import asserts_of
from agentrunner.verification.syntax.edits import Edit, line_of, replaced
from agentrunner.verification.syntax.languages import (
    KILLS,
    SCRIPTS,
    WITH_TREES,
    Parsed,
    arguments_of,
    condition_of,
    field,
    parse,
    parts_of,
    walk,
    without_brackets,
)
from agentrunner.verification.syntax.script_asserts import REQUIRED, script_asserts
from agentrunner.verification.syntax.test_spans import Found
from agentrunner.verification.syntax.values import another, leaf

_IMPORTED = lazy_regex(
    r"""import\s+([^;'"]+?)\s+from\s*['"](?!\.)|"""
    r"""(?:const|let|var)\s+([^;=]+?)\s*=\s*require\(\s*['"](?!\.)"""
)
_SAME = lazy_regex(r"equal$|^is$|^same$", re.I)
_ENDS = lazy_regex(
    r"\bthrow\b|\braise\b|\bexitCode\s*=\s*[1-9]|\b_?exit\(\s*[1-9]|\bexit\(\s*f?[\"']"
)
_EXITS = lazy_regex(r"(?:sys\.|os\._|process\.)?exit|quit|SystemExit")
_UNEQUAL = lazy_regex(r"!==?|^\(?\s*(!|not\b)|\bis not\b")


class Failing(Struct, frozen=True):
    """An assertion, and the edits that make it fail the way it fails by itself."""

    kind: str
    """What fails: the called function, or the statement."""
    sure: bool
    """Whether a program that reaches it has to end red."""
    line: int
    edits: tuple[Edit, ...]
    kill: tuple[Edit, ...]
    """Edits that kill the process there instead."""


def failing_in_tree(source: bytes, language: str) -> list[Failing]:
    """Return the assertions of a program; [] if it cannot be parsed or is in another language."""
    parsed = parse(source, language) if language in WITH_TREES else None
    if parsed is None or parsed.root.has_error:
        return []
    found = [*_stated(parsed), *_conditions(parsed), *_exit_codes(parsed)]
    return found or list(_imports(parsed)) or list(_reversed_comparisons(parsed))


def _stated(parsed: Parsed) -> Iterator[Failing]:
    scripts, whole = parsed.language in SCRIPTS, Found.whole_file(parsed)
    bound = _packages(parsed) if scripts else set()
    for stated in script_asserts(whole, bound) if scripts else asserts_of(whole):
        node = stated.node
        if node.type in ("if_statement", "member_expression"):
            continue
        called = parsed.text(node, "function") or "assert"
        kind = re.split(r"[(<]", REQUIRED.sub("assert", called))[0]
        edits = _changed(parsed, stated, called)
        if not edits or kind.startswith("console."):
            continue
        if scripts:
            sure = re.split(r"\W", called)[0] in bound or bool(REQUIRED.match(called))
        else:
            sure = called == "assert" or bool(re.search(r"\.assert[A-Z]\w*$", called))
        yield Failing(kind, sure, line_of(node), edits, _kill_before(parsed, node))


def _kill_before(parsed: Parsed, node: Node) -> tuple[Edit, ...]:
    """Return edits that end the process before a statement or an expression is reached."""
    kill, start, end = KILLS[parsed.language], node.start_byte, node.end_byte
    if node.type.endswith("_statement"):
        return (Edit(start, start, f"{kill}; "),)
    before, behind = (f"({kill}, ", ")") if parsed.language in SCRIPTS else (f"({kill} or (", "))")
    return Edit(start, start, before), Edit(end, end, behind)


def _reversed(parsed: Parsed, condition: Node) -> tuple[Edit, ...]:
    if parsed.language == "python":
        return (replaced(condition, f"not ({parsed.text(condition)})"),)
    return (negated(parsed, condition),)


def _changed(parsed: Parsed, stated: Stated, called: str) -> tuple[Edit, ...]:
    """Return edits that pass a value the function does not accept; else those of its opposite.

    Values come first: a function that accepts everything as equal is not caught by the opposite.
    """
    for wanted in stated.expected:
        literal = leaf(wanted)
        if literal is not None and (edit := another(parsed, literal)) is not None:
            return (edit,)
    name = field(stated.node, "function")
    inner = bool(stated.turned) and not any(
        name is not None and name.start_byte <= edit.start < name.end_byte for edit in stated.turned
    )
    if inner:
        return stated.turned
    if stated.expected and _SAME.search(called.split(".")[-1]):
        text = parsed.text(stated.expected[0])
        return (replaced(stated.expected[0], f'["agentrunner", {text}]'),)
    return stated.turned


def _packages(parsed: Parsed) -> set[str]:
    """Return the names that a script imports from modules that are not its own files."""
    text = parsed.source.decode("utf-8", "replace")
    names: set[str] = set()
    for hit in _IMPORTED.finditer(text):
        names |= set(re.findall(r"[\w$]+", hit[1] or hit[2])) - {"as", "type"}
    return names


def _conditions(parsed: Parsed) -> Iterator[Failing]:
    """Yield `if (got !== want) process.exit(1)`, and the same with an exception."""
    for node in walk(parsed.root):
        condition, then = field(node, "condition"), field(node, "consequence")
        if node.type != "if_statement" or condition is None or then is None:
            continue
        hit = _ENDS.search(parsed.text(then))
        text = parsed.text(condition)
        if hit is None or "__name__" in text or "require.main" in text:
            continue
        kind = "throw" if hit[0] in ("throw", "raise") else "exit"
        sure = bool(_UNEQUAL.search(text)) and not re.search(r"\+\+|--", text)
        # JavaScript's brackets around a condition stay where they are.
        kill = _kill_before(parsed, without_brackets(condition))
        yield Failing(f"if … {kind}", sure, line_of(node), _reversed(parsed, condition), kill)


def _exit_codes(parsed: Parsed) -> Iterator[Failing]:
    """Yield conditions used as exit code: `sys.exit(took > 0.5)`, `process.exit(ok ? 0 : 1)`."""
    for node in walk(parsed.root):
        called, values = parsed.text(node, "function"), arguments_of(node)
        if node.type not in ("call", "call_expression") or len(values) != 1:
            continue
        if not _EXITS.fullmatch(called):
            continue
        code, asked = values[0], None
        if code.type in ("comparison_operator", "not_operator", "boolean_operator"):
            asked = code
        elif code.type in ("ternary_expression", "conditional_expression"):
            asked = condition_of(code)
        if asked is not None:
            kill = _kill_before(parsed, code)
            yield Failing("exit", True, line_of(node), _reversed(parsed, asked), kill)


def _imports(parsed: Parsed) -> Iterator[Failing]:
    """Yield the imports of a program with nothing else: it asserts that what they name exists."""
    found = []
    for node in parts_of(parsed.root):
        name = _imported_name(parsed, node)
        if name is None:
            return
        at = name.end_byte - (name.type == "string")
        edits = (Edit(at, at, "_agentrunner"),)
        found.append(Failing("import", True, line_of(node), edits, _kill_before(parsed, node)))
    yield from found


def _imported_name(parsed: Parsed, statement: Node) -> Node | None:
    """Return the last name that an import asks for; None for any other statement."""
    if parsed.language == "python":
        if statement.type not in ("import_statement", "import_from_statement"):
            return None
        last = field(statement.named_children[-1], "name") or statement.named_children[-1]
        return last if last.type == "dotted_name" else None
    if statement.type == "import_statement":
        return field(statement, "source")
    call = statement.named_children[0] if statement.type == "expression_statement" else None
    if call is None or parsed.text(call, "function") != "require":
        return None
    given = arguments_of(call)
    return given[0] if [one.type for one in given] == ["string"] else None


def _reversed_comparisons(parsed: Parsed) -> Iterator[Failing]:
    """Yield every comparison reversed, for a program without any assertion known here."""
    other = {"===": "!==", "!==": "===", "==": "!=", "!=": "=="}
    for node in walk(parsed.root):
        if node.type in other and not node.is_named and "__main__" not in parsed.text(node.parent):
            yield Failing(
                "comparison", False, line_of(node), (replaced(node, other[node.type]),), ()
            )
