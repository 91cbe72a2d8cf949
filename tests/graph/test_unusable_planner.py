"""A planner without a usable answer: the run waits for a person, who may answer in its place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import UsageError
from agentrunner.execution.deps import Clock
from agentrunner.execution.silence import read_order
from tests.kit.bwrap import require_bwrap
from tests.kit.metas import DONE, YES, plan, reply, run_worker
from tests.kit.model_server import Fault, ModelServer, Say, ScriptItem
from tests.kit.project import Project
from tests.kit.runs import FIX, NO_FIX, SMALL, TEST, Run, asking
from tests.kit.waits import VirtualClock

pytestmark = pytest.mark.usefixtures("without_a_box")

KEY = "sk-planner-" + "4f1c" * 12
PLAN = reply(
    "plan_task",
    {"acceptance_criteria": [{"id": "AC-1", "description": "It adds.", "check": {"kind": "test"}}]},
).text
WORK = reply("next_action", run_worker("command")).text
GARBAGE = ["I think we are done!", "type: next_action", "{}", "\x1b]0;evil\x07no \x1b[2Jmessage"]


class Hurried(Clock):
    """Waits for nothing, and tells how long it would have."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    require_bwrap()
    run = Run(Project.make(tmp_path, SMALL))
    run.environ = {**os.environ, "OPENAI_API_KEY": KEY}
    clock = Hurried()
    run.adjust = lambda options: replace(options, clock=clock)
    return run


@pytest.fixture
def serve() -> Iterator[Callable[..., ModelServer]]:
    """A server with a script; whatever is left of it at the end was not asked for."""
    servers: list[ModelServer] = []

    def start(*script: ScriptItem, port: int = 0) -> ModelServer:
        server = ModelServer(chat_script=list(script), port=port).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        left = server.script_left
        server.stop()
        assert left == 0


def begin(run: Run, base_url: str, *, worker: Any = FIX, **runner: Any) -> None:
    meta = {"kind": "openai-chat", "model": "m-1", "base_url": base_url, **runner.pop("meta", {})}
    run.start(None, worker, test=TEST, runner={"meta": meta, **runner})


def waits_for_a_person(run: Run) -> dict[str, Any]:
    assert run.ending[2] == 4, run.result
    assert run.kind == "planner"
    return run.subject


WITHIN: dict[str, Any] = {"budget": {"wait_sec": 0}}

# -- why it waits ---------------------------------------------------------------------------------


@pytest.mark.series(3)
@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_unusable_answers_wait_for_a_person_wherever_they_come(
    run: Run, serve: Callable[..., ModelServer], number: int
) -> None:
    all_of_it = [PLAN, WORK, DONE, YES]
    server = serve(*all_of_it[:number], *GARBAGE, *all_of_it[number:])
    begin(run, server.base_url)
    subject = waits_for_a_person(run)
    types = ["plan_task", "next_action", "next_action", "completion_assessment"]
    assert subject["asked_for"] == types[number]
    assert subject["code"] == "meta-garbage"
    assert subject["last_answer"] == "no message"  # nothing of it moves a cursor
    assert "no answer can be used" in run.result["waiting"]["text"]
    worked = run.result["worker_runs"]
    assert worked == (1 if number > 1 else 0)
    run.answer("again")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["worker_runs"] == 1  # nothing that was worked is done twice
    assert run.result["meta_calls"] == 8


REFUSED, UNKNOWN = "its key or login is refused", "its model is not known there"
FAULTS = {
    "key": (
        Fault(401, f"Incorrect API key provided: {KEY}"),
        "auth",
        "its key or login is refused",
    ),
    "forbidden": (Fault(403, "no"), "auth", REFUSED),
    "model": (
        Fault(404, "The model `m-1` does not exist"),
        "model",
        "its model is not known there",
    ),
    "context": (
        Fault(400, "This model's maximum context length is 8192 tokens"),
        "context",
        "longer than it can read",
    ),
}


@pytest.mark.series(2)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_mistake_is_asked_about_at_once(
    run: Run, serve: Callable[..., ModelServer], fault: str
) -> None:
    item, reason, words = FAULTS[fault]
    begin(run, serve(PLAN, item, WORK, DONE, YES).base_url)
    subject = waits_for_a_person(run)
    assert subject["reason"] == reason
    text = run.result["waiting"]["text"]
    assert words in text and "{" not in text and KEY not in text
    if reason == "auth":
        assert "OPENAI_API_KEY" in text
    else:
        assert "runner.meta.model" in text
    assert run.project.told("waiting") == []
    run.answer("1")  # the first option
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.series(2)
@pytest.mark.parametrize("fault", ["key", "model"])
def test_who_is_never_let_in_ends_with_the_code_of_a_missing_thing_and_goes_on_later(
    run: Run, serve: Callable[..., ModelServer], fault: str
) -> None:
    begin(run, serve(FAULTS[fault][0], PLAN, WORK, DONE, YES).base_url)
    assert run.ending == ("PLANNING", None, 5)
    assert run.kind == "planner"  # it is a question all the same
    run.answer("again")
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.series(2)
@pytest.mark.parametrize(
    ("finish_reason", "reason"), [("length", "cut"), ("content_filter", "filter")]
)
def test_cut_and_filtered_answers_say_so(
    run: Run, serve: Callable[..., ModelServer], finish_reason: str, reason: str
) -> None:
    cut = Say('{"type": "plan_task", "payl', finish_reason=finish_reason)
    begin(run, serve(*[cut] * 4).base_url)
    assert waits_for_a_person(run)["reason"] == reason


