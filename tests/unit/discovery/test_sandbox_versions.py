"""The version of a CLI in a box: asked there, and once for each program."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from agentrunner.config.load import TaskSource, load_task
from agentrunner.discovery.versions import sandbox_version
from agentrunner.sandboxes.base import SandboxOrder
from agentrunner.sandboxes.choose import open_sandbox
from agentrunner.workers.member import Member, make_members
from tests.kit.bwrap import require_bwrap
from tests.kit.files import write


class Program:
    """A stand-in for a CLI that counts how often it is asked, and a box that shows it."""

    def __init__(self, place: Path) -> None:
        self.repo, self.home, self.cache = place / "repo", place / "home", place / "versions.json"
        self.path = place / "tools" / "codex"
        self.path.parent.mkdir()
        self.repo.mkdir()
        self.home.mkdir()
        self.says("codex-cli 0.169.0")

    def says(self, words: str, code: int = 0) -> None:
        asked = self.repo / "asked"
        text = f'#!/bin/sh\necho "$*" >> {asked}\necho "{words}"\nexit {code}\n'
        write(self.path.parent, {self.path.name: text})

    @property
    def asked(self) -> list[str]:
        return (self.repo / "asked").read_text().splitlines()

    def member(self, kind: str = "codex-cli") -> Member:
        (self.repo / "t.yaml").write_text(
            "version: 1\ntask: {prd: {text: x}}\n"
            f"runner: {{worker: {{kind: {kind}, command: [{self.path}]}}}}\n"
        )
        spec = load_task(TaskSource("file", "t.yaml"), environ={}, cwd=self.repo)
        member = make_members(spec)[0]
        (self.repo / "asked").unlink(missing_ok=True)  # making one asks on this machine
        (self.repo / "asked").touch()
        return member

    def version(self, member: Member) -> str:
        async def ask() -> str:
            spec = SandboxOrder(repo=self.repo, home=self.home, programs=(str(self.path),))
            sandbox = await open_sandbox("bwrap", spec, os.environ, self.home, state_root=self.home)
            try:
                return await sandbox_version(sandbox, member, self.cache)
            finally:
                await sandbox.close()

        return asyncio.run(ask())


@pytest.fixture
def program(tmp_path: Path) -> Program:
    require_bwrap()
    return Program(tmp_path)


def test_it_is_asked_in_the_box_and_once(program: Program) -> None:
    member = program.member()
    assert program.version(member) == "0.169.0"
    assert program.version(member) == "0.169.0"
    assert program.asked == ["--version"]
    assert oct(program.cache.stat().st_mode & 0o777) == "0o600"


def test_another_program_in_its_place_is_asked_again(program: Program) -> None:
    member = program.member()
    program.version(member)
    program.says("codex-cli 0.170.0-beta.1")
    assert program.version(member) == "0.170.0-beta.1"
    assert len(program.asked) == 2


@pytest.mark.parametrize(("words", "code"), [("no idea", 0), ("error 1.2.3", 1)])
def test_a_program_that_does_not_tell_is_asked_the_next_time(
    program: Program, words: str, code: int
) -> None:
    program.says(words, code)
    member = program.member()
    assert program.version(member) == ""
    assert program.version(member) == ""
    assert len(program.asked) == 2


def test_a_damaged_cache_is_made_anew(program: Program) -> None:
    program.cache.write_text("{")
    assert program.version(program.member()) == "0.169.0"
    program.cache.write_text('{"x": 3}')
    assert program.version(program.member()) == "0.169.0"


def test_a_command_line_of_ones_own_is_not_run(program: Program) -> None:
    member = program.member("command")
    assert program.version(member) == ""
    assert program.asked == []
