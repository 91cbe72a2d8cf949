"""`doctor --planner`: one small call, and in plain words what is wrong and what mends it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentrunner import cli
from tests.kit.asked_planner import KEY
from tests.kit.fault_server import Fault, FaultServer, completion, server

__all__ = ["server"]  # a fixture
LLAMA = {
    "/props": {"default_generation_settings": {"n_ctx": 4096}},
    "/v1/models": {"data": [{"id": "qwen.gguf", "meta": {"n_ctx": 4096}}]},
}
OLLAMA = {
    "/api/version": {"version": "0.12.0"},
    "/api/ps": {"models": [{"name": "qwen3:8b", "context_length": 32768}]},
    "/v1/models": {"data": [{"id": "qwen3:8b"}, {"id": "gpt-oss:20b"}]},
}


WANTED = {"colour": "ultramarine", "number": {"kind": "five", "value": 47112}}


class Doctor:
    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self.capsys = capsys

    def __call__(self, code: int) -> dict[str, dict[str, Any]]:
        """The findings by name."""
        assert cli.call(cli.app, ["doctor", "--planner", "--json"], "agentrunner") == code
        shown = self.capsys.readouterr()
        assert KEY not in shown.out + shown.err
        [(title, findings)] = json.loads(shown.out)["sections"]
        assert title == "Planner (requests were sent to it)"
        return {one["name"]: one for one in findings}


@pytest.fixture
def doctor(
    server: FaultServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Doctor:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("AGENTRUNNER_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_MODEL", "qwen3:8b")
    server.pages = {}
    return Doctor(server.url, capsys)


def answer(content: str, read: int = 2100) -> Fault:
    body = json.loads(completion(content).body)
    body["usage"] = {"prompt_tokens": read, "completion_tokens": 9, "total_tokens": read + 9}
    return Fault(body=json.dumps(body), streamed=True)


def test_a_server_that_is_good_but_for_its_short_context(
    doctor: Doctor, server: FaultServer
) -> None:
    server.pages = LLAMA
    server.script = [answer(json.dumps(WANTED))]
    found = doctor(0)
    assert {name: one["mark"] for name, one in found.items()} == {
        "answer": "ok", "speed": "ok", "schema": "ok", "context": "WARN",
    }  # fmt: skip
    assert found["answer"]["text"].startswith("llama.cpp, some-model-0613, after ")
    assert found["context"]["cure"] == "llama-server -c 16384"
    [sent] = server.requests
    assert sent["max_completion_tokens"] == 256 and sent["response_format"]["json_schema"]["strict"]


def test_a_schema_that_is_refused_or_ignored_and_a_usage_that_is_missing(
    doctor: Doctor, server: FaultServer
) -> None:
    server.pages = OLLAMA
    whole = json.loads(completion("Hello!").body)
    del whole["usage"]
    refused = Fault(400, '{"error": {"message": "response_format is not supported"}}')
    server.script = [refused, Fault(body=json.dumps(whole), streamed=True)]
    found = doctor(0)
    assert found["schema"]["mark"] == "WARN" and "refused" in found["schema"]["text"]
    assert found["usage"]["mark"] == "WARN"
    assert found["context"] == {
        "mark": "ok",
        "name": "context",
        "text": "32,768 tokens",
        "cure": "",
    }


@pytest.mark.parametrize(
    "content",
    [
        "Hello! The word stands in line 120.",
        json.dumps({"colour": "blue", "number": {"kind": "four", "value": 4711}}),
        json.dumps({"colour": "ultramarine", "number": 120}),
        json.dumps({"colour": "ultramarine", "number": {"kind": "four", "value": 47112}}),
    ],
    ids=["all", "a word", "the union", "a branch of it"],
)
def test_a_schema_that_is_taken_and_ignored_in_silence_is_found_out(
    doctor: Doctor, server: FaultServer, content: str
) -> None:
    """Some servers make no constraint of a schema with a union, and answer 200."""
    server.pages = OLLAMA
    server.script = [answer(content)]
    found = doctor(0)["schema"]
    assert found["mark"] == "WARN" and found["text"].startswith("taken, and not enforced")
    [sent] = server.requests
    assert '"anyOf"' in json.dumps(sent["response_format"])


def test_a_prompt_that_is_cut_makes_it_unusable(doctor: Doctor, server: FaultServer) -> None:
    server.pages = OLLAMA
    server.script = [answer("Hello!", read=300)]
    found = doctor(5)
    assert "read 300 of about" in found["context"]["text"]
    assert found["context"]["cure"] == "OLLAMA_CONTEXT_LENGTH=4096 ollama serve"


@pytest.mark.parametrize(
    ("fault", "text", "cure"),
    [
        (Fault(401, "{}"), "its key or login is refused (HTTP 401)", "set OPENAI_API_KEY to a key"),
        (
            Fault(404, '{"error": {"message": "model not found", "code": "model_not_found"}}'),
            "its model is not known there",
            "it has qwen3:8b, gpt-oss:20b",
        ),
        (Fault(reset=True), "it cannot be reached", "see whether its server is up at http://"),
        (Fault(500, "boom"), "its server fails", "see the log of its server at http://"),
    ],
)
def test_what_is_wrong_is_told_with_its_cure(
    doctor: Doctor, server: FaultServer, fault: Fault, text: str, cure: str
) -> None:
    server.pages = OLLAMA
    server.script = [fault]
    found = doctor(5)["answer"]
    assert found["mark"] == "FAIL" and text in found["text"] and cure in found["cure"]


def test_without_a_planner_and_with_one_that_is_no_model(
    doctor: Doctor, server: FaultServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert "No planner is set" in doctor(5)["planner"]["text"]
    settings = tmp_path / ".config" / "agentrunner" / "config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("runner: {meta: {kind: checklist}}\n")
    assert doctor(0)["answer"]["text"].startswith("usable")
    assert server.requests == []


def test_kinds_are_listed_with_what_each_lacks(
    doctor: Doctor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kinds.jsonl"
    assert cli.call(cli.app, ["planners", "--json", "-o", str(file)], "agentrunner") == 0
    rows = {row["kind"]: row for row in map(json.loads, file.read_text("utf-8").splitlines())}
    assert set(rows) >= {"openai-chat", "chat", "codex-cli", "claude-code", "checklist", "script"}
    mine = rows["openai-chat"]
    assert (mine["ready"], mine["set"], mine["why"]) == (True, True, "OPENAI_API_KEY is set")
    assert mine["is"].startswith("openai-chat qwen3:8b at 127.0.0.1:") and mine["schema"]
    assert not rows["chat"]["ready"] and "provider:name" in rows["chat"]["needs"]
    assert rows["checklist"]["by_code"] and not rows["checklist"]["set"]
    assert KEY not in file.read_text("utf-8")
    assert cli.call(cli.app, ["planners"], "agentrunner") == 0
    assert "Set: openai-chat (OPENAI_API_KEY is set)." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("tokens", "mark", "text"),
    [
        (4096, "ok", "4,096 tokens, as runner.meta.context_tokens says"),
        (99_000, "WARN", "32,768 tokens, and runner.meta.context_tokens says 99,000: prompts would "
         "not fit"),
    ],
)  # fmt: skip
def test_a_length_that_the_settings_say_is_named(
    tokens: int, mark: str, text: str, doctor: Doctor, server: FaultServer, tmp_path: Path
) -> None:
    file = tmp_path / ".config/agentrunner/config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(f"runner: {{meta: {{context_tokens: {tokens}}}}}\n")
    server.pages = OLLAMA
    server.script = [answer(json.dumps(WANTED))]
    found = doctor(0)["context"]
    assert (found["mark"], found["text"]) == (mark, text)


def test_where_a_server_does_not_tell_its_length_the_setting_is_named(
    doctor: Doctor, server: FaultServer
) -> None:
    server.pages = {**OLLAMA, "/api/ps": {"models": []}}
    server.script = [answer(json.dumps(WANTED))]
    assert "runner.meta.context_tokens: TOKENS" in doctor(0)["context"]["text"]
