"""Opens a pull or merge request for the plan's branch, once, however often it is tried.

The clients are githubkit and python-gitlab, of the extra `forge`; they are not loaded before a
request is wanted. They never repeat a call by themselves: after a failed call, what it may have
done is looked for first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from agentrunner.environment import how_to_add
from agentrunner.errors import InfraError
from agentrunner.errors.plans import ForgePackagesMissing, ForgeRequestRefused, ForgeUnavailable
from agentrunner.notes.markdown import code
from agentrunner.plans.execution.commit_message import harmless
from agentrunner.plans.execution.forge.remote import NAMES, Remote
from agentrunner.plans.plan import Plan, PlanTaskStatus, status_word
from agentrunner.storage.failpoints import reach
from agentrunner.text.redaction import Redactor
from agentrunner.text.terminal import one_line

MAX_CHARACTERS = 60_000
"""GitHub accepts 65,536."""
MAX_PROOFS = 5
TITLE_WIDTH = 100
LINE_WIDTH = 300
_CUT = "\n…and more than fits here.\n"


class TaskReport(Struct, frozen=True):
    """The result of a task's run.

    All texts in it come from people, models and workers. Each is shown as code, on one line, with
    its mentions and references broken, so that none notifies anybody, closes anything or is read as
    HTML.
    """

    run_id: str = ""
    text: str = ""
    """The verdict, one sentence."""
    proof: Sequence[str] = ()
    files: int = 0
    """How many files were changed."""


TIMEOUT_SEC = 30.0
WAITS_SEC = (1.0, 5.0)
"""Waits before the second and the third try."""
EXISTS = (409, 422)
AGENT = "AgentRunner"
Answer = TypeVar("Answer")


class RequestDraft(Struct, frozen=True):
    """A request to be opened."""

    head: str
    """The branch that was pushed."""
    base: str
    """The branch it should be merged into; "" for the project's default."""
    title: str
    body: str


class PullRequest(Struct, frozen=True):
    """An open request."""

    url: str
    created: bool
    """Whether it was opened just now, or existed already."""


class ForgeRefused(Exception):
    """The forge's answer to a failed call; `status` is 0 where there was no answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    @property
    def passing(self) -> bool:
        """Whether the same call may work later, and may have worked already."""
        return self.status == 0 or self.status == 429 or self.status >= 500


class Forge(Protocol):
    """The calls that are needed of a forge. All raise ForgeRefused."""

    def find(self, head: str) -> str | None:
        """Return the web address of the open request of a branch; None where there is none."""

    def create(self, wanted: RequestDraft) -> str:
        """Open a request; return its web address."""


def open_request(
    remote: Remote,
    wanted: RequestDraft,
    *,
    forge: Forge | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> PullRequest:
    """Return the open request of a branch, opened now where there is none. Blocks.

    Raises InfraError: `forge-missing` without the extra, `forge-refused` for what the forge does
    not permit, `forge-unavailable` where it answers with errors or not at all.
    """
    forge = forge or forge_of(remote)
    for wait in (*WAITS_SEC, None):
        try:
            return _once(forge, wanted)
        except ForgeRefused as error:
            if not error.passing:
                raise _refused(remote, error) from error
            if wait is None:
                raise _unavailable(remote, error) from error
            sleep(wait)
    raise AssertionError("the last try returns or raises")


def _once(forge: Forge, wanted: RequestDraft) -> PullRequest:
    if found := forge.find(wanted.head):
        return PullRequest(found, created=False)
    try:
        made = forge.create(wanted)
    except ForgeRefused as error:
        if error.status in EXISTS and (found := forge.find(wanted.head)):
            return PullRequest(found, created=False)
        raise
    reach("request_after")
    return PullRequest(made, created=True)


def forge_of(remote: Remote) -> Forge:
    """Return the client of a remote's forge; raise InfraError (`forge-missing`) without it."""
    try:
        return _GitHub(remote) if remote.kind == "github" else _GitLab(remote)
    except ImportError as error:
        raise ForgePackagesMissing(
            f"Requests on {NAMES[remote.kind]} need a client that is not installed.",
            path="--pr",
            remedy=how_to_add("forge"),
        ) from error


class _GitHub:
    """GitHub by githubkit; its retries and its cache are off."""

    def __init__(self, remote: Remote) -> None:
        from githubkit import GitHub

        self._owner, _, self._name = remote.project.partition("/")
        self._client = GitHub(
            remote.token,
            base_url=remote.api,
            user_agent=AGENT,
            timeout=TIMEOUT_SEC,
            follow_redirects=False,
            http_cache=False,
            auto_retry=False,
        )

    def find(self, head: str) -> str | None:
        rows = self._call(
            "GET", "/pulls", params={"head": f"{self._owner}:{head}", "state": "open"}
        )
        ours = [row for row in rows if row["head"]["ref"] == head]
        return str(ours[0]["html_url"]) if ours else None

    def create(self, wanted: RequestDraft) -> str:
        base = wanted.base or self._call("GET", "")["default_branch"]
        texts = {"title": wanted.title, "body": wanted.body}
        fields = self._call("POST", "/pulls", json={"head": wanted.head, "base": base, **texts})
        return str(fields["html_url"])

    def _call(self, method: str, path: str, **how: Any) -> Any:
        from githubkit.exception import GitHubException, RequestFailed

        place = f"/repos/{self._owner}/{self._name}{path}"
        try:
            return self._client.request(method, place, **how).json()
        except RequestFailed as error:
            raise ForgeRefused(error.response.status_code, error.response.text) from error
        except (GitHubException, ValueError) as error:
            raise ForgeRefused(0, str(error)) from error


