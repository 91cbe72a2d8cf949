"""The header of a run: who works, where, with what, and how long at most.

Each start of a run makes one, so it stands beside the events, of which a start needs no model.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agentrunner.config.spec import PolicySource


class Part(BaseModel):
    """An object within an event."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, defer_build=True)


class HeaderLanding(Part):
    """Where the work goes as a commit, and what was taken along."""

    branch: str
    base: str
    """The commit that it begins from; "" in the checkout."""
    carried: list[str]
    """Files that were taken along with changes that are not committed, the first of them."""
    carried_more: int
    """How many more."""
    left: list[str]
    """Submodules and other repositories that were not taken along."""
    worktree: str | None


class HeaderInput(Part):
    """A file that counts as tests or product, or of which that is not clear."""

    path: str
    why: str
    kind: str
    parts: list[str] = []
    region: bool = False


class HeaderInputs(Part):
    """What decides what the tests say, each list with the number of those it leaves out."""

    tests: list[HeaderInput]
    product: list[HeaderInput]
    unsure: list[HeaderInput]
    tests_more: int = 0
    product_more: int = 0
    unsure_more: int = 0
    nameless: str = ""
    """The test command, where no known test tool reports its tests by name."""


class HeaderLimits(Part):
    """How long and how much at most; null: no limit."""

    max_loops: int
    """How often work may be ordered again in this attempt."""
    rounds_at_most: int | None = None
    """The number of its last round, where all of them are needed."""
    run_time_sec: float
    """Of one worker run."""
    idle_timeout_sec: float | None = None
    """Without any output of a worker."""
    wall_sec: float | None
    """Seconds of work."""
    planner_calls: int | None = Field(alias="meta_calls")
    """Calls of the planner."""
    worker_runs: int | None
    tokens: int | None
    """Of planner and workers."""
    usd: float | None
    """US dollars."""


class Header(Part):
    """Who works, where, with what, and how long at most."""

    repo: str
    """Absolute."""
    branch: str | None
    """Checked out there."""
    landing: HeaderLanding | None
    """None for no commit."""
    part_of: Literal["plan"] | None
    """For the run of a plan's task."""
    planner: str
    """For people, with what it sees."""
    worker: str
    """For people: all candidates, the preferred one first."""
    key: str
    """Which secrets stay out of the sandbox; "" where none does."""
    sandbox: str = Field(alias="box")
    """For people: the sandbox, and how far it isolates."""
    network: str
    """The policy of the workers' sandbox."""
    reach: str
    """What workers reach from their sandbox."""
    setup: str | None
    """The set-up command."""
    tests: str | None
    """The test command."""
    tests_where: str | None
    """Where the test command comes from."""
    env: dict[str, str]
    """Variables of the commands."""
    inputs: HeaderInputs | None
    """None if nothing is executed, or there are too many files."""
    limits: HeaderLimits
    """Of this attempt."""
    completion: Literal["evidence", "strict", "judged"]
    """The mode."""
    policies: list[PolicySource]
    """Files that capped the task."""
    notices: list[str]
    """What people should know before."""
