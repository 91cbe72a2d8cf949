"""A whole run with the real Claude Code, boxed behind its gateway, against a scripted server."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from agentrunner.engine.runs import start
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import RunLog
from tests.kit.bwrap import require_bwrap
from tests.kit.claude import require_claude
from tests.kit.metas import reply, run_worker
from tests.kit.model_server import ModelServer
from tests.kit.process import living
from tests.kit.project import Project
from tests.kit.scenario import Scenario, Shell, Turn

KEYS = {
    "OPENAI_API_KEY": "sk-planner-" + "4f1c" * 12,
    "ANTHROPIC_API_KEY": "sk-ant-worker-" + "9d27" * 12,
}
SMALL = {"calc.py": "def add(a, b):\n    return a - b\n"}
TEST = 'python3 -c "import calc; assert calc.add(2, 3) == 5"'
TURNS = (
    Turn("I multiply.", [Shell("sed -i 's/a - b/a * b/' calc.py")]),
    Turn("I look.", [Shell("echo $ANTHROPIC_API_KEY; exit 3")]),
    Turn("It multiplies."),
    Turn("I add.", [Shell("sed -i 's/a [*] b/a + b/' calc.py")]),
    Turn("It adds."),
)
CRITERION = {"id": "AC-1", "description": "It adds.", "check": {"kind": "test"}}
SCRIPT = (
    reply("plan_task", {"acceptance_criteria": [CRITERION]}).text,
    reply("next_action", run_worker("claude-code", "Fix add in calc.py.")).text,
    reply("next_action", run_worker("claude-code", "It must add.", mode="resume")).text,
    reply("next_action", {"decision": {"action": "mark_complete", "reason": "Green."}}).text,
    reply(
        "completion_assessment",
        {
            "summary": "It adds.",
            "all_criteria_satisfied": True,
            "by_criterion": [{"id": "AC-1", "status": "passed", "comment": "It does."}],
        },
    ).text,
)


async def test_two_rounds_in_one_session_and_the_key_only_behind_the_gateway(
    tmp_path: Path,
) -> None:
    require_bwrap()
    binary = require_claude()
    project = Project.make(tmp_path, SMALL)
    with ModelServer(Scenario(TURNS), chat_script=SCRIPT) as server:
        runner = {
            "meta": {"kind": "openai-chat", "model": "planner", "base_url": server.base_url},
            "worker": {
                "kind": "claude-code",
                "command": [str(binary)],
                "model": "claude-sonnet-4-5",
                "base_url": server.address,
            },
            "sandbox": {"kind": "bwrap"},
        }
        options = replace(project.options(), environ={**os.environ, **KEYS})
        result = (await start(project.spec(test=TEST, runner=runner), options)).as_dict()
    folder = RunFolder.open(project.state_dir, result["run_id"])
    first, second = (dict(one.data) for one in RunLog(folder.log_file).history().worker_runs)
    assert (result["state"], result["exit_code"]) == ("COMPLETE", 0), (first, second)
    assert [first["outcome"], second["outcome"]] == ["completed", "completed"]
    assert first["session_id"] and second["session_id"] == first["session_id"]
    assert [one["exit_code"] for one in first["commands"]] == [None, 3]
    assert (first["changed_files"], second["changed_files"]) == (1, 1)
    # Three calls, then two, and none of the first three is counted again.
    assert [first["tokens"]["input"], second["tokens"]["input"]] == [3600, 2400]
    shown = {request.bearer for request in server.requests if "messages" in request.path}
    assert shown == {KEYS["ANTHROPIC_API_KEY"]}
    key = KEYS["ANTHROPIC_API_KEY"].encode()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if key in path.read_bytes()] == []
    assert living(tmp_path) == {}
