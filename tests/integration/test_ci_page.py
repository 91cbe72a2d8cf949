"""docs/how-to/ci.md: both files, read as YAML, and their steps run one after the other.

Tools that fetch something are played. The worker `codex-cli` is played by one of kind `command`,
its planner by a script; AgentRunner itself and the shell are real.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentrunner.commands.examples import EXAMPLES
from agentrunner.gateway.prices import load_prices
from agentrunner.gateway.wires import CallTokens
from tests.kit.bwrap import require_bwrap
from tests.kit.command_lines import agentrunner_lines, parse
from tests.kit.files import write
from tests.kit.metas import assess, finish, plan, work
from tests.kit.project import Project
from tests.kit.repository import committed
from tests.kit.runs import FIX, SMALL, TEST

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "ci.md"
AGENTRUNNER = f"""\
#!/bin/sh
for word; do
    shift
    [ "$word" = codex-cli ] && word=command
    set -- "$@" "$word"
done
exec {sys.executable} -m agentrunner "$@"
"""
TOOLS = {
    "sudo": "exit 0",
    "apt-get": "exit 0",
    "npm": '[ "$1 $2 $3" = "install -g @openai/codex@0.169.0" ]',
    # Both need a project to install, and leave the command.
    "pipx": '[ -f "${2%%\\[*}/pyproject.toml" ] && cp "$PLAYED/agentrunner" "$PLAYED/bin"',
    "pip": '[ -f "$3/pyproject.toml" ] && cp "$PLAYED/agentrunner" "$(dirname "$0")"',
    "python3": f"""\
if [ "$1 $2" = "-m venv" ]; then
    mkdir -p "$3/bin" && cp "$PLAYED/pip" "$3/bin"
else
    exec {sys.executable} "$@"
