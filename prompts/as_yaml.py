"""Plain data as YAML for reading."""

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
    """YAML for reading: several lines stay several lines, repeated values are written out."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(representer: SafeRepresenter, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return representer.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_ForReading.add_representer(str, _text)


class _Dumper(_ForReading, yaml.SafeDumper):
    """Writes every printable character as it is."""


class _FastDumper(_ForReading, CDumper):
    """The same by libyaml, in a tenth of the time; but it escapes what is beyond U+FFFF."""


def to_yaml(value: Mapping[str, Any]) -> str:
    """Plain data as YAML, in the order given.

    An entry of a block mapping is written the same whatever stands beside it, and most entries
    are the same in every call of a run: each is written once.
    """
    return "".join(_block(name, item) for name, item in value.items()) or "{}\n"


def _block(name: str, value: Any) -> str:
    """An entry; of a list of mappings each is one of its own, as its neighbours are in it again."""
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return "".join([_entry(json.dumps({name: []})).removesuffix(" []\n") + "\n",
                        *(_entry(json.dumps([item])) for item in value)])  # fmt: skip
    return _entry(json.dumps({name: value}))


@lru_cache(maxsize=128)
def _entry(entry: str) -> str:
    """A value given as JSON, as YAML."""
    value = json.loads(entry)
    text = _dumped(value, _FastDumper)
    return _dumped(value, _Dumper) if "\\U" in text else text


def _dumped(value: Any, dumper: type[_Dumper | _FastDumper]) -> str:
    return str(yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=10**6))
