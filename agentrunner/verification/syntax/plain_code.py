"""Whether code reaches nothing but what it is given, its own file and harmless functions. Pure.

What code reaches it reaches by a name that it does not bind itself, by one of the few members that
hand out what a program is made of, or by one of a few statements.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field

from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.calls import BINDING_FIELDS
from agentrunner.verification.syntax.languages import SCRIPTS, Parsed, arguments_of, field, walk
from agentrunner.verification.syntax.name_scopes import is_member
from agentrunner.verification.syntax.values import LITERALS, NUMBERS, STRINGS

_SHUT = lazy_regex(
    r".*import.*|use_declaration|(?:global|exec)_statement|unsafe_block|macro_definition"
    r"|meta_property|method_reference|class_literal"
)
"""Statements by which code reaches names without saying them, or changes what they stand for."""
_BACK_DOOR = lazy_regex(
    r"__(?!init__|name__|doc__|all__|version__)\w+__|(?:gi|cr|ag|tb|f|co)_[a-z]+"
    r"|constructor|prototype|callee|caller|getClass"
)
"""Members that hand out the names a program knows, or what all objects of a kind share."""
_UNNAMED = lazy_regex(
    r"__(?!init__)\w+__|valueOf|toString|toJSON|equals|hashCode|compareTo|String|init"
    r"|eq|ne|cmp|partial_cmp|fmt"
)
"""Functions that are called without being named, as two things are compared or printed."""
_UNNAMED_IN_SCRIPTS = lazy_regex(f"{_UNNAMED.pattern}|join|then|toISOString")
"""Members of objects in JavaScript that are called so."""
_NAMES = frozenset(
    "identifier crate super shorthand_property_identifier shorthand_property_identifier_pattern"
    .split()
)  # fmt: skip
_TYPES = lazy_regex(r"type_(?:annotation|arguments|parameters|alias_decl.*)|interface_declaration")
"""Nodes of TypeScript below which nothing is executed."""
_IN_TYPES = lazy_regex(
    r"\w*type|type_parameter|identifier|attribute|subscript|string\w*|none|ellipsis|list|tuple"
    r"|binary_operator|integer"
)
"""What an annotation of Python consists of where it only names types."""
_BINDERS = {
    **BINDING_FIELDS,
    **dict.fromkeys("named_expression var_spec const_spec instanceof_expression".split(), "name"),
    **dict.fromkeys("function_definition function_declaration function_item".split(), "name"),
    **dict.fromkeys("class_definition resource catch_formal_parameter".split(), "name"),
    **dict.fromkeys("let_condition for_expression match_arm".split(), "pattern"),
    **dict.fromkeys("arrow_function catch_clause".split(), "parameter"),
    "lambda_expression": "parameters",
    "type_switch_statement": "alias",
}
_PARAMETERS = lazy_regex(r"\w*parameters|parameter_list")
_READ = ("value", "right", "type", "return_type", "condition", "result")
"""Fields by which what binds names reads some."""
_WRITES = lazy_regex(
    r"(?:augmented_)?assignment(?:_\w+)?|compound_assignment_expr|(?:update|inc|dec|delete)_\w+"
    r"|named_expression|for_statement|for_in_(?:statement|clause)|range_clause"
)
_ACCESS = (
    "attribute", "member_expression", "selector_expression", "field_expression", "field_access",
    "scoped_identifier",
)  # fmt: skip
_KEYS = ("property_identifier", "shorthand_property_identifier_pattern")
_NEW = ("object", "array", "new_expression")
_DATA = LITERALS | {"object", "array"}
"""Values in JavaScript that are no functions."""
_MEMBERS = {
    "pair": "key", "method_definition": "name", "field_definition": "property",
    "public_field_definition": "name",
}  # fmt: skip
_OWN_FILE = lazy_regex(r"(?:require\()?[\"'`]?\.")
"""How the origin of a name begins that another file of the project defines."""
_ITEMS = ("subscript", "subscript_expression", "index_expression", "array_access")
_CALLED = {
    **dict.fromkeys("call call_expression".split(), "function"),
    "new_expression": "constructor",
    "object_creation_expression": "type",
    "macro_invocation": "macro",
}
_PYTHON_SHUT = frozenset(
    "breakpoint compile delattr eval exec getattr globals help locals open setattr type vars"
    .split()
)  # fmt: skip
_SCRIPT = frozenset(
    "Array BigInt Boolean Date Error Infinity Intl JSON Map Math NaN Number Promise RangeError"
    " RegExp Set String SyntaxError TypeError URIError URL decodeURI decodeURIComponent encodeURI"
    " encodeURIComponent isFinite isNaN parseFloat parseInt structuredClone undefined console"
    " Object.entries Object.freeze Object.is Object.keys Object.values".split()
)
_SCRIPT_SHUT = frozenset(
    "Buffer Function Object Proxy Reflect WebAssembly arguments document eval exports frames global"
    " globalThis module parent process queueMicrotask require self setImmediate setInterval"
    " setTimeout top window".split()
)
_JAVA = frozenset(
    "Arrays Boolean Character Collectors Double IllegalArgumentException IllegalStateException"
    " Integer List Long Map Math Objects Optional Override RuntimeException Set Stream String"
    " StringBuilder UnsupportedOperationException".split()
)
_HARMLESS = {
    "python": {one for one in dir(builtins) if one[0] != "_"} - _PYTHON_SHUT | {"__name__"},
    **dict.fromkeys(SCRIPTS, _SCRIPT),
    "java": _JAVA,
}
"""What languages bring that reaches no names; in Go and Rust no function can be exchanged."""
_KNOWN = {
    "python": frozenset(dir(builtins)), **dict.fromkeys(SCRIPTS, _SCRIPT | _SCRIPT_SHUT)
}  # fmt: skip
"""Names that stand for something else than a variable where they are no variable of the code."""


@dataclass
class PlainCode:
    """Tells what code of one file is plain."""

    parsed: Parsed
    own: Collection[str]
    """Names that the file defines."""
    felt: Collection[str]
    """All words of what has to stay as it is."""
    kept: Collection[str]
    """Names of the file that may be called, and neither read nor given another value."""
    fixed: Collection[str]
    """Names of the file that stand for a number or a text, and may be read."""
    imported: Mapping[str, str]
    imported_before: Mapping[str, str]
    used: Mapping[tuple[str, bool], Collection[Sequence[str]]]
    """What the file used before, whether it was called, and with what: `os.path.join`."""
    _bound: set[str] = dataclass_field(default_factory=set)
    _values: dict[str, list[Node | None]] = dataclass_field(default_factory=dict)
    """What the code gives to the names that it binds, as far as it stands there."""

    def __post_init__(self) -> None:
        self._is_script = self.parsed.language in SCRIPTS
        self._is_dynamic = self._is_script or self.parsed.language == "python"
        self._harmless = _HARMLESS.get(self.parsed.language)
        self._known = {*self.own, *self.imported, *_KNOWN.get(self.parsed.language, ())}

    def is_plain(self, unit: Node, body: Node | None = None) -> bool:
        """Whether a definition, or all of it but its body, reaches nothing else."""
        apart = {one.id for one in walk(unit) if one == body or _is_type(self.parsed, one)}
        nodes = [
            one for one in walk(unit, lambda one: one.id not in apart)
            if one.is_named and one.id not in apart
        ]  # fmt: skip
        self._bound, self._values = set(), {}
        for node in nodes:
            self._note(node)
        return all(self._may_stand(one) for one in nodes)

    def _note(self, node: Node) -> None:
        targets = node.children_by_field_name(_BINDERS.get(node.type, "-"))
        if _PARAMETERS.fullmatch(node.type):
            targets = [node]
        names = {self.parsed.text(one) for target in targets for one in _bound_at(target)}
        self._bound |= names
        value = field(node, "value") if node.type == "variable_declarator" else None
        if "assignment_expression" in node.type:
            names, value = {self.parsed.text(node.children[0])}, field(node, "right")
        for name in names:
            self._values.setdefault(name, []).append(value)

    def _may_stand(self, node: Node) -> bool:
        kind, text, above = node.type, self.parsed.text(node), node.parent
        if _SHUT.fullmatch(kind):
            return False
        if self._is_script and not self._may_stand_in_script(node):
            return False
        if self._is_dynamic and kind in STRINGS and self._names_something(node):
            return False
        if not all(map(self._may_write, written(node))):
            return False
        if field(node, "body") and _UNNAMED.fullmatch(self.parsed.text(node, "name")):
            return False
        if is_member(node) or kind in _KEYS:
            return not _BACK_DOOR.fullmatch(text) or field(above, "body") is not None
        is_name = kind in _NAMES or (kind == "type_identifier" and chain_of(self.parsed, node)[1])
        return not is_name or self._is_local(text) or self._resolves(node, text)

    def _is_local(self, name: str) -> bool:
        # A variable that has the name of something else may stand for that elsewhere in the code.
        return name in self._bound and name not in self._known

    def _resolves(self, node: Node, name: str) -> bool:
        """Whether a name that is not the code's own stands for something that reaches no names."""
        whole, called = chain_of(self.parsed, node)
        if name in self.kept:
            before = node.prev_sibling  # by its address it could be given another value
            is_read = not called and (before is None or before.type != "&")
            return (called and name == whole) or (is_read and name in self.fixed)
        if name in self.imported or name in ("crate", "super"):
            origin = self.imported.get(name, "")
            if origin and self._is_dynamic and not _OWN_FILE.match(origin):
                return self._may_reach_out(node, whole, called)
            if (whole, called) in self.used:
                return True
            is_value = " " in origin and self._is_handed(node)
            return (called and name == whole) or is_value
        if name in self.own or self._harmless is None:
            return True
        if self.parsed.language == "java" and not called:
            return True
        is_known = name in self._harmless or whole in self._harmless
        # In JavaScript what all objects of a kind share could be changed by another name.
        return is_known and (
            not self._is_script or called or not name[0].isupper() or self._is_handed(node)
        )

    def _may_reach_out(self, node: Node, whole: str, called: bool) -> bool:
        """Whether a name from outside of the project is used as before, or is harmless by its kind.

        A function like `attrgetter` reaches everything by a text, or by a function that it is
        given. Classes make something new of any value, and capital letters mark a constant.
        """
        name, is_class = self.parsed.text(node), whole.rpartition(".")[2][0].isupper()
        origin = self.imported[name]
        if self.imported_before.get(name) != origin:
            return not called and origin.rpartition(" ")[2].isupper() and self._is_handed(node)
        if called and any(map(self._is_own, _given(node))):
            return False
        if is_class and called:
            return name == whole or (whole, called) in self.used
        if is_class and name == whole and self._is_handed(node):
            return True
        return fixed_texts(self.parsed, node) in self.used.get((whole, called), ())

    def _is_own(self, value: Node) -> bool:
        """Whether a value has a function or class of the file in it."""
        return any(
            one.type in _NAMES and not is_member(one) and not chain_of(self.parsed, one)[1]
            and (name := self.parsed.text(one)) in self.own and name not in self.fixed
            for one in walk(value)
        )  # fmt: skip

    def _names_something(self, text: Node) -> bool:
        """Whether a text is the name of what is kept, or has a member in it that shows names."""
        content = re.sub(r"^\w*[\"'`]+|[\"'`]+$", "", self.parsed.text(text))
        words = re.findall(r"\w+", content)
        is_docstring = text.parent is not None and text.parent.type == "expression_statement"
        return not (is_docstring or re.search(r"\s", content)) and (
            any(map(_BACK_DOOR.fullmatch, words)) or any(one in self.kept for one in words[-1:])
        )

    def _is_handed(self, node: Node) -> bool:
        """Whether what a name stands for only goes to a function that is not the file's own."""
        above = node.parent
        call = above.parent if above is not None else None
        if above is None or call is None:
            return False
        if self.parsed.text(above, "operator") == "instanceof":
            return True
        called = field(call, _CALLED.get(call.type, "-"))
        if called is None or "argument" not in above.type:
            return above.type == "extends_clause" or above.type == "class_heritage"
        last = re.findall(r"\w+", self.parsed.text(called))[-1:]
        return not any(one in self.own or one in self._bound for one in last)

    def _may_write(self, target: Node) -> bool:
        """Whether what is given another value belongs to the code itself, or to the file."""
        root, member = target, None
        while root.type in (*_ACCESS, *_ITEMS, "parenthesized_expression"):
            if member is None and root.type in _ACCESS:
                member = self.parsed.text(root.named_children[-1])
            root = root.named_children[0]
        unnamed = _UNNAMED_IN_SCRIPTS if self._is_script else _UNNAMED
        shared = _BACK_DOOR.fullmatch(member or "") or unnamed.fullmatch(member or "")
        if shared or member in self.felt:
            return False
        if self._is_script and target.type == "subscript_expression":
            at = target.parent  # the item may be a member that is called as two are compared
            if not (self._is_data(at) or self._is_number(field(target, "index"), set())):
                return False
        name = self.parsed.text(root)
        if root.type in ("this", "self") or self._is_local(name):
            return True
        if self.parsed.language == "python" and root == target:  # a variable of the function
            return name not in self.kept and not _BACK_DOOR.fullmatch(name)
        return name in self.own and name not in self.kept and name not in self.imported

    # -- JavaScript, where an item may be any member ---------------------------------------------

    def _may_stand_in_script(self, node: Node) -> bool:
        if node.type == "with_statement":
            return False
        is_short = node.type == "shorthand_property_identifier"
        member = node if is_short else field(node, _MEMBERS.get(node.type, "-"))
        if member is not None:
            name = self.parsed.text(member).strip("\"'")
            is_called = "\\" in name or _UNNAMED_IN_SCRIPTS.fullmatch(name)
            value = field(node, "value")
            if member.type == "computed_property_name" or (is_called and not self._is_data(value)):
                return False
        if node.type in ("this", "super"):
            at: Node | None = node
            while at is not None and at.type != "class_body":
                at = at.parent
            return at is not None  # elsewhere it may be what all files share
        if node.type == "pair_pattern":
            key = field(node, "key")
            return key is not None and key.type == "property_identifier"
        index, owner = field(node, "index"), field(node, "object")
        if node.type != "subscript_expression" or index is None or owner is None:
            return True
        if index.type == "string":
            return "\\" not in self.parsed.text(index)
        values = self._values.get(self.parsed.text(owner), [None])
        is_new = all(one is not None and one.type in _NEW for one in values)
        return is_new or self._is_number(index, set())

    def _is_data(self, node: Node | None) -> bool:
        """Whether a value, or what an assignment gives, is no function."""
        value = field(node, "right") if node and node.type == "assignment_expression" else node
        is_sum = re.match(r"[-+*/%!<>]|==", self.parsed.text(value, "operator"))
        return value is not None and (bool(is_sum) or value.type in _DATA)

    def _is_number(self, node: Node | None, seen: set[str]) -> bool:
        """Whether a value is a number, or a variable that is only ever given some."""
        if node is None or node.type in NUMBERS:
            return node is not None
        sides = [one for one in (field(node, "left"), field(node, "right")) if one is not None]
        if node.type == "binary_expression":
            operator = self.parsed.text(node, "operator")
            return operator in ("-", "*", "/", "%") or (
                operator == "+" and all(self._is_number(one, seen) for one in sides)
            )
        name = self.parsed.text(node)
        if node.type != "identifier" or name in seen:
            return name in seen
        values = self._values.get(name, [None])
        return all(self._is_number(one, seen | {name}) for one in values)


