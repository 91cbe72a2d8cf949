"""The `result` object where the engine came to none: every key, null for unknown."""

from __future__ import annotations

from typing import Any

from agentrunner.errors import AgentRunnerError
from agentrunner.screens.schema import PLAN_RESULT_KEYS, RESULT_KEYS


def error_result(
    error: AgentRunnerError, *, run_id: str | None = None, state: str | None = None
) -> dict[str, Any]:
    """The result of a command that failed with `error`, before or in the middle of a run."""
    result: dict[str, Any] = dict.fromkeys(RESULT_KEYS)
    result |= {
        "run_id": run_id,
        "state": state,
        "exit_code": error.exit_code,
        "reason": error.code,
        "error": error.as_dict(),
        "acceptance_criteria": [],
        "proof": [],
        "proofs": [],
        "changed_files": [],
        "bill": [],
        "usage": {
            "meta": {"input_tokens": None, "output_tokens": None},
            "worker": {"input_tokens": None, "output_tokens": None},
            "usd": None,
        },
    }
    return result


def plan_error_result(error: AgentRunnerError) -> dict[str, Any]:
    """The `plan_result` of a `plan run` that failed with `error` and has told none."""
    result: dict[str, Any] = dict.fromkeys(PLAN_RESULT_KEYS)
    return result | {
        "exit_code": error.exit_code,
        "tasks": {},
        "blocked": [],
        "questions": [],
        "interrupted": False,
        "error": error.as_dict(),
    }