OUTAGES = {
    "500": (Fault(500, "broken"), "its server fails (HTTP 500)"),
    "503": (Fault(503, "gone"), "its server is overloaded (HTTP 503)"),
    "429": (Fault(429, "slow down"), "its quota is spent (HTTP 429)"),
    "cut": (Fault(), "it cannot be reached"),
}


@pytest.mark.series(3)
@pytest.mark.parametrize("outage", OUTAGES)
def test_an_outage_is_a_wait_and_then_the_work_goes_on(
    run: Run, serve: Callable[..., ModelServer], outage: str
) -> None:
    item, words = OUTAGES[outage]
    clock = VirtualClock()
    run.adjust = lambda options: replace(options, clock=clock)
    begin(run, serve(PLAN, WORK, *[item] * 8, DONE, YES).base_url)
    assert run.ending == ("COMPLETE", "complete", 0)
    told = run.project.told("waiting")
    assert len(told) == 2 and all(words in one["reason"] for one in told)
    assert run.result["worker_runs"] == 1
    waited = sum(clock.slept) - 2 * 7
    assert waited >= 40 if outage in ("500", "cut") else waited >= 90
    assert run.result["duration_sec"] < 20  # waiting is no time of the run


def test_a_server_that_is_gone_is_waited_for_as_long_as_allowed_and_then_asked_about(
    run: Run, serve: Callable[..., ModelServer]
) -> None:
    clock = VirtualClock()
    run.adjust = lambda options: replace(options, clock=clock)
    with ModelServer() as server:
        gone = server.base_url
    begin(run, gone)
    subject = waits_for_a_person(run)
    assert subject["reason"] == "network" and subject["code"] == "meta-unavailable"
    assert 21_000 < clock.seconds <= 21_600 + 7 * 80  # six hours, and the retries
    waited = len(run.project.told("waiting"))
    assert waited > 70
    run.answer("again")  # its waits are counted anew
    assert waits_for_a_person(run)["reason"] == "network"
    assert clock.seconds > 2 * 21_000
    run.answer("end")
    assert run.ending == ("FAILED", "meta-unavailable", 1)


class Night(VirtualClock):
    """Time in which a server comes back at some second."""

    def __init__(self, at: float, back: Callable[[], object]) -> None:
        super().__init__()
        self._at, self._back = at, back

    async def sleep(self, seconds: float) -> None:
        before = self.seconds
        await super().sleep(seconds)
        if before < self._at <= self.seconds:
            self._back()


def test_a_server_that_is_back_in_the_morning_finds_the_run_waiting(
    run: Run, serve: Callable[..., ModelServer]
) -> None:
    with ModelServer() as gone:
        port = gone.port
    clock = Night(5 * 3600, lambda: serve(PLAN, WORK, DONE, YES, port=port))
    run.adjust = lambda options: replace(options, clock=clock)
    begin(run, gone.base_url)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert 5 * 3600 <= clock.seconds < 6 * 3600
    assert run.result["worker_runs"] == 1 and len(run.project.told("waiting")) > 50
    assert run.result["duration_sec"] < 3600  # waiting is no time of the run


@pytest.mark.whole
def test_after_a_night_without_a_server_the_answer_again_completes_the_run(
    run: Run, serve: Callable[..., ModelServer]
) -> None:
    with ModelServer() as gone:
        port = gone.port
    clock = VirtualClock()
    run.adjust = lambda options: replace(options, clock=clock)
    begin(run, gone.base_url)
    assert waits_for_a_person(run)["reason"] == "network"
    serve(PLAN, WORK, DONE, YES, port=port)
    run.answer("again")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["worker_runs"] == 1


def test_no_wait_is_allowed_so_it_is_asked_at_once(run: Run) -> None:
    with ModelServer() as server:
        gone = server.base_url
    begin(run, gone, **WITHIN)
    text = run.result["waiting"]["text"]
    assert waits_for_a_person(run)["reason"] == "network"
    assert "it cannot be reached" in text and "runner.meta.base_url" in text


