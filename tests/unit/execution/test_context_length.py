"""How long the planner's context is: what a person says, else what its server does, kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentrunner.config.agents import PlannerSpec
from agentrunner.config.spec import RunnerSection, TaskSpec
from agentrunner.execution import context_length
from agentrunner.execution.context_length import RECORD, context_budget, servers_of
from agentrunner.launching.route import Cassette
from agentrunner.planners.servers import Server
from tests.kit.task_specs import task_spec_of

NEAR = "http://127.0.0.1:8080/v1"


def spec_of(**meta: Any) -> TaskSpec:
    return task_spec_of(runner=RunnerSection(meta=PlannerSpec(kind="openai-chat", **meta)))


@dataclass
class Question:
    """What a question needs of a run; `says` is what its server tells, one time after the other."""

    spec: TaskSpec
    says: list[int | None]
    environ: dict[str, str] = field(default_factory=dict)
    cassette: Cassette = field(default_factory=Cassette)
    kept: list[Any] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    servers: Any = None

    @property
    def log(self) -> Any:
        return SimpleNamespace(records=lambda kind: [one for one in self.kept if kind == RECORD])

    def record(self, state: Any, kind: str, key: str, data: Any) -> None:
        self.kept.append(SimpleNamespace(kind=kind, key=key, data=data))

    def look_at(self, url: str, model: str) -> Server:
        self.asked.append(url)
        return Server("", self.says[min(len(self.asked), len(self.says)) - 1])

    def rounds(self, calls: int) -> int:
        """The share of all rounds in the question after so many calls; 60,000 where not known."""
        counters = SimpleNamespace(meta_calls=calls)
        state: Any = {"run": SimpleNamespace(attempt=1), "counters": counters}
        deps: Any = self
        return context_budget(state, deps).rounds


@pytest.fixture
def question(monkeypatch: pytest.MonkeyPatch) -> Question:
    question = Question(spec_of(base_url=NEAR, model="m"), [None])
    monkeypatch.setattr(context_length, "look_at", question.look_at)
    return question


def test_a_server_that_tells_late_is_heard_and_a_question_keeps_its_bytes(
    question: Question,
) -> None:
    question.says = [None, 16_384]
    assert question.rounds(0) == 60_000
    assert question.rounds(0) == 60_000  # asked again after a pause
    short = question.rounds(1)
    assert short < 10_000 and question.rounds(2) == short
    assert len(question.asked) == 2


def test_one_that_never_tells_is_left_alone(question: Question) -> None:
    assert {question.rounds(calls) for calls in range(6)} == {60_000}
    assert len(question.asked) == context_length.ASKED


def test_what_a_person_says_counts_and_nobody_is_asked(question: Question) -> None:
    question.says = [8_192]
    question.spec = spec_of(base_url=NEAR, context_tokens=32_768)
    assert 6_000 < question.rounds(0) < 13_000 and question.asked == []


def test_a_replay_and_a_provider_are_not_asked(
    question: Question,
    tmp_path: Path,
) -> None:
    question.says = [8_192]
    question.cassette = Cassette(replay=tmp_path / "tape")
    assert question.rounds(0) == 60_000
    question.cassette, question.spec = Cassette(), spec_of(base_url="https://api.example.com/v1")
    assert question.rounds(0) == 60_000 and question.asked == []


def test_another_server_is_asked_anew(question: Question) -> None:
    question.says = [16_384, 32_768]
    first = question.rounds(0)
    question.spec = spec_of(base_url="http://192.168.1.9:8080/v1", allow_plain_http=True)
    assert question.rounds(1) > first
    assert servers_of(question.spec, {"OPENAI_MODEL": "x"}) == [("http://192.168.1.9:8080/v1", "x")]
