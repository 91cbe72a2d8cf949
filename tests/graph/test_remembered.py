"""What was read of an ended run is remembered until the run is another one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentrunner.engine.queries import FILE, diff, remember, show
from agentrunner.errors import CheckpointCorrupt
from agentrunner.errors.repositories import GitFailed
from tests.kit.metas import assess, finish, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run

pytestmark = pytest.mark.usefixtures("without_a_box")


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = Run(Project.make(tmp_path, SMALL))
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    return run


def test_looking_again_says_the_same_and_loads_no_graph(run: Run) -> None:
    state_dir = run.project.state_dir
    looks = [(show(state_dir, run.id).as_dict(), diff(state_dir, run.id)) for _ in range(3)]
    assert json.dumps(looks[0]) == json.dumps(looks[1]) == json.dumps(looks[2])
    assert (run.folder.root / FILE).stat().st_mode & 0o777 == 0o600
    code = (
        "import sys; from pathlib import Path; from agentrunner.engine import queries\n"
        f"place, name = Path({str(state_dir)!r}), {run.id!r}\n"
        "queries.show(place, name); queries.diff(place, name)\n"
        "print([m for m in ('langgraph', 'langchain_core', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "[]\n"


def test_a_damaged_state_is_not_covered_up(run: Run) -> None:
    state_dir = run.project.state_dir
    show(state_dir, run.id)
    run.folder.checkpoints.write_bytes(b"rubbish")
    with pytest.raises(CheckpointCorrupt):
        show(state_dir, run.id)
    with pytest.raises(CheckpointCorrupt):
        diff(state_dir, run.id)


def test_a_damaged_memory_is_read_over(run: Run) -> None:
    state_dir = run.project.state_dir
    before = show(state_dir, run.id)
    for rubbish in ("{", "[]", '{"key": 1}', "\0"):
        (run.folder.root / FILE).write_text(rubbish)
        assert show(state_dir, run.id) == before


def test_a_result_comes_also_where_nothing_can_be_remembered(run: Run) -> None:
    lost = run.folder.workers_dir / "9-001"  # so that the files are looked at as they are
    lost.mkdir()
    (lost / "started.json").write_text("{}")
    (run.folder.snapshots_dir / "agentrunner" / "ignored.json").write_text("{")
    with pytest.raises(GitFailed):
        diff(run.project.state_dir, run.id)
    remember(run.project.state_dir, run.id)
