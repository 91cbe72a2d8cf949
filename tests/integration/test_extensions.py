"""A worker and a sandbox that stand outside of the package, as `examples/extensions` has them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from agentrunner.config.agents import WorkerSpec
from agentrunner.protocol.message import MessageType
from agentrunner.testing.planners import check_planner
from agentrunner.testing.sandboxes import CHECKS, run_conformance
from agentrunner.testing.workers import check_worker
from tests.kit.bwrap import require_bwrap
from tests.kit.metas import assess, finish, plan, work
from tests.kit.missing import missing
from tests.kit.task_specs import task_spec_of

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "extensions"
RED = "def add(a, b):\n    return a - b\n"
TEST = "import unittest\nfrom calc import add\n\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n"  # noqa: E501


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example as a package of another project, with its entry points."""
    folder = tmp_path_factory.mktemp("extensions")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    ran = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def agentrunner(
    place: Path, *words: str, site: Path | None, config: Mapping[str, object] | None = None
) -> subprocess.CompletedProcess[str]:
    """The command as its user starts it, with these packages and settings."""
    home = place / "home"
    (home / ".config" / "agentrunner").mkdir(parents=True, exist_ok=True)
    (home / ".config" / "agentrunner" / "config.yaml").write_text(yaml.safe_dump(config or {}))
    keep = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environ = {**keep, "HOME": str(home), "AGENTRUNNER_STATE_DIR": str(place / "state")}
    if site is not None:
        environ["PYTHONPATH"] = str(site)
    return subprocess.run(
        [sys.executable, "-m", "agentrunner", *words],
        cwd=place / "repo", env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip


def task(place: Path, **runner: dict[str, Any]) -> Path:
    """A repository with a red test, and a task for it with a scripted planner."""
    repo = place / "repo"
    repo.mkdir()
    (repo / "calc.py").write_text(RED)
    (repo / "test_calc.py").write_text(TEST)
    worker = str(dict(runner.get("worker") or {"kind": "command"})["kind"])
    order = work("calc.py: s/a - b/a + b/", worker=worker)
    script = [plan(), order, finish(), assess()]
    (place / "script.yaml").write_text(yaml.safe_dump(script))
    file = place / "task.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "version": 1,
                "task": {
                    "prd": {"text": "add(a, b) has to return the sum."},
                    "repo": str(repo),
                    "test": {"command": "python3 -m unittest -v"},
                },
                "runner": {"meta": {"kind": "script", "script": "script.yaml"}, **runner},
            }
        )
    )
    return file


def result_of(ran: subprocess.CompletedProcess[str]) -> dict[str, object]:
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def test_entry_points_of_an_installed_package_are_kinds(tmp_path: Path, installed: Path) -> None:
    if sys.platform != "linux":
        missing("bubblewrap is for Linux")
    require_bwrap()
    runner = {"worker": {"kind": "sed-script"}, "sandbox": {"kind": "low-priority"}}
    file = task(tmp_path, **runner)
    ran = agentrunner(tmp_path, "run", str(file), "--json", site=installed)
    result = result_of(ran)
    assert (result["state"], result["grade"]) == ("COMPLETE", "proven"), ran
    header = json.loads(ran.stdout.splitlines()[0])["header"]
    assert "at the lowest priority" in header["box"] and "sed-script" in header["worker"]


def test_the_user_s_settings_name_a_class_and_a_repository_s_may_not(
    tmp_path: Path, installed: Path
) -> None:
    file = task(tmp_path, worker={"kind": "mine"}, sandbox={"kind": "none"})
    mine = {"extensions": {"workers": {"mine": "nice_tools.worker:SedWorker"}}}
    bare = installed / "without-metadata"
    bare.mkdir(exist_ok=True)
    if not (bare / "nice_tools").exists():
        (bare / "nice_tools").symlink_to(installed / "nice_tools")
    ran = agentrunner(tmp_path, "run", str(file), "--json", site=bare, config=mine)
    assert result_of(ran)["state"] == "COMPLETE", ran.stdout + ran.stderr
    (tmp_path / "repo" / "agentrunner.yaml").write_text(yaml.safe_dump(mine))
    ran = agentrunner(tmp_path, "validate", str(file), site=bare)
    assert ran.returncode == 2
    assert "A repository may not add workers" in ran.stderr


