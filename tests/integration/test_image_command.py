"""`agentrunner image build` really builds, and what it has built runs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from agentrunner import cli
from agentrunner.commands.console import Output
from agentrunner.commands.fixing import Fix, carry_out, fixes
from agentrunner.sandboxes.docker import images
from agentrunner.sandboxes.docker.engine import Engine
from agentrunner.sandboxes.docker.images import find_image
from agentrunner.sandboxes.docker.recipes import RECIPES, Recipe
from agentrunner.workers.codex import TESTED
from tests.kit.base_image import make_base
from tests.kit.missing import missing

Command = Callable[..., int]


@pytest.fixture
async def tag(engine: Engine) -> AsyncIterator[str]:
    """A name for an image that is removed in the end."""
    name = f"agentrunner-test/made:{secrets.token_hex(4)}"
    yield name
    if await find_image(engine, name):
        await engine.call("tidy up", lambda api: api.remove_image(name))


@pytest.fixture
async def base(engine: Engine) -> AsyncIterator[str]:
    name = f"agentrunner-test/base:{secrets.token_hex(4)}"
    await make_base(engine, name)
    yield name
    await engine.call("tidy up", lambda api: api.remove_image(name, force=True))


async def build(*words: str) -> int:
    """The command, as in a process of its own: with an event loop of its own."""
    return await asyncio.to_thread(cli.call, cli.app, ["image", "build", *words], "agentrunner")


async def printed(engine: Engine, image: str, *command: str) -> str:
    """What a command prints in a hardened container of the image, as a user without a name."""

    def run() -> str:
        api = engine.api
        config = api.create_host_config(
            network_mode="none",
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            tmpfs={"/home/agent": "mode=1777", "/tmp": ""},
        )
        box = api.create_container(
            image, list(command), user="4321:4321", environment={"HOME": "/home/agent"},
            host_config=config,
        )["Id"]  # fmt: skip
        try:
            api.start(box)
            assert api.wait(box)["StatusCode"] == 0, api.logs(box)
            return api.logs(box, stderr=False).decode()
        finally:
            api.remove_container(box, force=True)

    return await engine.call("run", lambda api: run())


@pytest.mark.whole
async def test_the_image_of_codex_is_built_and_runs_codex(
    engine: Engine, base: str, tag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = await build("codex-cli", "--base", base, "--tag", tag)
    told = capsys.readouterr()
    if re.search(r"EAI_AGAIN|ENOTFOUND|ENETUNREACH|ETIMEDOUT", told.err):
        missing("the registry of the CLI's package cannot be reached from a build")
    assert code == 0, told.err
    assert "codex-cli" in told.err and f"Built {tag}, sha256:" in told.out
    script = "codex --version; python3 --version; git --version; test -w /tmp && echo writable"
    lines = (await printed(engine, tag, "sh", "-c", script)).splitlines()
    assert lines[0] == f"codex-cli {TESTED}"
    assert [line.split()[0] for line in lines[1:]] == ["Python", "git", "writable"]


async def test_a_build_that_fails_says_what_was_printed(
    engine: Engine, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY absent.txt /\n")
    assert await build("--from", "Dockerfile", "--tag", tag) == 5
    told = capsys.readouterr().err
    assert "error[image-build-failed]" in told and "absent.txt" in told
    assert "printed: Step 2/2" in told
    assert await find_image(engine, tag) is None


async def test_the_repositorys_own_image_is_built(
    engine: Engine, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    folder = tmp_path / ".devcontainer"
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM scratch\nARG NAME\nENV NAME=$NAME\nCOPY a.txt /\n")
    (folder / "devcontainer.json").write_text(
        '{"build": {"dockerfile": "Dockerfile", "context": "..", "args": {"NAME": "box"}}} // ok'
    )
    (tmp_path / "a.txt").write_text("hello")
    monkeypatch.chdir(tmp_path)
    assert await build("--from", ".devcontainer/devcontainer.json", "--tag", tag) == 0
    facts = await engine.call("look", lambda api: api.inspect_image(tag))
    assert "NAME=box" in facts["Config"]["Env"]


async def test_the_hosts_image_runs_the_hosts_programs(engine: Engine, tag: str) -> None:
    assert await build("host", "--tag", tag) == 0

    def run() -> str:
        api = engine.api
        config = api.create_host_config(network_mode="none", binds=["/usr:/usr:ro"])
        box = api.create_container(tag, ["git", "--version"], host_config=config)["Id"]
        try:
            api.start(box)
            assert api.wait(box)["StatusCode"] == 0
            return api.logs(box).decode()
        finally:
            api.remove_container(box, force=True)

    assert (await engine.call("run", lambda api: run())).startswith("git version")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("codx",), "did you mean codex-cli?"),
        (("codex-cli", "--tag", "A b"), "error[image-name]"),
        (("codex-cli", "--build-arg", "X"), "error[bad-option]"),
        (("codex-cli", "--from", "Dockerfile"), "error[usage]"),
        (("host", "--base", "x"), "error[usage]"),
        (("--from", "absent"), "error[image-source]"),
    ],
)
async def test_mistakes_are_found_without_an_engine(
    words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent.sock")
    monkeypatch.chdir(tmp_path)
    assert await build(*words) == 2
    assert told in capsys.readouterr().err


async def test_as_json_it_says_name_and_id(
    engine: Engine, tag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await build("host", "--tag", tag, "--json") == 0
    made = await find_image(engine, tag)
    assert made is not None
    assert json.loads(capsys.readouterr().out) == {"image": tag, "id": made.id}


class FromScratch(Recipe, frozen=True):
    """A recipe that needs no registry."""

    def dockerfile(self) -> bytes:
        return b"FROM scratch\nENV MADE=here\n"


async def test_doctor_builds_the_image_that_is_missing(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    name = f"agentrunner/test-made:{secrets.token_hex(4)}"
    of_engine = images.our_images

    async def only_ours(engine: Engine) -> list[str]:
        return [one for one in await of_engine(engine) if one == name]

    monkeypatch.setattr(images, "our_images", only_ours)
    monkeypatch.setitem(RECIPES, "codex-cli", FromScratch("codex-cli", "codex", name))

    def offered() -> list[Fix]:
        found = fixes(tmp_path, os.environ, "codex-cli")
        return [fix for fix in found if fix.what.endswith(name)]

    (fix,) = await asyncio.to_thread(offered)
    try:
        (done,) = await asyncio.to_thread(carry_out, [fix], yes=True, output=Output())
        told = capsys.readouterr()
        assert (done["done"], done["text"], told.out) == (True, name, "")
        assert f"Built {name}, sha256:" in told.err
        assert await find_image(engine, name) is not None
        assert await asyncio.to_thread(offered) == []
    finally:
        if await find_image(engine, name):
            await engine.call("tidy up", lambda api: api.remove_image(name))
