"""The task file as models: what a person writes, with every default filled in.

`load.py` reads a file into a `TaskSpec`; nothing here touches the disk. Field names, types and
defaults are documented in docs/reference/task-file.md.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from agentrunner.config.agents import (
    AssessSpec,
    PlannerSpec,
    ProfilesSpec,
    WorkerSpec,
    named_workers,
)
from agentrunner.config.budget import BudgetSpec
from agentrunner.config.config_model import ConfigModel, from_text
from agentrunner.config.markdown import Language
from agentrunner.config.naming import is_safe_id
from agentrunner.config.sandbox import Hosts, SandboxSpec
from agentrunner.environment import loads_code
from agentrunner.text.lazy_regex import lazy_regex

CRITERION_ID = lazy_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


class Check(ConfigModel):
    """How a criterion is decided by running or reading something.

    Unknown kinds are kept and count as not executable.
    """

    kind: str
    """`command`, `test`, `file`, `pytest`, `playwright`, `go-test`, `npm-script` or `diff`."""
    run: str = ""
    """`command`: the shell command, run in the sandbox."""
    cwd: str = "."
    """The folder to run it in, relative to the repository."""
    timeout_sec: float = Field(600, gt=0)
    """Seconds until it is ended and counts as failed."""
    expect_exit: int = 0
    """The exit code that means yes."""
    path: str = ""
    """`file`: the file, relative to the repository."""
    exists: bool | None = None
    """`file`: whether it must be there."""
    contains: str = ""
    """`file`: text that must stand in it."""
    matches: str = ""
    """`file`: a regular expression that must match somewhere in it."""
    file: str = ""
    """`pytest`, `playwright`, `go-test`, `npm-script`: the test file, package or script. `test`:
    the file in which the test `name` stands, or will."""
    test_name: str = ""
    """The test within `file`."""
    name: str = ""
    """`test`: one test of the test command's suite."""
    must_change: list[str] = []
    """`diff`: globs of which at least one path each must have changed."""
    must_not_change: list[str] = []
    """`diff`: globs of which no path may have changed."""


def _variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII):
        raise ValueError(f'"{name}" is no name of a variable')
    if loads_code(name):
        raise ValueError(f"{name} would reach the sandbox itself; write it into the command")
    return name


def _text(value: str) -> str:
    if "\0" in value:
        raise ValueError("a variable cannot hold a NUL character")
    return value


Variables = dict[Annotated[str, AfterValidator(_variable)], Annotated[str, AfterValidator(_text)]]


class CriterionSpec(ConfigModel):
    """One acceptance criterion as written in the task file or the PRD."""

    id: str = ""
    """As in `AC-1`; left out, the next free one is given."""
    description: str = Field(min_length=1)
    """What must be true when the task is done."""
    critical: bool = True
    """Whether the task is incomplete without it."""
    check: Annotated[Check | None, from_text(Check | str | None, "run", kind="command")] = None
    """How it is decided; a text is a shell command. Without one it rests on a judgement."""
    detail: str = ""
    """Further lines that explain it."""
    line: SkipJsonSchema[int | None] = None
    """The line it was written in, for messages; nobody writes it."""
    type: str = ""
    """A word such as `unit` or `e2e`, for readers."""
    rationale: str = ""
    """Why it is asked for."""

    @field_validator("id")
    @classmethod
    def _plain_id(cls, value: str) -> str:
        if value and not CRITERION_ID.fullmatch(value):
            raise ValueError(
                "a criterion's id has 1 to 64 letters, digits, '.', '_' or '-' and starts with a "
                "letter or digit"
            )
        return value


class PrdSpec(ConfigModel):
    """The requirements: exactly one of a path or the text itself."""

    path: str | None = None
    """A UTF-8 Markdown file of at most 1 MiB, relative to the task file."""
    text: str | None = None
    """The requirements themselves."""

    @model_validator(mode="after")
    def _exactly_one(self) -> PrdSpec:
        if (self.path is None) == (self.text is None):
            raise ValueError("give exactly one of path and text")
        return self


