"""Throw-away layers: what a command writes into one is gone with it, in every box."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentrunner.sandboxes.base import ErrorKind, Mount, Request, Sandbox, SandboxError
from agentrunner.sandboxes.local import LocalSandbox
from tests.kit.files import write
from tests.kit.layers import tree_of
from tests.kit.sandbox_place import Place, available

WRITE = """
cat packages/one/file && echo changed >packages/one/file && rm -r packages/two && mkdir packages/two
echo new >packages/two/new && mv packages/one/other packages/moved && cat packages/moved
ln -s one packages/link && test ! -e packages/two/file && touch packages/empty/x
"""


@pytest.fixture(params=["overlay", "copy", "docker"])
def kind(request: pytest.FixtureRequest) -> str:
    return available(request.param)


@pytest.fixture
async def box(kind: str, place: Place) -> AsyncIterator[Sandbox]:
    async with place.opened(kind) as sandbox:
        yield sandbox


@pytest.fixture
def packages(place: Place) -> Path:
    folder = place.root / "installed"
    for name in ("one", "two", "empty"):
        (folder / name).mkdir(parents=True)
    for name in ("one/file", "one/other", "two/file"):
        (folder / name).write_text(f"{name}\n")
    write(folder, {"one/tool": "#!/bin/sh\necho a tool\n"})
    (folder / "one/tool-link").symlink_to("tool")
    return folder


def over(place: Place, packages: Path) -> Mount:
    return Mount(packages, place.repo / "packages", read_only=False, layer=True)


async def sh(box: Sandbox, place: Place, script: str, *mounts: Mount) -> str:
    request = Request(("sh", "-ec", script), place.repo, mounts=mounts, timeout_sec=60)
    result = await box.run(request)
    assert result.exit_code == 0, result.stderr.decode()
    return result.stdout.decode()


async def test_what_is_written_into_a_layer_is_gone_with_the_command(
    box: Sandbox, place: Place, packages: Path
) -> None:
    before = tree_of(packages)
    for _ in range(2):
        assert await sh(box, place, WRITE, over(place, packages)) == "one/file\none/other\n"
        assert tree_of(packages) == before
    seen = await sh(box, place, "packages/one/tool-link; ls packages", over(place, packages))
    assert seen.split("\n")[:4] == ["a tool", "empty", "one", "two"]


async def test_a_worker_has_a_layer_too(box: Sandbox, place: Place, packages: Path) -> None:
    """Started from `launch`, as the supervisor does."""
    from agentrunner.sandboxes.process import run_launch

    before = tree_of(packages)
    request = Request(("sh", "-ec", WRITE), place.repo, mounts=(over(place, packages),))
    ended = await run_launch(box.launch(request), request, live=set())
    assert (ended.reported, tree_of(packages)) == (0, before), ended.result.stderr


async def test_a_source_that_is_gone_is_refused(box: Sandbox, place: Place) -> None:
    gone = over(place, place.root / "nowhere")
    with pytest.raises(SandboxError, match=r"there is no .*nowhere") as caught:
        await sh(box, place, "true", gone)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST


async def test_without_a_box_there_is_no_layer(place: Place, packages: Path) -> None:
    sandbox = LocalSandbox(place.spec(), environ={"PATH": "/usr/bin:/bin"}, host_home=place.user)
    with pytest.raises(SandboxError, match="a layer needs a sandbox") as caught:
        await sh(sandbox, place, "true", over(place, packages))
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
