"""Images on a real engine: found, missing, not to be fetched, made for another machine."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import secrets
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import docker
import pytest

from agentrunner.errors import AgentRunnerError
from agentrunner.sandboxes.base import SandboxOrder
from agentrunner.sandboxes.docker.builds import import_host_image
from agentrunner.sandboxes.docker.engine import Engine
from agentrunner.sandboxes.docker.images import ensure_image, find_image

OTHER = {"x86_64": "arm64", "aarch64": "amd64"}[platform.machine()]


@pytest.fixture
async def name(engine: Engine) -> AsyncIterator[str]:
    made = f"agentrunner-test/image:{secrets.token_hex(4)}"
    yield made
    with_it = await engine.call("look", lambda api: api.images(made))
    if with_it:
        await engine.call("tidy up", lambda api: api.remove_image(made, force=True))


def spec(image: str, **fields: Any) -> SandboxOrder:
    return SandboxOrder(repo=Path("/repo"), home=Path("/home"), image=image, **fields)


async def refused(engine: Engine, box: SandboxOrder) -> AgentRunnerError:
    with pytest.raises(AgentRunnerError) as caught:
        await ensure_image(engine, box)
    return caught.value


async def test_an_image_is_found_by_its_name_and_by_its_id(engine: Engine, name: str) -> None:
    assert (await refused(engine, spec(name))).code == "image-missing"
    await import_host_image(engine, name)
    found = await ensure_image(engine, spec(name))
    assert found.id.startswith("sha256:") and found.digest == ""
    assert (await ensure_image(engine, spec(found.id))).id == found.id


@pytest.mark.parametrize(
    ("image", "code"),
    [
        ("a/b:c:d", "image-name"),
        (f"x@sha256:{'0' * 64}", "image-missing"),
        ("0" * 64, "image-missing"),
    ],
)
async def test_what_the_engine_does_not_have(engine: Engine, image: str, code: str) -> None:
    assert (await refused(engine, spec(image))).code == code


async def test_a_pull_from_where_nobody_answers_is_told(engine: Engine) -> None:
    error = await refused(engine, spec("127.0.0.1:9/nobody/image:1", pull="missing"))
    assert error.code == "image-pull-failed"
    assert "127.0.0.1:9" in error.message


def made_for(architecture: str, name: str) -> bytes:
    """An image as `docker save` writes it, of one empty layer."""
    layer = io.BytesIO()
    tarfile.open(fileobj=layer, mode="w").close()
    diff = hashlib.sha256(layer.getvalue()).hexdigest()
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff}"]},
        "history": [{"created_by": name}],
    }
    files = {
        "layer.tar": layer.getvalue(),
        "config.json": json.dumps(config).encode(),
        "manifest.json": json.dumps(
            [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
        ).encode(),
    }
    saved = io.BytesIO()
    with tarfile.open(fileobj=saved, mode="w") as archive:
        for file, data in files.items():
            entry = tarfile.TarInfo(file)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return saved.getvalue()


async def test_an_image_for_another_machine_is_refused(engine: Engine, name: str) -> None:
    data = made_for(OTHER, name)

    def load(api: docker.APIClient) -> Any:
        return api.load_image(data)  # type: ignore[no-untyped-call]

    await engine.follow("load", load, lambda entry: None)
    error = await refused(engine, spec(name))
    assert error.code == "image-architecture"
    assert f"linux/{OTHER}" in error.message


async def test_the_repositorys_dockerfile_makes_the_image(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY a.txt /a.txt\nENV MADE=here\n")
    (tmp_path / "a.txt").write_text(secrets.token_hex(8))
    lines: list[str] = []
    box = SandboxOrder(
        repo=tmp_path,
        home=tmp_path,
        image_from=Path("Dockerfile"),
        pull="missing",
        on_progress=lines.append,
    )
    made = await ensure_image(engine, box)
    try:
        assert lines[0].startswith("Step 1/3") and "Successfully" in lines[-1]
        assert made.name.startswith("agentrunner/repository:")
        lines.clear()
        assert await ensure_image(engine, box) == made and lines == []
    finally:
        await engine.call("tidy up", lambda api: api.remove_image(made.name))
    assert await find_image(engine, made.name) is None
