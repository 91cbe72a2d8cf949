"""Images that are really fetched, from a registry on this machine."""

from __future__ import annotations

import platform
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from agentrunner.errors import SandboxUnavailable
from agentrunner.sandboxes.base import SandboxOrder
from agentrunner.sandboxes.docker.engine import Engine
from agentrunner.sandboxes.docker.images import ensure_image
from tests.kit.registry import Registry

OTHER = {"x86_64": "arm64", "aarch64": "amd64"}[platform.machine()]


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry(secrets.token_hex(8)) as registry:
        yield registry


@pytest.fixture(autouse=True)
async def _tidy(engine: Engine, registry: Registry) -> AsyncIterator[None]:
    yield

    def tidy_up(api: docker.APIClient) -> None:
        for image in api.images():
            names = [*(image.get("RepoTags") or ()), *(image.get("RepoDigests") or ())]
            if any(name.startswith(registry.repository) for name in names):
                api.remove_image(image["Id"], force=True)

    await engine.call("tidy up", tidy_up)


def spec(image: str, **fields: Any) -> SandboxOrder:
    return SandboxOrder(repo=Path("/repo"), home=Path("/home"), image=image, **fields)


async def refused(engine: Engine, box: SandboxOrder) -> SandboxUnavailable:
    with pytest.raises(SandboxUnavailable) as caught:
        await ensure_image(engine, box)
    return caught.value


async def test_an_image_is_fetched_once_and_its_digest_is_known(
    engine: Engine, registry: Registry
) -> None:
    assert (await refused(engine, spec(registry.name))).code == "image-missing"
    lines: list[str] = []
    fetch = spec(registry.name, pull="missing", on_progress=lines.append)
    image = await ensure_image(engine, fetch)
    assert image.digest == registry.digest
    assert lines[-1].startswith(f"{registry.name}: 1 of 1 layers")
    lines.clear()
    registry.manifests.clear()  # nobody asks again
    assert await ensure_image(engine, fetch) == image and lines == []
    assert await ensure_image(engine, spec(registry.name)) == image


async def test_a_digest_is_fetched_by_it(engine: Engine, registry: Registry) -> None:
    name = f"{registry.repository}@{registry.digest}"
    image = await ensure_image(engine, spec(name, pull="missing"))
    assert (image.digest, image.name) == (registry.digest, name)


async def test_a_registry_that_has_something_else_under_a_digest_is_refused(
    engine: Engine, registry: Registry
) -> None:
    with Registry(secrets.token_hex(8)) as another:
        registry.manifests[another.digest] = registry.manifests["1"]
    forged = f"{registry.repository}@{another.digest}"
    error = await refused(engine, spec(forged, pull="missing"))
    assert error.code == "image-pull-failed"
    assert another.digest in error.message


async def test_always_takes_what_the_name_means_now(engine: Engine, registry: Registry) -> None:
    first = await ensure_image(engine, spec(registry.name, pull="missing"))
    with Registry(secrets.token_hex(8)) as newer:
        registry.blobs |= newer.blobs
        registry.manifests |= newer.manifests
        assert await ensure_image(engine, spec(registry.name, pull="missing")) == first
        image = await ensure_image(engine, spec(registry.name, pull="always"))
    assert image.digest == newer.digest and image.id != first.id


async def test_one_that_the_registry_does_not_have_is_told(
    engine: Engine, registry: Registry
) -> None:
    error = await refused(engine, spec(f"{registry.repository}:2", pull="missing"))
    assert error.code == "image-pull-failed"
    assert error.remedy == f"docker pull {registry.repository}:2"


async def test_one_for_another_machine_is_refused_after_it_came(
    engine: Engine, registry: Registry
) -> None:
    with Registry(secrets.token_hex(8), OTHER) as foreign:
        registry.blobs |= foreign.blobs
        registry.manifests |= foreign.manifests
    error = await refused(engine, spec(registry.name, pull="missing"))
    # Engines differ in when they notice.
    assert error.code in ("image-architecture", "image-pull-failed")
    assert OTHER in error.message or "platform" in error.message
