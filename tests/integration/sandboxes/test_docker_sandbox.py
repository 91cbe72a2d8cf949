"""Docker beyond the conformance suite: hostile commands, secrets, owners, deaths."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from agentrunner.sandboxes.base import (
    Door,
    Ending,
    ErrorKind,
    Owner,
    Request,
    ResourceLimit,
    SandboxError,
    SandboxOrder,
)
from agentrunner.sandboxes.docker import DockerSandbox, owners
from agentrunner.sandboxes.docker.engine import Engine
from tests.kit.docker import docker, on_host_usr, require_docker
from tests.kit.missing import missing

SCRIPTS = Path(__file__).parents[3] / "scripts"


@pytest.fixture(scope="module")
def address() -> str:
    return require_docker()


@pytest.fixture
async def engine(address: str) -> AsyncIterator[Engine]:
    engine = await Engine.connect({"DOCKER_HOST": address})
    yield engine
    engine.close()


def box_spec(root: Path, **fields: Any) -> SandboxOrder:
    repo, home = root / "repo", root / "state/runs/r/box"
    for folder in (repo, home):
        folder.mkdir(parents=True, exist_ok=True)
    return SandboxOrder(**{"repo": repo, "home": home, "owner": Owner(uuid.uuid4().hex), **fields})


@pytest.fixture
async def sandbox(address: str, tmp_path: Path) -> AsyncIterator[DockerSandbox]:
    sandbox = docker(box_spec(tmp_path))
    await sandbox.open()
    yield sandbox
    await sandbox.close()


def sh(tmp_path: Path, script: str, **fields: Any) -> Request:
    return Request(("sh", "-c", script), tmp_path / "repo", **{"timeout_sec": 30.0, **fields})


async def boxes(engine: Engine, spec: SandboxOrder) -> list[dict[str, Any]]:
    wanted = {"label": f"{owners.RUN}={spec.owner.run_id}"}
    found: list[dict[str, Any]] = await engine.call(
        "list", lambda api: api.containers(all=True, filters=wanted)
    )
    return found


async def ended(*words: str, env: dict[str, str] | None = None) -> CompletedProcess[bytes]:
    """A process on this host, at its end."""
    return await asyncio.to_thread(
        subprocess.run, words, env=env, cwd="/", capture_output=True, check=False
    )


async def until(met: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not await met():  # noqa: ASYNC110 - the engine does not call us
            await asyncio.sleep(0.05)


async def test_a_secret_is_nowhere_but_in_the_commands_own_environment(
    sandbox: DockerSandbox, engine: Engine, tmp_path: Path
) -> None:
    secret = f"secret-{uuid.uuid4().hex}"
    script = "touch on; until [ -e go ]; do sleep 0.02; done; echo $KEY"
    running = asyncio.ensure_future(sandbox.run(sh(tmp_path, script, env={"KEY": secret})))
    repo = tmp_path / "repo"
    await until(lambda: asyncio.to_thread((repo / "on").exists))

    def look(api: Any) -> str:
        (box,) = api.containers(filters={"label": owners.RUN, "volume": str(repo)})
        facts = api.inspect_container(box["Id"])
        execs = [api.exec_inspect(each) for each in facts["ExecIDs"] or ()]
        assert execs, "the command runs as an exec"
        return json.dumps([facts, execs, api.top(box["Id"], "-eo pid,args")])

    told = await engine.call("look", look)
    (repo / "go").touch()
    result = await running
    assert result.stdout.decode().strip() == secret
    assert secret not in told
    assert "until [ -e go ]" in told, "the looks were at the right place"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository away")
async def test_what_is_made_belongs_to_the_repositorys_owner(address: str, tmp_path: Path) -> None:
    spec = box_spec(tmp_path)
    for folder in (spec.repo, spec.home):
        os.chown(folder, 4321, 1234)
    # pytest's own folders are closed to others, which a mount is not stopped by.
    sandbox = docker(spec)
    await sandbox.open()
    try:
        script = "id -u; id -g; touch made; touch $HOME/x /tmp/y && cat /proc/1/environ"
        result = await sandbox.run(sh(tmp_path, script))
    finally:
        await sandbox.close()
    made = (spec.repo / "made").stat()
    assert (made.st_uid, made.st_gid) == (4321, 1234)
    assert result.stdout == b"4321\n1234\n" and result.exit_code == 1, "/proc/1 is another's"
    assert b"Permission denied" in result.stderr
    assert [path.name for path in spec.repo.iterdir()] == ["made"], "no mask is left"


async def test_a_command_that_kills_its_wrapper_gains_nothing(
    sandbox: DockerSandbox, tmp_path: Path
) -> None:
    marker = uuid.uuid4().hex
    first = await sandbox.run(
        sh(tmp_path, f"echo x > /tmp/left; setsid sh -c 'sleep 1000; :' {marker} & kill -9 $PPID")
    )
    assert first.exit_code == 137
    second = await sandbox.run(sh(tmp_path, "ls -A /tmp; ls -d /proc/[0-9]* | wc -l"))
    assert int(second.stdout.split()[-1]) < 8 and b"left" not in second.stdout
    assert (await ended("pgrep", "-f", marker)).stdout == b""


async def test_a_flood_in_one_line_is_bounded(sandbox: DockerSandbox, tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    flood = sh(tmp_path, "head -c 4G /dev/zero", stop_bytes=200 << 20)
    result = await sandbox.run(flood)
    assert result.ending is Ending.OUTPUT_LIMIT and result.exit_code == 137
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000, "KiB"


async def test_what_writes_too_much_is_ended(address: str, tmp_path: Path) -> None:
    sandbox = docker(box_spec(tmp_path, limits=ResourceLimit(disk="20m")))
    await sandbox.open()
    try:
        result = await sandbox.run(sh(tmp_path, "head -c 2G /dev/zero > big; sleep 1000"))
    finally:
        await sandbox.close()
    assert (result.ending, result.exit_code) == (Ending.DISK_LIMIT, 137)


async def test_a_container_is_kept_and_never_shared(
    sandbox: DockerSandbox, engine: Engine, tmp_path: Path
) -> None:
    for _ in range(3):
        await sandbox.run(sh(tmp_path, "true"))
    spec = sandbox._spec
    (kept,) = await boxes(engine, spec)
    await asyncio.gather(*(sandbox.run(sh(tmp_path, "sleep 0.2")) for _ in range(3)))
    assert len(await boxes(engine, spec)) == 3
    assert kept["Id"] in {box["Id"] for box in await boxes(engine, spec)}
    await sandbox.close()
    assert await boxes(engine, spec) == []


async def test_a_door_is_there_for_those_alone_who_have_one(address: str, tmp_path: Path) -> None:
    closed = tmp_path / "run"
    sockets = closed / "sock"
    sockets.mkdir(parents=True)
    for folder in (closed, sockets):
        folder.chmod(0o700)
    sandbox = docker(box_spec(tmp_path, sockets=sockets))

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    server = await asyncio.start_unix_server(greet, sockets / "gateway.sock")
    (sockets / "gateway.sock").chmod(0o666)
    await sandbox.open()
    try:
        call = sh(tmp_path, "bash -c 'exec 3<>/dev/tcp/127.0.0.1/8787; cat <&3'")
        inside = await sandbox.run(replace(call, door=Door(sockets, {8787: "gateway.sock"})))
        without = await sandbox.run(call)
    finally:
        await sandbox.close()
        server.close()
    assert inside.stdout == b"hello"
    assert without.exit_code != 0 and b"refused" in without.stderr


DRIVER = """
import asyncio, sys
from pathlib import Path
from agentrunner.sandboxes.base import SandboxOrder, Owner, Request
from tests.kit.docker import docker

