"""A planner that chooses among workers, and what it is told of the repository before it plans."""

from __future__ import annotations

import json
from typing import Any

from tests.kit.metas import Item, assess, finish, plan, work
from tests.kit.runs import FIX, TEST, Run

KEPT = "printf '%s\\0' \"$@\" >> calls; env -0 >> calls; cat >> calls; echo >> calls"
"""What a worker was started with: arguments, environment and stdin, kept in the repository."""
HOSTILE: list[dict[str, Any]] = [
    {"flags": ["--dangerously-skip-permissions"]},
    {"flags": ["-c", "notify=evil"]},
    {"env": {"LD_PRELOAD": "./evil.so"}},
    {"env": {"PATH": "./evil"}},
    {"env": {"CI": "env:HOME"}},
    {"tool_specific": {"sandbox_mode": "evil"}},
    {"worker_type": "evil"},
    {"mode": "evil"},
]


def crew(*commands: str) -> dict[str, Any]:
    """Candidates of kind `command`, called "first" and "second"; `worker` makes room for them."""
    names = ("first", "second")
    workers = [
        {"kind": "command", "name": name, "command": ["sh", "-c", command, "sh"]}
        for name, command in zip(names, commands, strict=True)
    ]
    return {"worker": None, "workers": workers}


def ordered(**changes: Any) -> Item:
    """An order with fields that a planner may or may not set."""
    item = work("--help\n$(touch evil)")
    item["reply"]["payload"]["worker_call"] |= changes
    return item


def test_the_planner_picks_a_worker_by_its_name(run: Run) -> None:
    script = [plan(), work("Try."), work("Go on.", worker="second"), finish(), assess()]
    run.start(script, test=TEST, runner=crew("true", FIX))
    assert run.ending == ("COMPLETE", "complete", 0)
    assert [one.data["member"] for one in run.log("worker_run")] == ["first", "second"]


def test_nothing_hostile_of_an_order_reaches_the_worker(run: Run) -> None:
    """Three refused orders before each that is obeyed."""
    refused = [ordered(**changes) for changes in HOSTILE]
    rounds = [[*refused[at : at + 3], ordered()] for at in range(0, len(refused), 3)]
    script = [plan(), *(item for one in rounds for item in one), finish(), assess()]
    run.start(script, f"{KEPT}; {FIX}", test=TEST, runner={"meta": {"max_loops": 9}})
    assert run.ending == ("COMPLETE", "complete", 0)
    assert run.result["worker_runs"] == len(rounds)
    errors = [one.data["error"] for one in run.log("meta_call") if one.data["error"]]
    assert len(errors) == len(HOSTILE)
    calls = run.project.read("calls")
    assert calls.count("--help\n$(touch evil)") == len(rounds)
    for word in ("--dangerously-skip", "notify", "LD_PRELOAD", "./evil", "sandbox_mode"):
        assert word not in calls
    assert not (run.project.repo / "evil").exists()


# -- the repository, for the plan -----------------------------------------------------------------


def requests(run: Run, type_: str) -> list[str]:
    """What the planner was asked in messages of this type."""
    files = sorted(run.folder.planner_dir.glob(f"*-{type_}.request.json"))
    return [
        "\n".join(one["content"] for one in json.loads(file.read_text("utf-8"))[1:])
        for file in files
    ]


def block(request: str) -> str:
    """What is between the markers of the repository, without their numbers."""
    return request.partition("[[BEGIN repository ")[2].partition("[[END repository ")[0][16:]


def test_a_model_is_told_of_the_repository_the_same_again(run: Run) -> None:
    run.project.write({"README.md": "# A calculator\n", "AGENTS.md": "Use two blanks.\n"})
    runner = {"approve": {"plan": "always"}}
    run.start(None, FIX, test=TEST, runner=runner)
    run.project.write({"README.md": "# Another one\n"})
    run.reject("Too vague.")
    first, second = map(block, requests(run, "plan_task"))
    assert "# A calculator" in first and "Use two blanks." in first and "calc.py" in first
    assert first == second
    assert {block(one) for one in requests(run, "next_action")} <= {first}


def test_what_reads_no_prompt_does_not_pay_for_it(run: Run) -> None:
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    assert "BEGIN repository" not in "".join(requests(run, "plan_task"))
    assert not (run.folder.root / "repository.json").exists()
