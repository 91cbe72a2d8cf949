"""One task and one policy: settings as they are now, what the policy fills in, what it refuses.

Pure. The rules themselves are in `check.py` and `permitted_agents.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentrunner.config.spec import RunnerSection, TaskSpec
from agentrunner.config.yaml_text import Place
from agentrunner.errors import UsageError
from agentrunner.errors.task_files import PolicyBreach
from agentrunner.policy.match import enumeration, is_below, matches
from agentrunner.policy.policy_file import Policy
from agentrunner.text.lazy_regex import lazy_regex

_PART = lazy_regex(r"[^.\[\]]+")
_SECRET = lazy_regex(r"runner\.workers?(\[\d+\])?\.env\.")


def breach(message: str, place: Place, cap: Place, remedy: str) -> UsageError:
    """Return the error for a value that a policy does not allow, with both places."""
    line = f"{cap.where}     {cap.source_line}".rstrip()
    return PolicyBreach(
        message,
        path=place.where,
        source_line=place.source_line[:200],
        details=(("policy", line),),
        remedy=remedy,
    )


class Narrowing:
    """One task and one policy. Settings are named as in the file: "runner.workers[1].model"."""

    def __init__(
        self, spec: TaskSpec, policy: Policy, environ: Mapping[str, str], *, stored: bool
    ) -> None:
        self.spec = spec
        self.policy = policy
        self.environ = environ
        self.stored = stored
        self.breaches: list[UsageError] = []
        self._given: dict[str, object] = {}

    def value(self, key: str) -> Any:
        """Return a setting as it is now, including what this policy filled in."""
        if key in self._given:
            return self._given[key]
        value: Any = self.spec.runner
        for part in _parts(key):
            value = value[part] if isinstance(part, int) else getattr(value, part)
        return value

    def give(self, key: str, value: Any) -> None:
        """Fill in a setting that the task left out."""
        self._given[key] = value

    def is_written(self, key: str) -> bool:
        """Whether a person wrote it."""
        return key in self.spec.places

    def runner(self) -> RunnerSection:
        """Return the settings of the task with those that the policy fills in."""
        runner = self.spec.runner
        for key, value in self._given.items():
            runner = _with(runner, _parts(key), value)
        if runner.workers:
            runner = runner.model_copy(update={"worker": runner.workers[0]})
        return runner

    def places(self) -> dict[str, str]:
        """Return where settings are written, without those that the policy filled in."""
        return {key: at for key, at in self.spec.places.items() if key not in self._given}

    def refuse(self, key: str, message: str, cap: str, remedy: str) -> None:
        """Record a breach of the policy's setting `cap`."""
        if self.stored:
            remedy = "start a new run; the task of this one is kept as it was"
        place = self.policy.place(cap)
        self.breaches.append(breach(message, place_of(self.spec, key), place, remedy))

    # -- rules of a kind -------------------------------------------------------------------------

    def pattern(
        self, key: str, value: str | None, patterns: Sequence[str], cap: str, what: str
    ) -> None:
        """Check a text that must match; if left out, use the first pattern without `*`."""
        plain = next((pattern for pattern in patterns if "*" not in pattern), None)
        if value is None and plain is not None:
            self.give(key, plain)
        elif value is None or not matches(value, patterns):
            problem = f"{what} {value} is not allowed" if value else f"{what} has to be named"
            self.refuse(
                key,
                f"{problem}; the policy allows {enumeration(patterns)}.",
                cap,
                setting(key, plain or "…"),
            )

    def endpoint(self, key: str, urls: Sequence[str], cap: str, variable: str) -> None:
        """Check an endpoint that must be one of these, or below one."""
        url = self.value(key)
        named = url or self.environ.get(variable, "")
        if not named and urls:
            self.give(key, urls[0])
        elif not any(is_below(named, root) for root in urls):
            # The machine's endpoint is not replaced: its key would go to somebody else.
            place = key if url or not named else variable
            self.refuse(
                place,
                f"The endpoint {named or 'of the provider'} is not allowed; the policy allows "
                f"{enumeration(urls)}.",
                cap,
                setting(key, urls[0]) if url and urls else f"look at {place}",
            )

    def number(self, key: str, cap: float | None, cap_key: str) -> None:
        """Check a limit that must not be higher; if left out, or in a stored task, lower it."""
        value = self.value(key)
        if cap is None or (value is not None and value <= cap):
            return
        if not self.is_written(key) or self.stored:
            self.give(key, cap)
            return
        shown = "unlimited" if value is None else f"{value:g}"
        message = f"{key} is {shown}; the policy allows {cap:g}."
        self.refuse(key, message, cap_key, setting(key, f"{cap:g}"))


def place_of(spec: TaskSpec, key: str) -> Place:
    """Return the place of a setting, or of the nearest one around it; its name if left out."""
    if "." not in key:  # a variable of this machine
        return Place(key)
    places, name = spec.places, key
    while name not in places:
        # `runner.worker` says nothing about a setting that is not in it.
        name = name[: max(name.rfind("."), name.rfind("["))]
        if name.count(".") < 2:
            return Place(f"{key} (left out)")
    where = places[name]
    secret = any(place == where and _SECRET.match(key) for key, place in places.items())
    return Place(where, "" if secret else _source_line(spec, where))


def _source_line(spec: TaskSpec, where: str) -> str:
    """Return the text of a line of the task file."""
    file, _, number = where.rpartition(":")
    if not file or not number.isdigit() or spec.task_file is None:
        return ""
    # A configuration file is named by its absolute path; its text is not kept.
    if Path(file).is_absolute() and file != spec.task_file.path:
        return ""
    lines = spec.task_file.text.split("\n")
    return lines[int(number) - 1].strip() if int(number) <= len(lines) else ""


def setting(key: str, value: str) -> str:
    """Return how a person sets this: by an option, or in the file where options do not reach."""
    return f"write {value}" if "[" in key else f"--set {key}={value}"


def _parts(key: str) -> list[str | int]:
    """Return the path below `runner`."""
    return [int(part) if part.isdigit() else part for part in _PART.findall(key)[1:]]


def _with(holder: Any, path: Sequence[str | int], value: Any) -> Any:
    """Return a copy of a section, or of a list of sections, with one setting changed."""
    first, *rest = path
    if isinstance(first, int):
        changed = _with(holder[first], rest, value) if rest else value
        return [*holder[:first], changed, *holder[first + 1 :]]
    changed = _with(getattr(holder, first), rest, value) if rest else value
    return holder.model_copy(update={first: changed})
