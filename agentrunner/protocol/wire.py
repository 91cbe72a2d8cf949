"""The common base of all messages: text types, the few coercions, warnings.

Models answer loosely, so unknown fields are dropped with a warning; types are never guessed. The
only coercions are int to text where text is expected and "true"/"false" to bool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, get_args

from msgspec import Struct, field
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from agentrunner.text.cut import cut
from agentrunner.text.lazy_regex import lazy_regex

MAX_ID = 128
MAX_LINE = 1_000
MAX_TEXT = 20_000
MAX_PROMPT = 100_000
MAX_ITEMS = 200
MAX_WARNINGS = 50
MAX_PATH = 200

_DOTS_ONLY = lazy_regex(r"(?:[A-Za-z]{1,16}-)?[.…\s]+")
_SLOT_JA = lazy_regex(r"ここに.{0,80}(?:…|\.\.\.|。。。)")


@dataclass(frozen=True)
class ReplyWarning:
    """An oddity in a reply that was accepted nevertheless; `path` as in ProtocolError."""

    code: str
    """`unknown_field`, `outside_payload`, `id_assigned`, `default_used`, `ignored_field`,
    `replaced_characters`, `taken`."""
    path: str
    message: str


class Warnings(Struct):
    """Collects warnings while a reply is parsed, at most MAX_WARNINGS."""

    items: list[ReplyWarning] = field(default_factory=list)

    def add(self, code: str, path: str, message: str) -> None:
        """Add a warning; those beyond the limit are dropped."""
        if len(self.items) < MAX_WARNINGS:
            self.items.append(ReplyWarning(code, path[:MAX_PATH], message))


def fault(code: str, at: str, message: str) -> PydanticCustomError:
    """Return an error for a validator to raise: a ProtocolError code, a path below the model."""
    # pydantic would take braces in the message for its own placeholders
    return PydanticCustomError(code, "{text}", {"text": message, "at": at})


class Wire(BaseModel):
    """A part of a message. `tidy` has already removed unknown keys from its values."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    keeps_null: ClassVar[bool] = False
    """Whether a given null differs from an omitted key (`model_fields_set` tells them apart)."""

    @classmethod
    def reshape(cls, data: dict[str, Any], path: str, warnings: Warnings) -> dict[str, Any]:
        """Convert other shapes that the specification allows; `path` ends with a dot or is ''."""
        return data


def tidy(
    model: type[Wire], data: Mapping[str, Any], path: str, warnings: Warnings
) -> dict[str, Any]:
    """Return the fields of `model` in `data`, at all depths: drop nulls, warn of unknown keys."""
    kept: dict[str, Any] = {}
    for key, value in model.reshape(dict(data), path, warnings).items():
        known = model.model_fields.get(key)
        if known is None:
            warnings.add("unknown_field", path + key, f"{shown(key)} is not a field here; ignored")
        elif value is not None or model.keeps_null:
            kept[key] = _tidy_value(_wire_in(known.annotation), value, path + key, warnings)
    return kept


def _tidy_value(model: type[Wire] | None, value: Any, path: str, warnings: Warnings) -> Any:
    if model is None:
        return value
    if isinstance(value, dict):
        return tidy(model, value, path + ".", warnings)
    if isinstance(value, list):
        return [
            _tidy_value(model, item, f"{path}.{number}", warnings)
            for number, item in enumerate(value)
        ]
    return value


def _wire_in(annotation: Any) -> type[Wire] | None:
    """Return the message part that a field of this type holds: `X`, `X | None`, `list[X]`."""
    if isinstance(annotation, type) and issubclass(annotation, Wire):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _wire_in(arg))), None)


def shown(value: object, limit: int = 60) -> str:
    """Return a value as error messages quote it: one line, no control characters, cut."""
    return cut(repr(value), limit)


def is_placeholder(text: str) -> bool:
    """Whether a text has no content: blank, only dots, or a slot copied from a prompt's example."""
    stripped = text.strip()
    return bool(not stripped or _DOTS_ONLY.fullmatch(stripped) or _SLOT_JA.fullmatch(stripped))


def is_blank(value: object) -> bool:
    """Whether a value is a text of nothing but white space."""
    return isinstance(value, str) and not value.strip()


def is_unset(value: object) -> bool:
    """Whether a value is null, or a text of nothing but white space."""
    return value is None or is_blank(value)


def _int_to_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _text_to_bool(value: Any) -> Any:
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _says_something(value: str) -> str:
    if is_placeholder(value):
        raise fault("placeholder", "", f"{shown(value)} says nothing; write the real content")
    return value


_COERCED = BeforeValidator(_int_to_text)
_SAYING = AfterValidator(_says_something)

Remark = Annotated[str, Field(max_length=MAX_TEXT), _COERCED]
"""Text that nothing depends on; the other types must have content."""
Text = Annotated[str, Field(max_length=MAX_TEXT), _COERCED, _SAYING]
Prompt = Annotated[str, Field(max_length=MAX_PROMPT), _COERCED, _SAYING]
Line = Annotated[str, Field(max_length=MAX_LINE), _COERCED, _SAYING]
Id = Annotated[str, Field(max_length=MAX_ID), _COERCED, _SAYING]
Flag = Annotated[bool, BeforeValidator(_text_to_bool)]