@pytest.mark.whole
def test_a_run_that_is_to_fail_fails(run: Run, serve: Callable[..., ModelServer]) -> None:
    begin(run, serve(*GARBAGE).base_url, meta={"on_unusable": "fail"})
    assert run.ending == ("FAILED", "meta-garbage", 1)


def test_the_next_candidate_is_asked_before_a_person(
    run: Run, serve: Callable[..., ModelServer]
) -> None:
    first, second = serve(*GARBAGE), serve(PLAN, WORK, DONE, YES)
    both = [
        {"kind": "openai-chat", "model": name, "base_url": server.base_url}
        for name, server in (("m-1", first), ("m-2", second))
    ]
    begin(run, first.base_url, profiles={"meta": {"candidates": both}})
    assert run.ending == ("COMPLETE", "complete", 0)
    assert "fail-over" in [code for code, _ in run.warnings()]


@pytest.mark.whole
def test_a_forced_candidate_has_no_next(run: Run, serve: Callable[..., ModelServer]) -> None:
    first, second = serve(*GARBAGE), serve()
    both = [
        {"kind": "openai-chat", "model": name, "base_url": server.base_url}
        for name, server in (("m-1", first), ("m-2", second))
    ]
    force = {"candidates": both, "force": "openai-chat:m-1"}
    begin(run, first.base_url, profiles={"meta": force})
    waits_for_a_person(run)
    with pytest.raises(UsageError, match="nobody takes its place"):
        run.answer("model: m-2")
    assert run.state()["question"] is not None


# -- programs never ask ---------------------------------------------------------------------------


def test_a_script_fails_as_ever(run: Run) -> None:
    garbage = {"reply": "no message", "expect": "next_action"}
    run.start([plan(), *[garbage] * 4], test=TEST)
    assert run.ending == ("FAILED", "meta-garbage", 1)


def test_a_script_that_ends_or_expects_another_message_fails(run: Run) -> None:
    run.start([plan()], test=TEST)
    assert run.ending == ("FAILED", "script-ended", 1)


# -- a person in its place ------------------------------------------------------------------------


def test_a_person_orders_a_worker_and_asks_for_completion(
    run: Run, serve: Callable[..., ModelServer]
) -> None:
    begin(run, serve(PLAN, *GARBAGE, *GARBAGE, YES).base_url, worker=f"cat >> seen.txt; {FIX}")
    waits_for_a_person(run)
    run.answer("worker: Make add() add.")
    assert waits_for_a_person(run)["asked_for"] == "next_action"
    assert "Make add() add." in run.project.read("seen.txt")
    run.answer("complete")
    assert run.ending == ("COMPLETE", "complete", 0)
    reasons = [str(record.data["reason"]) for record in run.log("decision")]
    assert len(reasons) == 2 and all("A person ordered" in reason for reason in reasons)
    assert run.result["worker_runs"] == 1


def test_a_person_may_go_on_without_a_plan(run: Run, serve: Callable[..., ModelServer]) -> None:
    begin(run, serve(*GARBAGE, DONE, YES).base_url)
    run.answer("worker: Make add() add.")
    assert run.ending == ("COMPLETE", "complete", 0)
    (criterion,) = run.result["acceptance_criteria"]
    assert criterion["origin"] == "task"


EMPTY = reply("plan_task", {"acceptance_criteria": []}).text


def test_a_plan_adds_nothing_where_people_gave_all_criteria(
    run: Run, serve: Callable[..., ModelServer]
) -> None:
    given = [{"id": "AC-1", "description": "It adds.", "check": {"kind": "test"}}]
    meta = {"kind": "openai-chat", "model": "m-1"}
    meta["base_url"] = serve(EMPTY, WORK, DONE, YES).base_url
    run.start(None, FIX, test=TEST, acceptance_criteria=given, runner={"meta": meta})
    assert run.ending == ("COMPLETE", "complete", 0)
    assert [one["id"] for one in run.result["acceptance_criteria"]] == ["AC-1"]


@pytest.mark.whole
def test_a_plan_without_any_criterion_is_asked_for_again(
    run: Run, serve: Callable[..., ModelServer]
) -> None:
    begin(run, serve(EMPTY, PLAN, WORK, DONE, YES).base_url)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["meta_calls"] == 5


@pytest.mark.whole
def test_complete_of_a_person_is_a_request_like_any_other(
    run: Run, serve: Callable[..., ModelServer]
) -> None:
    begin(run, serve(PLAN, WORK, *GARBAGE, *GARBAGE).base_url, worker=NO_FIX)
    run.answer("complete")
    assert waits_for_a_person(run)["asked_for"] == "next_action"
    assert "completion-refused" in [code for code, _ in run.warnings()]
    run.answer("end")
    assert run.ending == ("FAILED", "meta-garbage", 1)


