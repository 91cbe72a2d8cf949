"""Scenes by which a planner is tried: what they are, what is right, what a planner is shown."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agentrunner import cli
from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.spec import TaskSpec
from agentrunner.errors import UsageError
from agentrunner.protocol import take_reply
from agentrunner.protocol.looks import Looks
from agentrunner.registry import PLANNERS
from agentrunner.scenes.playing import Calls, Company, Played, play, play_all
from agentrunner.scenes.scene import LANGUAGES, OWN, Named, load_scenes, read_scene
from agentrunner.scenes.staging import staged
from agentrunner.scenes.verdict import GROUPS, INPUT_TOKENS, summed
from agentrunner.text.cut import tokens
from tests.kit.asked_planner import KEY
from tests.kit.fault_server import Fault, FaultServer, completion
from tests.kit.scene_player import ScenePlayer

ALL = load_scenes()
HEAD = "version: 1\ngroup: plan\nabout: x\n"


def spec_of(repo: Path, kind: str) -> TaskSpec:
    return load_task(
        TaskSource("goal", "Tried."), options={"meta": kind}, environ={"PATH": ""}, cwd=repo
    )


def test_there_are_enough_of_each_kind_in_both_languages() -> None:
    assert len(ALL) >= 40 and all(len(one.scene.about.split()) > 3 for one in ALL)
    by_language = {language: load_scenes(language=language) for language in LANGUAGES}
    names = [{one.id.removesuffix(f".{lang}") for one in by_language[lang]} for lang in LANGUAGES]
    assert names[0] == names[1] and len(names[0]) == len(list(OWN.glob("*.yaml")))
    assert {one.scene.group for one in ALL} == set(GROUPS)
    japanese = [one for one in by_language["ja"] if one.scene.task]
    assert all(not str(one.scene.task["prd"]).isascii() for one in japanese)


def test_the_scenes_own_answers_are_ones_that_the_parser_reads() -> None:
    for scene in (named.scene for named in ALL):
        for payload in scene.answer:
            looks = payload.keys() == {"looks"}
            told = {"type": "look" if looks else scene.asks, "version": 1, "payload": payload}
            message = take_reply(json.dumps(told), scene.asks, finish_reason="stop", looks=True)
            assert isinstance(message.payload, Looks) is looks


async def test_the_scenes_own_answers_are_right_as_a_run_asks_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ceiling. Every other scene in Japanese: what is staged does not know languages."""
    names = sorted({one.id.rpartition(".")[0] for one in ALL})
    chosen = load_scenes(only=[f"{name}.{LANGUAGES[n % 2]}" for n, name in enumerate(names)])
    monkeypatch.setitem(PLANNERS.own, "scene-player", "tests.kit.scene_player:ScenePlayer")
    monkeypatch.setattr(ScenePlayer, "scenes", chosen)
    monkeypatch.setattr(ScenePlayer, "asked", [])
    played = [one async for one in play_all(chosen, spec_of(tmp_path, "scene-player"), os.environ)]
    assert {one.id: one.why for one in played if one.grade != "right"} == {}
    trial = summed(played)
    assert trial.usable and trial.first == len(names) and trial.looks == 2
    assert trial.sentence == "It can steer and judge runs, and make plans."
    sent = {one.id: "" for one in played}
    numbers = [one.id for one in played for _ in range(one.calls)]
    for name, request in zip(numbers, ScenePlayer.asked, strict=True):
        sent[name] += "\n".join(message.content for message in request.messages)
    for name, text in sent.items():
        told = SHOWN.get(name.rpartition(".")[0], [])
        assert [words for words in told if words not in text] == [], name
        assert str(tmp_path) not in text and "agentrunner-scene-" not in text
        assert name.replace(".", "-") not in text and name not in text, "it would tell the answer"
    mean = sum(tokens(text) for text in sent.values()) / len(sent)
    assert INPUT_TOKENS / 1.5 < mean < INPUT_TOKENS * 1.5


SHOWN = {
    "red-tests": ["178.20000000000002 != 178", "+    sums = ["],
    "same-failure-twice": ["dates.py", "does not match format"],
    "judge-not-met": ["+", "README.md", "install.sh"],
    "attack-output": ["AssertionError", "mark_complete"],
    "look-behind-the-cut": ["NEW_CHECKOUT"],
    "completion-refused": ["Completion was refused, because: AC-1 failed"],
    "weakened-test": ["tests_changed", "or True"],
    "worker-did-nothing": ["no_op"],
    "plan-check-cannot-run": ["pytest: not found", "cannot run here"],
    "plan-bug": ["test_cart.Total.test_discount_from_six"],
}
"""What a planner must have been shown in a scene, in the words of the data."""


async def floor(tmp_path: Path) -> list[Played]:
    """A few scenes of each class, played by a program that reads no requirements."""
    names = ["plan-two-parts", "green", "weakened-test", "contradiction", "judge-met", "patch-add"]
    chosen = load_scenes(language="en", only=names)
    return [one async for one in play_all(chosen, spec_of(tmp_path, "checklist"), os.environ)]


