"""What a set-up wrote into its home is in the home of a worker too, and stays as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentrunner.verification.rooms.sealed import Sealed
from tests.kit.docker import IN_DOCKER, require_docker
from tests.kit.layers import tree_of
from tests.kit.metas import assess, finish, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, NO_FIX, SMALL, Run

BOXES: dict[str, dict[str, Any]] = {
    "bwrap": {},
    "docker": IN_DOCKER,
    "none": {"sandbox": {"kind": "none"}},
}
SET_UP = "mkdir -p ~/.cache/tool && echo fetched >~/.fetched && echo fetched >~/.cache/tool/file"
TEST = "cat ~/.fetched ~/.cache/tool/file && test ! -e ~/evil && sh tests/run.sh"
WORKER = """
echo "found $(cat ~/.fetched ~/.cache/tool/file | tr '\\n' ' ')"
echo spoiled >~/.fetched; rm -r ~/.cache; touch ~/evil
if grep -q looked calc.py; then {0}; else {1}; fi
"""


@pytest.mark.parametrize("box", BOXES)
def test_a_worker_has_a_layer_of_its_own_over_it(tmp_path: Path, box: str) -> None:
    if box == "docker":
        require_docker()
    run = Run(Project.make(tmp_path, SMALL))
    run.start(
        [plan(), work(), work(), finish(), assess()],
        WORKER.format(FIX, NO_FIX),
        test=TEST,
        setup={"command": SET_UP},
        runner=BOXES[box],
    )
    assert run.ending == ("COMPLETE", "complete", 0), run.result["missing"]
    folder = run.folder.root
    told = [path.read_text() for path in sorted(folder.glob("workers/*/stdout"))]
    assert told == ["found fetched fetched \n"] * 2
    home = Sealed(folder / "sealed", run.project.repo).home_seen
    assert home is not None
    assert sorted(tree_of(home)) == [".cache", ".cache/tool", ".cache/tool/file", ".fetched"]
    assert (home / ".fetched").read_text() == "fetched\n"
    assert not list((folder / "layers").glob("*"))
