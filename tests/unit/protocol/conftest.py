"""Valid payloads of the five messages, and the ways in which models write them down."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from agentrunner.protocol import MessageType

PAYLOADS: dict[MessageType, dict[str, Any]] = {
    "plan_task": {
        "task_id": "TASK-123",
        "acceptance_criteria": [
            {
                "id": "AC-1",
                "description": "A user can log in: with e-mail and password",
                "type": "e2e",
                "critical": True,
                "check": {
                    "kind": "playwright",
                    "file": "tests/e2e/login.spec.ts",
                    "test_name": "login_with_email_password",
                },
            },
            {"id": "AC-2", "description": "誤ったパスワードは 401", "critical": False},
            {"id": "AC-3", "description": "It builds", "check": "npm run build"},
        ],
    },
    "next_action": {
        "decision": {"action": "run_worker", "reason": "AC-2 is red"},
        "worker_call": {
            "worker_type": "codex",
            "mode": "exec",
            "prompt": "Fix the login.\n\n```sh\nnpm test\n```\nthen stop\n",
            "flags": ["--verbose"],
            "env": {"CI": "1"},
            "use_stdin": True,
        },
        "used_patterns": ["implement_feature"],
    },
    "completion_assessment": {
        "summary": "All but one.",
        "details": {"passed_criteria": ["AC-1"], "remaining_risks": ["no load test"]},
        "all_criteria_satisfied": False,
        "by_criterion": [
            {"id": "AC-1", "status": "passed", "comment": "seen"},
            {"id": "AC-2", "status": "failed", "comment": "500"},
        ],
    },
    "decompose": {
        "understanding": 'The user wants a "product list page".\nA front end is needed.\n',
        "phases": [
            {
                "name": "Implementation design",
                "milestone": "design",
                "tasks": [
                    {
                        "id": "temp-task-1",
                        "title": "Component design",
                        "description": "Design Props and State",
                        "wbs_level": 2,
                        "estimated_effort": "small",
                        "acceptance_criteria": ["Props match the design"],
                        "suggested_impl": {
                            "language": "typescript",
                            "file_paths": ["src/ProductCard.svelte"],
                        },
                    }
                ],
            }
        ],
        "potential_conflicts": [
            {"file": "src/+page.svelte", "tasks": ["TASK-001"], "warning": "may change"}
        ],
    },
    "plan_patch": {
        "understanding": "Delete unneeded tasks and put the order right",
        "operations": [
            {
                "op": "create",
                "temp_id": "temp-001",
                "title": "New task",
                "acceptance_criteria": ["completion condition is met"],
                "dependencies": [],
                "wbs_level": 2,
                "parent_id": "node-root",
                "position": {"after": "existing-task-id"},
            },
            {"op": "update", "task_id": "existing-task-id", "title": "updated title"},
            {"op": "move", "task_id": "existing-task-id", "position": {"index": 0}},
            {"op": "delete", "task_id": "obsolete-task-id", "cascade": False},
        ],
        "potential_conflicts": [],
    },
}


def wrapped(type_: MessageType, payload: dict[str, Any]) -> dict[str, Any]:
    return {"type": type_, "version": 1, "payload": payload}


def flat(type_: MessageType, payload: dict[str, Any]) -> dict[str, Any]:
    return {"type": type_, **payload}


def as_json(message: dict[str, Any]) -> str:
    return json.dumps(message, ensure_ascii=False)


def as_yaml(message: dict[str, Any]) -> str:
    return yaml.safe_dump(message, allow_unicode=True, sort_keys=False)


def bare(text: str) -> str:
    return text


def fence(text: str) -> str:
    return f"Here it is:\n\n```{'json' if text.startswith('{') else 'yaml'}\n{text}\n```\nDone."


def codex_header(text: str) -> str:
    return (
        "OpenAI Codex v0.65.0 (research preview)\n--------\nworkdir: /repo\nmodel: some-model\n"
        "provider: openai\n--------\nuser\nAnswer in this form:\n"
        "```yaml\ntype: next_action\ndecision: {action: abort, reason: example}\n```\n"
        "type: next_action\ndecision: {action: abort, reason: example}\n"
        f"codex\n{text}\n"
    )


@pytest.fixture(params=[wrapped, flat], ids=lambda f: f.__name__)
def shape(request: pytest.FixtureRequest) -> Callable[..., dict[str, Any]]:
    chosen: Callable[..., dict[str, Any]] = request.param
    return chosen


@pytest.fixture(params=[as_yaml, as_json], ids=lambda f: f.__name__)
def notation(request: pytest.FixtureRequest) -> Callable[..., str]:
    chosen: Callable[..., str] = request.param
    return chosen


@pytest.fixture(params=[bare, fence, codex_header], ids=lambda f: f.__name__)
def dress(request: pytest.FixtureRequest) -> Callable[..., str]:
    chosen: Callable[..., str] = request.param
    return chosen


@pytest.fixture(scope="session")
def payloads() -> dict[MessageType, dict[str, Any]]:
    return PAYLOADS
