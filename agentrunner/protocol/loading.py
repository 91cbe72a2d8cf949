"""Load JSON and YAML text as plain values, with limits enforced before anything is built.

Values are None, bool, int, float (JSON only), str, list, dict with text keys. YAML is read from its
events rather than by a loader: that excludes merge keys, tags, aliases, types that a text becomes
by accident, and recursion that a nested reply could exhaust.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

import yaml

from agentrunner.errors import ProtocolError
from agentrunner.errors.replies import (
    ReplyDuplicateKey,
    ReplyForbiddenYaml,
    ReplyIncomplete,
    ReplySyntax,
    ReplyTooLarge,
)
from agentrunner.protocol.wire import shown
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.yaml_events import LOADER, Fault, Path, YamlReader

MAX_DOCUMENT_BYTES = 256 * 1024
MAX_DEPTH = 32
MAX_NODES = 20_000

_FAULTS: Mapping[Fault, str] = {
    "documents": "more than one document",
    "anchor": "an anchor (&name)",
    "tag": "a tag (!name)",
    "key": "a key that is not text",
}

_INT = lazy_regex(r"0|-?[1-9][0-9]{0,17}")
_CUT_AT = lazy_regex(r"[\\\w.+-]*")
# Characters that YAML forbids; PyYAML's two scanners disagree about the rest.
_UNPRINTABLE = lazy_regex("[^\t\n\r -~\x85\xa0-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_SURROGATE = lazy_regex("[\ud800-\udfff]")


def load_document(text: str) -> Any:
    """Return the value of `text`: JSON if it starts like it, else constrained YAML.

    Raises ProtocolError: too_large, incomplete, syntax, duplicate_key, forbidden_yaml.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_DOCUMENT_BYTES:
        raise ReplyTooLarge("", f"a message has at most {MAX_DOCUMENT_BYTES} bytes")
    if not text.lstrip().startswith(("{", "[")):
        return load_yaml(text)
    try:
        return load_json(text)
    except ProtocolError as error:
        if not isinstance(error.__cause__, json.JSONDecodeError):
            raise
        # single quotes and trailing commas are valid flow YAML
        try:
            return load_yaml(text)
        except ProtocolError as second:
            if isinstance(second, ReplySyntax | ReplyIncomplete):
                raise error from second
            raise


def load_json(text: str) -> Any:
    """Load strict JSON. Raises ProtocolError, `incomplete` if the text just ends."""
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_finite_number,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise _json_error(text, error) from error
    except RecursionError as error:
        raise _too_deep() from error
    _check_size(value)
    return value


def _json_error(text: str, error: json.JSONDecodeError) -> ProtocolError:
    if error.msg == "Extra data":
        return _syntax(text, "text after the end of the JSON", error.lineno, error.colno)
    if error.msg.startswith("Unterminated string") or _CUT_AT.fullmatch(text, error.pos):
        return ReplyIncomplete("", "the JSON ends before it is closed")
    return _syntax(text, error.msg, error.lineno, error.colno)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise _duplicate(key)
        result[key] = value
    return result


def _integer(digits: str) -> int | str:
    # no field needs a number beyond 64 bits; an id that long stays text
    return int(digits) if _INT.fullmatch(digits) else digits


def _finite_number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ReplySyntax("", f"{shown(digits)} is no finite number")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ReplySyntax("", f"{name} is not JSON")


def _check_size(value: Any) -> None:
    level, nodes = [value], 1
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item)]
        nodes += len(level)
        if nodes > MAX_NODES:
            raise ReplyTooLarge("", f"more than {MAX_NODES} values")
    if any(isinstance(item, dict | list) for item in level):
        raise _too_deep()


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else []


def load_yaml(text: str, base: type[Any] | None = None) -> Any:
    """Load one YAML document without anchors, aliases, tags, directives and merge keys.

    Only true, false, null, `~`, an empty value and decimal integers become other types than text.
    `base` is the PyYAML loader whose scanner is used. Raises ProtocolError.
    """
    if bad := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, bad.start()) + 1
        raise _syntax(text, f"a character YAML does not allow: {shown(bad.group())}", line, 1)
    try:
        return _Reader().read(text, base or LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise _syntax(text, error.problem or error.context or "not YAML", line, column) from error
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise ReplySyntax("", f"not YAML: {shown(str(error))}") from error


class _Reader(YamlReader):
    """Refuses everything beyond constrained YAML."""

    max_depth = MAX_DEPTH
    max_values = MAX_NODES

    def document(self, event: yaml.DocumentStartEvent) -> None:
        if event.version or event.tags:
            raise _forbidden(event, "a directive")

    def scalar(self, event: yaml.ScalarEvent) -> Any:
        text = _storable_text(event)
        return _resolve(text) if event.implicit[0] else text

    def key(self, event: yaml.ScalarEvent) -> str:
        text = _storable_text(event)
        if text == "<<" and event.implicit[0]:
            raise _forbidden(event, "a merge key (<<)")
        return text

    def fault(self, fault: Fault, event: Any, key: str = "", path: Path = ()) -> ProtocolError:
        if fault == "duplicate":
            return _duplicate(key, event)
        if fault == "deep":
            return _too_deep()
        if fault == "many":
            return ReplyTooLarge("", f"more than {MAX_NODES} values")
        alias = fault == "anchor" and isinstance(event, yaml.AliasEvent)
        return _forbidden(event, "an alias (*name)" if alias else _FAULTS[fault])


def _storable_text(event: yaml.ScalarEvent) -> str:
    if _SURROGATE.search(event.value):
        raise ReplySyntax("", "half of a surrogate pair in an escape")
    return str(event.value)


def _resolve(text: str) -> Any:
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    return int(text) if _INT.fullmatch(text) else text


def _where(event: yaml.Event) -> str:
    mark = event.start_mark
    return f" at line {mark.line + 1}" if mark else ""


def _forbidden(event: yaml.Event, what: str) -> ProtocolError:
    return ReplyForbiddenYaml("", f"{what}{_where(event)} is not allowed in a reply")


def _duplicate(key: str, event: yaml.Event | None = None) -> ProtocolError:
    where = _where(event) if event else ""
    return ReplyDuplicateKey("", f"the key {shown(key)} is there twice{where}")


def _too_deep() -> ProtocolError:
    return ReplyTooLarge("", f"nested deeper than {MAX_DEPTH} levels")


def _syntax(text: str, problem: str, line: int, column: int) -> ProtocolError:
    lines = text.split("\n", line)
    source = lines[line - 1].strip() if line <= len(lines) else ""
    message = f"line {line}, column {column}: {problem}"
    return ReplySyntax("", f"{message}: {shown(source, 160)}" if source else message)
