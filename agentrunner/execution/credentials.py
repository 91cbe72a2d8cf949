"""Which values are secrets, and so are never written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agentrunner.config.load import resolve_env
from agentrunner.config.spec import TaskSpec
from agentrunner.workers.member import Member

FORGE_TOKENS = ("GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN")
"""Tokens of the host, for pull and merge requests; no run has any use for them."""
SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")


def secrets_of(
    spec: TaskSpec, members: Iterable[Member], environ: Mapping[str, str]
) -> dict[str, str]:
    """Return every value that must never be written, by name.

    Keys of planner and workers, `env:` references, and tokens of forges.
    """
    names = {
        "OPENAI_API_KEY",
        *FORGE_TOKENS,
        *(name for member in members for name in member.worker.key_names),
    }
    found = {name: environ[name] for name in names if environ.get(name)}
    workers = spec.runner.workers or [spec.runner.worker]
    given = [(worker.env, resolve_env(worker.env, environ)) for worker in workers]
    if (setup := spec.task.setup) is not None:
        given.insert(0, (setup.env, resolve_env(setup.env, environ, "task.setup.env")))
    for env, resolved in given:
        for name, written in env.items():
            if written.startswith("env:") or any(word in name.upper() for word in SECRET_WORDS):
                found[_unused(name, resolved[name], found)] = resolved[name]
    return found


def secrets_in(environ: Mapping[str, str]) -> dict[str, str]:
    """Return every value of the environment whose name says that it is a secret."""
    return {
        name: value
        for name, value in environ.items()
        if value and any(word in name.upper() for word in SECRET_WORDS)
    }


def _unused(name: str, value: str, found: Mapping[str, str]) -> str:
    """Return a name under which two candidates' different values can both be kept."""
    while found.get(name, value) != value:
        name += "'"
    return name
