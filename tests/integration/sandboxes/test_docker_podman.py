"""The same code on Podman's socket, where Podman is installed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from agentrunner.sandboxes.base import Sandbox, SandboxOrder
from agentrunner.sandboxes.docker import DockerSandbox
from agentrunner.testing.sandboxes import CHECKS, run_conformance
from tests.kit.docker import GRACE_SEC, on_host_usr

ENGINE = Path(__file__).parents[3] / "scripts" / "engine.sh"
CONFIG = """\
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
init_path = "/usr/bin/catatonit"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
"""It asks for more than a machine without every capability may give, and for systemd."""
TRIED = {
    "stdin_to_its_end", "missing_command", "timeout_ends_the_tree", "no_privileges",
    "tmp_is_private", "memory_is_limited",
}  # fmt: skip
"""Those on which engines differ; the whole suite takes minutes on it."""


def _end_monitors(folder: Path) -> None:
    """Podman keeps one for five minutes after the end of each command."""
    for words in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if words.read_bytes().startswith(b"/usr/bin/conmon\0") and bytes(folder) in (
                words.read_bytes()
            ):
                os.kill(int(words.parent.name), signal.SIGKILL)


@pytest.fixture
async def podman() -> AsyncIterator[str]:
    programs = [shutil.which(name) for name in ("podman", "runc", "catatonit", "docker")]
    if os.geteuid() != 0 or not all(programs):
        # Also under CI: Docker is its engine, and this one a second opinion.
        pytest.skip("needs root, podman, runc, catatonit and the docker command")
    folder = Path("/tmp") / uuid4().hex[:8]  # podman takes no long path
    folder.mkdir(mode=0o700)
    config = folder / "containers.conf"
    config.write_text(CONFIG)
    socket = folder / "p.sock"
    address = f"unix://{socket}"
    store = ("--root", str(folder / "root"), "--runroot", str(folder / "run"))
    service = await asyncio.create_subprocess_exec(
        "podman", *store, "system", "service", "--time=0", address,
        env={**os.environ, "CONTAINERS_CONF": str(config)},
        cwd=folder,  # its monitors leave a file `oom` where they are
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(30):
            while not socket.exists():
                assert service.returncode is None, "podman has ended"
                await asyncio.sleep(0.05)
        image = await asyncio.create_subprocess_exec(
            ENGINE, "hostusr", env={**os.environ, "DOCKER_HOST": address}
        )
        assert await image.wait() == 0
        yield address
    finally:
        if service.returncode is None:
            service.terminate()
        await service.wait()
        _end_monitors(folder)
        words = ("umount", "--recursive", str(folder / "root/overlay"))
        unmounting = await asyncio.create_subprocess_exec(*words, stderr=subprocess.DEVNULL)
        await unmounting.wait()
        shutil.rmtree(folder)


async def test_podman_keeps_the_same_promises(podman: str, tmp_path: Path) -> None:
    def box(spec: SandboxOrder) -> Sandbox:
        environ = {"DOCKER_HOST": podman}
        return DockerSandbox(
            on_host_usr(spec), environ=environ, host_home=Path.home(), grace_sec=GRACE_SEC
        )

    checks = [check for check in CHECKS if check.__name__ in TRIED]
    results = await run_conformance(box, tmp_path / "scratch", checks=checks)
    assert [result for result in results if result.status != "passed"] == []
    assert len(results) == len(TRIED)
