"""The task file as models: what a person writes, with every default filled in.

`load.py` reads a file into a `TaskSpec`; nothing here touches the disk. Field names, types and
defaults are those of the reference, docs/reference/task-file.md.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

TASK_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
"""Ids become file names: no separators, no leading dot or dash, nothing a shell or disk trips on."""

DEFAULT_META_MODEL = "gpt-5.5"
"""Used where neither task file nor environment names one; shown by `agentrunner doctor`."""


class Written(BaseModel):
    """Something a person writes: unknown keys are mistakes, numbers keep their text in text fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class Check(Written):
    """How a criterion is decided by running or reading something.

    Unknown kinds are kept and count as not executable.
    """

    kind: str
    run: str = ""
    """`command`: the shell command."""
    cwd: str = "."
    timeout_sec: float = 600
    expect_exit: int = 0
    path: str = ""
    """`file`: the file, relative to the repository."""
    exists: bool | None = None
    contains: str = ""
    matches: str = ""
    file: str = ""
    """`pytest`, `playwright`, `go-test`, `npm-script`: the test file, package or script."""
    test_name: str = ""
    name: str = ""
    """`test`: one test of the test command's suite."""
    must_change: list[str] = []
    """`diff`: globs of which at least one path each must have changed."""
    must_not_change: list[str] = []


def _check_from_text(value: Any) -> Any:
    return {"kind": "command", "run": value} if isinstance(value, str) else value


class CriterionSpec(Written):
    """One acceptance criterion as written in the task file or the PRD."""

    id: str = ""
    description: str
    critical: bool = True
    check: Annotated[Check | None, BeforeValidator(_check_from_text)] = None
    detail: str = ""
    """Continuation lines and sub-items."""
    line: int | None = None
    """Line of the PRD it stands in, for messages; nobody writes it."""
    type: str = ""
    rationale: str = ""


class PrdSpec(Written):
    """The requirements: exactly one of a path or the text itself."""

    path: str | None = None
    text: str | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> PrdSpec:
        if (self.path is None) == (self.text is None):
            raise ValueError("give exactly one of path and text")
        return self


class SetupSpec(Written):
    """A command run once per box, before the baseline."""

    command: str
    timeout_sec: float = 600


class TestSpec(Written):
    """The test command that decides about completion. It runs in the sandbox only."""

    __test__ = False

    command: str
    cwd: str = "."
    timeout_sec: float = 600
    baseline: bool = True
    may_change: list[str] = []
    """Globs of existing test files whose change is wanted; they are not restored by the guard."""


def _test_from_text(value: Any) -> Any:
    return {"command": value} if isinstance(value, str) else value