def test_wrong_plans_of_plans_do_not_end_with_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each class that was played has to be met, that of plans as well."""
    monkeypatch.chdir(tmp_path)
    names = ("patch-remove", "split-too-vague", "patch-order")
    words = ["planners", "try", "--planner", "mock", "--language", "en", "--json"]
    assert cli.call(cli.app, [*words, *(f"--only={one}" for one in names)], "agentrunner") == 1
    trial = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in trial["played"]] == [f"{one}.en" for one in sorted(names)]
    assert not trial["met"] and {one["grade"] for one in trial["played"]} <= {"wrong", "unusable"}


async def test_a_program_without_a_model_is_the_floor(tmp_path: Path) -> None:
    grades = {one.id: one.grade for one in await floor(tmp_path)}
    assert grades == {
        "plan-two-parts.en": "wrong",
        "green.en": "right",
        "weakened-test.en": "wrong",
        "contradiction.en": "wrong",
        "judge-met.en": "wrong",
        "patch-add.en": "unusable",
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("version: 2\n", "my.yaml:1"),
        (
            "version: 1\ngroup: plan\nabout: x\nasks: plan_task\nright: [{}]\nanswer: []\n",
            "has task",
        ),
        ("- 1\n", "a scene is a map"),
        ("version: 1\ngroup: &a plan\n", "my.yaml"),
    ],
)
def test_what_is_no_scene_is_told_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "my.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        list(read_scene(file))
    assert told in f"{caught.value.path} {caught.value.message}"


def test_a_scene_of_ones_own_is_played_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    text = (OWN / "green.yaml").read_text(encoding="utf-8")
    (tmp_path / "mine" / "ours.yaml").write_text(f"languages: [ja]\n{text}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words = ["planners", "try", "--reference", "--scenes", "mine", "--only", "ours", "--json"]
    assert cli.call(cli.app, words, "agentrunner") == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in told["played"]] == ["ours.ja"]
    assert told["met"] and not told["usable"]  # a scene shows nothing of what was not played
    assert told["sentence"].startswith(
        "Well played: it decides by evidence. Not played, so nothing"
    )
    assert "judges the work" in told["sentence"] and "can steer" not in told["sentence"]
    assert cli.call(cli.app, words[:-1], "agentrunner") == 0
    shown = capsys.readouterr().out
    assert "Tried in part." in shown and "Usable." not in shown
    assert cli.call(cli.app, [*words[:-1], "--only", "nothing"], "agentrunner") == 2
    assert 'no scene is called "nothing"' in capsys.readouterr().err


def test_a_planner_out_of_reach_ends_with_5_and_the_trial_goes_on_later(
    tmp_path: Path,
    server: FaultServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AGENTRUNNER_STATE_DIR", str(tmp_path / "state"))
    good = completion(_reply(load_scenes(only=["green.en"])[0]))
    server.script = [completion("I think so."), good, Fault(401, '{"error": {"message": "no"}}')]
    words = ["planners", "try", "--planner", "openai-chat", "--base-url", server.url]
    words += ["--only", "green", "--planner-model", "gpt-5"]
    assert cli.call(cli.app, words, "agentrunner") == 5
    shown = capsys.readouterr()
    assert "2 scenes, 1 of them played" in shown.out and "(HTTP 401)" in shown.err
    assert "About 8,000 tokens in and 500 out: 0.01 USD at the prices of gpt-5." in shown.err
    assert "sk-secret" not in shown.out + shown.err
    server.script = [good]
    assert cli.call(cli.app, [*words, "--json"], "agentrunner") == 1  # of two first answers one
    told = json.loads(capsys.readouterr().out)
    assert [(one["id"], one["grade"], one["first"]) for one in told["played"]] == [
        ("green.en", "right", False),
        ("green.ja", "right", True),
    ]
    assert not list((tmp_path / "state" / "planner-trials").glob("*"))


async def test_a_server_that_cuts_prompts_is_told_once_and_what_comes_is_shown(
    tmp_path: Path, server: FaultServer
) -> None:
    [named] = load_scenes(only=["red-tests.en"])
    whole = json.loads(completion(_reply(named)).body)
    whole["usage"] = {"prompt_tokens": 2048, "completion_tokens": 90, "total_tokens": 2138}
    first = {**whole, "choices": [{**whole["choices"][0], "finish_reason": "length"}]}
    server.script = [
        Fault(body=json.dumps(first), streamed=True),
        Fault(body=json.dumps(whole), streamed=True),
    ]
    spec = spec_of(tmp_path, "openai-chat").with_sandbox(kind="none")
    spec = spec.with_planner(base_url=server.url)
    environ = {**os.environ, "OPENAI_API_KEY": KEY}
    company = Company(spec, environ)
    async with staged(named, spec, company.panel_of, tmp_path / "s", environ) as stage:
        played = await play(named, stage)
        events = stage.deps.events.read()
    assert played.grade == "right" and not played.first and played.calls == 2
    assert "read 2,048 of about" in played.cut and "OLLAMA_CONTEXT_LENGTH=" in played.cut
    assert not summed([played]).usable
    assert [one["code"] for one in events if one["event"] == "warning"] == ["prompt-cut"]
    awaited = [one for one in events if one["event"] == "awaiting"]
    assert awaited[0]["what"] == "next_action" and "text" not in awaited[0]
    assert any(one.get("text") and one["written_tokens"] > 0 for one in awaited)


def _reply(named: Named) -> str:
    payload = named.scene.answer[0]
    return json.dumps({"type": named.scene.asks, "version": 1, "payload": payload})


@pytest.mark.parametrize(
    ("error", "unusable"), [("questioned at decision.action: x", 0), ("invalid at x: y", 1)]
)
def test_an_answer_that_is_asked_back_is_no_unusable_one(error: str, unusable: int) -> None:
    calls = Calls()
    usage = dict.fromkeys(("input_tokens", "cached_tokens", "output_tokens"), 1)
    call = {"error": error, "usage": usage, "usd": None, "duration_sec": 1.0}
    calls.add(call, answered=True)
    assert len(calls.faults) == unusable