def chain_of(parsed: Parsed, name: Node) -> tuple[str, bool]:
    """Return what a name is the first part of, `os.path.join`, and whether that is called."""
    at = _chain(name)
    above = at.parent
    whole = re.sub(r"\s", "", parsed.text(at)).replace("::", ".")
    if above is not None and above.type == "generic_type":
        at, above = above, above.parent
    if above is None:
        return whole, False
    if above.type == "method_invocation" and "argument" not in at.type:
        member = field(above, "name")
        is_owner = member is not None and field(above, "object") == at
        return f"{whole}.{parsed.text(member)}" if member and is_owner else whole, True
    return whole, above.type == "decorator" or field(above, _CALLED.get(above.type, "-")) == at


def _chain(name: Node) -> Node:
    at = name
    while (above := at.parent) is not None and above.type in _ACCESS:
        if above.named_children[0] != at:
            break
        at = above
    return at


def _given(name: Node) -> list[Node]:
    """Return what the chain that a name is the first part of is called with, or an item of it."""
    at = _chain(name)
    above = at.parent
    if above is None or above.type not in (*_CALLED, *_ITEMS) or above.named_children[0] != at:
        return []
    return arguments_of(above) or above.named_children[1:]


def fixed_texts(parsed: Parsed, name: Node) -> tuple[str, ...]:
    """Return each text that is given to what a name is the first part of, and "" for all else."""
    return tuple(
        parsed.text(one) if (field(one, "value") or one).type in STRINGS else ""
        for one in _given(name)
    )