class _GitLab:
    """GitLab by python-gitlab; the token is a bearer token, which no redirect takes elsewhere."""

    def __init__(self, remote: Remote) -> None:
        from gitlab import Gitlab

        self._path = remote.project
        self._client = Gitlab(
            remote.api,
            oauth_token=remote.token,
            user_agent=AGENT,
            timeout=TIMEOUT_SEC,
            keep_base_url=True,
            retry_transient_errors=False,
        )

    def find(self, head: str) -> str | None:
        def look() -> str | None:
            listed = self._project(lazy=True).mergerequests.list(
                source_branch=head, state="opened", get_all=False, obey_rate_limit=False
            )
            found = next((request for request in listed if request.source_branch == head), None)
            return None if found is None else str(found.web_url)

        return self._call(look)

    def create(self, wanted: RequestDraft) -> str:
        def make() -> str:
            base = wanted.base or self._project().default_branch
            fields = {
                "source_branch": wanted.head,
                "target_branch": base,
                "title": wanted.title,
                "description": wanted.body,
            }
            project = self._project(lazy=True)
            return str(project.mergerequests.create(fields, obey_rate_limit=False).web_url)

        return self._call(make)

    def _project(self, *, lazy: bool = False) -> Any:
        return self._client.projects.get(self._path, lazy=lazy, obey_rate_limit=False)

    def _call(self, work: Callable[[], Answer]) -> Answer:
        from gitlab.exceptions import GitlabError

        try:
            return work()
        except GitlabError as error:
            raise ForgeRefused(error.response_code or 0, str(error.error_message)) from error
        except (OSError, ValueError) as error:  # what requests raises is an OSError
            raise ForgeRefused(0, str(error)) from error


def _words_of(remote: Remote, error: ForgeRefused) -> str:
    words = Redactor({"token": remote.token}).redact(one_line(str(error), 300))
    status = f"{error.status}: " if error.status else ""
    return f"{status}{words}"


def _refused(remote: Remote, error: ForgeRefused) -> InfraError:
    return ForgeRequestRefused(
        f"{NAMES[remote.kind]} refuses the request ({_words_of(remote, error)}).",
        path="--pr",
        remedy="a token with the right to open requests in "
        f"{remote.project}; the branch is pushed, so it can be opened by hand, too",
    )


def _unavailable(remote: Remote, error: ForgeRefused) -> InfraError:
    return ForgeUnavailable(
        f"{NAMES[remote.kind]} cannot be reached or is out of order ({_words_of(remote, error)}).",
        path="--pr",
        remedy="agentrunner plan run --pr, once it is back; no second request is opened",
    )


def request_title(plan: Plan, redact: Callable[[str], str]) -> str:
    """Return the title: the goal on one line, as far as it fits."""
    return harmless(redact(plan.goal), TITLE_WIDTH) or "A plan carried out by AgentRunner"


def request_body(
    plan: Plan,
    reports: Mapping[str, TaskReport],
    questions: Sequence[str],
    redact: Callable[[str], str],
) -> str:
    """Return the text under the title. `reports` are by task id; `questions` are still open."""

    def shown(text: str) -> str:
        return str(code(harmless(redact(text), LINE_WIDTH)))

    done = sum(task.status == PlanTaskStatus.COMPLETE for task in plan.tasks.values())
    lines = [
        f"**Goal:** {shown(plan.goal)}" if plan.goal else "",
        "",
        f"{done} of {len(plan.tasks)} tasks are complete and part of this branch.",
        "",
        *_tree(plan, shown),
        *_proofs(plan, reports, shown),
    ]
    if questions:
        lines += ["", "### Open questions", "", *(f"- {shown(text)}" for text in questions)]
    lines += ["", "Made by AgentRunner; `agentrunner show RUN` tells the whole story of a run."]
    return _bounded(lines)


def _tree(plan: Plan, shown: Callable[[str], str]) -> Iterator[str]:
    """Yield the plan as a nested list."""
    for node_id, depth in plan.outline():
        node, indent = plan.nodes[node_id], "  " * depth
        title = shown(plan.designs[node_id].title)
        if node.task_id is None:
            yield f"{indent}- {title}"
            continue
        status = plan.shown_status(node.task_id)
        tick = "x" if status == PlanTaskStatus.COMPLETE else " "
        word = (
            "" if status == PlanTaskStatus.COMPLETE else f" ({status_word(status, driven=False)})"
        )
        yield f"{indent}- [{tick}] {node.task_id} {title}{word}"


def _proofs(
    plan: Plan, reports: Mapping[str, TaskReport], shown: Callable[[str], str]
) -> Iterator[str]:
    task_ids = [task_id for task_id in plan.task_order() if task_id in reports]
    if task_ids:
        yield from ("", "### What proves it", "")
    for task_id in task_ids:
        report = reports[task_id]
        files = f"{report.files} {'file' if report.files == 1 else 'files'}"
        yield f"- {task_id}, run {shown(report.run_id)}, {files}: {shown(report.text)}"
        yield from (f"  - {shown(line)}" for line in report.proof[:MAX_PROOFS])


def _bounded(lines: Sequence[str]) -> str:
    """Return the text, cut between lines: a cut code span would affect what follows."""
    text = ""
    for line in lines:
        if len(text) + len(line) + 1 > MAX_CHARACTERS - len(_CUT):
            return text + _CUT
        text += f"{line}\n"
    return text.strip() + "\n"
