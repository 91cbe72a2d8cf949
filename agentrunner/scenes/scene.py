"""A scene as people write it: a typed YAML file, in one language or in both.

A text that differs between languages is a map with the keys `en` and `ja`; everything else is
common to both. docs/reference/planner-scenes.md explains the keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from agentrunner.config.config_model import ConfigModel
from agentrunner.config.markdown import Language
from agentrunner.config.text_files import read_text
from agentrunner.config.yaml_text import read_yaml
from agentrunner.errors import ProtocolError, UsageError
from agentrunner.errors.planners import InvalidScene
from agentrunner.protocol.loading import load_yaml
from agentrunner.protocol.message import MessageType
from agentrunner.scenes.rules import ActionRule, JudgeRule, PlanRule, ProposalRule, SceneRule
from agentrunner.state.run_state import CheckOutcome, Criterion, Finding, TestOutcome
from agentrunner.state.worker_runs import WorkerRun

LANGUAGES: tuple[Language, ...] = ("en", "ja")
OWN = Path(__file__).parent / "data"
"""The scenes that come with AgentRunner."""
Group = Literal["plan", "decide", "trouble", "person", "judge", "attack", "look", "wish"]
RULES: Mapping[MessageType, type[SceneRule]] = {
    "plan_task": PlanRule,
    "next_action": ActionRule,
    "completion_assessment": JudgeRule,
    "decompose": ProposalRule,
    "plan_patch": ProposalRule,
}
Colour = Literal["green", "red", "unknown"]


class Filler(ConfigModel):
    """A long file: a text, then a line repeated, in which `{n}` is its number."""

    text: str = ""
    line: str
    times: int = Field(ge=1, le=5000)

    def whole(self) -> str:
        """Return the text of the file."""
        lines = (self.line.replace("{n}", str(n)) for n in range(1, self.times + 1))
        return "\n".join([*self.text.splitlines(), *lines, ""])


FileText = str | Filler | None
"""None deletes the file."""


class TestSeen(TestOutcome):
    """The test command's outcome; its command is that of the task."""

    __test__ = False

    command: str = ""


class CheckSeen(CheckOutcome):
    """The outcome of a criterion's check."""

    what: str = ""


class RunSeen(WorkerRun):
    """The end of a worker's run; ids, trees and changes are filled in."""

    worker_run_id: str = ""
    worker: str = ""
    loop: int = 0


class Order(ConfigModel):
    """The decision before a worker run."""

    reason: str
    prompt: str


class RoundSeen(ConfigModel):
    """A past round: the order, the changes, and the results."""

    order: Order
    run: RunSeen
    output: str = ""
    """The end of the worker's output."""
    errors: str = ""
    """The same on standard error."""
    changed: dict[str, FileText] = {}
    test: TestSeen | None = None
    checks: list[CheckSeen] = []
    findings: list[Finding] = []


class Before(ConfigModel):
    """The results before the first worker."""

    test: TestSeen | None = None
    checks: dict[str, Colour] = {}
    """By criterion."""
    red: list[str] = []
    """Names of tests of the suite."""
    passing: list[str] = []


class PersonWords(ConfigModel):
    """A person's decision in this run."""

    kind: Literal["ask_human", "message"] = "message"
    asked: str = ""
    text: str


