"""What a run leaves and tells: the note in its place, events in order, a result with every key."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agentrunner.results import Result
from agentrunner.screens.summary import summary_screen
from tests.kit.metas import assess, consult, finish, give_up, plan, work
from tests.kit.runs import FIX, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")

HAPPY = [plan(), work(), finish(), assess()]


# -- notes --------------------------------------------------------------------------------------


def test_the_note_of_an_earlier_run_is_kept(run: Run) -> None:
    run.start(HAPPY, FIX, test=TEST)
    first, text = run.id, run.note()
    run.start([plan(), give_up()], test=TEST)
    assert run.id != first
    folder = run.project.repo / ".agent-runner"
    assert sorted(path.name for path in folder.iterdir()) == ["task-probe.1.md", "task-probe.md"]
    assert (folder / "task-probe.1.md").read_text("utf-8") == text
    assert run.id in (folder / "task-probe.md").read_text("utf-8")


@pytest.mark.whole
def test_pause_and_end_write_the_same_note(run: Run) -> None:
    run.start([plan(), consult("Which?"), give_up()], test=TEST)
    note = run.result["note"]
    assert "Which?" in run.note()
    run.answer("None.")
    assert run.result["note"] == note
    assert "None." in run.note()
    assert len(list((run.project.repo / ".agent-runner").iterdir())) == 1


def test_the_note_is_no_change_of_the_run(run: Run) -> None:
    run.start([plan(), consult("Which?"), *HAPPY[1:]], FIX, test=TEST)
    run.answer("Any.")
    assert run.result["changed_files"] == ["calc.py"]
    assert run.log("human_edit") == []


@pytest.mark.whole
def test_a_test_that_is_gone_is_called_deleted(run: Run) -> None:
    command = 'for test in tests/*; do sh "$test" || exit 1; done'
    runner = {"meta": {"max_loops": 0}}
    run.project.write({"tests/also.sh": "true\n"})
    run.start([plan(), work(), finish()], "rm tests/run.sh", test=command, runner=runner)
    assert run.result["deleted_files"] == ["tests/run.sh"]
    screen = summary_screen(Result.model_validate(run.result))
    assert "1 changed, +0 -1   tests/run.sh (deleted)" in screen
    assert "as the worker left what decides it (tests/run.sh (deleted): " in run.note()
    assert "`tests/run.sh`; deleted: `tests/run.sh`" in run.note()


# -- events -------------------------------------------------------------------------------------

TEXT, NUMBER, WHOLE = {"type": "string"}, {"type": "number"}, {"type": "integer"}
LIST, OBJECT = {"type": "array"}, {"type": "object"}
OUTCOME = {"enum": ["completed", "failed", "timeout", "idle_timeout", "output_limit",
                    "interrupted", "lost", "infra"]}  # fmt: skip
STATE = {"enum": ["PENDING", "PLANNING", "RUNNING", "VALIDATING", "FIXING", "COMPLETE", "FAILED",
                  "NEEDS_REVIEW"]}  # fmt: skip
COLOUR = {"enum": ["passed", "failed", "not_run"]}


def maybe(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


RESULT_KEYS = """task_id title state exit_code reason error note repo loops worker_runs
    meta_calls acceptance_criteria test proof changed_files usage duration_sec waiting""".split()
EVENTS: dict[str, dict[str, Any]] = {
    "run_started": {},
    "run_resumed": {"attempt": WHOLE},
    "state_changed": {"from": STATE, "to": STATE},
    "baseline": {"target": TEXT, "command": TEXT, "exit_code": maybe(WHOLE), "outcome": COLOUR},
    "meta_call": {
        "type": TEXT, "attempt": WHOLE, "duration_ms": WHOLE, "usage": OBJECT, "error": maybe(TEXT),
        "usd": maybe(NUMBER),
    },
    "awaiting": {"who": TEXT, "what": TEXT},
    "plan": {"acceptance_criteria": LIST},
    "decision": {"action": TEXT, "reason": TEXT},
    "worker_started": {
        "worker_run_id": TEXT, "worker": TEXT, "model": maybe(TEXT), "loop": WHOLE,
    },
    "worker_event": {"kind": TEXT},
    "worker_finished": {
        "worker_run_id": TEXT, "outcome": OUTCOME, "exit_code": maybe(WHOLE),
        "duration_sec": NUMBER, "changed_files": WHOLE,
    },
    "check": {"target": TEXT, "command": TEXT, "exit_code": maybe(WHOLE), "outcome": COLOUR},
    "assessment": {"satisfied": {"type": "boolean"}, "summary": TEXT, "by_criterion": OBJECT},
    "question": {"id": TEXT, "kind": TEXT, "text": TEXT, "options": LIST},
    "answer": {"id": TEXT},
    "note_written": {"path": TEXT},
    "warning": {"code": TEXT, "message": TEXT},
    "result": {name: {} for name in RESULT_KEYS},
}  # fmt: skip


def test_every_event_has_its_fields_and_seq_rises_over_the_whole_life(run: Run) -> None:
    criterion = {"id": "AC-1", "description": "x", "check": {"kind": "test"}}
    extra = {"id": "AC-2", "description": "y", "critical": False, "check": "test -e calc.py"}
    script = [
        plan(criterion), consult("Which?"), work(used_patterns=["no-such"]), give_up(),
        finish(), assess(passed=("AC-1",)),
    ]  # fmt: skip
    run.start(script, f"echo hello; {FIX}", test=TEST, acceptance_criteria=[extra])
    run.answer("Any.")
    run.resume()
    assert run.ending == ("COMPLETE", "complete", 0)
    events = run.project.events
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert all(a["ts"] <= b["ts"] for a, b in pairwise(events))
    assert {event["run_id"] for event in events} == {run.id}
    assert {event["event"] for event in events} == set(EVENTS)
    for event in events:
        fields = EVENTS[event["event"]]
        schema = {"type": "object", "properties": fields, "required": ["ts", "seq", *fields]}
        jsonschema.Draft202012Validator(schema).validate(event)
        assert json.loads(json.dumps(event)) == event
    kept = [json.loads(line) for line in run.folder.events_file.read_text("utf-8").splitlines()]
    assert kept == events


@pytest.mark.whole
def test_states_are_told_as_they_follow_each_other(run: Run) -> None:
    run.start(HAPPY, FIX, test=TEST)
    moves = [(event["from"], event["to"]) for event in run.project.told("state_changed")]
    assert moves == [
        ("PENDING", "PLANNING"),
        ("PLANNING", "RUNNING"),
        ("RUNNING", "VALIDATING"),
        ("VALIDATING", "COMPLETE"),
    ]
    names = [event["event"] for event in run.project.events]
    assert names[0] == "run_started"
    assert names[-1] == "result"
    assert names.index("note_written") < len(names) - 1


def test_each_run_of_the_proof_says_what_it_waits_for(run: Run) -> None:
    run.start(HAPPY, FIX, test=TEST)
    assert run.ending == ("COMPLETE", "complete", 0)
    events = run.project.events
    done = next(at for at, event in enumerate(events) if event["event"] == "check")
    waits = [event for event in events[done:] if event["event"] == "awaiting"]
    waits = [event for event in waits if event["who"] != "planner"]
    assert waits and all(event["who"] == "tests" and event["why"] for event in waits)
    assert all(event["at_most_sec"] > 0 and event["what"] for event in waits)
    assert {"on the code before the run", "once more"} <= {event["why"] for event in waits}


def test_names_of_files_that_are_no_text_are_told_as_text(run: Run) -> None:
    worker = f"{FIX}; touch \"$(printf 'caf\\351')\""
    run.start([plan(), work(), give_up()], worker, test=TEST, protect=["caf*"])
    assert run.result["changed_files"] == ["caf\ufffd", "calc.py"]
    assert ("protected_path", "Protected paths were changed: caf\ufffd") in run.warnings()
    for event in run.project.events:
        assert json.dumps(event, ensure_ascii=False).encode()


# -- results ------------------------------------------------------------------------------------


def test_all_keys_are_there_at_every_end(run: Run) -> None:
    run.start([plan(), consult("Which?"), give_up()], test=TEST)
    waiting = run.result
    run.answer("Any.")
    failed = run.result
    run.start([{"reply": f"No, {number}."} for number in range(4)])
    unplanned = run.result
    run.start(HAPPY, FIX, test=TEST)
    complete = run.result
    keys = set(complete)
    assert keys >= {"run_id", *RESULT_KEYS}
    for result in (waiting, failed, unplanned, complete):
        assert set(result) == keys
        assert Path(result["note"]).is_absolute()
        assert Path(result["repo"]).is_absolute()
        assert isinstance(result["acceptance_criteria"], list)
        assert (result["waiting"] is None) == (result is not waiting)
    assert unplanned["test"] is None
    assert (unplanned["proof"], unplanned["changed_files"]) == ([], [])
    assert complete["test"]["baseline_exit_code"] == 1
    assert complete["test"]["exit_code"] == 0
