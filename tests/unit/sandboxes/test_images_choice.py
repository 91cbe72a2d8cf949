"""Which image a box gets, and what may be done to have it."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker.errors
import pytest
import requests

from agentrunner.errors import AgentRunnerError, SandboxUnavailable, UsageError
from agentrunner.sandboxes.base import SandboxOrder
from agentrunner.sandboxes.docker.engine import Engine, EngineError, Traits
from agentrunner.sandboxes.docker.images import Image, ensure_image, wanted_image
from agentrunner.sandboxes.docker.recipes import ALL_IN_ONE, HOST_IMAGE, RECIPES, default_recipe
from agentrunner.workers.codex import TESTED
from tests.kit.engine import quiet_address

HERE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
DIGEST, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64
FACTS = {"Id": "sha256:" + "1" * 64, "Architecture": HERE, "Os": "linux", "RepoDigests": []}


def api_error(status: int) -> docker.errors.APIError:
    answer = requests.Response()
    answer.status_code = status
    return docker.errors.APIError("no", answer, "the engine's own words")


class Images:
    """The part of an engine's API that is asked, with a registry of its own."""

    def __init__(self, there: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self.there = dict(there or {})
        self.registry: dict[str, Mapping[str, Any]] = {}
        self.pulled: list[tuple[str, str]] = []
        self.built: list[str] = []
        self.networks: list[str | None] = []
        self.entries: list[dict[str, Any]] = []

    def inspect_image(self, name: str) -> Mapping[str, Any]:
        if name not in self.there:
            raise api_error(404)
        return self.there[name]

    def pull(self, repository: str, *, tag: str, **_: Any) -> Iterator[dict[str, Any]]:
        self.pulled.append((repository, tag))
        name = f"{repository}{'@' if tag.startswith('sha256:') else ':'}{tag}"
        if name not in self.registry and not self.entries:
            raise api_error(404)
        yield from self.entries
        if name in self.registry:
            self.there[name] = self.registry[name]

    def build(self, *, tag: str, network_mode: str | None, **_: Any) -> Iterator[dict[str, Any]]:
        self.built.append(tag)
        self.networks.append(network_mode)
        yield from self.entries
        if not any("error" in entry for entry in self.entries):
            self.there[tag] = FACTS

    def ping(self) -> bool:
        return True

    def engine(self, **traits: Any) -> Engine:
        return Engine(quiet_address(), self, Traits(**traits))  # type: ignore[arg-type]


def spec(**fields: Any) -> SandboxOrder:
    return SandboxOrder(**{"repo": Path("/repo"), "home": Path("/home"), **fields})


async def refused(images: Images, **fields: Any) -> AgentRunnerError:
    with pytest.raises(AgentRunnerError) as caught:
        await ensure_image(images.engine(), spec(**fields))
    return caught.value


# -- which image --------------------------------------------------------------------------------


def test_the_task_decides_then_the_repository_then_the_worker(tmp_path: Path) -> None:
    file = tmp_path / "devcontainer.json"
    file.write_text('{"image": "debian:13"}')
    everything = spec(repo=tmp_path, image="mine:1", image_from=file, worker_kind="codex-cli")
    assert wanted_image(everything).name == "mine:1"
    assert wanted_image(replace(everything, image="")).name == "debian:13"
    assert wanted_image(spec(worker_kind="codex-cli")).name == f"agentrunner/codex:{TESTED}"
    for kind in ("command", "mock", ""):
        assert wanted_image(spec(worker_kind=kind)).name == ALL_IN_ONE.image


@pytest.mark.parametrize(
    "name", ["../containers/x", "a/../b", "-v", "a b", "a\nb", "a/./b", "a?x=1", "a#b"]
)
def test_a_name_that_leads_elsewhere_in_the_api_is_refused(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        wanted_image(spec(image=name))
    assert caught.value.code == "image-name"


@pytest.mark.parametrize(
    "name", ["debian", "localhost:5000/a/b:1.2", f"a@{DIGEST}", f"sha256:{'a' * 64}", "a.b/c_d-e"]
)
def test_every_usual_name_is_taken(name: str) -> None:
    assert wanted_image(spec(image=name)).name == name


def test_recipes_and_their_dockerfiles_name_the_same_versions() -> None:
    everything = ALL_IN_ONE.dockerfile().decode()
    for recipe in RECIPES.values():
        text = recipe.dockerfile().decode()
        assert text.splitlines()[0].startswith("# ") and "FROM ${BASE}" in text
        assert not re.search(r"(?i)secret|token|password|curl", text)
        if recipe is not ALL_IN_ONE:
            versions = re.findall(r"^ARG (\w+_VERSION=.*)$", text, re.MULTILINE)
            assert [line.partition("=")[2] for line in versions] == [recipe.image.split(":")[1]]
            assert f"ARG {versions[0]}\n" in everything
    assert default_recipe("codex-cli").image.endswith(f":{TESTED}")


# -- one that is there --------------------------------------------------------------------------


async def test_an_image_that_is_there_is_taken_whatever_the_policy_but_always() -> None:
    images = Images({"mine:1": {**FACTS, "RepoDigests": [f"x@{OTHER}", f"mine@{DIGEST}"]}})
    for pull in ("never", "missing"):
        found = await ensure_image(images.engine(), spec(image="mine:1", pull=pull))
        assert found == Image(FACTS["Id"], "mine:1", DIGEST, "named by the task")  # type: ignore[arg-type]
    assert images.pulled == []


def test_an_image_is_told_with_what_its_name_means_now() -> None:
    made = Image("sha256:0b65b315c2c0ffff", "shop:1")
    assert str(made) == "shop:1 (sha256:0b65b315c2c0)"
    assert str(replace(made, digest=DIGEST)) == f"shop:1 (sha256:{'a' * 12})"
    assert str(replace(made, digest=DIGEST, name=f"shop@{DIGEST}")) == f"shop@{DIGEST}"


@pytest.mark.parametrize("name", ["r:5000/mine:1", "r:5000/mine"])
async def test_the_digest_is_that_of_the_registry_it_was_asked_from(name: str) -> None:
    digests = [f"mine@{OTHER}", f"r:5000/mine@{DIGEST}"]
    images = Images({name: {**FACTS, "RepoDigests": digests}})
    assert (await ensure_image(images.engine(), spec(image=name))).digest == DIGEST


async def test_one_for_another_machine_is_refused() -> None:
    for facts in ({"Architecture": "s390x"}, {"Os": "windows"}):
        error = await refused(Images({"a:1": {**FACTS, **facts}}), image="a:1", pull="missing")
        assert error.code == "image-architecture"
        assert f"--platform linux/{HERE}" in error.remedy


async def test_one_with_another_digest_is_refused() -> None:
    name = f"a@{DIGEST}"
    images = Images({name: {**FACTS, "RepoDigests": [f"a@{OTHER}"]}})
    assert (await refused(images, image=name)).code == "image-digest"
    images.there[name] = {**FACTS, "RepoDigests": [f"a@{DIGEST}"]}
    assert (await ensure_image(images.engine(), spec(image=name))).digest == DIGEST


# -- one that is missing ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        ({"image": "debian:13"}, "docker pull debian:13"),
        ({"worker_kind": "codex-cli"}, "agentrunner image build codex-cli"),
        ({"image": ALL_IN_ONE.image}, "agentrunner image build all-in-one"),
    ],
)
async def test_nothing_is_fetched_because_it_is_missing(
    fields: dict[str, str], command: str
) -> None:
    images = Images()
    error = await refused(images, **fields)
    assert isinstance(error, SandboxUnavailable)
    assert (error.code, error.remedy) == ("image-missing", command)
    assert (images.pulled, images.built) == ([], [])


