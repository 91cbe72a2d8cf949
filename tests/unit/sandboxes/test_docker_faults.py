"""What an engine does wrong is infra, within seconds, and never a command's result."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from agentrunner.errors import SandboxUnavailable
from agentrunner.sandboxes.base import ErrorKind, Request, SandboxError, SandboxOrder
from agentrunner.sandboxes.docker import DockerSandbox
from agentrunner.sandboxes.docker import engine as engine_room
from agentrunner.sandboxes.docker import exec as execs
from tests.kit.fake_engine import FakeEngine, Fault, fake_engine

MOST_SEC = 15


@pytest.fixture(autouse=True)
def less_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    assert execs.POLL_SEC + 2 * engine_room.PATIENCE_SEC < MOST_SEC
    monkeypatch.setattr(engine_room, "PATIENCE_SEC", 0.5)
    monkeypatch.setattr(execs, "POLL_SEC", 0.2)


def box(tmp_path: Path, address: str) -> DockerSandbox:
    repo, home = tmp_path / "repo", tmp_path / "box"
    for folder in (repo, home):
        folder.mkdir(exist_ok=True)
    spec = SandboxOrder(repo=repo, home=home, image="some/image:1")
    return DockerSandbox(
        spec, environ={"DOCKER_HOST": address}, host_home=tmp_path / "user", grace_sec=0.2
    )


async def run_with(tmp_path: Path, engine: FakeEngine, **faults: Fault) -> SandboxError:
    """Open a box, let the engine go wrong, and run something."""
    sandbox = box(tmp_path, engine.address)
    await sandbox.open()
    engine.faults.update(faults)
    start = time.monotonic()
    with pytest.raises(SandboxError) as caught:
        await sandbox.run(Request(("true",), tmp_path / "repo"))
    assert time.monotonic() - start < MOST_SEC
    await sandbox.close()
    return caught.value


async def test_an_engine_that_works(tmp_path: Path) -> None:
    with fake_engine(tmp_path / "e.sock") as engine:
        sandbox = box(tmp_path, engine.address)
        await sandbox.open()
        result = await sandbox.run(Request(("true",), tmp_path / "repo"))
        await sandbox.close()
    assert result.exit_code == 0
    assert engine.calls.count("create") == 1, "the container is kept"
    assert engine.calls.count("remove") == 1


async def test_last_words_count_though_the_engine_tells_of_the_end_first(tmp_path: Path) -> None:
    with fake_engine(tmp_path / "e.sock", stream="late") as engine:
        sandbox = box(tmp_path, engine.address)
        await sandbox.open()
        result = await sandbox.run(Request(("true",), tmp_path / "repo"))
        await sandbox.close()
    assert (result.exit_code, result.stdout) == (0, b"last words\n")


@pytest.mark.parametrize("fault", ["silence", "close", 500])
async def test_an_engine_that_cannot_be_used_is_unavailable(tmp_path: Path, fault: Fault) -> None:
    start = time.monotonic()
    with (
        fake_engine(tmp_path / "e.sock", all=fault) as engine,
        pytest.raises(SandboxUnavailable) as caught,
    ):
        await box(tmp_path, engine.address).open()
    assert time.monotonic() - start < MOST_SEC
    assert engine.address in caught.value.message
    assert caught.value.passes
    assert "DOCKER_HOST" in caught.value.remedy


async def test_no_engine_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="no container engine at unix:///"):
        await box(tmp_path, f"unix://{tmp_path}/none.sock").open()


async def test_an_engine_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="not on this machine") as caught:
        await box(tmp_path, "tcp://engine.example:2376").open()
    assert not caught.value.passes


@pytest.mark.parametrize(
    ("call", "fault", "sentence"),
    [
        ("exec", 404, "fake 404"),
        ("exec", 409, "fake 409"),
        ("exec", 500, "fake 500"),
        ("exec", "close", "is gone"),
        ("stream", 409, "fake 409"),
        ("stream", "cut", "is gone"),
        ("inspect", 404, "fake 404"),
    ],
)
async def test_what_goes_wrong_on_the_way_is_infra(
    tmp_path: Path, call: str, fault: Fault, sentence: str
) -> None:
    with fake_engine(tmp_path / "e.sock") as engine:
        more: dict[str, Fault] = {"inspect": "close"} if fault == "cut" else {}
        error = await run_with(tmp_path, engine, **{call: fault, **more})
    assert error.kind is ErrorKind.INFRA
    assert sentence in error.cause


@pytest.mark.parametrize("hanging", [("stream", "hang"), ("exec", "silence")])
async def test_an_engine_that_hangs_is_found_out(
    tmp_path: Path, hanging: tuple[str, Fault]
) -> None:
    with fake_engine(tmp_path / "e.sock") as engine:
        silent: dict[str, Fault] = dict.fromkeys(("inspect", "ping", "remove"), "silence")
        error = await run_with(tmp_path, engine, **{hanging[0]: hanging[1], **silent})
    assert error.kind is ErrorKind.INFRA
    assert "hangs" in error.cause


@pytest.mark.parametrize("fault", [404, 409, "close"])
async def test_a_box_that_is_gone_is_made_again(tmp_path: Path, fault: Fault) -> None:
    with fake_engine(tmp_path / "e.sock") as engine:
        sandbox = box(tmp_path, engine.address)
        await sandbox.open()
        engine.faults["exec"] = fault
        engine.once.add("exec")
        result = await sandbox.run(Request(("true",), tmp_path / "repo"))
        await sandbox.close()
    assert result.exit_code == 0
    assert engine.calls.count("create") == 2


async def test_what_had_begun_is_not_begun_again(tmp_path: Path) -> None:
    with fake_engine(tmp_path / "e.sock") as engine:
        error = await run_with(tmp_path, engine, stream="cut", inspect=404)
    assert error.kind is ErrorKind.INFRA
    assert engine.calls.count("create") == 1


@pytest.mark.parametrize("name", ["a:b", "a,b", "a b", "a\nb", "日本"])
async def test_any_path_is_bound_as_it_is(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    place.mkdir()
    with fake_engine(tmp_path / "e.sock") as engine:
        sandbox = box(place, engine.address)
        await sandbox.open()
        await sandbox.close()
    mounts = {mount["Source"]: mount for mount in engine.created[0]["HostConfig"]["Mounts"]}
    assert mounts[str(place / "repo")]["Target"] == str(place / "repo")
    assert mounts[str(place / "repo")]["ReadOnly"] is False
