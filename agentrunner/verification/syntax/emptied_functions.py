"""Empty the functions that a change touched: a test that proves the change then turns red."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from msgspec import Struct
from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.edits import (
    Edit,
    applied,
    indent_of,
    newline,
    replaced,
    still_parses,
)
from agentrunner.verification.syntax.functions import (
    Function,
    altered,
    functions_of,
    normal,
    own_nodes,
)
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    field,
    inside,
    parse,
    statements,
    walk,
    with_decorators,
)
from agentrunner.verification.syntax.regions import is_in_test


class Emptied(Struct, frozen=True):
    """A source whose changed functions have empty bodies."""

    source: bytes
    functions: tuple[str, ...]
    """Their names, with the surrounding classes."""


def empty_functions(
    before: bytes | None,
    after: bytes,
    language: str,
    only: str = "",
    *,
    added: bool = False,
    text: bool = False,
) -> Emptied | None:
    """Return `after` with the functions emptied that were added or altered since `before`.

    Signatures, decorators and docstrings stay, and so do new classes and constants. The functions
    return nothing, or the zero value of their type; in Rust those that stood, or whose type has no
    default, panic, and a program's `main` ends it well. Tests in the file stay as they are. With
    `only` it is the functions of this name, without its class, also inside others; with `added`,
    functions of a name that stood before stay. With `text`, what bodies of Python and JavaScript
    said stays as a comment in them: what reads their text runs none of it. None if nothing was
    altered within functions, or if there is no syntax tree.
    """
    old = parse(before, language)
    known = {one.name for one in altered(None, old)} if old is not None else set()
    edits: list[Edit] = []
    names: list[str] = []
    for function in changed_functions(before, after, language, inner=bool(only)):
        if (added and function.name in known) or (only and function.last_name != only):
            continue
        if not only and has_its_old_body(before, function):
            continue
        edit = emptied(function, new=function.name not in known)
        if edit is not None:
            edits.append(_with_text(function.parsed, edit) if text else edit)
            names.append(function.name)
    changed = applied(after, edits)
    if changed == after:
        return None
    return Emptied(changed, tuple(names))


def changed_functions(
    before: bytes | None, after: bytes, language: str, inner: bool = False
) -> list[Function]:
    """The functions that were added or altered since `before`, outside of tests in the file.

    With `inner` those that they contain as well. Nothing if there is no syntax tree.
    """
    parsed, old = parse(after, language), parse(before, language)
    if parsed is None or (before is not None and old is None):
        return []
    found = altered(old, parsed)
    if inner:
        outermost = found
        found = [
            one
            for one in functions_of(parsed)
            if any(inside(outer.node, one.node) for outer in outermost)
        ]
    return [one for one in found if not is_in_test(parsed, one.node)]


def has_its_old_body(before: bytes | None, function: Function) -> bool:
    """Whether a function is altered in its head alone: emptying it would say nothing of that."""
    old = parse(before, function.parsed.language)
    if old is None:
        return False
    body = normal(function.parsed, function.body)
    return any(
        one.name == function.name and normal(old, one.body) == body for one in functions_of(old)
    )


def _with_text(parsed: Parsed, edit: Edit) -> Edit:
    """The edit that empties a function, with what it takes away as a comment."""
    text = parsed.source[edit.start : edit.end].decode("utf-8", "replace")
    if parsed.language == "python":
        indent = parsed.source[: edit.start].rpartition(b"\n")[2].decode("utf-8", "replace")
        if indent.strip():
            return edit
        line = f"{newline(parsed.source)}{indent}"
        comment = "".join(f"# {one.strip()}{line}" for one in text.splitlines())
        return Edit(edit.start, edit.end, comment + edit.text)
    if parsed.language in SCRIPTS and text.startswith("{") and "*/" not in text:
        return Edit(edit.start, edit.end, f"{{ /* {text} */ {edit.text[1:].lstrip()}")
    return edit


def emptied(function: Function, *, new: bool = False) -> Edit | None:
    """The edit that empties a function; None where it is empty.

    A `new` one of Rust gives a default, as a stub does. One that stood panics: to give nothing
    instead of that may be what was asked for.
    """
    is_plain = function.work and function.name != "main"
    if new and function.parsed.language == "rust" and is_plain and _may_give_default(function):
        return done_at_once(function, "return Default::default();")
    return _EMPTIERS[function.parsed.language](function.parsed, function)


def done_at_once(function: Function, statement: str) -> Edit | None:
    """The edit by which a function does nothing but this; None for an empty one of Python."""
    body, work = function.body, function.work
    if function.parsed.language == "python":
        return Edit(work[0].start_byte, work[-1].end_byte, statement) if work else None
    if function.parsed.language in ("go", "rust"):  # what follows still compiles
        inner = [one for one in body.named_children if one.type == "inner_attribute_item"]
        at = inner[-1].end_byte if inner else body.start_byte + 1
        line = "\n" if function.parsed.language == "go" else ""
        return Edit(at, at, f" if true {{ {statement} }}{line}")
    return replaced(body, f"{{ {statement} }}")


def _python(parsed: Parsed, function: Function) -> Edit | None:
    if function.node.type == "assignment":
        return replaced(function.body, "None")
    kept = function.work
    if not kept or [parsed.text(one) for one in kept] in (["..."], ["pass"]):
        return None
    filler = "pass"
    if any(node.type == "yield" for node in own_nodes(function.body)):
        indent = indent_of(parsed, kept[0])
        between = "; " if indent is None else f"{newline(parsed.source)}{indent}"
        filler = f"return{between}yield"
    return done_at_once(function, filler)


def _script(parsed: Parsed, function: Function) -> Edit | None:
    node, body = function.node, function.body
    kind = parsed.text(node, "return_type").lstrip(": ")
    may_give_nothing = kind in ("void", "Promise<void>", "never") or kind.startswith("asserts ")
    typed = parsed.language != "javascript" and not may_give_nothing
    gives = body.type != "statement_block" or any(
        one.type == "return_statement" and one.named_child_count for one in own_nodes(body)
    )
    filler = "{ return undefined as any; }" if typed and (gives or kind) else "{}"
    if parsed.text(node, "name") == "constructor":
        above = [one for one in statements(body) if parsed.text(one).startswith("super(")]
        filler = f"{{ {parsed.text(above[0]).rstrip(';')}; }}" if above else "{}"
    if body.type == "statement_block" and not statements(body):
        return None
    return replaced(body, filler)


def _go(parsed: Parsed, function: Function) -> Edit | None:
    """Insert a return before everything else: what follows still compiles and uses the imports."""
    body, result = function.body, _go_result(function)
    if not statements(body):
        return None
    at, lines = body.start_byte + 1, ["return"]
    if result is not None and result.type != "parameter_list":
        lines = _zeros([parsed.text(result)])
    elif result is not None:
        declared = [one for one in result.named_children if one.type == "parameter_declaration"]
        if not any(field(one, "name") for one in declared):
            kinds = [kind for one in declared if (kind := field(one, "type")) is not None]
            lines = _zeros([parsed.text(kind) for kind in kinds])
    return Edit(at, at, "".join(f"\n\t{line}" for line in lines) + "\n")


def _go_result(function: Function) -> Node | None:
    for node in walk(function.node):
        if node.type == "func_literal" and inside(node, function.body):
            return field(node, "result")
    return field(function.node, "result")


def _zeros(kinds: list[str]) -> list[str]:
    names = [f"agentrunnerZero{index}" for index in range(len(kinds))]
    declared = [f"var {name} {kind}" for name, kind in zip(names, kinds, strict=True)]
    return [*declared, f"return {', '.join(names)}".rstrip()]


HAS_DEFAULT = lazy_regex(
    r"|\(\)|String|bool|char|[iuf](?:8|16|32|64|128|size)|&(?:'\w+\s+)?str"
    r"|(?:Vec|Option|VecDeque|(?:Hash|BTree)(?:Map|Set))<.*>",
    re.DOTALL,
)
"""Types of Rust's own that have a value which says nothing."""


