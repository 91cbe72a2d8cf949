"""Make each assertion of a whole Python, JavaScript or TypeScript program fail. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from agentrunner.verification.syntax.assertions import Stated, negated
from agentrunner.verification.syntax.asserts import asserts_of
from agentrunner.verification.syntax.edits import Edit, line_of, replaced
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    field,
    is_comment,
    parse,
    walk,
)
from agentrunner.verification.syntax.programs import KILLS, WITH_TREES
from agentrunner.verification.syntax.script_asserts import REQUIRED, script_asserts
from agentrunner.verification.syntax.test_spans import Found, TestSpan
from agentrunner.verification.syntax.values import another, leaf

_IMPORTED = re.compile(
    r"""import\s+([^;'"]+?)\s+from\s*['"](?!\.)|"""
    r"""(?:const|let|var)\s+([^;=]+?)\s*=\s*require\(\s*['"](?!\.)"""
)
_SAME = re.compile(r"equal$|^is$|^same$", re.I)
_ENDS = re.compile(
    r"\bthrow\b|\braise\b|\bexitCode\s*=\s*[1-9]|\b_?exit\(\s*[1-9]|\bexit\(\s*f?[\"']"
)
_EXITS = re.compile(r"(?:sys\.|os\._|process\.)?exit|quit|SystemExit")
_UNEQUAL = re.compile(r"!==?|^\(?\s*(!|not\b)|\bis not\b")


@dataclass(frozen=True)
class Failing:
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
    root = parsed.root
    span = TestSpan("", (), 0, root.end_byte, 1)
    whole = Found(span, (), root, root, root, True, language)
    found = [*_stated(parsed, whole), *_conditions(parsed), *_exit_codes(parsed)]
    return found or list(_imports(parsed)) or list(_reversed_comparisons(parsed))


def _stated(parsed: Parsed, whole: Found) -> Iterator[Failing]:
    scripts = parsed.language in SCRIPTS
    bound = _packages(parsed) if scripts else set()
    for stated in script_asserts(parsed, whole, bound) if scripts else asserts_of(parsed, whole):
        node = stated.node
        if node.type in ("if_statement", "member_expression"):
            continue
        called = parsed.text(callee) if (callee := field(node, "function")) else "assert"
        kind = re.split(r"[(<]", REQUIRED.sub("assert", called))[0]
        edits = _changed(parsed, stated, called)
        if not edits or kind.startswith("console."):
            continue
        if scripts:
            sure = re.split(r"\W", called)[0] in bound or bool(REQUIRED.match(called))
            kill = _kill_before(parsed, node)
        else:
            sure = called == "assert" or bool(re.search(r"\.assert[A-Z]\w*$", called))
            kill = _kill_before(parsed, node)
        yield Failing(kind, sure, line_of(node), edits, kill)


def _kill_before(parsed: Parsed, node: Node) -> tuple[Edit, ...]:
    kill = KILLS[parsed.language]
    if node.type == "assert_statement":
        return (Edit(node.start_byte, node.start_byte, f"{kill}; "),)
    joint = ", " if parsed.language in SCRIPTS else " or "
    return (
        Edit(node.start_byte, node.start_byte, f"({kill}{joint}"),
        Edit(node.end_byte, node.end_byte, ")"),
    )


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
    edits: tuple[Edit, ...]
    ends: tuple[Edit, ...]
    for node in walk(parsed.root):
        condition, then = field(node, "condition"), field(node, "consequence")
        if node.type != "if_statement" or condition is None or then is None:
            continue
        hit = _ENDS.search(parsed.text(then))
        text = parsed.text(condition)
        if hit is None or "__name__" in text or "require.main" in text:
            continue
        kind = "throw" if hit[0] in ("throw", "raise") else "exit"
        start, kill = condition.start_byte, KILLS[parsed.language]
        if parsed.language == "python":
            edits = (replaced(condition, f"not ({text})"),)
            ends = (
                Edit(start, start, f"{kill} or ("),
                Edit(condition.end_byte, condition.end_byte, ")"),
            )
        else:
            edits = (negated(parsed, condition),)
            ends = (Edit(start + 1, start + 1, f"{kill}, "),)
        sure = bool(_UNEQUAL.search(text)) and not re.search(r"\+\+|--", text)
        yield Failing(f"if … {kind}", sure, line_of(node), edits, ends)


def _exit_codes(parsed: Parsed) -> Iterator[Failing]:
    """Yield conditions used as exit code: `sys.exit(took > 0.5)`, `process.exit(ok ? 0 : 1)`."""
    edits: tuple[Edit, ...]
    for node in walk(parsed.root):
        given = field(node, "arguments")
        called = field(node, "function")
        if node.type not in ("call", "call_expression") or given is None or called is None:
            continue
        values = given.named_children
        if not _EXITS.fullmatch(parsed.text(called)) or len(values) != 1:
            continue
        code, kill = values[0], KILLS[parsed.language]
        start, end = code.start_byte, code.end_byte
        if code.type in ("comparison_operator", "not_operator", "boolean_operator"):
            edits = (Edit(start, start, "not ("), Edit(end, end, ")"))
            kills = (Edit(start, start, f"{kill} or ("), Edit(end, end, ")"))
        elif code.type == "ternary_expression" and (asked := field(code, "condition")) is not None:
            edits = (negated(parsed, asked),)
            kills = (Edit(start, start, f"({kill}, "), Edit(end, end, ")"))
        elif code.type == "conditional_expression" and len(code.named_children) == 3:
            asked = code.named_children[1]
            edits = (replaced(asked, f"not ({parsed.text(asked)})"),)
            kills = (Edit(start, start, f"{kill} or ("), Edit(end, end, ")"))
        else:
            continue
        yield Failing("exit", True, line_of(node), edits, kills)


def _imports(parsed: Parsed) -> Iterator[Failing]:
    """Yield the imports of a program with nothing else: it asserts that what they name exists."""
    found = []
    for node in filter(lambda one: not is_comment(one), parsed.root.named_children):
        name = _imported_name(parsed, node)
        if name is None:
            return
        at = name.end_byte - (name.type == "string")
        kill = Edit(node.start_byte, node.start_byte, f"{KILLS[parsed.language]}; ")
        edits = (Edit(at, at, "_agentrunner"),)
        found.append(Failing("import", True, line_of(node), edits, (kill,)))
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
    function, given = field(call, "function"), field(call, "arguments")
    if function is None or given is None or parsed.text(function) != "require":
        return None
    return (
        given.named_children[0]
        if [one.type for one in given.named_children] == ["string"]
        else None
    )


def _reversed_comparisons(parsed: Parsed) -> Iterator[Failing]:
    """Yield every comparison reversed, for a program without any assertion known here."""
    other = {"===": "!==", "!==": "===", "==": "!=", "!=": "=="}
    for node in walk(parsed.root):
        if node.type in other and not node.is_named and "__main__" not in _around(parsed, node):
            yield Failing(
                "comparison", False, line_of(node), (replaced(node, other[node.type]),), ()
            )


def _around(parsed: Parsed, node: Node) -> str:
    return parsed.text(node.parent) if node.parent is not None else ""
