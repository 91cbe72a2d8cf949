"""A home that is filled by a set-up, sealed, and given to every later command with a layer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentrunner.sandboxes.base import Cache, Caches, CommandResult, Request, Sandbox
from agentrunner.sandboxes.homes import written_caches
from agentrunner.sandboxes.process import run_launch
from tests.kit.layers import tree_of
from tests.kit.sandbox_place import Place, available

SET_UP = """
mkdir -p ~/.config/tool && echo set >~/.config/tool/file && echo tool >~/.local-tool
"""
WITH_CACHES = """
echo fetched >~/.cache/pkgs/new && echo fetched >~/pkgs/new && cat ~/.cache/pkgs/old ~/pkgs/old
"""


@pytest.fixture(params=["overlay", "copy", "docker", "docker-copy"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each sandbox, where the kernel or the engine lays layers and where they are copied."""
    kind, _, how = available(request.param).partition("-")
    if how == "copy":
        monkeypatch.setattr("agentrunner.sandboxes.docker.sandbox.can_overlay", _cannot)
    return kind


async def _cannot(*_: object) -> bool:
    return False


@pytest.fixture
def caches(place: Place) -> Caches:
    """One that is read-only to commands, and one with a layer."""
    for name in ("plain", "layered"):
        (place.user / name).mkdir()
        (place.user / name / "old").write_text(f"{name}\n")
        (place.user / name / "secret").write_text("secret\n")
    plain = Cache("a", place.user / "plain", "pkgs", hidden=("secret",))
    layered = Cache("b", place.user / "layered", ".cache/pkgs", layer=True, hidden=("secret",))
    return Caches((plain, layered), {"PKGS": "{home}/pkgs"}, {"OFFLINE": "yes"})


@pytest.fixture
async def box(kind: str, place: Place, caches: Caches) -> AsyncIterator[Sandbox]:
    async with place.opened(kind, place.spec(caches=caches)) as sandbox:
        yield sandbox


async def sh(
    box: Sandbox, place: Place, script: str, home: Path | None = None, *, layer: bool = False
) -> CommandResult:
    request = Request(
        ("sh", "-ec", script), place.repo, home=home, home_layer=layer, timeout_sec=60
    )
    return await box.run(request)


def lines(result: CommandResult) -> list[str]:
    assert result.exit_code == 0, result.stderr.decode()
    return result.stdout.decode().splitlines()


async def test_a_sealed_home_is_seen_by_all_and_changed_by_none(box: Sandbox, place: Place) -> None:
    home = place.root / "state/homes/base"
    assert lines(await sh(box, place, f"{SET_UP} cd; pwd", home)) == ["/home/agent"]
    sealed = tree_of(home)
    assert (home / ".config/tool/file").read_text() == "set\n"
    spoil = "cat ~/.config/tool/file; rm -r ~/.config; echo evil >~/usercustomize.py; ls -A ~"
    for _ in range(2):
        seen = lines(await sh(box, place, spoil, home, layer=True))
        assert seen[0] == "set"
        assert {"usercustomize.py", ".local-tool"} <= set(seen[1:])
        assert tree_of(home) == sealed
    assert "usercustomize.py" not in lines(await sh(box, place, "ls -A ~", home, layer=True))
    assert ".config" not in lines(await sh(box, place, "ls -A ~"))


async def test_a_worker_s_layer_is_its_own(box: Sandbox, place: Place) -> None:
    home = place.root / "state/homes/base"
    await sh(box, place, SET_UP, home)
    sealed = tree_of(home)
    script = "cat ~/.config/tool/file && echo evil >~/.config/tool/file && echo more >~/more"
    request = Request(("sh", "-ec", script), place.repo, home=home, home_layer=True)
    ended = await run_launch(box.launch(request), request, live=set())
    assert (ended.result.exit_code, ended.result.stdout) == (0, b"set\n"), ended.result.stderr
    assert tree_of(home) == sealed
    assert lines(await sh(box, place, "cat ~/.config/tool/file", home, layer=True)) == ["set"]


async def test_what_the_set_up_fetches_into_a_cache_is_there_for_the_tests(
    box: Sandbox, place: Place
) -> None:
    home, before = place.root / "state/homes/base", tree_of(place.user)
    assert lines(await sh(box, place, WITH_CACHES, home)) == ["layered", "plain"]
    assert tree_of(place.user) == before
    look = "cat ~/pkgs/new ~/.cache/pkgs/new ~/pkgs/old; cat ~/pkgs/secret || echo none"
    seen = lines(await sh(box, place, look, home, layer=True))
    assert (seen[:3], "secret" in seen) == (["fetched", "fetched", "plain"], False)
    kept = tree_of(written_caches(home))
    await sh(box, place, "echo more >~/.cache/pkgs/more; rm ~/.cache/pkgs/old", home, layer=True)
    assert lines(await sh(box, place, "ls ~/.cache/pkgs", home, layer=True))[:2] == ["new", "old"]
    assert (tree_of(written_caches(home)), tree_of(place.user)) == (kept, before)
    fresh = await sh(box, place, "cat ~/pkgs/new", place.root / "state/homes/fresh")
    assert fresh.exit_code == 1, "a fresh home has what another one fetched"


async def test_caches_are_there_without_a_home_and_their_secrets_are_not(
    box: Sandbox, place: Place
) -> None:
    before = tree_of(place.user)
    script = """
    cat ~/pkgs/old ~/.cache/pkgs/old; echo $PKGS $OFFLINE; cat ~/pkgs/secret ~/.cache/pkgs/secret
    if touch ~/pkgs/new; then exit 1; fi; touch ~/.cache/pkgs/new ~/.cache/other ~/file
    """
    assert lines(await sh(box, place, script)) == ["plain", "layered", "/home/agent/pkgs yes"]
    assert tree_of(place.user) == before
    seen = lines(await sh(box, place, "find ~ -name new -o -name other -o -name file"))
    assert seen == [], "something is left of an earlier command"


async def test_without_a_box_the_home_is_a_private_copy(place: Place, caches: Caches) -> None:
    box, home = place.own("none", place.spec(caches=caches)), place.root / "state/homes/base"
    await box.open()
    await sh(box, place, SET_UP, home)
    sealed = tree_of(home)
    script = "cat ~/.config/tool/file ~/pkgs/old; echo evil >~/.config/tool/file"
    for _ in range(2):
        assert lines(await sh(box, place, script, home, layer=True)) == ["set", "plain"]
        assert tree_of(home) == sealed
    await box.close()
    assert not list((place.home.parent / "layers").iterdir())
