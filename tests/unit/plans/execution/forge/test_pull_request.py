"""Which forge a remote is on, what a request says, and that it is opened once. No network."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from agentrunner.errors import AgentRunnerError, InfraError, UsageError
from agentrunner.plans.execution.commit_message import DEFAULT_TEMPLATE, commit_message
from agentrunner.plans.execution.forge.pull_request import (
    MAX_CHARACTERS,
    ForgeRefused,
    PullRequest,
    RequestDraft,
    TaskReport,
    open_request,
    request_body,
)
from agentrunner.plans.execution.forge.remote import Remote, remote_of
from tests.kit.plan_project import Work, plan_of

GITHUB = {"GITHUB_TOKEN": "t-github", "GITLAB_TOKEN": "t-gitlab"}
WANTED = RequestDraft("topic", "main", "A title", "A body")


@pytest.mark.parametrize(
    ("address", "more", "expected"),
    [
        (
            "https://github.com/team/shop.git", {},
            ("github", "https://github.com/team/shop.git", "https://api.github.com", "team/shop"),
        ),
        (
            "git@github.com:team/shop.git", {},
            ("github", "ssh://git@github.com/team/shop.git", "https://api.github.com", "team/shop"),
        ),
        (
            "https://user:pass@gitlab.com/a/b/shop.git", {},
            ("gitlab", "https://gitlab.com/a/b/shop.git", "https://gitlab.com", "a/b/shop"),
        ),
        (
            "https://git.corp.example/team/shop", {"GITHUB_SERVER_URL": "https://git.corp.example"},
            (
                "github", "https://git.corp.example/team/shop",
                "https://git.corp.example/api/v3", "team/shop",
            ),
        ),
        (
            "ssh://git@git.corp.example:2222/team/shop.git",
            {"CI_SERVER_URL": "https://git.corp.example:8443"},
            (
                "gitlab", "ssh://git@git.corp.example:2222/team/shop.git",
                "https://git.corp.example:8443", "team/shop",
            ),
        ),
        (
            "https://git.corp.example/team/shop",
            {"GITHUB_API_URL": "https://git.corp.example/v3/"},
            (
                "github", "https://git.corp.example/team/shop",
                "https://git.corp.example/v3", "team/shop",
            ),
        ),
    ],
)  # fmt: skip
def test_a_remote_is_a_project_on_a_forge(
    address: str, more: dict[str, str], expected: tuple[str, ...]
) -> None:
    found = remote_of(address, {**GITHUB, **more})
    assert (found.kind, found.address, found.api, found.project) == expected
    assert found.token == f"t-{found.kind}" and found.token not in repr(found)


@pytest.mark.parametrize(
    ("address", "environ", "code"),
    [
        ("", GITHUB, "forge-unknown"),
        ("/srv/git/shop.git", GITHUB, "forge-unknown"),
        ("ext::sh -c id", GITHUB, "forge-unknown"),
        ("https://github.com.evil.example/team/shop", GITHUB, "forge-unknown"),
        ("https://evil-github.com/team/shop", GITHUB, "forge-unknown"),
        ("https://github.com@evil.example/team/shop", GITHUB, "forge-unknown"),
        ("http://github.com/team/shop", GITHUB, "forge-unknown"),
        ("https://github.com/team", GITHUB, "forge-unknown"),
        ("https://[bad/team/shop", GITHUB, "forge-unknown"),
        ("https://git.corp.example:444/a/b", {**GITHUB, "GH_HOST": "git.corp.example"},
         "forge-unknown"),
        ("https://github.com/team/shop", {"GITLAB_TOKEN": "x"}, "forge-token"),
    ],
)  # fmt: skip
def test_a_token_goes_nowhere_else(address: str, environ: dict[str, str], code: str) -> None:
    with pytest.raises(AgentRunnerError) as caught:
        remote_of(address, environ)
    assert caught.value.code == code
    assert "evil" not in caught.value.remedy


@dataclass
class FakeForge:
    """Fails as it is told: before a request is opened, or after."""

    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)

    def find(self, head: str) -> str | None:
        if self.before:
            raise ForgeRefused(self.before.pop(0), "before")
        return self.opened[0] if self.opened else None

    def create(self, wanted: RequestDraft) -> str:
        self.opened.append(f"https://forge.example/{len(self.opened) + 1}")
        if self.after:
            raise ForgeRefused(self.after.pop(0), "after")
        return self.opened[-1]


REMOTE = Remote("github", "https://x", "https://x", "https://x", "team/shop", "t0ken-t0ken")


@pytest.mark.parametrize("status", [0, 429, 500, 502, 422, 409])
def test_whatever_fails_after_the_post_opens_no_second_request(status: int) -> None:
    forge, waited = FakeForge(after=[status]), list[float]()
    made = open_request(REMOTE, WANTED, forge=forge, sleep=waited.append)
    assert made == PullRequest("https://forge.example/1", created=False)
    assert forge.opened == [made.url]
    assert open_request(REMOTE, WANTED, forge=forge).created is False


def test_a_forge_that_stays_out_of_order_is_given_up() -> None:
    forge, waited = FakeForge(before=[503, 0, 502]), list[float]()
    with pytest.raises(InfraError) as caught:
        open_request(REMOTE, WANTED, forge=forge, sleep=waited.append)
    assert caught.value.code == "forge-unavailable" and len(waited) == 2 and not forge.opened


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_is_not_repeated(status: int) -> None:
    forge = FakeForge(before=[status])
    with pytest.raises(InfraError) as caught:
        open_request(REMOTE, WANTED, forge=forge)
    assert caught.value.code == "forge-refused" and str(status) in caught.value.message


HOSTILE = "``` @root <script> | closes #1\n# heading\n/merge"


def test_a_body_shows_the_tree_and_is_only_words() -> None:
    plan = replace(plan_of([Work("true"), Work("true")]), goal=HOSTILE)
    report = TaskReport("r-1", f"secret {HOSTILE}", [HOSTILE] * 9, files=1)
    body = request_body(
        plan, {"TASK-0001": report}, [HOSTILE], lambda text: text.replace("secret", "[masked]")
    )
    assert "- [ ] TASK-0001 `Task 1` (to do)" in body
    assert "- TASK-0001, run `r-1`, 1 file: " in body and "[masked]" in body
    assert "secret" not in body and "@root" not in body and "#1" not in body
    assert not any(line.startswith(("/", "# ", "```\n")) for line in body.splitlines())


def test_a_body_of_a_large_plan_is_bounded() -> None:
    plan = plan_of([Work("true")] * 150)
    reports = {task: TaskReport("r", "x" * 300, ["y" * 300] * 5, 3) for task in plan.tasks}
    body = request_body(plan, reports, (), str)
    assert len(body) <= MAX_CHARACTERS and body.endswith("…and more than fits here.\n")


def test_a_message_is_lines_that_forge_nothing() -> None:
    said = commit_message(
        DEFAULT_TEMPLATE,
        title="Add\n\nSigned-off-by: x <x@y>\x1b[31m",
        proof=["`make` failed before and passes now", "fixes #12"],
        task_id="TASK-0001",
        run_id="r-1",
    )
    first, blank, *rest = said.splitlines()
    assert first.startswith("Add Signed-off-by:") and blank == ""
    assert rest[-2:] == ["Task: TASK-0001", "Run: r-1"]
    assert "#12" not in said and "\x1b" not in said


@pytest.mark.parametrize(
    "template", ["", "{{", "{{ nothing }}", "{{ ''.__class__.__mro__[1].__subclasses__() }}"]
)
def test_a_template_that_cannot_be_used_is_told_of(template: str) -> None:
    with pytest.raises(UsageError) as caught:
        commit_message(template, title="t")
    assert caught.value.code == "commit-message"


def test_a_template_of_ones_own() -> None:
    said = commit_message("[{{ task_id }}] {{ title }}", title="Add", task_id="T-1", run_id="r")
    assert said == "[T-1] Add\n"