class SetupSpec(ConfigModel):
    """A command run once per sandbox, before the baseline."""

    command: str = Field(min_length=1)
    """The shell command, for instance `uv sync --frozen`."""
    timeout_sec: float = Field(600, gt=0)
    """Seconds until it is ended."""
    network: Hosts = []
    """Hosts that this command alone may reach, written as in `runner.sandbox.network`."""
    env: Variables = {}
    """Variables for the set-up before the first worker alone; `env:NAME` takes NAME from our
    environment, and a set-up after changes of a worker's does not get it; where that then
    fails, a person is asked."""


class TestSpec(ConfigModel):
    """The test command that decides about completion. It runs in the sandbox only."""

    __test__ = False

    command: str = Field(min_length=1)
    """The shell command; `auto` looks for one in the repository."""
    cwd: str = "."
    """The folder to run it in, relative to the repository."""
    timeout_sec: float = Field(600, gt=0)
    """Seconds until it is ended and counts as failed."""
    baseline: bool = True
    """Whether it is run once before the work, to know what was red."""
    may_change: list[str] = []
    """Globs of test files whose change is wanted: they count as the worker leaves them."""
    paths: list[str] = []
    """Globs of files that count as tests, whatever code finds out about them."""
    product: list[str] = []
    """Globs of files that are the product and never count as tests."""
    known_red: list[str] = []
    """Names or globs of tests that are red for another reason and need not turn green."""
    confirm: Literal["auto", "full", "names", "once"] = "auto"
    """How COMPLETE is confirmed: all tests once more, those that matter, or none. `auto` takes
    the names that matter where a run takes more than a minute."""
    network: Hosts = []
    """Hosts that tests and checks may reach, written as in `runner.sandbox.network`."""


class TaskSection(ConfigModel):
    """What is to be done, and where."""

    id: str = ""
    """Letters, digits, `.`, `_`, `-`, at most 128; left out, a slug of the file name or title."""
    title: str = ""
    """One line for people; left out, the PRD's heading or the id."""
    repo: str | None = None
    """The repository, relative to the task file; left out, the git root around the task file."""
    prd: PrdSpec
    """What is wanted."""
    env: Variables = {}
    """Variables for set-up, tests and checks, as texts."""
    setup: SetupSpec | None = None
    """What makes the repository ready in a fresh sandbox."""
    test: Annotated[TestSpec | None, from_text(TestSpec | str | None, "command")] = None
    """The test command, as a text or with settings. Without one no tests are run."""
    acceptance_criteria: list[
        Annotated[CriterionSpec, from_text(CriterionSpec | str, "description")]
    ] = []
    """Criteria beside those of the PRD; a text is read like a list item of the PRD."""
    protect: list[str] = []
    """Globs of paths that no worker may change."""
    allow_changes: list[str] = []
    """Globs of otherwise protected configuration that may be changed, as `.github/workflows/**`."""

    @field_validator("id")
    @classmethod
    def _safe_id(cls, value: str) -> str:
        if value and not is_safe_id(value):
            raise ValueError(
                "a task id has 1 to 128 letters, digits, '.', '_' or '-', starts with a letter "
                "or digit, has no '..' and is no device name"
            )
        return value


Moment = Literal["never", "always"]


class ApproveSpec(ConfigModel):
    """Where a person is asked before going on."""

    plan: Moment = "never"
    """Before the first worker starts."""
    worker: Moment = "never"
    """Before every worker run."""
    complete: Moment = "never"
    """Before the run ends COMPLETE."""


NOTE_TEMPLATES = ("core", "architecture")
"""Built-in templates of the note, the default one first: `notes/templates/NAME.md.j2`."""


class NoteSpec(ConfigModel):
    """The task note."""

    template: str = NOTE_TEMPLATES[0]
    """`core`, `architecture`, or a path relative to the task file."""
    language: Literal["auto", "en", "ja"] = "auto"
    """`auto` goes by the PRD."""
    dir: str = ".agent-runner"
    """The folder it is written to, relative to the repository."""
    detail: Literal["summary", "full"] = "summary"
    """`full` includes requests and replies."""


