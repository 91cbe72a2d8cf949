"""The user's package caches in a box: real tools work offline with them, and no credential is seen.

The caches are filled by the tools themselves, from packages made by these tests.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from agentrunner.sandboxes.base import CommandResult, Request, Sandbox, SandboxOrder
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.sandboxes.caches import CACHES, CacheRow
from agentrunner.sandboxes.find_caches import find_caches
from agentrunner.sandboxes.homes import without_large
from tests.kit.caches import (
    SECRET,
    Make,
    Project,
    bait,
    berry,
    cargo,
    go,
    maven,
    npm,
    pnpm,
    serving,
    uv,
    yarn,
)
from tests.kit.docker import docker, require_docker
from tests.kit.files import write
from tests.kit.layers import tree_of
from tests.kit.more_caches import gem, gem_home, gradle, pip
from tests.kit.sandbox_place import Place

SEARCH = (
    "grep -rIls --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr -e {} / ; "
    "env | grep -e {} ; true"
)
WHOLE = pytest.mark.whole
IN_BWRAP = (
    *(go, cargo, npm, pnpm, uv, yarn, berry),
    *(pytest.param(make, marks=WHOLE) for make in (maven, gem, gem_home, pip, gradle)),
)
IN_DOCKER = (go, cargo, npm, pytest.param(gem, marks=WHOLE), pytest.param(maven, marks=WHOLE))


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
    async with opened(box):
        path = "".join(f"{folder}/bin:" for folder in project.tools)
        result = await sh(box, place, f"PATH={path}$PATH; {project.test}")
        assert result.exit_code == 0, (result.stdout + result.stderr).decode()
        assert tree_of(place.user, text=False) == before, "the user's own files have changed"
        seen = await sh(box, place, SEARCH.format(SECRET, SECRET))
        assert seen.stdout == b"", seen.stdout.decode()


@pytest.mark.parametrize("make", IN_BWRAP, ids=lambda make: make.__name__)
async def test_in_bwrap_tests_are_green_offline_and_no_credential_is_seen(
    place: Place, make: Make
) -> None:
    await works_offline_and_hides("overlay", place, make)


async def test_a_cache_that_the_repository_names_is_used_in_place_of_the_user_s(
    place: Place,
) -> None:
    write(place.repo, {".npmrc": "cache=.npm-cache\n"})
    project = fetched(npm, place)
    assert (place.repo / ".npm-cache/_cacache").is_dir()
    caches = find_caches(place.repo, {}, place.user)
    box = boxed("overlay", place, place.spec(caches=caches, programs=project.programs))
    async with opened(box):
        result = await sh(box, place, f"npm config get cache; {project.test}")
    said = (result.stdout + result.stderr).decode()
    assert (result.exit_code, said.splitlines()[0]) == (0, f"{place.repo}/.npm-cache"), said


BESIDE = {
    "nuget": (".nuget/NuGet/NuGet.Config", ".config/NuGet/NuGet.Config"),
    "yarn": (".yarnrc", ".yarnrc.yml", ".npmrc"),
    "pnpm": (".npmrc", ".config/pnpm/rc", ".config/pnpm/auth.ini"),
    "uv": (".config/uv/uv.toml", ".local/share/uv/credentials/credentials.toml", ".netrc"),
    "pip": (".config/pip/pip.conf", ".pip/pip.conf", ".netrc"),
    "gradle": (".gradle/gradle.properties", ".gradle/init.gradle", ".gradle/init.d/a.gradle"),
}
"""Where people have their credentials for an ecosystem."""


@pytest.mark.series(4)
@pytest.mark.parametrize(
    "row", [row for row in CACHES if row.ecosystem in BESIDE], ids=lambda row: row.below_home
)
async def test_no_credential_is_seen_of_a_tool_that_is_not_here(
    place: Place, row: CacheRow
) -> None:
    """Its cache is made by hand; what a tool does with it is for those that are here."""
    below, name = row.places[-1].removeprefix("~/"), row.used_by[0].replace("*", "a")
    write(place.repo, {name: ""})
    beside = [f"{below}/credentials", f"{below}/logs/debug.log", *BESIDE[row.ecosystem]]
    for folder in row.folders:
        inner = f"{below}/{folder.name.replace('*', '1')}"
        write(place.user, {f"{inner}/deep/packed.bin": "package\n"})
        beside += [f"{inner}/deep/note.txt", f"{inner}/config.json"]
    # What is packed as published has no credential of the user's, and is not searched.
    packed = [f"{below}/{one}{rest}" for one in row.published for rest in ("", "/*")]
    searched = [name for name in beside if not any(fnmatchcase(name, one) for one in packed)]
    assert len(searched) > len(row.folders)
    bait(*(place.user / name for name in searched))
    caches = find_caches(place.repo, {}, place.user)
    assert row.ecosystem in caches.ecosystems
    box = boxed("overlay", place, place.spec(caches=caches))
    async with opened(box):
        seen = await sh(box, place, f"find ~/ -name packed.bin; {SEARCH.format(SECRET, SECRET)}")
    assert seen.stdout.decode().count("packed.bin\n") == len(row.folders)
    assert SECRET not in seen.stdout.decode()
    lines = [line for line in seen.stdout.decode().splitlines() if "packed.bin" not in line]
    assert lines == []


@pytest.mark.series(2)
@pytest.mark.parametrize("make", [cargo, npm], ids=lambda make: make.__name__)
async def test_so_are_they_where_a_layer_is_a_copy(place: Place, make: Make) -> None:
    await works_offline_and_hides("copy", place, make)


@pytest.mark.series(3)
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


Damage = Callable[[Path, ExitStack], None]
"""Does something to Go's cache; what has to last until the tests have run is kept open."""
DOWNLOADS = "cache/download/example.test/greet/@v"


