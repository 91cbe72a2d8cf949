"""Format plain data as YAML for reading."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import yaml
from yaml.representer import SafeRepresenter

try:
    from yaml import CSafeDumper as CDumper
except ImportError:  # PyYAML without libyaml
    from yaml import SafeDumper as CDumper  # type: ignore[assignment]


class _ForReading(SafeRepresenter):
    """YAML for reading: multi-line texts stay multi-line, repeated values are written out."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(representer: SafeRepresenter, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return representer.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_ForReading.add_representer(str, _text)


class _Dumper(_ForReading, yaml.SafeDumper):
    """Writes every printable character unchanged."""


class _FastDumper(_ForReading, CDumper):
    """The same with libyaml, in a tenth of the time; but it escapes characters beyond U+FFFF."""


def to_yaml(value: Mapping[str, Any]) -> str:
    """Format plain data as YAML, in the given order.

    An entry of a block mapping does not depend on its neighbours, and most entries are the same in
    every call of a run: each is formatted once.
    """
    return "".join(_block(name, item) for name, item in value.items()) or "{}\n"


def _block(name: str, value: Any) -> str:
    """Format an entry; a list of mappings item by item, since later calls repeat its items."""
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return "".join([_entry(json.dumps({name: []})).removesuffix(" []\n") + "\n",
                        *(_entry(json.dumps([item])) for item in value)])  # fmt: skip
    return _entry(json.dumps({name: value}))


@lru_cache(maxsize=128)
def _entry(entry: str) -> str:
    """Format a value given as JSON as YAML."""
    value = json.loads(entry)
    text = _dumped(value, _FastDumper)
    return _dumped(value, _Dumper) if "\\U" in text else text


def _dumped(value: Any, dumper: type[_Dumper | _FastDumper]) -> str:
    return str(yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=10**6))