fi""",
}


def files() -> list[dict[str, Any]]:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    # GitHub's `on` is a truth value to YAML 1.1; it is not looked at.
    return [yaml.safe_load(block) for block in blocks]


def github_steps() -> list[dict[str, Any]]:
    [steps] = [file["jobs"]["run"]["steps"] for file in files() if "jobs" in file]
    return list(steps)


def gitlab_job() -> dict[str, Any]:
    [job] = [file["agentrunner"] for file in files() if "agentrunner" in file]
    return dict(job)


def gitlab_lines() -> list[str]:
    job = gitlab_job()
    return [*job["before_script"], *job["script"], *job["after_script"]]


def test_every_command_of_both_files_has_options_that_there_are() -> None:
    scripts = [step["run"] for step in github_steps() if "run" in step]
    for found in (
        agentrunner_lines("\n".join(scripts)),
        agentrunner_lines("\n".join(gitlab_lines())),
    ):
        assert [words[0] for words in found] == ["run", "diff"]
        for words in found:
            parse(words)


def test_a_limit_of_money_comes_with_a_model_whose_price_is_known() -> None:
    prices = load_prices(None)
    texts = [path.read_text("utf-8") for path in (PAGE.parents[1]).rglob("*.md")]
    texts += [PAGE.parents[2].joinpath("README.md").read_text("utf-8")]
    texts += [line for lines in EXAMPLES.values() for line in lines]
    lines = [line for text in texts for line in text.replace("\\\n", " ").splitlines()]
    runs = [re.sub(r"^.*?(?=agentrunner run )", "", line) for line in lines]
    limited = [
        words
        for line in runs
        if line.startswith("agentrunner run ") and "--worker" in line and "usd=" in line
        for words in agentrunner_lines(line)
    ]
    assert len(limited) >= 3
    for words in limited:
        assert "--model" in words, words
        model = words[words.index("--model") + 1]
        assert prices.cost(model, CallTokens(1000, 1000, 0)), model


class Machine:
    """A repository with a bug and a PRD, tools that only play, and a source to install from."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.played = place / "played"
        self.bin = self.played / "bin"
        self.bin.mkdir(parents=True)
        for name, script in TOOLS.items():
            self.program(self.played / name if name == "pip" else self.bin / name, script)
        self.program(self.played / "agentrunner", AGENTRUNNER.removeprefix("#!/bin/sh\n"))
        self.source = place / "source"
        self.source.mkdir()
        (self.source / "pyproject.toml").write_text("[project]\nname = 'agentrunner-graph'\n")
        replies = json.dumps([plan(), work(), finish(), assess()])
        runner = {
            "meta": {"kind": "script", "script": "replies.yaml"},
            "worker": {"kind": "command", "command": FIX},
        }
        front = json.dumps({"id": "adds", "test": TEST, "runner": runner})
        prd = f"---\n{front}\n---\n# It adds\n\nMake it add.\n"
        self.repo = Project.make(
            place, {**SMALL, "prds/adds.md": prd, "prds/replies.yaml": replies}
        ).repo

    @staticmethod
    def program(path: Path, script: str) -> None:
        write(path.parent, {path.name: f"#!/bin/sh\n{script}\n"})

    def step(self, script: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run lines as the servers do: the first that fails ends them."""
        inherited = {"PATH": f"{self.bin}:{os.environ['PATH']}", "LANG": "C.UTF-8", "CI": "true"}
        home = {"HOME": str(self.place / "home"), "PLAYED": str(self.played)}
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            cwd=self.repo, env={**inherited, **home, **environ}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def check_kept(self, folder: Path) -> None:
        """The events end with COMPLETE; the diff and the note are of that run."""
        last = json.loads((folder / "events.jsonl").read_text().splitlines()[-1])
        assert (last["event"], last["state"]) == ("result", "COMPLETE"), last
        assert "+    return a + b" in (folder / "change.diff").read_text()
        assert "COMPLETE" in (folder / "task-adds.md").read_text()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    require_bwrap()
    return Machine(tmp_path)


def filled(text: str, known: Mapping[str, str]) -> str:
    """A text of a workflow with its expressions replaced; an unknown one is an error."""
    return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: known[found[1]], text)


def test_the_workflow_of_github_does_what_it_says(machine: Machine) -> None:
    temp = machine.place / "temp"
    temp.mkdir()
    known = {
        "vars.AGENTRUNNER_REPOSITORY": "o/n", "vars.AGENTRUNNER_REF": "0" * 40,
        "secrets.OPENAI_API_KEY": "sk-none", "inputs.prd": "prds/adds.md",
        "runner.temp": str(temp),
    }  # fmt: skip
    uploaded = None
    for step in github_steps():
        match step.get("uses", "run").partition("@")[0]:
            case "actions/checkout" if "path" in step["with"]:
                shutil.copytree(machine.source, machine.repo / step["with"]["path"])
            case "actions/upload-artifact":
                uploaded = Path(filled(step["with"]["path"], known))
            case "run":
                environ = {name: filled(text, known) for name, text in step.get("env", {}).items()}
                ran = machine.step(step["run"], RUNNER_TEMP=str(temp), **environ)
                assert ran.returncode == 0, (step, ran)
    assert uploaded
    machine.check_kept(uploaded)


def test_the_job_of_gitlab_does_what_it_says(machine: Machine) -> None:
    job = gitlab_job()
    committed(machine.source, {})
    known = {"AGENTRUNNER_URL": str(machine.source), "AGENTRUNNER_REF": "HEAD"}
    known |= {"OPENAI_API_KEY": "sk-none", "PRD": "prds/adds.md"}
    known |= {
        name: text.replace("$CI_PROJECT_DIR", str(machine.repo))
        for name, text in job["variables"].items()
    }
    (machine.place / "tmp").mkdir()

    def placed(lines: list[str]) -> str:
        """The lines with the folders of the job's machine in ours."""
        return re.sub(r"(?<![\w.])/(?=(?:opt|tmp)/)", f"{machine.place}/", "\n".join(lines))

    for lines in ([*job["before_script"], *job["script"]], job["after_script"]):
        ran = machine.step(placed(lines), **known)
        assert ran.returncode == 0, ran
    assert job["artifacts"]["paths"] == ["out/"]
    machine.check_kept(machine.repo / "out")