def half_written(cache: Path, _: ExitStack) -> None:
    shutil.rmtree(cache / "example.test")
    packed = cache / DOWNLOADS / "v1.2.3.zip"
    packed.write_bytes(packed.read_bytes()[:-40])
    (cache / DOWNLOADS / "v1.2.3.zip123.tmp").touch()


def locked(cache: Path, lasting: ExitStack) -> None:
    for name in ("cache/lock", f"{DOWNLOADS}/v1.2.3.lock"):
        fcntl.flock(lasting.enter_context((cache / name).open("w")), fcntl.LOCK_EX)


def of_another_user(cache: Path, _: ExitStack) -> None:
    if os.geteuid():
        pytest.skip("only root gives a file to another user")
    for place in (cache, *cache.rglob("*")):
        os.chown(place, 65534, 65534, follow_symlinks=False)


def of_another_user_alone(cache: Path, lasting: ExitStack) -> None:
    of_another_user(cache, lasting)
    cache.chmod(0o700)


def huge(cache: Path, _: ExitStack) -> None:
    with (cache / "cache/download/huge.zip").open("wb") as file:
        file.truncate(100 << 30)


def locked_all(cache: Path, lasting: ExitStack) -> None:
    for file in cache.rglob("*"):
        if file.is_file():
            fcntl.flock(lasting.enter_context(file.open("r+b")), fcntl.LOCK_EX)


def sound(_: Path, __: ExitStack) -> None:
    pass


@pytest.fixture
def writable_again(place: Place) -> Iterator[None]:
    """Go keeps what it has unpacked read-only, also against whoever clears up."""
    yield
    for folder in place.user.rglob("*"):
        if folder.is_dir() and not folder.is_symlink():
            folder.chmod(0o755)


@pytest.mark.usefixtures("writable_again")
@pytest.mark.series(3)
@pytest.mark.parametrize(
    ("damage", "runs", "green"),
    [
        (half_written, 1, False),
        (locked, 1, True),
        (of_another_user, 1, True),
        (of_another_user_alone, 1, False),
        (huge, 1, True),
        (sound, 2, True),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_a_cache_in_any_state_stays_as_it_is_and_stops_nobody(
    place: Place, damage: Damage, runs: int, green: bool
) -> None:
    project = fetched(go, place)
    with ExitStack() as lasting:
        damage(place.user / "go/pkg/mod", lasting)
        before = tree_of(place.user, text=False)
        caches = find_caches(place.repo, {}, place.user)
        closed = damage is of_another_user_alone
        assert (caches.folders == ()) is closed
        assert any("it cannot be read" in notice for notice in caches.notices) is closed
        boxes = [
            boxed("overlay", place, place.spec(caches=caches, programs=project.programs))
            for _ in range(runs)
        ]
        async with opened(*boxes):
            results = await asyncio.gather(*(sh(box, place, project.test) for box in boxes))
        assert_ended(results, green)
        assert tree_of(place.user, text=False) == before, "the user's own files have changed"


@asynccontextmanager
async def opened(*boxes: Sandbox) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for box in boxes:
            stack.push_async_callback(box.close)
            await box.open()
        yield


def assert_ended(results: Iterable[CommandResult], green: bool) -> None:
    """Each command ended, and well if `green`."""
    for result in results:
        output = (result.stdout + result.stderr).decode()
        assert (result.exit_code == 0) is green, output
        assert result.exit_code not in (124, 127), output


def content_cut(cache: Path, _: ExitStack) -> None:
    for packed in (cache / "content-v2").rglob("*"):
        if packed.is_file():
            packed.write_bytes(packed.read_bytes()[:-40])
    (cache / "tmp").mkdir(exist_ok=True)
    (cache / "tmp/1a2b3c").touch()


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["overlay", "copy"])
@pytest.mark.parametrize(
    ("damage", "green"),
    [(sound, True), (locked_all, True), (content_cut, False)],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_two_that_share_a_cache_with_a_layer_do_not_see_each_other(
    place: Place, kind: str, damage: Damage, green: bool
) -> None:
    project = fetched(npm, place)
    cache = place.user / ".npm/_cacache"
    other = replace(place, repo=place.root / "other")
    shutil.copytree(place.repo, other.repo)
    with ExitStack() as lasting:
        damage(cache, lasting)
        before = tree_of(place.user, text=False)
        caches = find_caches(place.repo, {}, place.user)
        boxes = [
            boxed(kind, at, at.spec(caches=caches, programs=project.programs))
            for at in (place, other)
        ]
        marked = f"test ! -e ~/.npm/_cacache/mine && touch ~/.npm/_cacache/mine && {project.test}"
        async with opened(*boxes):
            results = await asyncio.gather(
                *(sh(box, at, marked) for box, at in zip(boxes, (place, other), strict=True))
            )
        assert_ended(results, green)
        assert tree_of(place.user, text=False) == before, "the user's own files have changed"


def test_a_cache_that_would_be_copied_and_is_huge_is_a_notice(place: Place) -> None:
    fetched(npm, place)
    with (place.user / ".npm/_cacache/content-v2/huge").open("wb") as file:
        file.truncate(100 << 30)
    found = without_large(find_caches(place.repo, {}, place.user))
    assert found.folders == ()
    assert "npm: " in found.notices[-1] and "more than 2 GB would be copied" in found.notices[-1]