def test_a_judge_is_not_stood_in_for_by_the_word_complete(
    run: Run, serve: Callable[..., ModelServer]
) -> None:
    begin(run, serve(PLAN, WORK, DONE, *GARBAGE).base_url)
    assert waits_for_a_person(run)["asked_for"] == "completion_assessment"
    with pytest.raises(UsageError, match="judge's word"):
        run.answer("complete")
    assert run.state()["question"] is not None
    run.answer("end")
    assert run.ending[0] == "FAILED"
    run.accept(reason="I read it.")
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.whole
def test_another_model_answers_from_then_on(run: Run, serve: Callable[..., ModelServer]) -> None:
    server = serve(PLAN, Fault(404, "The model `m-1` does not exist"), WORK, DONE, YES)
    begin(run, server.base_url)
    run.answer("model: m-2")
    assert run.ending == ("COMPLETE", "complete", 0)
    models = [request.body["model"] for request in server.requests]
    assert models == ["m-1", "m-1", "m-2", "m-2", "m-2"]
    assert "planner-changed" in [code for code, _ in run.warnings()]


def test_another_planner_comes_with_resume(run: Run, serve: Callable[..., ModelServer]) -> None:
    begin(run, serve(PLAN, WORK, *GARBAGE).base_url)
    waits_for_a_person(run)
    run.resume(planner="mock")
    # The mode of completion is the one that it was begun with, whoever plans.
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["worker_runs"] == 1


@pytest.mark.whole
def test_a_model_named_with_resume_is_kept(run: Run, serve: Callable[..., ModelServer]) -> None:
    server = serve(PLAN, *GARBAGE, *GARBAGE, WORK, DONE, YES)
    begin(run, server.base_url)
    run.resume(planner_model="m-2")
    waits_for_a_person(run)
    run.answer("again")
    assert run.ending == ("COMPLETE", "complete", 0)
    assert [request.body["model"] for request in server.requests][-4:] == ["m-2"] * 4


@pytest.mark.series(4)
@pytest.mark.parametrize(
    "text", ["maybe", "worker:", "worker: \0", "model:", "model: two words", "complete it", "TODO"]
)
def test_what_is_no_answer_leaves_the_question(
    run: Run, serve: Callable[..., ModelServer], text: str
) -> None:
    begin(run, serve(*GARBAGE).base_url)
    with pytest.raises(UsageError) as caught:
        run.answer(text)
    assert caught.value.code == "wrong-answer"
    assert run.state()["question"] is not None


@pytest.mark.parametrize(
    ("text", "what"),
    [(" Again. ", "again"), ("Worker: do it", "worker"), ("model:x/y", "model"), ("END", "end"),
     ("worker\uff1a直して", "worker")],
)  # fmt: skip
def test_orders_are_read_as_they_are_typed(text: str, what: str) -> None:
    assert read_order(text, "next_action").what == what


@pytest.mark.whole
def test_approvals_hold_for_a_persons_order_too(
    run: Run, serve: Callable[..., ModelServer]
) -> None:
    approve: dict[str, Any] = {"approve": {"worker": "always"}}
    begin(run, serve(PLAN, *GARBAGE, DONE, YES).base_url, **approve)
    run.answer("worker: Make add() add.")
    assert run.kind == "worker" and run.ending[2] == 4
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0)


@pytest.mark.whole
def test_a_question_inline_is_asked_again_where_it_is_mistyped(
    run: Run, serve: Callable[..., ModelServer]
) -> None:
    from agentrunner.state.people import Answer, Question

    said = iter(["hm", "model: m-9"])
    before = run.adjust

    def answer(question: Question) -> Answer:
        return Answer(id=question.id, kind=question.kind, text=next(said))

    run.adjust = lambda options: asking(answer)(before(options))
    server = serve(*GARBAGE, PLAN, WORK, DONE, YES)
    begin(run, server.base_url)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert [request.body["model"] for request in server.requests][4:] == ["m-9"] * 4


def test_the_baseline_is_measured_once_however_long_the_planner_is_away(run: Run) -> None:
    clock = VirtualClock()
    run.adjust = lambda options: replace(options, clock=clock)
    with ModelServer() as server:
        gone = server.base_url
    begin(run, gone, budget={"wait_sec": 500})
    assert len(run.project.told("waiting")) >= 3
    assert len([one for one in run.project.told("baseline") if one["target"] == "test"]) == 1


def test_it_is_in_the_note_and_in_the_list_of_what_people_decided(
    run: Run, serve: Callable[..., ModelServer]
) -> None:
    begin(run, serve(*GARBAGE).base_url)
    assert "agentrunner answer" in run.note()
    run.answer("end")
    assert "A person ended the run" in run.note()
