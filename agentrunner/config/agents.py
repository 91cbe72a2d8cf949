"""The sections of a task file about planners, workers and judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, field_validator

from agentrunner.config.config_model import ENV_NAME, ConfigModel
from agentrunner.registry import PLANNERS, WORKERS, canonical_worker_type

DEFAULT_PLANNER_MODEL = "gpt-5.5"
"""Default model if neither task file nor environment names one; shown by `agentrunner doctor`."""
MODEL_VARIABLES = ("AGENTRUNNER_META_MODEL", "OPENAI_MODEL")
"""Variables of the environment that name the model of such a planner, the first one first."""

AUTO = "auto"
"""The kind that is decided before a run starts, by what this machine has."""

OF_ONE_KIND: Mapping[str, tuple[str, ...]] = {
    "meta": ("kind", "model", "base_url", "auth", "script"),
    "assess": ("kind", "model", "base_url"),
    "worker": (
        *("kind", "name", "model", "models", "base_url", "command", "docker_image", "auth"),
        *("env", "flags", "weight"),
    ),
}
"""By section, the settings that were given for its kind: they are not applied to another one."""


def is_other_kind(kind: object, wanted: object) -> bool:
    """Whether two kinds are named, and not the same one."""
    names = {canonical_worker_type(str(one)) for one in (kind, wanted)}
    return bool(kind and wanted) and len(names) == 2


See = Literal["nothing", "change", "repo"]
SEES: tuple[See, ...] = ("nothing", "change", "repo")
"""In order, from the least to the most."""


class PlannerSpec(ConfigModel):
    """The planner, which plans, decides and assesses."""

    kind: str = Field(
        "openai-chat",
        description=f"`auto`, or {PLANNERS.named()}; `agentrunner planners` says more.",
    )
    model: str | None = None
    """Left out: AGENTRUNNER_META_MODEL, OPENAI_MODEL, else the built-in default; of a CLI, its
    own. Kind `chat`: `provider:name`."""
    base_url: str | None = None
    """An OpenAI-compatible endpoint. Left out: OPENAI_BASE_URL of the process."""
    allow_plain_http: bool = False
    """Also `http://` to a private address of your own network, which sends key and prompts in
    the clear. Only by an option or in your own settings."""
    auth: Literal["key", "login"] | None = None
    """Of a CLI: a key, or the subscription that it is logged in with here. Left out: a key where
    one is set, else the login."""
    see_repo: Literal["none", "read"] | None = None
    """Whether a CLI may read the repository while it plans and judges; never write. `none`
    without `see` means `see: change`."""
    see: See | None = None
    """What leaves for the planner's provider: `nothing` of the code, the `change` as diffs, or
    what the planner looks at in the `repo` as well. Left out: `repo`."""
    max_loops: int = Field(5, ge=0, le=1000)
    """How often work may be ordered again; at most one more worker run than this."""
    system_prompt: str | dict[str, str] | None = None
    """Own words for the planner's role, for all messages or by message."""
    system_prompt_mode: Literal["extend", "replace"] = "extend"
    """`replace` leaves out the built-in prompt, reply format included."""
    format: Literal["auto", "yaml", "json"] = "auto"
    """The format replies are asked for in."""
    context_tokens: int | None = Field(None, ge=4096, le=100_000_000)
    """Length of the model's context. Half of it at most is used for what prompts tell of rounds,
    repository, changes and looks. Left out: what a server on this machine or in its network says,
    else a long one."""
    timeout_sec: float | None = Field(None, gt=0)
    """Seconds for one call. Left out: of a chat model META_TIMEOUT_SEC, else 600, and 1,800 for a
    server on this machine or in its network."""
    language: Literal["auto", "en", "ja"] = "auto"
    """Of the prompts; `auto` goes by the PRD."""
    on_unusable: Literal["ask", "fail"] = "ask"
    """`ask`: where it gives no usable answer or none at all, the run waits for a person, who
    answers in its place, names another model or ends it. `fail`: the run ends FAILED."""
    script: str | None = None
    """Kind `script`: the file with the replies, relative to the task file."""


def seen_by(planner: PlannerSpec) -> See:
    """Return what the planner may see of the code, with the default filled in."""
    if planner.see is not None:
        return planner.see
    return "change" if planner.see_repo == "none" else "repo"


def reads_repo(planner: PlannerSpec) -> bool:
    """Whether the planner is a CLI that reads the repository itself."""
    return planner.see_repo == "read" and seen_by(planner) == "repo"


