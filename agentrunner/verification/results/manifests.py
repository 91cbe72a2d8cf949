"""Reads manifests as they are, hostile ones too: what cannot be read holds nothing. Pure."""

from __future__ import annotations

import configparser
import json
import tomllib
from collections.abc import Callable
from typing import Any


def toml_of(text: str) -> dict[str, Any]:
    """The table of a TOML text; an empty one where it cannot be read."""
    return _read(tomllib.loads, text)


def json_of(text: str) -> dict[str, Any]:
    """The object of a JSON text; an empty one where there is none or it cannot be read."""
    return _read(json.loads, text)


def ini_of(text: str) -> configparser.RawConfigParser:
    """The sections of an ini file; none where it cannot be read."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return configparser.RawConfigParser()
    return parser


def table(value: object, *names: str) -> dict[str, Any]:
    """The table at the end of a chain of keys; empty if something else is there."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def texts(value: object) -> list[str]:
    """A string as a list, or the strings in a list."""
    if isinstance(value, str):
        return [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _read(parse: Callable[[str], object], text: str) -> dict[str, Any]:
    try:
        return table(parse(text))
    except (ValueError, RecursionError):
        return {}