class RunnerSection(ConfigModel):
    """How it is done."""

    completion: Literal["evidence", "strict", "judged"] | None = None
    """What COMPLETE asks for. None is `evidence`, or `judged` with the mock planner."""
    approve: ApproveSpec = ApproveSpec.model_construct()
    """Where a person is asked first."""
    budget: BudgetSpec = BudgetSpec.model_construct()
    """Limits of the whole run."""
    meta: PlannerSpec = PlannerSpec.model_construct()
    """Who plans and decides."""
    worker: WorkerSpec = WorkerSpec.model_construct()
    """Who works."""
    workers: list[WorkerSpec] = []
    """Candidates to work, in order of preference, in place of `worker`."""
    assess: AssessSpec | None = None
    """Who judges completion; left out, who plans."""
    profiles: ProfilesSpec = ProfilesSpec.model_construct()
    """Who fills which role, and what happens when a quota is spent."""
    stuck_after: int = Field(3, ge=0)
    """The same order without a change, or the same failing evidence, or orders of any kind without
    a change, so often in a row: the planner is told, then a person. 0: never."""
    sandbox: SandboxSpec = SandboxSpec.model_construct()
    """Where work, tests and checks run."""
    patterns: str | None = None
    """A file with further command patterns, relative to the task file."""
    note: NoteSpec = NoteSpec.model_construct()
    """What is left behind."""
    retention_days: float = Field(14, ge=0)
    """Days until `gc` removes the run's folder; 0 removes it at the end."""

    @model_validator(mode="after")
    def _first_worker(self) -> RunnerSection:
        """Set `worker` to the first of several candidates."""
        if self.workers:
            if "worker" in self.model_fields_set and self.worker != self.workers[0]:
                raise ValueError("give worker or workers, not both")
            object.__setattr__(self, "worker", self.workers[0])
        return self


def number_from_text(value: Any) -> Any:
    """Convert the version of a file to a number, since YAML is read without types."""
    return 1 if value == "1" else value


class TaskFile(ConfigModel):
    """A task file of AgentRunner, version 1."""

    version: Annotated[Literal[1], BeforeValidator(number_from_text)]
    """The version of this format."""
    task: TaskSection
    """What is to be done."""
    runner: RunnerSection = RunnerSection.model_construct()
    """How, by whom and within which limits it is done."""


