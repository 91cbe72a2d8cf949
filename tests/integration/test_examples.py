"""The examples do what they say, through the installed command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.kit.codex import require_codex
from tests.kit.model_server import ModelServer
from tests.kit.project import require_bwrap
from tests.kit.scenario import Scenario, Shell, Turn

EXAMPLES = Path(__file__).parents[2] / "examples"
AGENTRUNNER = Path(sys.executable).with_name("agentrunner")


@pytest.fixture(autouse=True)
def _box() -> None:
    require_bwrap()


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment built from nothing, with an empty home."""
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"),
        "LANG": "C.UTF-8",
        "AGENTRUNNER": str(AGENTRUNNER),
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_demo_completes_in_two_rounds_and_touches_nothing_else(
    tmp_path: Path, env: dict[str, str]
) -> None:
    before = contents(EXAMPLES)
    ran = subprocess.run(
        ["sh", str(EXAMPLES / "quickstart" / "run.sh")], env=env, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    (scratch,) = (tmp_path / "tmp").iterdir()
    note = (scratch / "shop" / ".agent-runner" / "task-cart-totals.md").read_text(encoding="utf-8")
    assert note.splitlines()[3].startswith("> **COMPLETE.** All 4 executable criteria passed.")
    assert list(evidence_table(note)) == [
        ("AC-1", "passed", "proven", "→ 0, failed before"),
        ("AC-2", "passed", "proven", "→ 0, failed before"),
        ("AC-3", "passed", "proven", "→ README.md:3, failed before"),
        ("AC-4", "passed", "green as before", "→ 0"),
    ]
    assert "2 worker runs" in note
    assert str(scratch) in ran.stdout
    assert list((tmp_path / "home").iterdir()) == []
    assert contents(EXAMPLES) == before


def evidence_table(note: str) -> Iterator[tuple[str, str, str, str]]:
    """Id, status, evidence and the end of the proof, row by row."""
    for line in note.splitlines():
        if line.startswith("| AC-"):
            cells = [cell.strip() for cell in line.split("|")]
            yield cells[1], cells[3], cells[4], cells[5][cells[5].index("→") :]


def test_codex_and_a_model_repair_the_shop(tmp_path: Path, env: dict[str, str]) -> None:
    env["AGENTRUNNER_CODEX"] = str(require_codex())
    env["OPENAI_API_KEY"] = "sk-test-0123456789abcdef"
    shop = tmp_path / "shop"
    shutil.copytree(EXAMPLES / "quickstart" / "shop", shop)
    fix = "sed -i 's/(line.price for/(line.price * line.pieces for/' shop/cart.py"
    model = Scenario(
        [
            Turn("The pieces are missing.", [Shell(fix)]),
            Turn("And two decimals.", [Shell("sed -i 's/% 100}/% 100:02}/' shop/money.py")]),
            Turn("Both are repaired."),
        ]
    )
    script = [json.dumps(reply) for reply in (PLAN, WORK, DONE, JUDGEMENT)]
    with ModelServer(model, chat_script=script) as server:
        env["OPENAI_BASE_URL"] = server.base_url
        result = run_codex(shop, env, server.base_url)
        asked = {request.path for request in server.requests}
    assert result["state"] == "COMPLETE", result
    assert asked >= {"/v1/chat/completions", "/v1/responses"}
    assert [(c["id"], c["status"], c["evidence"]) for c in result["acceptance_criteria"]] == [
        ("AC-1", "passed", "tested"),
        ("AC-2", "passed", "checked"),
        ("AC-3", "failed", "judged"),
    ]
    assert result["changed_files"] == ["shop/cart.py", "shop/money.py"]


def run_codex(shop: Path, env: Mapping[str, str], base_url: str) -> dict[str, Any]:
    """The example's task, with the worker's model on our server; its result."""
    command = [str(AGENTRUNNER), "run", str(EXAMPLES / "codex" / "task.yaml"), "--repo", str(shop)]
    options = ["--set", f"runner.worker.base_url={base_url}", "--json"]
    ran = subprocess.run(
        [*command, *options], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    result: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return result


PLAN = {
    "type": "plan_task",
    "version": 1,
    "payload": {
        "acceptance_criteria": [
            {
                "id": "AC-2",
                "description": "Amounts have two decimals, however small they are",
                "check": {
                    "kind": "command",
                    "run": "python3 -c 'from shop.money import show; assert show(5) == \"0.05\"'",
                },
            }
        ]
    },
}
WORK = {
    "type": "next_action",
    "version": 1,
    "payload": {
        "decision": {"action": "run_worker", "reason": "Both bugs are still there."},
        "worker_call": {
            "worker_type": "codex-cli",
            "mode": "exec",
            "prompt": "Count every piece, and show two decimals.",
        },
    },
}
DONE = {
    "type": "next_action",
    "version": 1,
    "payload": {"decision": {"action": "mark_complete", "reason": "All checks are green."}},
}
JUDGEMENT = {
    "type": "completion_assessment",
    "version": 1,
    "payload": {
        "summary": "Both bugs are repaired.",
        "all_criteria_satisfied": True,
        "by_criterion": [
            {"id": "AC-1", "status": "passed", "comment": "The named test passes."},
            {"id": "AC-2", "status": "passed", "comment": "Its check passes."},
            {"id": "AC-3", "status": "failed", "comment": "The README is as it was."},
        ],
    },
}
