"""The user's package caches in a box: real tools work offline with them, and no credential is seen.

The caches are filled by the tools themselves, from packages made by these tests.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from agentrunner.sandboxes.base import CommandResult, Request, Sandbox, SandboxOrder
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.sandboxes.find_caches import find_caches
from tests.kit.caches import SECRET, Make, Project, cargo, go, maven, npm, serving, uv
from tests.kit.docker import docker, require_docker
from tests.kit.layers import tree_of

from .conftest import Place

SEARCH = (
    "grep -rIls --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr -e {} / ; "
    "env | grep -e {} ; true"
)
IN_BWRAP = (go, cargo, maven, npm, uv)
IN_DOCKER = (go, cargo, npm)
"""Those whose tools an image without files of its own can start."""


def fetched(make: Make, place: Place) -> Project:
    """Filled while its server is there; in the box it is gone."""
    with serving(place.root / "served") as server:
        return make(place.user, place.repo, server)


def boxed(kind: str, place: Place, spec: SandboxOrder) -> Sandbox:
    if kind == "docker":
        return docker(spec)
    environ = {"PATH": os.environ["PATH"], "HOME": str(Path.home())}
    return BwrapSandbox(spec, environ=environ, host_home=Path.home(), overlays=kind == "overlay")


async def sh(box: Sandbox, place: Place, script: str, **fields: object) -> CommandResult:
    request = Request(("sh", "-c", script), place.repo, timeout_sec=300)
    return await box.run(replace(request, **fields))  # type: ignore[arg-type]


async def works_offline_and_hides(kind: str, place: Place, make: Make) -> None:
    project = fetched(make, place)
    assert all(SECRET in file.read_text() for file in project.bait)
    before = tree_of(place.user, text=False)
    caches = find_caches(place.repo, {}, place.user)
    spec = place.spec(caches=caches, programs=project.programs, read_paths=project.tools)
    box = boxed(kind, place, spec)
    await box.open()
    try:
        path = "".join(f"{folder}/bin:" for folder in project.tools)
        result = await sh(box, place, f"PATH={path}$PATH; {project.test}")
        assert result.exit_code == 0, (result.stdout + result.stderr).decode()
        assert tree_of(place.user, text=False) == before, "the user's own files have changed"
        seen = await sh(box, place, SEARCH.format(SECRET, SECRET))
        assert seen.stdout == b"", seen.stdout.decode()
    finally:
        await box.close()


@pytest.mark.parametrize("make", IN_BWRAP, ids=lambda make: make.__name__)
async def test_in_bwrap_tests_are_green_offline_and_no_credential_is_seen(
    place: Place, make: Make
) -> None:
    await works_offline_and_hides("overlay", place, make)


@pytest.mark.parametrize("make", [cargo, npm], ids=lambda make: make.__name__)
async def test_so_are_they_where_a_layer_is_a_copy(place: Place, make: Make) -> None:
    await works_offline_and_hides("copy", place, make)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("make", IN_DOCKER, ids=lambda make: make.__name__)
async def test_so_are_they_in_a_container(place: Place, make: Make) -> None:
    await works_offline_and_hides("docker", place, make)


@pytest.fixture
def engine() -> str:
    return require_docker()


async def test_without_the_cache_they_are_red(place: Place) -> None:
    project = fetched(go, place)
    box = boxed("overlay", place, place.spec(programs=project.programs))
    result = await sh(box, place, project.test)
    assert result.exit_code not in (0, 127), (result.stdout + result.stderr).decode()