@pytest.mark.series(2)
@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("nowhere.worker:SedWorker", "No module named 'nowhere'"),
        ("nice_tools.worker:Missing", "has no attribute 'Missing'"),
    ],
)
def test_a_class_that_cannot_be_imported_is_named_with_its_place(
    tmp_path: Path, installed: Path, place: str, words: str
) -> None:
    file = task(tmp_path, worker={"kind": "mine"}, sandbox={"kind": "none"})
    config = {"extensions": {"workers": {"mine": place}}}
    ran = agentrunner(tmp_path, "run", str(file), site=installed, config=config)
    assert ran.returncode == 2
    assert place in ran.stderr and words in ran.stderr and "extensions.workers.mine" in ran.stderr
    assert not (tmp_path / "state" / "runs").exists()


PLAIN = """
from pathlib import Path
from agentrunner.workers.base import Probe, WorkerCommand
from agentrunner.workers.plain import PlainWorker


class Plain(PlainWorker):
    kind = "mine"

    def probe(self):
        return Probe(Path("/bin/sh"))

    def program(self):
        return "sh"

    def command(self, call):
        return WorkerCommand(("sed", "-i", "s/a - b/a + b/", "calc.py"))
"""


def test_a_file_by_its_path_is_a_kind(tmp_path: Path) -> None:
    file = task(tmp_path, worker={"kind": "mine"}, sandbox={"kind": "none"})
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "own.py").write_text(PLAIN)
    config = {"extensions": {"workers": {"mine": "~/own.py:Plain"}}}
    ran = agentrunner(tmp_path, "run", str(file), "--json", site=None, config=config)
    assert result_of(ran)["state"] == "COMPLETE", ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("    def __init__(self): pass\n", ",whichcan'tbemade:TypeError"),
        ("    def probe(self): raise ValueError('no idea')\n", ":noidea"),
    ],
)
def test_what_fails_in_the_code_of_others_is_not_called_a_bug_of_ours(
    tmp_path: Path, fault: str, told: str
) -> None:
    file = task(tmp_path, worker={"kind": "mine"}, sandbox={"kind": "none"})
    own = tmp_path / "own.py"
    own.write_text(f"{PLAIN}\n{fault}")
    config = {"extensions": {"workers": {"mine": f"{own}:Plain"}}}
    ran = agentrunner(tmp_path, "run", str(file), site=None, config=config)
    assert ran.returncode == 2
    assert f"{own}:Plain{told}" in "".join(ran.stderr.split()), ran.stderr
    assert "AgentRunner itself" not in ran.stderr
    looked = agentrunner(tmp_path, "doctor", "--no-try", "--json", site=None, config=config)
    assert '"name": "mine", "text": ' in looked.stdout, looked.stdout + looked.stderr


def test_a_worker_of_others_that_fails_in_mid_run_is_named(tmp_path: Path) -> None:
    file = task(tmp_path, worker={"kind": "mine"}, sandbox={"kind": "none"})
    own = tmp_path / "own.py"
    own.write_text(f"{PLAIN}\n    def command(self, call): raise ValueError('no idea')\n")
    config = {"extensions": {"workers": {"mine": f"{own}:Plain"}}}
    ran = agentrunner(tmp_path, "run", str(file), "--json", site=None, config=config)
    assert result_of(ran)["state"] == "FAILED"
    assert f"no idea. This is a bug of {own}:Plain" in ran.stdout


