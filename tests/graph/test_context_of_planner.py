"""A planner with a short context is sent what fits into it, to the end of a long run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentrunner.text.cut import tokens
from tests.kit.metas import Item, assess, finish, look, plan, work
from tests.kit.model_server import ModelServer
from tests.kit.project import Project
from tests.kit.runs import SMALL, TEST, Run

CONTEXT = 8_192
ROUNDS = 9
GUARDED = {"id": "AC-1", "description": "It adds.", "check": {"kind": "test"}}
WORKER = (
    "seq 1 3000 >> log.txt; for n in 1 2 3; do seq 1 400 >> part$n.py; done; seq 1 900; "
    f'[ "$(wc -l < log.txt)" -lt {3000 * ROUNDS} ] || sed -i "s/a - b/a + b/" calc.py'
)
"""Changes a lot and says a lot, and gets it right in the last round."""


def long_run(tmp_path: Path, **meta: Any) -> Run:
    files = {**SMALL, "README.md": "All about it. " * 900}
    files |= {f"src/m{n}.py": "def f():\n    return 1\n" * 60 for n in range(40)}
    run = Run(Project.make(tmp_path, files))
    looks = look({"read": "log.txt"}, {"read": "README.md"})
    orders: list[Item] = [work("Do it as the page says. " * 200) for _ in range(ROUNDS)]
    script = [plan(GUARDED), *orders, looks, looks, finish(), assess(passed=("AC-1",))]
    runner = {
        "meta": {"max_loops": ROUNDS, **meta},
        "stuck_after": 0,
    }
    run.start(script, WORKER, test=TEST, runner=runner)
    return run


def sizes(run: Run) -> list[int]:
    return [sum(tokens(one["content"]) for one in sent) for sent in run.messages]


def test_prompts_of_a_long_run_stay_below_a_short_context(tmp_path: Path) -> None:
    run = long_run(tmp_path, context_tokens=CONTEXT)
    assert run.ending == ("COMPLETE", "complete", 0), run.result["text"]
    assert len(run.log("worker_run")) == ROUNDS
    assert max(sizes(run)) < CONTEXT - 512, sizes(run)
    # What was said once stays as it was, until older rounds are folded.
    begins = [[m["content"] for m in sent[:2]] for sent in run.messages]
    assert all(one == begins[0] for one in begins)


@pytest.mark.whole
def test_without_the_setting_they_are_as_long_as_ever(tmp_path: Path) -> None:
    run = long_run(tmp_path)
    assert run.ending == ("COMPLETE", "complete", 0), run.result["text"]
    assert max(sizes(run)) > 2 * CONTEXT


def of_script(*script: Item) -> list[str]:
    return [json.dumps(item["reply"]) for item in script]


def test_a_server_that_tells_its_context_is_asked_once(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, {**SMALL, "README.md": "All about it. " * 900}))
    run.environ = {**run.project.options(None).environ, "OPENAI_API_KEY": "sk-" + "5f" * 20}
    script = of_script(plan(GUARDED), work(), work(), finish(), assess(passed=("AC-1",)))
    with ModelServer(chat_script=script, context=CONTEXT) as server:
        meta = {"kind": "openai-chat", "model": "fake", "base_url": server.base_url}
        run.start(None, WORKER.replace(f"{3000 * ROUNDS}", "6000"), test=TEST,
                  runner={"meta": meta})  # fmt: skip
    assert run.ending == ("COMPLETE", "complete", 0), run.result["text"]
    (told,) = [record.data for record in run.log("planner_context")]
    assert told == {"of": [f"{server.base_url} fake"], "tokens": CONTEXT}
    assert max(sizes(run)) < CONTEXT - 512, sizes(run)


@pytest.mark.whole
def test_resume_sends_the_same_bytes_with_a_short_context(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, {**SMALL, "README.md": "All about it. " * 900}))
    orders = [work("Do it. " * 300) for _ in range(3)]
    script = [plan(GUARDED), *orders, {"error": {"status": 401}}, finish(),
              assess(passed=("AC-1",))]  # fmt: skip
    worker = WORKER.replace(f"{3000 * ROUNDS}", "9000")
    meta = {"context_tokens": CONTEXT, "max_loops": 5}
    run.start(script, worker, test=TEST, runner={"meta": meta, "stuck_after": 0})
    assert run.result["state"] == "FAILED"
    first = run.messages
    run.resume()
    assert run.ending == ("COMPLETE", "complete", 0), run.result["text"]
    again = run.messages
    assert again[: len(first)] == first
    assert again[len(first)][: len(first[-1]) - 1] == first[-1][:-1]
    assert "report 1-0" in first[-1][2]["content"]  # folded already