async def main(repo, home, run):
    sandbox = docker(SandboxOrder(repo, home, owner=Owner(run)))
    await sandbox.open()
    await sandbox.run(Request(("sh", "-c", "touch on; sleep 1000"), repo))

asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
"""


async def test_boxes_end_with_a_driver_that_is_killed(engine: Engine, tmp_path: Path) -> None:
    spec = box_spec(tmp_path)
    words = [sys.executable, "-c", DRIVER, str(spec.repo), str(spec.home), spec.owner.run_id]
    driver = await asyncio.create_subprocess_exec(*words, cwd=SCRIPTS.parent)
    try:
        await until(lambda: asyncio.to_thread((spec.repo / "on").exists))
        assert len(await boxes(engine, spec)) == 1
    finally:
        driver.kill()
        await driver.wait()

    async def gone() -> bool:
        return not await boxes(engine, spec)

    await until(gone)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start an engine")
async def test_an_engine_that_is_killed_is_infra_and_the_next_one_goes_on(tmp_path: Path) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "AR_ENGINE_STATE": str(tmp_path / "engine-state"),
        "AR_ENGINE_RUN": f"/tmp/{uuid.uuid4().hex[:8]}",
    }

    async def script(*words: str) -> None:
        made = await ended(str(SCRIPTS / "engine.sh"), *words, env=env)
        if made.returncode:
            missing(made.stderr.decode())

    await script("up")
    run = Path(env["AR_ENGINE_RUN"])
    try:
        await script("hostusr")
        environ = {"DOCKER_HOST": f"unix://{run}/docker.sock"}
        spec = on_host_usr(box_spec(tmp_path))
        sandbox = DockerSandbox(spec, environ=environ, host_home=Path.home(), grace_sec=0.5)
        await sandbox.open()
        running = asyncio.ensure_future(sandbox.run(sh(tmp_path, "touch on; sleep 1000")))
        await until(lambda: asyncio.to_thread((spec.repo / "on").exists))
        os.kill(int((run / "dockerd.pid").read_text()), signal.SIGKILL)
        start = time.monotonic()
        with pytest.raises(SandboxError) as caught:
            await running
        assert caught.value.kind is ErrorKind.INFRA and "is gone" in caught.value.cause
        assert time.monotonic() - start < 15
        await script("up")
        result = await sandbox.run(sh(tmp_path, "echo on again"))
        assert result.stdout == b"on again\n"
        await sandbox.close()
    finally:
        await script("down", "--purge")


async def test_a_worker_under_a_supervisors_signals(
    sandbox: DockerSandbox, engine: Engine, tmp_path: Path
) -> None:
    """The helper: TERM reaches the worker, SIGUSR1 ends all of it, its own death too."""
    spec = sandbox._spec
    for number, code, saved in (
        (signal.SIGTERM, 7, True),
        (signal.SIGUSR1, 137, False),
        (signal.SIGKILL, -9, False),
    ):
        script = "trap 'echo saved > saved; exit 7' TERM; touch on; sleep 1000 & wait"
        launch = sandbox.launch(sh(tmp_path, script))
        read, write = os.pipe()
        helper = await asyncio.create_subprocess_exec(
            *(str(write) if word == "{status_fd}" else word for word in launch.argv),
            env=dict(launch.env), cwd=launch.cwd, pass_fds=(write,),
        )  # fmt: skip
        os.close(write)
        await until(lambda: asyncio.to_thread((spec.repo / "on").exists))
        helper.send_signal(number)
        assert await helper.wait() == code
        with os.fdopen(read) as status:
            told = status.read()
        assert '"forwards-signals": true' in told
        assert (f'"exit-code": {code}' in told) == (code > 0)
        assert (spec.repo / "saved").exists() == saved

        async def only_ours() -> bool:
            return len(await boxes(engine, spec)) == 1

        await until(only_ours)
        for name in ("on", "saved"):
            (spec.repo / name).unlink(missing_ok=True)


async def test_a_helper_without_an_engine_says_so(sandbox: DockerSandbox, tmp_path: Path) -> None:
    launch = sandbox.launch(sh(tmp_path, "true"))
    nowhere = {name: value.replace("unix:///", "unix:///no/") for name, value in launch.env.items()}
    helper = await ended(*launch.argv[:-1], "1", env=nowhere)
    facts = [json.loads(line) for line in helper.stdout.splitlines()]
    assert facts[0] == {"forwards-signals": True}
    assert "no container engine" in facts[1]["error"]
    assert helper.returncode != 0 and not any("exit-code" in fact for fact in facts)


def test_before_it_is_open_it_tells_what_it_would_show(tmp_path: Path) -> None:
    spec = replace(box_spec(tmp_path), owner=Owner("run", "task"))
    sandbox = docker(spec)
    assert "image" not in sandbox.describe(), "before it is open nothing is known"
    shown = {mount.target for mount in sandbox.mounts()}
    settings = {path for path in shown if path.is_relative_to("/etc")}  # of this machine's programs
    assert shown - settings == {spec.repo, spec.home, Path("/usr")}