def test_what_is_no_place_of_a_class_is_refused_with_its_line(tmp_path: Path) -> None:
    file = task(tmp_path)
    config = {"extensions": {"workers": {"mine": "import os; os.system('x')"}}}
    ran = agentrunner(tmp_path, "validate", str(file), site=None, config=config)
    assert ran.returncode == 2 and "package.module:Class" in ran.stderr


@pytest.mark.parametrize("each", [pytest.param(1, marks=pytest.mark.whole), 4])
async def test_the_example_keeps_the_promises_of_workers_and_sandboxes(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch, each: int
) -> None:
    require_bwrap()
    monkeypatch.syspath_prepend(str(installed))
    from nice_tools.sandbox import LowPriority  # type: ignore[import-not-found]
    from nice_tools.worker import SedWorker  # type: ignore[import-not-found]

    assert [one for one in check_worker(SedWorker) if one.status == "failed"] == []
    results = await run_conformance(
        lambda spec: LowPriority(spec, environ=os.environ, host_home=Path.home(), grace_sec=0.5),
        tmp_path,
        checks=CHECKS[::each],
    )
    assert [one for one in results if one.status == "failed"] == []
    assert sum(one.status == "passed" for one in results) > 30 / each


class Rude:
    """Breaks most promises of a worker."""

    kind = "rude"

    def __init__(self, spec: WorkerSpec, repo: Path | None = None) -> None:
        pass

    def probe(self) -> None:
        raise OSError("no such program")

    def events(self) -> None:
        return None


def test_the_suites_find_what_is_wrong() -> None:
    assert all(one.status == "failed" for one in check_worker(Rude))


async def test_planners_are_held_to_theirs() -> None:
    from agentrunner.planners.base import PlannerRequest, Reply
    from agentrunner.planners.mock import MockPlanner

    spec = task_spec_of()
    results = await check_planner(lambda: MockPlanner(spec, {}))
    assert [one for one in results if one.status != "passed"] == []

    class Silent(MockPlanner):
        async def complete(self, request: PlannerRequest) -> Reply:
            """Breaks its promise."""
            return Reply("", input_tokens=-1)

    failed = [
        one.name for one in await check_planner(lambda: Silent(spec, {})) if one.status == "failed"
    ]
    asked = [f"it_answers_{type_}" for type_ in get_args(MessageType)]
    more = ["a_look_is_one_that_can_be_answered", "it_keeps_to_the_schema_of_a_task"]
    assert failed == [*asked, *more]

    class Inventive(MockPlanner):
        async def complete(self, request: PlannerRequest) -> Reply:
            """Judges what nobody asked about, and asks for what is no look."""
            if request.type == "next_action" and "looks" in json.dumps(request.schema):
                look = {"sing": "a song"}
                return Reply(
                    json.dumps({"type": "look", "version": 1, "payload": {"looks": [look]}})
                )
            reply = await super().complete(request)
            return replace(reply, text=reply.text.replace("AC-2", "AC-9"))

    named = {one.name: one for one in await check_planner(lambda: Inventive(spec, {}))}
    assert [name for name, one in named.items() if one.status == "failed"] == more


async def test_the_example_s_planner_keeps_its_promises_and_leads_a_run(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = {"kind": "command", "command": ["sed", "-i", "s/a - b/a + b/", "calc.py"]}
    file = task(tmp_path, worker=worker, sandbox={"kind": "none"})
    monkeypatch.syspath_prepend(str(installed))
    from nice_tools.planner import UntilGreen  # type: ignore[import-not-found]

    from agentrunner import api

    spec = api.read_task(file)
    results = await check_planner(lambda: UntilGreen(spec, os.environ))
    assert [one for one in results if one.status == "failed"] == []
    ran = agentrunner(
        tmp_path, "run", str(file), "--planner", "until-green", "--json", site=installed
    )
    result = result_of(ran)
    assert (result["state"], result["grade"]) == ("COMPLETE", "proven"), ran
