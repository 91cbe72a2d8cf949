"""The user's package caches in a box: real tools work offline with them, and no credential is seen.

The caches are filled by the tools themselves, from packages made by these tests.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agentrunner.sandboxes.base import BoxSpec, Request, Result, Sandbox
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.sandboxes.find_caches import find_caches
from tests.kit.caches import PROJECTS, SECRET, Make, Project, serving
from tests.kit.docker import docker, require_docker
from tests.kit.layers import tree_of

from .conftest import Place

SEARCH = (
    "grep -rIls --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr -e {} / ; "
    "env | grep -e {} ; true"
)


@pytest.fixture(params=PROJECTS, ids=lambda make: make.__name__)
def project(request: pytest.FixtureRequest, place: Place) -> Iterator[Project]:
    """Filled while its server is there; in the box it is gone."""
    make: Make = request.param
    with serving(place.root / "served") as server:
        made = make(place.user, place.repo, server)
    yield made


@pytest.fixture(params=["overlay", "copy", "docker"])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "docker":
        require_docker()
    return str(request.param)


@pytest.fixture
async def box(kind: str, place: Place, project: Project) -> AsyncIterator[Sandbox]:
    caches = find_caches(place.repo, {}, place.user)
    sandbox = make(kind, place, place.spec(caches=caches, programs=project.programs))
    await sandbox.open()
    yield sandbox
    await sandbox.close()


def make(kind: str, place: Place, spec: BoxSpec) -> Sandbox:
    if kind == "docker":
        return docker(spec)
    environ = {"PATH": os.environ["PATH"], "HOME": str(Path.home())}
    return BwrapSandbox(
        spec, environ=environ, host_home=Path.home(), overlays=kind == "overlay"
    )


async def sh(box: Sandbox, place: Place, script: str, **fields: object) -> Result:
    request = Request(("sh", "-c", script), place.repo, timeout_sec=300, **fields)  # type: ignore[arg-type]
    return await box.run(request)


async def test_its_tests_are_green_offline_with_nothing_but_the_cache(
    box: Sandbox, place: Place, project: Project
) -> None:
    before = tree_of(place.user, text=False)
    result = await sh(box, place, project.test)
    assert result.exit_code == 0, (result.stdout + result.stderr).decode()
    assert tree_of(place.user, text=False) == before, "the user's own files have changed"


async def test_no_credential_in_or_beside_the_cache_is_in_the_box(
    box: Sandbox, place: Place, project: Project
) -> None:
    assert all(SECRET in file.read_text() for file in project.bait)
    result = await sh(box, place, SEARCH.format(SECRET, SECRET))
    assert result.stdout == b"", result.stdout.decode()


async def test_without_the_cache_they_are_red(place: Place, project: Project) -> None:
    sandbox = make("overlay", place, place.spec(programs=project.programs))
    result = await sh(sandbox, place, project.test)
    assert result.exit_code not in (0, 127), (result.stdout + result.stderr).decode()