def uses_in(parsed: Parsed) -> dict[tuple[str, bool], set[tuple[str, ...]]]:
    """Return what the names of a file stand at the beginning of, whether that is called, and the
    fixed texts that it is given."""
    found: dict[tuple[str, bool], set[tuple[str, ...]]] = {}
    for one in walk(
        parsed.root, lambda one: not (_SHUT.fullmatch(one.type) or _is_type(parsed, one))
    ):
        if one.type in (*_NAMES, "type_identifier") and not is_member(one):
            found.setdefault(chain_of(parsed, one), set()).add(fixed_texts(parsed, one))
    return found


def _is_type(parsed: Parsed, node: Node) -> bool:
    """Whether nothing below a node is executed."""
    if parsed.language == "python":
        return node.type == "type" and all(
            _IN_TYPES.fullmatch(one.type) for one in walk(node) if one.is_named
        )
    return _TYPES.fullmatch(node.type) is not None


def _bound_at(target: Node) -> Iterator[Node]:
    """Yield the names that a variable, a pattern or parameters bind."""
    for one in walk(target, _is_bound):
        if one.type in _NAMES and (one == target or _is_bound(one)):
            yield one


def _is_bound(node: Node) -> bool:
    above = node.parent
    if node.type in (*_ACCESS, *_ITEMS):
        return False
    return (above is not None and above.type == "pair_pattern") or not any(
        field(above, one) == node for one in _READ
    )


def written(node: Node) -> Iterator[Node]:
    """Yield what a statement gives another value."""
    if not _WRITES.fullmatch(node.type):
        return
    found = field(node, "left") or field(node, "argument") or field(node, "name")
    if found is None and node.type.startswith(("update", "inc", "dec", "delete")):
        found = node.named_children[0]
    todo = [found] if found is not None else []
    while todo:
        one = todo.pop()
        if one.type in (*_NAMES, *_ACCESS, *_ITEMS) or not one.named_children:
            yield one
        else:
            todo += [
                inner
                for inner in one.named_children
                if inner.type in (*_ACCESS, *_ITEMS) or _is_bound(inner)
            ]
