"""Who answers in which role, and who does when the first one cannot."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentrunner.config.agents import AssessSpec, ProfilesSpec
from agentrunner.config.spec import TaskSpec
from agentrunner.errors import InfraError, UsageError
from agentrunner.launching.route import Cassette
from agentrunner.planners.base import ChatMessage, PlannerRequest, PlannerUnavailable, Reply
from agentrunner.planners.panel import (
    ROLES,
    Candidate,
    Panel,
    Role,
    RoleCandidates,
    make_panel,
    pick,
    role_of,
)
from agentrunner.planners.workplace import Workplace
from agentrunner.protocol.message import MessageType
from tests.kit.fault_server import MakeSpec

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
LATER, EARLIER = "2026-11-21T12:00:01.000Z", "2026-11-21T11:59:59+00:00"
KEYED = {"OPENAI_API_KEY": "key", "HOME": "/nonexistent"}


class Parrot:
    """Says its own name, or that it cannot."""

    kind = "parrot"

    def __init__(self, name: str, *, fails: bool = False) -> None:
        self.name = name
        self.fails = fails
        self.closed = 0

    def describe(self) -> str:
        return self.name

    async def complete(self, request: PlannerRequest) -> Reply:
        if self.fails:
            raise PlannerUnavailable("busy", retryable=True)
        return Reply(self.name)

    async def close(self) -> None:
        self.closed += 1


class Housed(Parrot):
    """Wants a place."""

    bench: Workplace | None = None

    async def open(self, bench: Workplace) -> None:
        self.bench = bench


def request(message: MessageType) -> PlannerRequest:
    return PlannerRequest(message, (ChatMessage("user", "?"),), {}, {}, 0)


def candidates(*weights: int) -> list[Candidate]:
    return [
        Candidate(name, Parrot(name), weight)
        for name, weight in zip("abcdef", weights, strict=False)
    ]


def picked(among: list[Candidate], number: int = 0, vote: int = 0, **cooling: str) -> str:
    until = {f"meta:{name}": at for name, at in cooling.items()}
    found = pick(among, until, NOW, "salt", number, vote=vote)
    return found.name if found else ""


def with_roles(spec: TaskSpec, judge: AssessSpec | None = None, **profiles: Any) -> TaskSpec:
    return spec.with_runner(assess=judge, profiles=ProfilesSpec(**profiles))


def names(panel: Panel) -> dict[str, list[str]]:
    return {role: [one.name for one in panel.role_candidates(role).candidates] for role in ROLES}


def test_each_message_has_a_role() -> None:
    messages: list[MessageType] = [
        "plan_task", "next_action", "completion_assessment", "decompose", "plan_patch",
    ]  # fmt: skip
    assert [role_of(name) for name in messages] == ["plan", "meta", "assess", "plan", "plan"]


def test_the_first_that_is_not_cooling() -> None:
    three = candidates(0, 0, 0)
    assert picked(three) == "a"
    assert picked(three, a=LATER) == "b"
    assert picked(three, a=EARLIER) == "a"
    assert picked(three, a="soon") == "a"
    assert picked(three, a=LATER, b=LATER) == "c"
    assert picked(three, a=LATER, b=LATER, c=LATER) == ""
    assert pick(three, {"worker:a": LATER}, NOW, "salt", 0) == three[0]


def test_weights_share_out_the_calls_the_same_way_again() -> None:
    three = candidates(1, 3, 0)
    drawn = [picked(three, number) for number in range(400)]
    count = Counter(drawn)
    assert set(count) == {"a", "b"}
    assert 60 < count["a"] < 140
    assert drawn == [picked(three, number) for number in range(400)]
    assert {picked(three, number, b=LATER) for number in range(20)} == {"a"}
    assert picked(three, a=LATER, b=LATER) == "c"


def test_votes_go_round() -> None:
    three = candidates(0, 0, 0)
    assert [picked(three, vote=vote) for vote in range(5)] == ["a", "b", "c", "a", "b"]
    assert [picked(three, vote=vote, b=LATER) for vote in range(3)] == ["a", "c", "a"]


async def first_of(panel: Panel, role: Role) -> Reply:
    first = panel.role_candidates(role).candidates[0]
    return await panel.complete_by(first, request("next_action"))


async def test_an_answer_says_whose_it_is() -> None:
    plain, judge = Parrot("plain"), Housed("judge")
    role_candidates = RoleCandidates((Candidate("p", plain), Candidate("q", judge)))
    panel = Panel(
        {
            "meta": role_candidates,
            "plan": role_candidates,
            "assess": RoleCandidates((Candidate("j", judge),)),
        }
    )
    reply = await first_of(panel, "meta")
    assert (reply.text, reply.candidate) == ("plain", "p")
    reply = await first_of(panel, "assess")
    assert (reply.text, reply.candidate) == ("judge", "j")
    assert panel.describe() == "plain; judge judges"
    await panel.close()
    assert (plain.closed, judge.closed) == (1, 1)


async def test_a_failure_says_whose_it_is() -> None:
    role_candidates = RoleCandidates((Candidate("p", Parrot("p", fails=True)),))
    panel = Panel({"meta": role_candidates, "plan": role_candidates, "assess": role_candidates})
    with pytest.raises(PlannerUnavailable) as caught:
        await first_of(panel, "plan")
    assert caught.value.candidate == "p"


def test_runner_meta_alone_fills_every_role(make_spec: MakeSpec) -> None:
    panel = make_panel(make_spec(model="m-1"), KEYED)
    assert names(panel) == {role: ["openai-chat:m-1"] for role in ROLES}
    clients = {id(panel.role_candidates(role).candidates[0].client) for role in ROLES}
    assert len(clients) == 1
    assert panel.describe() == "openai-chat m-1 at api.openai.com"


def test_another_judge(make_spec: MakeSpec) -> None:
    spec = with_roles(make_spec(model="m-1"), AssessSpec(model="m-2"))
    assert names(make_panel(spec, KEYED))["assess"] == ["openai-chat:m-2"]
    spec = with_roles(make_spec(model="m-1"), AssessSpec(kind="checklist"))
    panel = make_panel(spec, KEYED)
    assert names(panel)["assess"] == ["checklist"]
    assert panel.describe().endswith("; checklist (no model) judges")
    spec = with_roles(
        make_spec(model="m-1"), AssessSpec(kind="checklist"), assess={"cool_down_sec": 7}
    )
    panel = make_panel(spec, KEYED)
    assert (names(panel)["assess"], panel.role_candidates("assess").cool_down_sec) == (
        ["checklist"],
        7,
    )
    spec = with_roles(make_spec(model="m-1"), AssessSpec(votes=3))
    assert names(make_panel(spec, KEYED))["assess"] == ["openai-chat:m-1"]


def test_profiles_come_in_their_order(make_spec: MakeSpec) -> None:
    spec = with_roles(
        make_spec(model="m-1", base_url="http://localhost:1/v1"),
        AssessSpec(model="m-2"),
        meta={"candidates": [{"kind": "openai-chat"}, {"kind": "mock", "weight": 2}]},
        plan={"candidates": [{"kind": "checklist"}], "cool_down_sec": 7},
        assess={"candidates": [{"kind": "openai-chat", "model": "m-3"}]},
    )
    panel = make_panel(spec, KEYED)
    assert names(panel) == {
        "meta": ["openai-chat:m-1", "mock"],
        "plan": ["checklist"],
        "assess": ["openai-chat:m-3"],
    }
    assert panel.role_candidates("meta").candidates[1].weight == 2
    assert panel.role_candidates("plan").cool_down_sec == 7
    # What is left out is that of `runner.meta`, where that is of the same kind.
    judge = panel.role_candidates("assess").candidates[0].client
    assert judge.describe() == "openai-chat m-3 at localhost:1"


def test_the_same_name_twice_gets_a_number(make_spec: MakeSpec) -> None:
    urls = ["http://localhost:1/v1", "http://localhost:2/v1"]
    both = [{"kind": "openai-chat", "model": "m", "base_url": url} for url in urls]
    panel = make_panel(with_roles(make_spec(), meta={"candidates": both}), KEYED)
    assert names(panel)["meta"] == ["openai-chat:m", "openai-chat:m-2"]


def test_who_is_not_to_be_had_is_left_out_and_told(make_spec: MakeSpec) -> None:
    wanted = [{"kind": "openai-chat"}, {"kind": "checklist"}]
    panel = make_panel(with_roles(make_spec(), meta={"candidates": wanted}), {})
    assert names(panel)["meta"] == ["checklist"]
    (notice,) = panel.notices
    assert notice.startswith("openai-chat is left out: The planner needs an API key")
    with pytest.raises(InfraError, match="OPENAI_API_KEY is not set"):
        make_panel(with_roles(make_spec(), meta={"candidates": wanted[:1]}), {})


def test_a_forced_one_is_the_only_one(make_spec: MakeSpec) -> None:
    wanted = [{"kind": "openai-chat"}, {"kind": "checklist"}]
    forced = {"candidates": wanted, "force": "checklist"}
    panel = make_panel(with_roles(make_spec(), meta=forced), KEYED)
    assert names(panel)["meta"] == ["checklist"]
    with pytest.raises(UsageError, match="Known: openai-chat, checklist") as caught:
        make_panel(with_roles(make_spec(), meta={**forced, "force": "claude"}), KEYED)
    assert (caught.value.code, caught.value.path) == (
        "unknown-candidate",
        "runner.profiles.meta.force",
    )


def test_an_unknown_kind_is_no_reason_to_take_another(make_spec: MakeSpec) -> None:
    wanted = [{"kind": "checkist"}, {"kind": "checklist"}]
    with pytest.raises(UsageError, match="is not known"):
        make_panel(with_roles(make_spec(), meta={"candidates": wanted}), KEYED)


def test_each_planner_has_its_own_part_of_a_recording(make_spec: MakeSpec, tmp_path: Path) -> None:
    spec = with_roles(make_spec(model="m-1"), AssessSpec(model="m-2"))
    panel = make_panel(spec, KEYED, Cassette(record=tmp_path / "tape"))
    assert names(panel)["assess"] == ["openai-chat:m-2"]
    assert not (tmp_path / "tape").exists()
