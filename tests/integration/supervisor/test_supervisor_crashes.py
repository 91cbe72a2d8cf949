"""kill -9 anywhere: each worker is started once, or its loss is known."""

from __future__ import annotations

import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentrunner.storage.failpoints import IN_SUPERVISOR
from agentrunner.storage.locks import FileLock
from agentrunner.storage.worker_ledger import Lost, NotExecuted, StillRunning, Unclaimed
from agentrunner.supervisor.client import wait
from tests.kit.stage import Stage

COUNT = "echo started >> started; echo done"


def starts(stage: Stage) -> int:
    path = stage.repo / "started"
    return len(path.read_text().splitlines()) if path.exists() else 0


def crashed(point: str) -> dict[str, str]:
    return {"AGENTRUNNER_TEST": "1", "AGENTRUNNER_FAILPOINT": f"{point}:kill"}


@pytest.mark.parametrize("point", ["after_spawn_before_spec", "mid_spec"])
async def test_a_runner_killed_before_its_order_is_given_starts_nothing(
    stage: Stage, point: str
) -> None:
    runner = stage.runner("w1", COUNT, **crashed(point))
    _, said = await asyncio.to_thread(runner.communicate)
    assert runner.returncode == -signal.SIGKILL, said
    result = await wait(stage.ledger, "w1")
    assert result.outcome == "infra" and starts(stage) == 0
    assert stage.ledger.look("w1") == NotExecuted()
    again = await stage.run(stage.order(COUNT))
    assert again.outcome == "exited" and starts(stage) == 1


async def test_a_worker_outlives_its_runner_and_any_later_one_adopts_it(stage: Stage) -> None:
    go = stage.repo / "go"
    script = f"echo one; until [ -e {go} ]; do sleep 0.05; done; echo two"
    runner = stage.runner("w1", script)
    _, said = await asyncio.to_thread(runner.communicate)
    assert runner.returncode == 0, said
    assert stage.ledger.look("w1") == StillRunning()
    with pytest.raises(FileExistsError):
        stage.ledger.claim("w1")
    heard: list[bytes] = []

    def hear(_: str, data: bytes) -> None:
        heard.append(data)
        go.touch()

    result = await wait(stage.ledger, "w1", on_output=hear)
    assert (result.outcome, result.exit_code) == ("exited", 0)
    assert b"".join(heard) == b"one\ntwo\n"
    assert (await wait(stage.ledger, "w1")) == result


@pytest.mark.parametrize("point", IN_SUPERVISOR)
@pytest.mark.parametrize("boxed", [False, True])
async def test_a_killed_supervisor_is_never_started_or_lost_and_leaves_nothing_running(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, point: str, boxed: bool
) -> None:
    script = f"{COUNT}; sleep 600" if point == "supervisor_after_start" else COUNT
    order = stage.boxed(script) if boxed else stage.order(script)
    for name, value in crashed(point).items():
        monkeypatch.setenv(name, value)
    result = await stage.run(order)
    monkeypatch.delenv("AGENTRUNNER_TEST")
    if point == "supervisor_before_started":
        assert result.outcome == "infra" and stage.ledger.look("w1") == NotExecuted()
        assert starts(stage) == 0
        assert (await stage.run(stage.order(COUNT))).outcome == "exited"
        assert starts(stage) == 1
        return
    assert result.outcome == "lost" and stage.ledger.look("w1") == Lost()
    with pytest.raises(FileExistsError):
        stage.ledger.claim("w1")
    # Before the release the worker was not let go; after it it ran at most once.
    assert starts(stage) <= (point != "supervisor_before_release")
    for _ in range(100):
        if not stage.left():
            break
        await asyncio.sleep(0.05)
    assert stage.left() == []
    stage.lock().close()


async def test_of_two_runners_one_starts_the_worker(stage: Stage) -> None:
    def run(_: int) -> int:
        runner = stage.runner("w1", COUNT)
        runner.communicate()
        return runner.returncode

    with ThreadPoolExecutor(3) as pool:
        codes = await asyncio.gather(
            *(asyncio.get_running_loop().run_in_executor(pool, run, n) for n in range(3))
        )
    assert sorted(codes)[0] == 0
    assert (await wait(stage.ledger, "w1")).outcome == "exited"
    assert starts(stage) == 1


async def test_a_claim_dies_with_the_runner_but_not_with_its_supervisor_alive(
    stage: Stage,
) -> None:
    assert stage.ledger.look("w1") == Unclaimed()
    process = stage.start("w1", "echo ready; sleep 600")
    lock = FileLock(stage.ledger.dir("w1") / "lock")
    assert lock.probe() is not None
    process.kill()
    process.wait()
    assert lock.probe() is None
