"""The base of models that people write: task files, policies and settings."""

from __future__ import annotations

import ast
import inspect
import re
from textwrap import dedent
from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from agentrunner.text.lazy_regex import lazy_regex

ENV_NAME = lazy_regex(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class ConfigModel(BaseModel):
    """Something a person writes: unknown keys are mistakes, numbers are text in text fields.

    Defaults that are models are made by `model_construct`, for which no validator is built.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        coerce_numbers_to_str=True,
        allow_inf_nan=False,
        defer_build=True,  # built on first use, since no command uses all models
    )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe each field by the text below it in the source.

        The source is read here instead of with `use_attribute_docstrings`, which would parse every
        class at each start.
        """
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in _texts_below_fields(cls).items():
            field = cls.model_fields.get(name)
            shown = properties.get((field and field.alias) or name)
            if shown is not None:
                shown.setdefault("description", text)
        return schema


def from_text(written: Any, key: str, **more: str) -> BeforeValidator:
    """Let a text stand for settings with this key, and `more`; `written` is what may be written."""

    def settings(value: Any) -> Any:
        return {**more, key: value} if isinstance(value, str) else value

    return BeforeValidator(settings, json_schema_input_type=written)


def _texts_below_fields(cls: type[ConfigModel]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not issubclass(base, ConfigModel) or base is ConfigModel:
            continue
        [written] = ast.parse(dedent(inspect.getsource(base))).body
        assert isinstance(written, ast.ClassDef)
        for field, below in zip(written.body, written.body[1:], strict=False):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts[name] = inspect.cleandoc(text)
    return texts
