"""Hand-made events and results: what a run of the reference says, and hostile ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from agentrunner.errors import AgentRunnerError
from agentrunner.results import Result

Event = dict[str, Any]

HEADER = {
    "repo": "/home/hana/src/shop",
    "branch": "main",
    "landing": None,
    "part_of": None,
    "planner": "openai-chat gpt-5.5 at api.openai.com",
    "worker": "codex-cli 0.169.0 at api.openai.com",
    "key": "OPENAI_API_KEY stays out of the sandbox",
    "box": "bwrap 0.9.0; no route out, system read-only",
    "network": "allowlist",
    "reach": "its model, docs.example.org:443",
    "setup": None,
    "tests": "uv run pytest -q",
    "tests_where": "users-api.md",
    "env": {},
    "inputs": None,
    "limits": {
        "max_loops": 5,
        "rounds_at_most": 6,
        "run_time_sec": 1800,
        "wall_sec": 3600,
        "idle_timeout_sec": 600,
        "meta_calls": None,
        "worker_runs": None,
        "tokens": None,
        "usd": None,
    },
    "completion": "evidence",
    "policies": [],
    "notices": ["HF_TOKEN is too short to be masked in notes and logs."],
}


def planned(name: str, run: str = "pytest -q") -> dict[str, Any]:
    """A criterion of the event `plan`, with a check unless `run` is ""."""
    check = {"kind": "command", "run": run} if run else None
    return {"id": name, "description": "As in the PRD.", "check": check}


def story_events(title: str = "Register users over HTTP") -> list[Event]:
    """One run, two rounds, up to the second worker."""
    said: list[tuple[str, str, dict[str, Any]]] = [
        ("05:02:06", "run_started", {"header": HEADER, "task_id": "users-api", "title": title}),
        ("05:02:06", "state_changed", {"from": "PENDING", "to": "PLANNING"}),
        ("05:02:10", "baseline", {"target": "test", "command": "uv run pytest -q", "exit_code": 1,
                                  "outcome": "failed", "passed": 41, "failed": 1}),
        ("05:02:10", "baseline", {"target": "AC-1", "command": "pytest -q x", "exit_code": 4,
                                  "outcome": "failed"}),
        ("05:02:31", "meta_call", {"type": "plan_task", "attempt": 1, "duration_ms": 21_000,
                                   "usage": {"input_tokens": 9000, "cached_tokens": 0,
                                             "output_tokens": 900},
                                   "error": None}),
        ("05:02:31", "plan", {"acceptance_criteria": [planned("AC-1", ""), planned("AC-2"),
                                                      planned("AC-3", "")]}),
        ("05:02:39", "decision", {"action": "run_worker",
                                  "reason": "Add POST /users with validation and a unique index"}),
        ("05:02:39", "worker_started", {"worker_run_id": "1-001", "worker": "codex-cli",
                                        "model": None, "loop": 0, "round": 1,
                                        "rounds_at_most": 6}),
        ("05:03:00", "worker_event", {"worker_run_id": "1-001",
                                      "kind": "command_started", "command": "uv run pytest -q"}),
        ("05:03:09", "worker_event", {"worker_run_id": "1-001",
                                      "kind": "command_finished", "command": "uv run pytest -q",
                                      "exit_code": 1}),
        ("05:09:52", "worker_finished", {"worker_run_id": "1-001", "outcome": "completed",
                                         "exit_code": 0, "duration_sec": 433.0,
                                         "changed_files": 4, "hosts_refused": ["db.example:443"]}),
        ("05:10:05", "check", {"target": "test", "command": "uv run pytest -q", "exit_code": 1,
                               "outcome": "failed", "passed": 43, "failed": 1, "finding": ""}),
        ("05:10:05", "check", {"target": "AC-1", "command": "pytest -q x", "exit_code": 0,
                               "outcome": "passed", "detail": ""}),
        ("05:10:06", "check", {"target": "AC-2", "command": "pytest -q -k duplicate",
                               "exit_code": 1, "outcome": "failed",
                               "detail": "expected 409, got 500 (IntegrityError)"}),
        ("05:10:21", "decision", {"action": "run_worker",
                                  "reason": "重複した email の IntegrityError を 409 に変える。"
                                  "既存のテストはそのまま残し、新しいテストを 1 件追加すること。"}),
        ("05:10:21", "worker_started", {"worker_run_id": "1-002", "worker": "codex-cli",
                                        "model": None, "loop": 1, "round": 2,
                                        "rounds_at_most": 6}),
        ("05:11:40", "warning", {"code": "edited",
                                 "message": "edited while running, not by the worker: todo.md"}),
        ("05:11:41", "worker_event", {"worker_run_id": "1-001", "kind": "command_started",
                                      "command": "uv run pytest -q -k duplicate"}),
    ]  # fmt: skip
    return [
        {"ts": f"2026-11-21T{at}.000Z", "seq": number, "run_id": "users-api-7f3a", "event": name,
         **fields}
        for number, (at, name, fields) in enumerate(said, start=1)
    ]  # fmt: skip


def criterion(
    name: str, description: str, status: str = "passed", evidence: str = "checked", **more: Any
) -> dict[str, Any]:
    """One criterion of a result."""
    graded = {"checked": ("proven", "person"), "judged": ("judged", "planner")}
    grade, author = graded.get(evidence if status == "passed" else "", ("none", ""))
    given = {"critical": True, "grade": grade, "author": author, "tests": [], "mapped_by": None,
             "origin": "task", "detail": ""}  # fmt: skip
    base = {"id": name, "description": description, "status": status, "evidence": evidence}
    return {**base, **given, **more}


CRITERIA = [
    criterion("AC-1", "A valid POST returns 201 and the id", detail="pytest ::test_create -> 0"),
    criterion("AC-2", "A taken e-mail returns 409", detail="pytest -q -k duplicate -> 0"),
    criterion("AC-3", "The README documents the endpoint", detail="README.md:88"),
    criterion("AC-4", "Error texts are friendly", evidence="judged"),
    criterion("AC-5", "Rate limit", "unknown", "none", critical=False),
]


TESTS: dict[str, Any] = {
    "command": "uv run pytest -q", "exit_code": 0, "passed": None, "failed": None,
    "finding": "", "failing": [], "reader": "pytest", "red": [], "known_red": [],
    "turned": [], "still_red": [], "newly_red": [], "gone": [], "flaky": [],
    "baseline_exit_code": None, "baseline_passed": None, "baseline_failed": None, "added": 0,
}  # fmt: skip
"""A test command of which nothing else is known."""


def changed(base: Result, **changes: Any) -> Result:
    """A result with other values."""
    return Result.model_validate({**base.as_dict(), **changes})


def result(**changes: Any) -> Result:
    """The result of a good end, with changes."""
    base = Result.of_error(AgentRunnerError("none")).as_dict()
    base |= {
        "run_id": "users-api-7f3a",
        "task_id": "users-api",
        "title": "Register users over HTTP",
        "state": "COMPLETE",
        "exit_code": 0,
        "reason": "complete",
        "grade": "judged",
        "error": None,
        "note": "/home/hana/src/shop/.agent-runner/task-users-api.md",
        "repo": "/home/hana/src/shop",
        "loops": 1,
        "worker_runs": 2,
        "meta_calls": 5,
        "acceptance_criteria": CRITERIA,
        "test": {
            **TESTS, "passed": 44, "failed": 0,
            "baseline_exit_code": 1, "baseline_passed": 41, "baseline_failed": 1, "added": 2,
        },
        "proof": ["AC-1: `pytest -q x` failed before and passes now"],
        "proofs": [{"target": "AC-1", "author": "person", "grade": "proven", "tests": [],
                    "text": "AC-1: `pytest -q x` failed before and passes now", "notes": []}],
        "changed_files": ["README.md", "src/app.py", "src/users.py", "tests/test_users.py"],
        "lines_added": 241,
        "lines_removed": 12,
        "usage": {
            "meta": {"input_tokens": 30_000, "output_tokens": 1_400},
            "worker": {"input_tokens": 400_000, "output_tokens": 2_000},
            "usd": None,
        },
        "duration_sec": 1121.0,
    }  # fmt: skip
    return Result.model_validate({**base, **changes})


JAPANESE = {
    "task_id": "task-1121",
    "title": "ユーザー登録 API",
    "acceptance_criteria": [
        criterion("AC-1", "正しい入力なら 201 と ID を返す", detail="pytest ::test_create -> 0"),
        criterion("AC-2", "登録済みのメールアドレスなら 409 を返す", "failed", detail="500 が返る"),
        criterion("AC-3", "エラーメッセージが利用者に分かりやすい", evidence="judged"),
        criterion(
            "AC-4", "1 クライアントにつき毎秒 5 回までに制限する", "unknown", "none", critical=False
        ),
    ],
}

EVIL = "a\x1b]52;c;aGk=\x07b\x1b[2Jc\rd\u202egnp.exe\x9b31mz"
"""Clipboard, clear screen, overwrite, bidi and C1 in one text."""


NOW = datetime(2026, 11, 21, 14, 30, tzinfo=UTC)


def row(run_id: str, title: str, state: str, started: float, took: float | None) -> dict[str, Any]:
    begin = NOW - timedelta(minutes=started)
    end = None if took is None else (begin + timedelta(minutes=took)).isoformat()
    return {
        "run_id": run_id, "task_id": run_id[:-5], "title": title, "repo": "/r", "state": state,
        "waiting": None, "started_at": begin.isoformat(), "finished_at": end,
    }  # fmt: skip


ROWS = [
    {**row("users-api-7f3a", "Register users over HTTP", "PLANNING", 9.2, None), "waiting": "plan"},
    {**row("fix-totals-c21e", "Rounding of totals", "FIXING", 61.7, None), "rounds": 3,
     "rounds_at_most": 6, "worked_sec": 600,
     "driven_at": (NOW - timedelta(minutes=11)).isoformat()},
    {**row("csv-export-09bd", "CSV export", "NEEDS_REVIEW", 60 * 26, 14), "rounds": 2,
     "worked_sec": 312.4},
    row("task-1119-e4d0", "ユーザー登録 API をつくり直して、メールアドレスを一意にする", "COMPLETE",
        60 * 50, 6.5),
    row("old-parser-b7a2", "Drop the old parser", "FAILED", 60 * 24 * 12, 48.5),
]  # fmt: skip
