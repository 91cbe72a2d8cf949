"""What people write, in task files, policies and settings: the base of its models."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict

ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class ConfigModel(BaseModel):
    """Something a person writes: unknown keys are mistakes, numbers are text in text fields."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        coerce_numbers_to_str=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )
