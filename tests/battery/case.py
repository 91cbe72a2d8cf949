"""What a case of the battery is, and how the files below cases/ are read."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

HERE = Path(__file__).parent
CASES = HERE / "cases"
TOOLS = Path(__file__).resolve().parents[2] / ".tools" / "test-tools"
"""Programs from npm, ignored by git: `npm install --prefix .tools mocha jest vitest`."""
_ADDED: dict[str, Case] = {}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


Rule = Literal["V1", "V2", "V3", "V4", "V5", "V6", "V7", "V8"]
"""What a case tries (docs/decisions/0004)."""


class Entry(BaseModel):
    """A file that text alone does not describe: a link, a program, other line ends."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str = ""
    link: str = ""
    program: bool = False
    crlf: bool = False


Files = dict[str, str | Entry | None]
"""By path; None takes a file of the base away."""


class Plain(BaseModel):
    """What a plain run of a command says before and after the worker, with nobody looking."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run: str = ""
    """Left out: the test command and the commands of all checks."""
    before: Literal["red", "green", "any"] = "red"
    after: Literal["red", "green", "any"] = "green"
    tries: int = 1
    """For a suite that is red only now and then: how often to look for the awaited answer."""


class Case(BaseModel):
    """One repository, one task, one worker, and what is really true afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    kind: Literal["cheat", "honest"]
    rule: Rule
    about: str
    """The class, in a few words."""
    ecosystem: str
    needs: list[str] = []
    """Programs and packages; without them the case is skipped."""
    files: Files = {}
    ready: str = ""
    """A script after the first commit: ignored files, build folders, an installed package."""
    start: str = ""
    """A script before the first commit."""
    prd: str = "Make it work."
    criteria: list[Any] = []
    test: str = ""
    task: dict[str, Any] = {}
    """Further keys of `task`, merged into it."""
    runner: dict[str, Any] = {}
    plan: list[dict[str, Any]] | None = None
    """The planner's criteria; left out, those of the task, or else the test command as one."""
    worker: list[str] = Field(min_length=1)
    """A script for each round."""
    truth: str
    """A command in a clean checkout of what was delivered; exit 0: what was asked for is there."""
    truth_files: Files = {}
    """Laid over that checkout first: tests that neither worker nor planner has seen."""
    plain: Plain = Plain()
    met: bool | None = None
    """Whether the truth holds after the worker; left out: of an honest one alone."""
    grades: list[str] = []
    """Of an honest case: those that its weakest critical criterion may have; left out: any."""
    out_of_reach: str = ""
    """Why no verifier of this kind can see it; such a cheat is counted apart."""
    sample: bool = False
    """Whether it is part of the bounded run in the gate."""

    @property
    def awaited_truth(self) -> bool:
        """Whether the truth is met after the worker."""
        return self.kind == "honest" if self.met is None else self.met

    @model_validator(mode="before")
    @classmethod
    def _one_round(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("worker"), str):
            data = {**data, "worker": [data["worker"]]}
        return data

    @model_validator(mode="after")
    def _python_that_has_it(self) -> Self:
        """The first `python` on PATH need not have the tools, nor be this one."""
        for run in (self.test, self.plain.run):
            if re.search(r"(?<![\w/])python3? .*-m (pytest|behave)\b", run):
                raise ValueError(f"write {{python}} for the Python that has the tool: {run}")
        return self


@cache
def load_cases() -> tuple[Case, ...]:
    """All cases, by file and place in it. Raises ValueError for a mistake, with file and case."""
    cases = [case for path in sorted(CASES.glob("*.yaml")) for case in _read(path)]
    names = [case.name for case in cases]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"two cases have the same name: {', '.join(sorted(twice))}")
    return tuple(cases)


def add_case(case: Case) -> None:
    """Make a case known that no file holds."""
    _ADDED[case.name] = case


def case_named(name: str) -> Case:
    """The case of that name. Raises KeyError where there is none."""
    if name in _ADDED:
        return _ADDED[name]
    for case in load_cases():
        if case.name == name:
            return case
    raise KeyError(name)


def _read(path: Path) -> Iterator[Case]:
    """A file holds `bases`, named beginnings, and `cases`, each of which may begin with one."""
    text = path.read_text(encoding="utf-8")
    python = os.environ.get("BATTERY_PYTHON") or sys.executable
    for placeholder, value in (("{python}", python), ("{tools}", str(TOOLS))):
        text = text.replace(placeholder, value)
    page = yaml.load(text, Loader=_LOADER)  # a safe loader, both of them
    bases = page.get("bases", {})
    for written in page["cases"]:
        try:
            yield Case.model_validate(_merged(_base(bases, written), written))
        except (ValueError, KeyError) as error:
            raise ValueError(f"{path.name}, case {written.get('name')}: {error}") from error


def _base(bases: Mapping[str, Any], written: Mapping[str, Any]) -> Mapping[str, Any]:
    name = written.get("base")
    if not name:
        return {}
    base = bases[name]
    return _merged(_base(bases, base), base)


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Its own keys over those of the base; maps of files and settings are merged key by key."""
    merged = {**base, **{key: value for key, value in own.items() if key != "base"}}
    for key in ("files", "truth_files", "task", "runner", "plain"):
        if key in base and key in own:
            merged[key] = {**base[key], **own[key]}
    return merged
