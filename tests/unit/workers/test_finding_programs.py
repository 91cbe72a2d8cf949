from __future__ import annotations

import platform
from pathlib import Path

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.environment import find_program
from agentrunner.workers.cli import native_binary
from agentrunner.workers.codex import CodexWorker
from tests.kit.files import write

PLATFORM = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def program(path: Path) -> Path:
    return write(path.parent, {path.name: "#!/bin/sh\n"}) / path.name


@pytest.mark.parametrize("path", [".", "", ".:", "bin", "./bin"])
def test_relative_path_entries_decide_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    program(tmp_path / "codex")
    program(tmp_path / "bin" / "codex")
    monkeypatch.chdir(tmp_path)
    assert find_program("codex", environ={"PATH": path}) is None


def test_a_program_in_the_repository_is_passed_over(tmp_path: Path) -> None:
    inside = program(tmp_path / "repo" / "bin" / "codex")
    outside = program(tmp_path / "usr" / "codex")
    path = f"{inside.parent}:{outside.parent}"
    assert find_program("codex", avoid=tmp_path / "repo", environ={"PATH": path}) == outside
    assert find_program(str(inside), avoid=tmp_path / "repo", environ={}) is None


def test_a_link_into_or_out_of_the_repository_is_passed_over(tmp_path: Path) -> None:
    inside = program(tmp_path / "repo" / "codex")
    outside = program(tmp_path / "usr" / "codex")
    into = tmp_path / "links" / "codex"
    into.parent.mkdir()
    into.symlink_to(inside)
    out_of = tmp_path / "repo" / "link"
    out_of.symlink_to(outside)
    for link in (into, out_of):
        assert find_program(str(link), avoid=tmp_path / "repo", environ={}) is None


@pytest.mark.parametrize("entry", ["repo/tools", "same/tools", "x/../repo/tools", "past"])
def test_a_folder_of_programs_that_a_link_in_the_repository_decides_about_is_passed_over(
    tmp_path: Path, entry: str
) -> None:
    program(tmp_path / "usr" / "codex")
    for folder in ("repo", "x"):
        (tmp_path / folder).mkdir()
    (tmp_path / "repo" / "tools").symlink_to("../usr")
    (tmp_path / "same").symlink_to("repo")
    (tmp_path / "past").symlink_to("repo/tools")
    environ = {"PATH": str(tmp_path / entry)}
    assert find_program("codex", environ=environ) is not None
    for repo in ("repo", "same"):
        assert find_program("codex", avoid=tmp_path / repo, environ=environ) is None
    # Links that are nowhere in it are no harm.
    assert find_program("codex", avoid=tmp_path / "other", environ=environ) is not None


def test_what_can_not_be_executed_is_no_program(tmp_path: Path) -> None:
    program(tmp_path / "codex").chmod(0o644)
    (tmp_path / "sub" / "codex").mkdir(parents=True)
    path = f"{tmp_path}:{tmp_path / 'sub'}"
    assert find_program("codex", environ={"PATH": path}) is None


@pytest.mark.parametrize("nested", [False, True], ids=["beside", "nested"])
def test_an_npm_wrapper_leads_to_the_native_binary(tmp_path: Path, nested: bool) -> None:
    package = tmp_path / "node_modules" / "@openai" / "codex"
    wrapper = program(package / "bin" / "codex.js")
    link = tmp_path / "bin" / "codex"
    link.parent.mkdir()
    link.symlink_to(wrapper)
    scope = package / "node_modules" / "@openai" if nested else package.parent
    triple = f"{platform.machine()}-unknown-linux-musl"
    native = program(scope / f"codex-linux-{PLATFORM}" / "vendor" / triple / "bin" / "codex")
    assert native_binary(link, "@openai/codex", "vendor/*/bin/codex") == native


def test_a_wrapper_without_its_binary_leads_nowhere(tmp_path: Path) -> None:
    wrapper = program(tmp_path / "@openai" / "codex" / "bin" / "codex.js")
    assert native_binary(wrapper, "@openai/codex", "vendor/*/bin/codex") is None


def test_a_native_binary_is_itself(tmp_path: Path) -> None:
    native = program(tmp_path / "codex")
    assert native_binary(native, "@openai/codex", "vendor/*/bin/codex") == native


def test_a_program_that_is_asked_for_its_version_leaves_nothing(tmp_path: Path) -> None:
    asked = program(tmp_path / "codex")
    told = tmp_path / "told"
    asked.write_text(
        f'#!/bin/sh\nmkdir -p "$HOME/.cache/x"\necho "$HOME" > {told}\necho codex-cli 0.169.0\n'
    )
    found = CodexWorker(WorkerSpec(command=str(asked))).probe()
    assert found.version == "0.169.0"
    assert not Path(told.read_text().strip()).exists()
