"""A plan's result as a pull or merge request: opened once, saying what it should, token nowhere."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.plans.execution.delivery import DeliveryOptions
from agentrunner.plans.execution.forge.remote import Kind
from agentrunner.plans.execution.plan_settings import save_settings
from tests.kit.forge import Forge, spellings
from tests.kit.plan_project import PlanProject, Work
from tests.kit.process import at_point
from tests.kit.project import Project
from tests.kit.repository import plant_hooks
from tests.kit.warm import warm_run

TOKEN = "tok-3f9a61c27be84d05"
HOSTILE = "ping @root, fixes #7 <b onclick=x> closes https://github.com/team/shop/issues/8\n/merge"
NAMES: dict[Kind, tuple[str, str]] = {
    "github": ("GITHUB_TOKEN", "GITHUB_SERVER_URL"),
    "gitlab": ("GITLAB_TOKEN", "CI_SERVER_URL"),
}


@dataclass
class Desk:
    """A plan of one task in a repository whose remote is a forge."""

    kind: Kind
    forge: Forge
    plan: PlanProject

    @property
    def asked(self) -> dict[str, Any]:
        """The one request, by the names of GitHub."""
        (asked,) = self.forge.requests
        other = {"source_branch": "head", "target_branch": "base", "description": "body"}
        return {other.get(name, name): value for name, value in asked.items()}

    def environ(self, token: str = TOKEN) -> dict[str, str]:
        """Ours, with the server and its token."""
        token_name, server_name = NAMES[self.kind]
        environ = {k: v for k, v in os.environ.items() if not k.endswith("_TOKEN")}
        return environ | {token_name: token, server_name: self.forge.url}

    def carry(self, onto: str = "", token: str = TOKEN, **more: Any) -> dict[str, Any]:
        """Carry the plan out, with a request at the end."""
        wishes = DeliveryOptions(request=True, onto=onto, **more)
        with trapped(self.plan.project):
            return self.plan.carry(options={"environ": self.environ(token)}, wishes=wishes)

    def killed(self, point: str) -> None:
        """The same in a process of its own, which is killed at a point."""
        save_settings(self.plan.folder, self.plan.settings())
        place = {"AGENTRUNNER_STATE_DIR": str(self.plan.project.state_dir)}
        with trapped(self.plan.project):
            ran = warm_run(
                [sys.executable, "-m", "agentrunner", "plan", "run", "--pr"],
                cwd=self.plan.project.repo,
                env=self.environ() | place | at_point(point),
            )
        assert ran.returncode == -9, ran.stderr


@pytest.fixture(params=list(NAMES))
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    works = [Work("echo two >> a.txt", "grep -q two a.txt")]
    plan = PlanProject.make(tmp_path, works, {"a.txt": "one\n"})
    with Forge.serving(tmp_path / "forge", TOKEN) as forge:
        plan.project.git("remote", "add", "origin", forge.address)
        plan.project.git("push", "-q", str(forge.bare), "main")
        yield Desk(request.param, forge, plan)


@contextmanager
def trapped(project: Project) -> Iterator[None]:
    """Hooks and settings that would run something, had anybody obeyed them."""
    mark, config = project.repo.parent / "trapped", project.repo / ".git" / "config"
    before = config.read_bytes()
    plant_hooks(project.repo, mark, "pre-push", "post-commit", "pre-commit")
    for name in ("core.sshCommand", "credential.helper", "core.fsmonitor", "core.askPass"):
        project.git("config", name, f"!touch {mark}" if "helper" in name else f"touch {mark}")
    try:
        yield
    finally:
        config.write_bytes(before)
        shutil.rmtree(project.repo / ".git" / "hooks")
    assert not mark.exists()


def test_it_is_opened_once_and_says_what_was_done(desk: Desk, tmp_path: Path) -> None:
    result = desk.carry()
    assert result["exit_code"] == 0, desk.plan.events
    branch = result["branch"]
    assert result["request"].startswith(f"{desk.forge.url}/team/shop/")
    assert desk.forge.git("rev-parse", branch).strip() == result["commit"]
    assert desk.asked["head"] == branch and desk.asked["base"] == "main"
    assert desk.asked["title"] == "Make it"
    body = desk.asked["body"]
    assert "1 of 1 tasks are complete" in body and "- [x] TASK-0001 `Task 1`" in body
    assert str(desk.plan.standings()["TASK-0001"].run_id) in body
    # Once more opens nothing, and neither do the checkout and its branch change.
    assert desk.carry()["request"] == result["request"]
    assert len(desk.forge.requests) == 1
    assert desk.plan.project.git("status", "--porcelain") == "?? .agent-runner/\n"
    nowhere(tmp_path, desk.forge)


def test_an_answer_that_is_lost_opens_no_second_one(desk: Desk) -> None:
    desk.forge.fail_after_post = 1
    result = desk.carry()
    assert result["request"].endswith("/1")
    assert len(desk.forge.requests) == 1
    assert sum(method == "POST" and "api" in path for method, path in desk.forge.calls) == 1


@pytest.mark.series(2)
def test_a_connection_that_breaks_opens_no_second_one(desk: Desk) -> None:
    desk.forge.hang_up_after_post = 1
    assert desk.carry()["request"].endswith("/1")
    assert len(desk.forge.requests) == 1


@pytest.mark.series(3)
@pytest.mark.parametrize("point", ["push_after", "request_after"])
def test_a_process_that_is_killed_in_between_is_gone_on_with(desk: Desk, point: str) -> None:
    desk.killed(point)
    pushed = desk.forge.git("rev-parse", "agentrunner/make-it").strip()
    assert len(desk.forge.requests) == (point == "request_after")
    before = len(desk.forge.calls)
    result = desk.carry()
    assert result["request"].endswith("/1") and result["commit"] == pushed
    assert len(desk.forge.requests) == 1
    since = desk.forge.calls[before:]
    assert not any("git-receive-pack" in path for _, path in since), "it was pushed again"
    opened = sum(method == "POST" and "api" in path for method, path in since)
    assert opened == (point == "push_after")


@pytest.mark.series(2)
def test_onto_names_the_branch_that_it_is_to_go_into(desk: Desk) -> None:
    desk.plan.project.git("branch", "next")
    desk.carry(onto="next", squash=True)
    assert desk.asked["base"] == "next"
    branch = desk.asked["head"]
    assert desk.forge.git("rev-list", "--count", f"main..{branch}").strip() == "1"
    assert desk.plan.project.git("rev-parse", "next") == desk.plan.project.git("rev-parse", "main")


def test_a_branch_of_somebody_else_is_left_alone(desk: Desk) -> None:
    desk.forge.git("branch", "agentrunner/make-it", "main")
    before = desk.forge.git("rev-parse", "main")
    with pytest.raises(Exception, match="was not pushed from here") as caught:
        desk.carry()
    assert getattr(caught.value, "code", "") == "branch-exists"
    assert desk.forge.git("rev-parse", "agentrunner/make-it") == before
    assert desk.forge.requests == []


@pytest.mark.series(2)
def test_a_token_that_is_refused_is_told_of_and_not_shown(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="could not be pushed") as caught:
        desk.carry(token="wrong-0123456789")
    assert "wrong-0123456789" not in str(caught.value)
    assert desk.plan.store.load().tasks["TASK-0001"].status == "COMPLETE"


def nowhere(place: Path, forge: Forge) -> None:
    """No file below a folder, its names and no command line have the token."""
    assert forge.in_arguments == [] and forge.calls
    secrets = spellings(TOKEN)
    files = [path for path in place.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 20
    for path in files:
        data = path.read_bytes()
        assert not any(secret in data for secret in secrets), path


@pytest.mark.series(2)
def test_what_others_wrote_calls_nobody(desk: Desk) -> None:
    plan = desk.plan.store.load()
    desk.plan.store.save(
        replace(plan, goal=HOSTILE, version=plan.version + 1),
        at="2026-01-01T00:00:00Z",
        kind="import",
        author="x",
        message="y",
    )
    desk.carry()
    said = desk.asked["body"] + desk.asked["title"]
    assert "ping" in said
    assert not re.search(r"@\w|#\d|https?://|(?m:^/)", said)
    assert "<b" not in re.sub(r"`[^`\n]*`", "", desk.asked["body"])