class PlannerCandidate(ConfigModel):
    """One who can take a role of the planner. What is left out is that of `runner.meta`."""

    kind: str
    """As of `runner.meta`, without `auto`."""
    model: str | None = None
    """Its model."""
    base_url: str | None = None
    """Its endpoint."""
    auth: Literal["key", "login"] | None = None
    """Of a CLI, as in `runner.meta`."""
    weight: int = Field(0, ge=0, le=1000)
    """Share of the calls among candidates with a weight; all 0: the first that is ready."""


class AssessSpec(ConfigModel):
    """Who judges completion, where that is not the planner."""

    kind: str | None = None
    """As of `runner.meta`, without `auto`; left out, that one."""
    model: str | None = None
    """Its model."""
    base_url: str | None = None
    """Its endpoint."""
    votes: int = Field(1, ge=1, le=9)
    """How often it is asked about one tree; the more negative word wins."""
    quotes: bool = False
    """Whether a model behind an API that passes what nothing else decides is asked once for the
    line of the change that does it."""


class RoleSpec(ConfigModel):
    """How a role is filled when its first candidate cannot work."""

    candidates: list[PlannerCandidate] = []
    """In order of preference. Left out, the one of `runner.meta` (or `runner.assess`)."""
    fallback_on_rate_limit: bool = True
    """Whether the next candidate takes over where a quota is spent; else the run waits."""
    cool_down_sec: float = Field(300, ge=0)
    """Seconds for which a candidate whose quota is spent is left alone, if no reset is told."""
    force: str = ""
    """The name of the only candidate to use, whatever happens."""


class WorkerRoleSpec(ConfigModel):
    """How workers are chosen among `runner.workers`."""

    fallback_on_rate_limit: bool = True
    """Whether the next candidate takes over where a quota is spent; else the run waits."""
    cool_down_sec: float = Field(300, ge=0)
    """Seconds for which a candidate whose quota is spent is left alone, if no reset is told."""
    force: str = ""
    """The name of the only candidate to use, whatever happens."""


class ProfilesSpec(ConfigModel):
    """Who fills which role."""

    meta: RoleSpec = RoleSpec.model_construct()
    """Decides what to do next, and everything that no other role does."""
    plan: RoleSpec | None = None
    """Plans the criteria; left out, as `meta`."""
    worker: WorkerRoleSpec = WorkerRoleSpec.model_construct()
    """Works; its candidates are `runner.workers`."""
    assess: RoleSpec | None = None
    """Judges completion; left out, `runner.assess`, else as `meta`."""


class WorkerSpec(ConfigModel):
    """A coding agent that does the work in the sandbox."""

    kind: str = Field(
        "codex-cli", description=f"`auto`, or {WORKERS.named()}; `agentrunner workers` says more."
    )
    name: str = Field("", pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,63})?$")
    """Tells candidates apart; left out, the kind, with a number where it is there twice."""
    model: str | None = None
    """The model it is told to use; left out, the CLI's own default."""
    models: list[str] = []
    """Further models that the planner may choose for it."""
    base_url: str | None = None
    """The endpoint it is told to use; left out, the CLI's own."""
    command: list[str] | str | None = None
    """Kind `command`: argv, with `{prompt_file}` or `{prompt}`; else the prompt comes by stdin.
    Other kinds: the absolute path of the CLI."""
    docker_image: str | None = None
    """The image of a Docker sandbox; other sandboxes have none."""
    max_run_time_sec: float = Field(1800, gt=0)
    """Seconds until one worker run is ended."""
    idle_timeout_sec: float = Field(600, gt=0)
    """Seconds without any output until it is ended."""
    auth: Literal["key", "login"] = "key"
    """`login`: the subscription that its CLI is logged in with on this machine."""
    env: dict[str, str] = {}
    """`env:NAME` takes the host's variable, `literal:TEXT` a text that begins with `env:`."""
    flags: list[str] = []
    """Further flags of its command line."""
    weight: int = Field(0, ge=0, le=1000)
    """Share of the work among candidates with a weight; all 0: the first that is ready."""

    @field_validator("env")
    @classmethod
    def _variable_names(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not ENV_NAME.fullmatch(name):
                raise ValueError(f"{name!r} cannot be the name of an environment variable")
        return value


def named_workers(workers: list[WorkerSpec]) -> list[tuple[str, WorkerSpec]]:
    """Return each worker candidate with its unique name."""
    taken: dict[str, int] = {}
    named = []
    for worker in workers:
        base = worker.name or worker.kind
        taken[base] = taken.get(base, 0) + 1
        named.append((base if taken[base] == 1 else f"{base}-{taken[base]}", worker))
    return named