async def test_the_command_is_that_of_the_engine() -> None:
    with pytest.raises(SandboxUnavailable) as caught:
        await ensure_image(Images().engine(product="Podman"), spec(image="a:1"))
    assert caught.value.remedy == "podman pull a:1"


async def test_one_that_may_be_fetched_is_with_its_progress() -> None:
    images = Images()
    images.registry["a:latest"] = images.registry[f"a@{DIGEST}"] = FACTS
    images.there["a"] = FACTS  # as the engine has it under both names
    images.registry[f"a@{DIGEST}"] = {**FACTS, "RepoDigests": [f"a@{DIGEST}"]}
    images.entries = [
        {"status": "Pulling from library/a", "id": "latest"},
        {"status": "Pulling fs layer", "id": "1"},
        {"status": "Downloading", "id": "1", "progressDetail": {"current": 1e6, "total": 4e6}},
        {"status": "Downloading", "id": "1", "progressDetail": {"current": 1.1e6, "total": 4e6}},
        {"status": "Pull complete", "id": "1"},
    ]
    lines: list[str] = []
    await ensure_image(images.engine(), spec(image="a", pull="always", on_progress=lines.append))
    await ensure_image(images.engine(), spec(image=f"a@{DIGEST}", pull="missing"))
    assert images.pulled == [("a", "latest"), ("a", DIGEST)]
    assert lines == [
        "a: 0 of 1 layers",
        "a: 0 of 1 layers, 20 % of 4 MB",
        "a: 1 of 1 layers, 100 % of 4 MB",
    ]