class Scene(ConfigModel):
    """A situation, the question in it, and what counts as right."""

    version: Literal[1]
    group: Group
    about: str
    """What it tries, in a sentence."""
    asks: MessageType
    task: dict[str, Any] = {}
    """The section `task` of a task file."""
    files: dict[str, FileText] = {}
    """The repository before the work."""
    before: Before = Before()
    planned: list[Criterion] = []
    """Criteria that the planner had added."""
    rounds: list[RoundSeen] = []
    people: list[PersonWords] = []
    remarks: list[str] = []
    """What code tells the planner besides the facts, such as why completion was refused."""
    max_loops: int = Field(5, ge=0, le=100)
    message: str = ""
    """For `decompose` and `plan_patch`: the person's message."""
    plan: dict[str, Any] = {}
    """For `plan_patch`: the existing plan, as the payload of a `decompose`."""
    right: Annotated[list[dict[str, Any]], Field(min_length=1)]
    """Rules, one of which must hold."""
    acceptable: list[dict[str, Any]] = []
    """Rules for answers that do no harm but are not the best."""
    answer: list[dict[str, Any]]
    """A right answer as payloads, one per call: looks first."""

    @model_validator(mode="after")
    def _fits_what_it_asks(self) -> Scene:
        about_plan = self.asks in ("decompose", "plan_patch")
        for name in ("message",) if about_plan else ("task", "files"):
            if not getattr(self, name):
                raise ValueError(f"a scene that asks {self.asks} has {name}")
        if self.asks == "completion_assessment" and not self.rounds:
            raise ValueError("a judgement is asked for after a round: rounds")
        self.rules_of("right"), self.rules_of("acceptable")
        return self

    def rules_of(self, which: Literal["right", "acceptable"]) -> list[SceneRule]:
        """Return the rules as models for the asked message; raises ValidationError."""
        model = RULES[self.asks]
        return [model.model_validate(one) for one in getattr(self, which)]


class Named(ConfigModel):
    """A scene in one language, as it is played."""

    id: str
    """File name and language: "red-tests.ja"."""
    language: Language
    scene: Scene
    digest: str
    """Digest of the whole content."""


def load_scenes(
    folder: Path | None = None,
    *,
    language: Language | None = None,
    only: Sequence[str] = (),
) -> list[Named]:
    """Return our scenes and those in `folder`, by name; only one `language` if it is given.

    `only` holds ids, with or without the language. Raises UsageError (`scene-invalid`) with file
    and line for an unreadable scene, and for an unknown id.
    """
    found = [*_read_all(OWN), *(_read_all(folder) if folder is not None else ())]
    names = {one.id for one in found} | {one.id.rpartition(".")[0] for one in found}
    for name in only:
        if name not in names:
            raise _invalid(f'no scene is called "{name}"', "--only")
    kept = [one for one in found if language in (None, one.language)]
    wanted = [one for one in kept if not only or {one.id, one.id.rpartition(".")[0]} & set(only)]
    if not wanted:
        raise _invalid("there is no scene to play", "--only")
    return wanted


def _read_all(folder: Path) -> Iterator[Named]:
    files = sorted(folder.glob("*.yaml")) if folder.is_dir() else []
    if not files:
        raise _invalid(f"{folder} holds no scene", "--scenes")
    for path in files:
        yield from read_scene(path)


def read_scene(path: Path) -> Iterator[Named]:
    """Yield a file's scene in each of its languages; raises UsageError (`scene-invalid`)."""
    name = path.name if path.is_relative_to(OWN) else str(path)
    text = read_text(path, name=name)
    tree = read_yaml(text, name)
    try:
        data = load_yaml(text)
    except ProtocolError as error:
        raise _invalid(str(error), name) from error
    if not isinstance(data, dict):
        raise _invalid("a scene is a map", name)
    languages = data.pop("languages", list(LANGUAGES))
    for language in LANGUAGES:
        if language not in languages:
            continue
        values = in_language(data, language)
        try:
            scene = Scene.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            place = tree.place(first["loc"])
            at = ".".join(map(str, first["loc"]))
            raise _invalid(f"{at}: {first['msg']}" if at else first["msg"], place.where) from error
        digest = hashlib.sha256(repr(values).encode()).hexdigest()[:16]
        yield Named(id=f"{path.stem}.{language}", language=language, scene=scene, digest=digest)


def in_language(value: Any, language: Language) -> Any:
    """Replace each map of languages in the data by its text in this language."""
    if isinstance(value, dict):
        if value and value.keys() <= set(LANGUAGES):
            return value.get(language, next(iter(value.values())))
        return {key: in_language(item, language) for key, item in value.items()}
    if isinstance(value, list):
        return [in_language(item, language) for item in value]
    return value


def _invalid(why: str, path: str) -> UsageError:
    return InvalidScene(
        f"A scene cannot be used: {why}.",
        path=path,
        remedy="docs/reference/planner-scenes.md tells the keys of a scene",
    )
