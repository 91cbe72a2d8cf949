from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pytest

from agentrunner.errors import LockHeld
from agentrunner.sandboxes.base import Launch
from agentrunner.storage.worker_ledger import StillRunning
from agentrunner.supervisor.client import SupervisorOrder, request_stop, wait
from tests.kit.stage import Stage, marked


async def test_a_worker_gets_its_stdin_and_says_its_words(stage: Stage) -> None:
    heard: dict[str, bytes] = {"stdout": b"", "stderr": b""}

    def hear(stream: Literal["stdout", "stderr"], data: bytes) -> None:
        heard[stream] += data

    order = stage.order("cat; echo no >&2; echo b > b; exit 3", stdin=b"prompt " * 50_000)
    result = await stage.run(order, on_output=hear)
    assert (result.outcome, result.exit_code, result.error) == ("exited", 3, "")
    assert heard == {"stdout": order.stdin, "stderr": b"no\n"}
    assert result.stdout.read_bytes() == order.stdin
    assert (result.stdout_bytes, result.stderr_bytes) == (350_000, 3)
    assert set(stage.snapshots.list(result.tree_after)) == {"a", "b"}
    assert 0 <= result.duration_sec < 20 and result.started_at < result.ended_at


async def test_a_worker_that_wants_no_stdin_is_not_disturbed_by_it(stage: Stage) -> None:
    result = await stage.run(stage.order("exec <&-; echo hi", stdin=bytes(1 << 20)))
    assert result.exit_code == 0 and stage.text("w1") == "hi\n"


async def test_the_worker_sees_nothing_of_ours(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", "canary-value")
    script = "env; ls -l /proc/self/fd; ls -l /proc/$PPID/fd; cat /proc/$PPID/environ; umask"
    result = await stage.run(stage.order(script))
    said = stage.text("w1")
    assert "canary" not in said.lower()
    own = said.partition("total 0\n")[2].partition("total 0\n")[0]
    assert ".lock" not in own and "/lock" not in own
    assert said.endswith("0022\n")
    assert result.exit_code == 0


async def test_secrets_are_in_no_file_and_in_no_command_line(stage: Stage) -> None:
    secret = "hunter2-" + stage.marker
    script = 'printf hunter2; sleep 0.1; printf %s "-$MARKER"; echo; printenv KEY >&2; cat'
    order = stage.order(script, stdin=secret.encode(), secrets={secret.encode(): "KEY"})
    launch = Launch(order.launch.argv, {**order.launch.env, "KEY": secret}, order.launch.cwd)
    process = await asyncio.to_thread(
        stage.start, "w1", SupervisorOrder(launch, 30, stdin=order.stdin, secrets=order.secrets)
    )
    line = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    line += Path(f"/proc/{process.pid}/environ").read_bytes()
    await wait(stage.ledger, "w1", process=process)
    assert secret.encode() not in line
    assert stage.text("w1") == "[KEY redacted]\n[KEY redacted]"
    assert stage.text("w1", "stderr") == "[KEY redacted]\n"
    for path in stage.state.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


async def test_a_command_that_is_not_there_is_no_result_of_a_worker(stage: Stage) -> None:
    order = SupervisorOrder(Launch(("/nonexistent",), {}, stage.repo), wall_sec=5)
    result = await stage.run(order)
    assert (result.outcome, result.exit_code) == ("infra", None)
    assert "/nonexistent can't be started" in result.error


async def test_a_signal_that_kills_the_worker_is_its_exit_code(stage: Stage) -> None:
    result = await stage.run(stage.order("kill -SEGV $$"))
    assert (result.outcome, result.exit_code) == ("exited", 128 + signal.SIGSEGV)


@pytest.mark.parametrize("limit", ["timeout", "idle_timeout", "output_limit"])
async def test_a_worker_past_a_limit_may_save_its_work(stage: Stage, limit: str) -> None:
    noise = "while :; do echo noise; sleep 0.05; done"
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "timeout": (noise, {"wall_sec": 0.5, "idle_sec": 20.0}),
        "idle_timeout": ("echo once; sleep 60", {"idle_sec": 0.5}),
        "output_limit": ("yes", {"output_limit": 1 << 20}),
    }
    script, changes = cases[limit]
    result = await stage.run(
        stage.order(f"trap 'echo saved > saved; exit 7' TERM; {script} & wait", **changes)
    )
    assert (result.outcome, result.exit_code) == (limit, 7)
    assert "saved" in stage.snapshots.list(result.tree_after)
    assert result.duration_sec < 15 and stage.left() == []