def _rust(_: Parsed, function: Function) -> Edit | None:
    if not function.work:
        return None
    is_program = function.name == "main"  # one that does nothing ends well
    ends = "std::process::exit(0)" if is_program else 'panic!("this function was emptied")'
    return done_at_once(function, f"{ends};")


def _may_give_default(function: Function) -> bool:
    """Whether a function of Rust can give the default of its type. Constant ones cannot."""
    parsed, node = function.parsed, function.node
    head = parsed.source[node.start_byte : function.body.start_byte].split()
    given = parsed.text(node, "return_type")
    return b"const" not in head and HAS_DEFAULT.fullmatch(given) is not None


_ZEROS = {
    "boolean": "false",
    **dict.fromkeys("byte short int long char float double".split(), "0"),
}


def _java(parsed: Parsed, function: Function) -> Edit | None:
    type_ = parsed.text(function.node, "type") or "void"
    if not function.work:
        return None
    if type_ == "void":
        return replaced(function.body, "{}")
    array = field(function.node, "dimensions") is not None
    return done_at_once(function, f"return {'null' if array else _ZEROS.get(type_, 'null')};")


_EMPTIERS: dict[str, Callable[[Parsed, Function], Edit | None]] = {
    "python": _python,
    "go": _go,
    "rust": _rust,
    "java": _java,
    **dict.fromkeys(SCRIPTS, _script),
}


def with_former_functions(
    before: bytes | None, after: bytes, names: Collection[str]
) -> bytes | None:
    """Return `after` with these functions (`Cart.total`) as `before` has them, or without them.

    Of several with one name (a property's) each is as it was where there are as many as before,
    else the last one decides. None where one is nowhere in the text, or stands elsewhere on its
    line than before.
    """
    parsed, old = parse(after, "python"), parse(before or b"", "python")
    if parsed is None or old is None:
        return None
    now, was = _by_name(parsed), _by_name(old)
    edits: list[Edit] = []
    for name in names:
        if name not in now:
            return None
        former: list[Node | None] = [*was.get(name, [])]
        if any(one.start_point[1] != now[name][-1].start_point[1] for one in was.get(name, [])):
            return None
        if len(former) != len(now[name]):
            former = [*[None] * (len(now[name]) - 1), *(former[-1:] or [None])]
        edits += [
            replaced(one, old.text(was_there) if was_there is not None else "pass")
            for one, was_there in zip(now[name], former, strict=True)
        ]
    made = applied(after, edits)
    return made if made != after and still_parses(parsed, made) else None


def without_classes(source: bytes, names: Collection[str]) -> bytes | None:
    """Return a Python file without the classes of these names; None where it lacks one of them."""
    parsed = parse(source, "python")
    if parsed is None:
        return None
    found: dict[str, list[Node]] = {}
    for node in walk(parsed.root):
        name = parsed.text(node, "name")
        if node.type == "class_definition" and name in names:
            found.setdefault(name, []).append(with_decorators(node))
    if not found.keys() >= set(names):
        return None
    return applied(source, [replaced(one, "pass") for nodes in found.values() for one in nodes])


def _by_name(parsed: Parsed) -> dict[str, list[Node]]:
    """The definitions of each function, decorators included."""
    found: dict[str, list[Node]] = {}
    for function in functions_of(parsed):
        found.setdefault(function.name, []).append(with_decorators(function.node))
    return found
