"""Environment and defaults, read when asked and never at import."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

TRACING = (
    "LANGSMITH_TRACING_V2",
    "LANGSMITH_TRACING",
    "LANGCHAIN_TRACING_V2",
    "LANGCHAIN_TRACING",
    "LANGCHAIN_HANDLER",
)
"""Variables by which a shell makes LangChain send every prompt to a tracing service."""
_ignored: list[str] = []
"""Those that `quiet_libraries` found switched on and took away."""


def state_dir(option: str | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """Where runs are kept: option, AGENTRUNNER_STATE_DIR, else the XDG state home."""
    env = os.environ if environ is None else environ
    named = option or env.get("AGENTRUNNER_STATE_DIR")
    if named:
        return Path(named).expanduser().absolute()
    base = env.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser().absolute() / "agentrunner"


def home_of(environ: Mapping[str, str]) -> Path:
    """The person's home: HOME, else what the system says."""
    return Path(environ.get("HOME") or Path.home())


def how_to_add(extra: str) -> str:
    """The command that adds one of our extras. No registry has the package: it is a checkout's."""
    return f"uv tool install '.[{extra}]' or pip install '.[{extra}]' in AgentRunner's folder"


def quiet_libraries() -> None:
    """Settings that LangGraph reads at import: strict deserialisation, no tracing.

    Called before the first import of langgraph. Without strict msgpack a checkpoint can make
    the loader import and call anything; with tracing a shell variable ships PRDs elsewhere.
    """
    os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
    if os.environ.get("AGENTRUNNER_TRACE") != "1":
        for name in TRACING:
            if os.environ.pop(name, "").lower() not in ("", "0", "false") and name not in _ignored:
                _ignored.append(name)
        os.environ["LANGSMITH_TRACING"] = "false"


def ignored_tracing() -> tuple[str, ...]:
    """Variables that asked for tracing and were not obeyed; a person should know."""
    return tuple(_ignored)


def prices_file(environ: Mapping[str, str]) -> Path | None:
    """The person's own prices of models: AGENTRUNNER_PRICES, else a file of that name among
    their settings; None where there is none.
    """
    if named := environ.get("AGENTRUNNER_PRICES"):
        return Path(named).expanduser().absolute()
    base = environ.get("XDG_CONFIG_HOME") or "~/.config"
    usual = Path(base).expanduser() / "agentrunner" / "prices.yaml"
    return usual if usual.is_file() else None


def user_file(environ: Mapping[str, str]) -> Path | None:
    """Where the person's own file is, there or not: below XDG_CONFIG_HOME, else ~/.config.

    None where the environment says neither.
    """
    base, home = environ.get("XDG_CONFIG_HOME"), environ.get("HOME")
    if base and Path(base).is_absolute():
        return Path(base) / "agentrunner" / "config.yaml"
    return Path(home) / ".config" / "agentrunner" / "config.yaml" if home else None