async def test_a_stubborn_worker_and_all_it_started_are_killed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "trap '' TERM; setsid sh -c 'setsid sleep 600 & sleep 600' & sleep 600"
    began = time.monotonic()
    result = await stage.run(stage.order(script, wall_sec=0.3))
    assert (result.outcome, result.exit_code) == ("timeout", 137)
    assert time.monotonic() - began < 10 and stage.left() == []
    assert result.leftovers >= 2


async def test_int_comes_first_where_the_worker_wants_it(stage: Stage) -> None:
    script = "trap 'echo int' INT; trap 'echo term; exit 0' TERM; while :; do sleep 60 & wait; done"
    result = await stage.run(stage.order(script, wall_sec=0.3, stop_signal="INT"))
    assert stage.text("w1") == "int\nterm\n"
    assert result.outcome == "timeout" and 2 <= result.duration_sec < 5


async def test_a_grandchild_that_holds_the_output_open_is_not_waited_for(stage: Stage) -> None:
    began = time.monotonic()
    result = await stage.run(stage.order("setsid sleep 600 & echo done"))
    assert (result.outcome, result.exit_code, result.leftovers) == ("exited", 0, 1)
    assert time.monotonic() - began < 5 and stage.left() == []


async def test_many_short_children_leave_no_zombies(stage: Stage) -> None:
    script = "i=0; while [ $i -lt 300 ]; do (setsid true &) ; i=$((i+1)); done; sleep 0.3"
    script += "; grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | while read f; do"
    script += ' grep -q "^PPid:.$PPID$" $f && echo zombie; done; true'
    await stage.run(stage.order(script))
    assert stage.text("w1") == ""


async def test_a_flood_is_capped_and_costs_no_memory(stage: Stage) -> None:
    order = stage.order("echo first; head -c 400000000 /dev/zero; echo last", idle_sec=20.0)
    process = await asyncio.to_thread(stage.start, "w1", order)
    status = Path(f"/proc/{process.pid}/status")
    peaks = []

    def measure(*_: object) -> None:
        if status.exists() and "VmHWM" in (text := status.read_text()):
            peaks.append(int(text.partition("VmHWM:")[2].split()[0]))

    result = await wait(stage.ledger, "w1", process=process, on_output=measure)
    assert result.stdout_bytes == 400_000_011
    assert max(peaks) < 16 * 1024
    size = result.stdout.stat().st_size
    assert 64 << 20 < size < (64 << 20) + 100
    with result.stdout.open("rb") as file:
        assert file.read(7) == b"first\n\0"
        file.seek(-6, 2)
        assert file.read() == b"\0last\n"


async def test_stopping_is_in_order_and_recorded_as_interrupted(stage: Stage) -> None:
    stop = asyncio.Event()
    script = "trap 'echo saved; exit 5' TERM; echo ready; sleep 600 & wait"
    result = await stage.run(stage.order(script), stop=stop, on_output=lambda *_: stop.set())
    assert (result.outcome, result.exit_code) == ("interrupted", 5)
    assert stage.text("w1") == "ready\nsaved\n" and result.tree_after and stage.left() == []


async def test_a_supervisor_that_hangs_is_given_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTRUNNER_TEST", "1")
    monkeypatch.setenv("AGENTRUNNER_FAILPOINT", "supervisor_after_start:stop")
    result = await stage.run(stage.order("sleep 600"), deadline=1)
    assert (result.outcome, result.exit_code, result.ended_at) == ("lost", None, "")
    assert result.started_at