def whole_path(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path of a setting in a task file; `worker.kind` is short for
    `runner.worker.kind`.
    """
    short = parts[0] in RunnerSection.model_fields and parts[0] not in TaskFile.model_fields
    return ("runner", *parts) if short else parts


class Source(BaseModel):
    """A text the run was made from, so that a later change is noticed."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    path: str | None
    """Absolute; None for stdin."""
    sha256: str
    """Of `text` in UTF-8."""
    text: str


class Reading(BaseModel):
    """How a task was read: what `load_task` was given, so that it can be read again.

    It holds no more than the task that came of it: the values of `--set` and of options.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    kind: Literal["file", "stdin", "goal", "prd"]
    value: str
    """As in `TaskSource`."""
    cwd: str
    """Absolute; where it was asked for."""
    overrides: list[str] = []
    """The texts of `--set`, in their order."""
    options: dict[str, bool | str | list[str]] = {}
    """The named options that were given."""
    today: date | None = None
    auto: bool = False


class PlannerChange(BaseModel):
    """A planner, or a model, that a person named while the run was going: in force from then on."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    role: Literal["meta", "plan", "assess", "worker"]
    kind: str | None = None
    model: str | None = None
    owner: str = ""
    """Whose model it is: the kind of the planner, or the name of the worker."""


class PolicySource(BaseModel):
    """A policy file that capped a task."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    path: str
    sha256: str


class EarlierWork(BaseModel):
    """What workers of other tasks of a plan wrote before a task of it began."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    files: list[str] = []
    """Files that are theirs: new ones, and changed ones whose tests cannot be told apart."""
    tests: dict[str, list[str]] = {}
    """Names of tests within other files, which are new or have another text."""


class Landing(BaseModel):
    """Where the work of a run goes as a commit once it is COMPLETE."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    repo: str
    """The user's repository, absolute, symlinks resolved."""
    branch: str = ""
    """Of that repository; of a run in the checkout "" until it begins."""
    outside: bool = False
    """Whether it works in a private work tree, `TaskSpec.repo`, and not in the checkout."""
    clean: bool = False
    """Whether nothing that is not committed is taken along to there."""
    base: str = ""
    """The commit that it begins from; "" until it begins."""
    carried: list[str] = []
    """Files that were taken along with changes that are not committed, the first of them."""
    carried_more: int = 0
    """How many more were."""
    left: list[str] = []
    """Submodules and other repositories below the top that were not taken along."""


class TaskSpec(BaseModel):
    """A task ready to run: the file with its references resolved to absolute places.

    `env:` values stay references; secrets are looked up when the worker starts and never stored.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    task_id: str
    title: str
    repo: str
    """Where the run works; absolute, symlinks resolved."""
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
    """The replies of a `script` planner."""
    patterns_text: str | None = None
    template_text: str | None = None
    language: Language = "en"
    """Of prompts: `runner.meta.language`, or read off the PRD."""
    note_language: Language = "en"
    places: dict[str, str] = {}
    """Where settings of `runner` and commands of `task` were written: dotted name to
    "task.yaml:21" or "--sandbox". What is not in here is a default."""
    chosen: dict[str, str] = {}
    """Why the kinds of `meta` and `worker` were chosen, where they were left to this machine."""
    reading: Reading | None = None
    """How it was read; None in runs of versions that did not keep it."""
    changes: list[PlannerChange] = []
    """What people named since, in this order."""
    policies: list[PolicySource] = []
    """The policy files that the task was held against."""
    host_caps: list[list[str]] = []
    """Hosts that policies allow at most, one list for each that names any."""
    cache_caps: list[str] | None = None
    """Ecosystems whose caches policies allow at most; None where none says."""
    budget_caps: dict[str, float] = {}
    """Up to where policies let people raise limits of `runner.budget`, by name."""
    landing: Landing | None = None
    """None where nothing is committed."""
    plan_settings: str = ""
    """Stands for the settings of the plan that it was made under; "" for one of no plan."""
    plan_repo: str = ""
    """The user's repository, whose plan it is a task of; "" for a task of its own."""
    earlier: EarlierWork | None = None
    """Of a task of a plan: what other workers wrote. What of that decides is no person's."""

    @property
    def wanted(self) -> str:
        """Everything that was asked for, as text: the PRD, and criteria with their details."""
        parts = [self.prd_text, *(f"{one.description}\n{one.detail}" for one in self.criteria)]
        return "\n\n".join(parts)

    @property
    def texts(self) -> tuple[str | None, ...]:
        """What files say that the settings name: the planner's script, patterns, the template."""
        return (self.script_text, self.patterns_text, self.template_text)

    @property
    def shown_repo(self) -> str:
        """The repository as people know it: the run is listed and its note is left there."""
        return self.landing.repo if self.landing else self.plan_repo or self.repo

    @property
    def part_of(self) -> Literal["plan"] | None:
        """`plan` if a plan executes this task and continues with its result, else None."""
        return "plan" if self.plan_repo else None

    @property
    def candidates(self) -> list[tuple[str, TaskSpec]]:
        """All workers by name, each as a copy of the task in which it is `runner.worker`."""
        workers = self.runner.workers or [self.runner.worker]
        return [(name, self.with_worker(worker)) for name, worker in named_workers(workers)]

    def with_worker(self, worker: WorkerSpec) -> TaskSpec:
        """Return the same task with another `runner.worker`."""
        if worker is self.runner.worker:
            return self
        return self.with_runner(worker=worker)

    def with_runner(self, **sections: Any) -> TaskSpec:
        """Return the same task with these sections of `runner` in place of its own."""
        return self.model_copy(update={"runner": self.runner.model_copy(update=sections)})

    def with_planner(self, **settings: Any) -> TaskSpec:
        """Return the same task with these settings of `runner.meta` in place of its own."""
        return self.with_runner(meta=self.runner.meta.model_copy(update=settings))

    def with_sandbox(self, **settings: Any) -> TaskSpec:
        """Return the same task with these settings of `runner.sandbox` in place of its own."""
        return self.with_runner(sandbox=self.runner.sandbox.model_copy(update=settings))

    @property
    def completion(self) -> Literal["evidence", "strict", "judged"]:
        """The completion mode in force."""
        default: Literal["evidence", "judged"] = "judged" if self.is_trial else "evidence"
        return self.runner.completion or default

    @property
    def is_trial(self) -> bool:
        """Whether the run only tries the program out: the mock planner has no work in mind."""
        return self.runner.meta.kind == "mock"