class TaskSection(Written):
    """What is to be done, and where."""

    id: str = ""
    title: str = ""
    repo: str | None = None
    prd: PrdSpec
    setup: SetupSpec | None = None
    test: Annotated[TestSpec | None, BeforeValidator(_test_from_text)] = None
    acceptance_criteria: list[CriterionSpec] = []
    protect: list[str] = []
    allow_changes: list[str] = []

    @field_validator("acceptance_criteria", mode="before")
    @classmethod
    def _criteria_from_text(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [{"description": item} if isinstance(item, str) else item for item in value]

    @field_validator("id")
    @classmethod
    def _safe_id(cls, value: str) -> str:
        if value and (not TASK_ID.match(value) or ".." in value):
            raise ValueError(
                "a task id has 1 to 128 letters, digits, '.', '_' or '-', starts with a letter "
                "or digit and has no '..'"
            )
        return value


Moment = Literal["never", "always"]


class ApproveSpec(Written):
    """Where a person is asked before going on."""

    plan: Moment = "never"
    worker: Moment = "never"
    complete: Moment = "never"


class BudgetSpec(Written):
    """Limits over all attempts of a run. None is unlimited, 0 is none at all."""

    wall_sec: float | None = Field(3600, ge=0)
    meta_calls: int | None = Field(None, ge=0)
    tokens: int | None = Field(None, ge=0)
    usd: float | None = Field(None, ge=0)


class MetaSpec(Written):
    """The meta-agent, which plans, decides and assesses."""

    kind: str = "openai-chat"
    model: str | None = None
    base_url: str | None = None
    max_loops: int = Field(5, ge=0, le=1000)
    system_prompt: str | dict[str, str] | None = None
    system_prompt_mode: Literal["extend", "replace"] = "extend"
    format: Literal["auto", "yaml", "json"] = "auto"
    timeout_sec: float | None = Field(None, gt=0)
    language: Literal["auto", "en", "ja"] = "auto"
    script: str | None = None
    """Kind `script`: the file with the replies, relative to the task file."""


class WorkerSpec(Written):
    """The coding agent that does the work in the sandbox."""

    kind: str = "codex-cli"
    model: str | None = None
    base_url: str | None = None
    command: list[str] | str | None = None
    """Kind `command`: argv, with `{prompt_file}` or `{prompt}`; else the prompt comes by stdin."""
    docker_image: str | None = None
    max_run_time_sec: float = Field(1800, gt=0)
    idle_timeout_sec: float = Field(600, gt=0)
    env: dict[str, str] = {}
    """`env:NAME` takes the host's variable, `literal:TEXT` a text that begins with `env:`."""
    flags: list[str] = []


Network = Literal["none", "full"]


class SandboxSpec(Written):
    """Where workers, tests and checks run."""

    kind: str = "auto"
    network: str | None = None
    """`none` or `full`; None is `none`."""
    cpus: float | None = Field(None, gt=0)
    memory: str | None = None
    pids: int | None = Field(None, gt=0)
    read_paths: list[str] = []


class NoteSpec(Written):
    """The task note."""

    template: str = "core"
    """`core`, `architecture`, or a path relative to the task file."""
    language: Literal["auto", "en", "ja"] = "auto"
    dir: str = ".agent-runner"
    detail: Literal["summary", "full"] = "summary"


class RunnerSection(Written):
    """How it is done."""

    completion: Literal["evidence", "strict", "judged"] | None = None
    """None is `evidence`, or `judged` with the mock meta-agent."""
    approve: ApproveSpec = ApproveSpec()
    budget: BudgetSpec = BudgetSpec()
    meta: MetaSpec = MetaSpec()
    worker: WorkerSpec = WorkerSpec()
    sandbox: SandboxSpec = SandboxSpec()
    patterns: str | None = None
    note: NoteSpec = NoteSpec()
    retention_days: float = Field(14, ge=0)


class TaskFile(Written):
    """The whole task file, version 1."""

    version: Literal[1]
    task: TaskSection
    runner: RunnerSection = RunnerSection()


class Source(BaseModel):
    """A file the run was made from, so that a later change is noticed."""

    model_config = ConfigDict(frozen=True)

    path: str | None
    sha256: str
    text: str


class TaskSpec(BaseModel):
    """A task ready to run: the file with its references resolved to absolute places.

    `env:` values stay references; secrets are looked up when the worker starts and never stored.
    """

    model_config = ConfigDict(frozen=True)

    task_id: str
    title: str
    repo: str
    """Absolute, symlinks resolved."""
    prd_text: str
    """The PRD without its front matter."""
    criteria: list[CriterionSpec] = []
    """Of the task file and the PRD, ids filled in: authoritative."""
    task: TaskSection
    runner: RunnerSection
    base_dir: str
    """What relative paths in the task file mean: its folder."""
    task_file: Source | None = None
    prd_file: Source | None = None
    script_text: str | None = None
    """The replies of a `script` meta-agent."""
    patterns_text: str | None = None
    template_text: str | None = None
    language: Literal["en", "ja"] = "en"
    """Of prompts: `runner.meta.language`, or read off the PRD."""
    note_language: Literal["en", "ja"] = "en"

    @property
    def completion(self) -> Literal["evidence", "strict", "judged"]:
        """The completion mode in force."""
        default: Literal["evidence", "judged"] = (
            "judged" if self.runner.meta.kind == "mock" else "evidence"
        )
        return self.runner.completion or default