async def test_a_failing_snapshot_is_said_and_harms_nothing(stage: Stage) -> None:
    result = await stage.run(stage.order("true", after=("/bin/sh", "-c", "echo no >&2; exit 4")))
    assert (result.outcome, result.tree_after) == ("exited", "")
    assert result.after == {"error": "it ended with 4"}
    assert stage.text("w1", "supervisor.log") == "no\n"
    slow = ("/bin/sleep", "600")
    result = await stage.run(stage.order("true", after=slow, after_timeout_sec=0.2), "w2")
    assert result.outcome == "exited" and "error" in result.after


OWN_PROGRAM = """
import json, os, sys
open_files = [name for name in os.listdir("/proc/self/fd") if int(name) > 2]
print(json.dumps({
    "tree": "4b82", "words": sys.argv[1:], "environ": dict(os.environ), "folder": os.getcwd(),
    "open": len(open_files), "imported": "agentrunner.supervisor.main" in sys.modules,
}))
"""


async def test_a_program_of_our_python_after_the_worker_finds_what_a_start_has_and_none_is_made(
    stage: Stage,
) -> None:
    python = (*stage.snapshots.take_command()[:3], "-c")
    result = await stage.run(stage.order("true", after=(*python, OWN_PROGRAM, "a word")))
    assert result.tree_after == "4b82"
    assert result.after["words"] == ["a word"]
    assert (result.after["environ"], result.after["folder"]) == ({}, "/")
    assert result.after["open"] == 1  # the folder that it lists
    assert result.after["imported"]
    broken = stage.order("true", after=(*python, "raise ValueError('no')"))
    result = await stage.run(broken, "w2")
    assert result.after == {"error": "it ended with 1"}
    assert "ValueError: no" in stage.text("w2", "supervisor.log")


async def test_the_repository_stays_locked_until_the_snapshot_is_taken(stage: Stage) -> None:
    go = stage.root / "go"
    script = f"until [ -e {go} ]; do sleep 0.05; done; echo b > b"
    process = await asyncio.to_thread(stage.start, "w1", script)
    with pytest.raises(LockHeld, match="t-0000"):
        stage.lock()
    assert stage.ledger.look("w1") == StillRunning()
    go.touch()
    result = await wait(stage.ledger, "w1", process=process)
    stage.lock().close()
    assert "b" in stage.snapshots.list(result.tree_after)


SMALL_DISK = """
import asyncio, subprocess, sys
from pathlib import Path
from tempfile import TemporaryDirectory
from tests.kit.stage import Stage, marked
root = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", root], check=True)
stage = Stage(root, sys.argv[2])
order = stage.order("head -c 10000000 /dev/zero", after=())
result = asyncio.run(stage.run(order))
assert (result.outcome, result.exit_code, result.output_lost) == ("exited", 0, True), result
assert result.stdout_bytes == 10000000, result
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_result_gets_onto_a_disk_that_the_worker_filled(stage: Stage) -> None:
    small = stage.root / "small"
    small.mkdir()
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", SMALL_DISK, small, stage.marker],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


async def test_a_stop_before_the_start_and_of_another_process_is_refused(stage: Stage) -> None:
    folder = stage.ledger.claim("w1").dir
    assert not request_stop(folder)
    facts = {"supervisor": {"pid": 1, "start_time": 12345}, "boot_id": "other"}
    (folder / "started.json").write_text(json.dumps(facts))
    assert not request_stop(folder)


async def test_a_worker_that_fills_the_disk_is_killed_at_once(stage: Stage) -> None:
    # Of its own: what other tests free on the same disk hides what this worker fills.
    with TemporaryDirectory(dir="/dev/shm") as name:
        script = f"cd {name}; trap '' TERM; while :; do head -c 1048576 /dev/zero >> big; done"
        result = await stage.run(stage.order(script, disk=((Path(name),), 16 << 20)))
        assert result.outcome == "disk_limit"
        assert (16 << 20) < (Path(name) / "big").stat().st_size < (1 << 30)
    assert not marked(stage.marker)


async def test_a_worker_that_stays_below_its_disk_limit_is_left_alone(stage: Stage) -> None:
    script = "head -c 4194304 /dev/zero > big; rm big"
    result = await stage.run(stage.order(script, disk=((stage.repo,), 16 << 20)))
    assert (result.outcome, result.exit_code) == ("exited", 0)