async def test_a_pull_that_fails_says_so_in_the_engines_words() -> None:
    images = Images()
    error = await refused(images, image="a:1", pull="missing")
    assert error.code == "image-pull-failed" and "the engine's own words" in error.message
    images.entries = [{"error": "manifest unknown", "errorDetail": {}}]
    error = await refused(images, image="a:1", pull="always")
    assert error.code == "image-pull-failed" and "manifest unknown" in error.message


async def test_an_image_by_its_id_is_never_fetched() -> None:
    images = Images()
    assert (await refused(images, image="a" * 64, pull="always")).code == "image-missing"
    assert images.pulled == []


async def test_one_of_ours_is_built_and_never_asked_of_a_registry() -> None:
    images = Images()
    images.registry[RECIPES["codex-cli"].image] = {**FACTS, "Id": "of a stranger"}
    found = await ensure_image(images.engine(), spec(worker_kind="codex-cli", pull="missing"))
    assert found.id == FACTS["Id"]
    assert (images.pulled, images.built) == ([], [RECIPES["codex-cli"].image])


@pytest.mark.parametrize(("bridge", "network"), [(True, None), (False, "host")])
async def test_a_build_has_the_engines_network_or_where_it_has_none_the_hosts(
    bridge: bool, network: str | None
) -> None:
    images = Images()
    await ensure_image(images.engine(bridge=bridge), spec(pull="missing"))
    assert images.networks == [network]


@pytest.mark.parametrize("pull", ["never", "missing", "always"])
async def test_a_name_of_ours_that_nothing_makes_is_never_asked_of_a_registry(pull: str) -> None:
    images = Images()
    images.registry["agentrunner/codex:0.1.0"] = FACTS
    error = await refused(images, image="agentrunner/codex:0.1.0", pull=pull)
    assert (error.code, error.remedy) == ("image-missing", "agentrunner image build")
    assert error.details == () and images.pulled == []
    host = await refused(images, image=HOST_IMAGE, pull="never")
    assert host.remedy == "agentrunner image build host"


async def test_a_build_that_fails_shows_the_end_of_what_it_printed() -> None:
    images = Images()
    images.entries = [{"stream": f"line {n}\n"} for n in range(30)]
    images.entries += [{"stream": "torn "}, {"stream": "line\n"}, {"error": "exit code 1"}]
    lines: list[str] = []
    with pytest.raises(SandboxUnavailable) as caught:
        await ensure_image(images.engine(), spec(pull="missing", on_progress=lines.append))
    assert caught.value.code == "image-build-failed"
    assert caught.value.details[-1] == ("printed", "torn line")
    assert lines == [*(f"line {n}" for n in range(30)), "torn line"]


async def test_the_repositorys_image_is_built_where_that_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    images = Images()
    fields = {"repo": tmp_path, "image_from": Path("Dockerfile")}
    error = await refused(images, **fields)
    assert error.remedy == "agentrunner image build --from Dockerfile"
    assert "runs the repository's own commands" in error.message and images.built == []
    found = await ensure_image(images.engine(), spec(**fields, pull="missing"))
    assert [found.name] == images.built
    assert await ensure_image(images.engine(), spec(**fields)) == found
    (tmp_path / "Dockerfile").write_text("FROM scratch\nENV A=1\n")
    assert (await refused(images, **fields)).code == "image-missing"


async def test_an_engine_that_is_gone_is_no_missing_image() -> None:
    images = Images()

    def gone(name: str) -> Mapping[str, Any]:
        raise requests.exceptions.ConnectionError("gone")

    images.inspect_image = gone  # type: ignore[method-assign]
    with pytest.raises(EngineError) as caught:
        await ensure_image(images.engine(), spec(image="a:1"))
    assert caught.value.status is None
