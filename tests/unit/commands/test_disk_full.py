"""No room on a disk is one error: it names the folder, what is needed, and what was not spent."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentrunner.commands.console import Console, Output
from agentrunner.commands.fail import named
from agentrunner.errors.runs import DiskFull
from tests.kit.missing import missing

RUN = """
set -e
mount -t tmpfs -o size=$SIZE tmpfs state
state=$PWD/state
git init -q shop && cd shop
exec "$PYTHON" -m agentrunner run -g 'Do it' --planner mock --worker mock --sandbox none \
    --test 'python3 -m unittest' -q --state-dir $state
"""


@pytest.mark.series(2)
@pytest.mark.parametrize(
    ("size", "folder"),
    [("16k", "state."), ("48k", "state."), ("100k", "/snapshots.")],
    ids=["files", "databases", "git"],
)
def test_a_state_folder_without_room_is_told_the_same_however_it_is_met(
    tmp_path: Path, size: str, folder: str
) -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        missing("only root may mount a small disk")
    (tmp_path / "state").mkdir()
    root = str(Path(__file__).parents[3])
    environ = {**os.environ, "SIZE": size, "PYTHON": sys.executable, "PYTHONPATH": root}
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", RUN],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
    )
    told = "".join(done.stderr.split())
    assert done.returncode == 5, done.stderr
    assert told.startswith(f"error[disk-full]:Thereisnoroomleftin{tmp_path}/state")
    assert f"{folder}Asmallrunneedssome5MB,andalargerepositoryasmuchasithas." in told
    assert "Nothingwasspent." in told and f"try:df-h{tmp_path}/state" in told
    assert "Errno" not in told and "internal" not in told
    assert "unabletowrite" not in told.partition("cause:")[0]


FULL_SHOP = """
set -e
mount -t tmpfs -o size=2m tmpfs shop
state=$PWD/state
git init -q shop && cd shop
printf 'cat /dev/zero > big\\n' > agent.sh
"$PYTHON" -m agentrunner run -g 'Do it' --planner mock --worker command --sandbox none --test true \
    --set 'runner.worker.command=[sh, agent.sh]' --max-loops 0 --state-dir $state || true
"""


@pytest.mark.series(2)
def test_a_repository_without_room_is_told_beside_what_a_worker_left(tmp_path: Path) -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        missing("only root may mount a small disk")
    (tmp_path / "shop").mkdir()
    root = str(Path(__file__).parents[3])
    environ = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": root, "CI": "true"}
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", FULL_SHOP],
        cwd=tmp_path, env=environ, capture_output=True, text=True,
    )  # fmt: skip
    assert f"No room is left on the disk of {tmp_path}/shop" in done.stderr, done.stderr
    assert f"These commands need it, too:  --state-dir {tmp_path}/state" in done.stderr


def test_the_folder_is_that_of_the_file_or_the_one_without_room(tmp_path: Path) -> None:
    file = tmp_path / "notes" / "n.md"
    for number in (errno.ENOSPC, errno.EDQUOT):
        error = named(OSError(number, os.strerror(number), str(file)), str(tmp_path))
        assert isinstance(error, DiskFull)
        assert error.message.startswith(f"There is no room left in {file.parent}. ")
        assert not error.nothing_spent  # who knows that says so
    error = named(OSError(errno.ENOSPC, "no room"), str(tmp_path / "state"))
    assert isinstance(error, DiskFull) and "There is no room left in /" in error.message


def test_what_may_have_cost_something_is_known(tmp_path: Path) -> None:
    def after(*events: dict[str, Any]) -> bool:
        console = Console(Output(quiet=True))
        for event in events:
            console.on_event(event)
        return console.may_have_spent

    measured = {"event": "awaiting", "who": "tests", "what": "make test"}
    assert not after({"event": "run_started", "header": {}}, measured)
    assert after(measured, {"event": "awaiting", "who": "planner", "what": "plan_task"})
    assert after({"event": "worker_started", "worker_run_id": "w", "worker": "mock", "loop": 0})
