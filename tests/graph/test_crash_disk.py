"""No room left: the run stops before the next effect with exit code 5, and goes on with room."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.kit.missing import missing
from tests.kit.process import Drill, at_point
from tests.kit.warm import warm_run

PRELUDE = """
import ctypes, os, subprocess, sys
from pathlib import Path
from tests.kit.process import Drill, done

CLONE_NEWNS = 0x20000
if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
    sys.exit(f"no mount namespace: {os.strerror(ctypes.get_errno())}")
subprocess.run(["mount", "--make-rprivate", "/"], check=True)

def small_disk(path):
    path.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", path], check=True)

def fill(path):
    with (path / "filler").open("wb", buffering=0) as file:
        for size in (65536, 512, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                pass

place = Path(sys.argv[1])
"""

STATE = """
small_disk(place / "state")
with Drill.open(place) as drill:
    drill.hold(sys.argv[2])
    process = drill.begin()
    drill.until_held(sys.argv[2])
    fill(drill.state_dir)
    drill.let_go()
    ended = done(process)
    assert ended.code == 5, ended
    assert ended.result["error"]["code"] == "disk-full", ended
    log = drill.folder.log_file.read_bytes()
    refused = done(drill.command("resume", drill.run_id))  # still no room
    assert refused.code == 5, refused
    assert drill.folder.log_file.read_bytes().startswith(log)
    (drill.state_dir / "filler").unlink()
    ended = done(drill.command("resume", drill.run_id))
    assert (ended.code, ended.result["state"]) == (0, "COMPLETE"), ended
    assert drill.starts == 1, drill.starts
    drill.nothing_runs()
"""

TREE = """
small_disk(place / "state")
with Drill.open(place) as drill:
    for number in range(4):
        (drill.repo / f"noise{number}").write_bytes(os.urandom(2_000_000))
    ended = done(drill.begin())
    assert (ended.code, ended.result["error"]["code"]) == (5, "disk-full"), ended
    room = os.statvfs(drill.state_dir)
    taken = (room.f_blocks - room.f_bfree) * room.f_frsize
    assert taken < 1_000_000, taken
    assert drill.starts == 0, drill.starts
    drill.nothing_runs()
    subprocess.run(["mount", "-o", "remount,size=64m", drill.state_dir], check=True)
    ended = done(drill.command("resume"))
    assert (ended.code, ended.result["state"]) == (0, "COMPLETE"), ended
"""

NOTE = """
with Drill.open(place) as drill:
    old = drill.repo / ".agent-runner" / "task-probe.md"
    small_disk(old.parent)
    old.write_text("an older note\\n")
    fill(old.parent)
    ended = done(drill.begin())
    assert (ended.code, ended.result["state"]) == (0, "COMPLETE"), ended
    note = Path(ended.result["note"])
    assert "an older note\\n" in [path.read_text() for path in old.parent.glob("task-*")]
    assert note.is_relative_to(drill.state_dir) and "COMPLETE" in note.read_text(), note
    subprocess.run(["umount", old.parent], check=True)
"""


def in_a_mount_namespace(script: str, *arguments: str) -> None:
    """Run Python code that may mount things."""
    if os.geteuid() != 0:
        missing("only root can mount a small disk")
    argv = [sys.executable, "-c", PRELUDE + script, *arguments]
    done = warm_run(argv, cwd=Path(__file__).parents[2], env=os.environ)
    if done.stderr.startswith("no mount namespace"):
        missing(done.stderr.strip())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("during", ["worker", "validation"])
def test_a_full_state_folder_stops_the_run_and_room_lets_it_go_on(
    tmp_path: Path, during: str
) -> None:
    in_a_mount_namespace(STATE, str(tmp_path), during)


def test_a_tree_that_finds_no_room_leaves_nothing_and_room_lets_the_run_go_on(
    tmp_path: Path,
) -> None:
    in_a_mount_namespace(TREE, str(tmp_path))


def test_a_note_that_finds_no_room_is_kept_elsewhere_and_the_old_one_is_whole(
    tmp_path: Path,
) -> None:
    in_a_mount_namespace(NOTE, str(tmp_path))


@pytest.mark.series(2)
@pytest.mark.parametrize(
    "point",
    [
        "after_claim", "mid_spec", "during_validation", "before_proof", "mid_proof", "during_note",
    ],
)  # fmt: skip
def test_no_room_at_any_point_is_exit_code_5_and_no_verdict(tmp_path: Path, point: str) -> None:
    with Drill.open(tmp_path) as drill:
        ended = drill.crash(**at_point(point, "enospc"))
        assert (ended.code, ended.result["error"]["code"]) == (5, "disk-full"), ended.stderr
        assert drill.resume()["state"] == "COMPLETE"
        assert drill.starts == len(drill.logged("worker_run")) == 1
        drill.nothing_runs()
