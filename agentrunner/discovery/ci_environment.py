"""The variables that CI sets for tests and that affect time and text: language, time zone, `CI`.

The rest of CI's environment is ignored: it may be secret, or only make sense there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from agentrunner.discovery.workflows import test_steps
from agentrunner.text.lazy_regex import lazy_regex

NAMES = lazy_regex(r"LANG|LC_[A-Z]+|TZ|CI")
_VALUE = lazy_regex(r"[\w.@:+/-]{1,64}")
"""A plain value: no workflow expression, nothing that a shell interprets."""


@dataclass(frozen=True)
class CiEnvironment:
    """Variables on which all CI steps that run tests agree."""

    env: dict[str, str]
    where: str = ""
    """The first file that sets them."""

    @property
    def text(self) -> str:
        """The variables as in a task file: "{TZ: Asia/Tokyo}"."""
        return "{" + ", ".join(f'{name}: "{value}"' for name, value in self.env.items()) + "}"

    def without(self, names: Collection[str]) -> CiEnvironment:
        """Return the same without these variables."""
        env = {name: value for name, value in self.env.items() if name not in names}
        return replace(self, env=env)


def ci_environment(repo: Path) -> CiEnvironment:
    """Return the language, time zone and `CI` that CI sets where it runs the tests.

    A name that steps set to different values is left out: nobody can say which one is meant.
    """
    values: dict[str, set[str | None]] = {}
    places: dict[str, str] = {}
    for number, (name, env) in enumerate(test_steps(repo)):
        for key in {*values, *env}:
            if not NAMES.fullmatch(key):
                continue
            known = values.setdefault(key, {None} if number else set())
            known.add(env.get(key))
            places.setdefault(key, name)
    agreed = {}
    for key, found in sorted(values.items()):
        value = next(iter(found)) if len(found) == 1 else None
        if value is not None and _VALUE.fullmatch(value):
            agreed[key] = value
    return CiEnvironment(agreed, places[min(agreed)] if agreed else "")
