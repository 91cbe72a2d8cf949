"""`init`: write a first task for this repository, with a test command that was tried."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentrunner import environment
from agentrunner.commands import options as opt
from agentrunner.commands.chosen import chosen
from agentrunner.commands.console import Output, interactive, show, show_json, tell, width_of
from agentrunner.commands.trying import SandboxTrial
from agentrunner.commands.which_run import here
from agentrunner.discovery.found import FoundCommand
from agentrunner.errors import UsageError
from agentrunner.errors.command_line import AlreadyExists, BadName
from agentrunner.errors.task_files import Unreadable
from agentrunner.screens.doctor import init_screen
from agentrunner.screens.layout import tilde

if TYPE_CHECKING:
    from agentrunner.discovery.judging import TriedCommand

_PRD = """\
---
{test}
{setup}{env}
# protect: ["tests/golden/**"]        # globs that no worker may change
# runner:
#   meta: {{kind: checklist}}           # without a planning model: the checks alone decide
#   worker: {{max_run_time_sec: 1800}}
---
# {title}

<!-- What should be different afterwards, for whom, and why. The worker reads this text. -->

## Acceptance criteria

<!-- One list item for each thing that must be true. With a check it is proven, without one it
     rests on a judgement. These lines are a comment; write yours below it.

- [ ] What is true when it is done (check: `{enter}a command that exits 0 then`)
- [ ] One test of the test command decides (check: test `test_name`)
- [ ] A text stands in a file (check: file {below}README.md contains "## Usage")
- [ ] (optional) What would be nice but may be missing
-->
"""

_YAML = """\
version: 1
task:
  id: {name}
  title: {title}
  prd:
    # What should be different afterwards, for whom, and why. The worker reads this text.
    text: ""
    # path: docs/prd.md                 # instead of text; give one of the two
{setup}{env}
{test}
  # One item for each thing that must be true. With a check it is proven, without one it rests on
  # a judgement. Or with keys: {{description: …, critical: false, check: "COMMAND"}}
  acceptance_criteria: []
  # - "What is true when it is done (check: `{enter}a command that exits 0 then`)"
  # - "One test of the test command decides (check: test `test_name`)"
  # - "(optional) What would be nice but may be missing"
  # protect: ["tests/golden/**"]        # globs that no worker may change
# runner:
#   meta: {{kind: checklist}}             # without a planning model: the checks alone decide
#   worker: {{max_run_time_sec: 1800}}    # seconds
"""

NOTES = ".agent-runner/"

REDS = 3
"""Names of red tests that are shown before a count."""


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the task.")] = "task",
    as_yaml: Annotated[bool, typer.Option("--yaml", help="A task file in place of a PRD.")] = False,
    no_try: Annotated[
        bool, typer.Option("--no-try", help="Run nothing: take the likeliest test command.")
    ] = False,
    gitignore: Annotated[
        bool | None,
        typer.Option(
            "--gitignore/--no-gitignore",
            help="Add the folder of notes to .gitignore, or not. Default: you are asked.",
        ),
    ] = None,
    no_input: opt.NoInput = False,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """Write a first task for this repository, with what is found in it. Never overwrites.

    In a part of a repository that has tests of its own, such as a package, it is about those.

    At most three test commands are tried in the sandbox, a minute each, without network, on a copy
    of the files that is thrown away.
    """
    from agentrunner.config.naming import is_safe_id
    from agentrunner.config.repo import refuse_state
    from agentrunner.discovery.candidates import candidates_of, part_of
    from agentrunner.discovery.ci_environment import ci_environment
    from agentrunner.discovery.set_up import setup_for
    from agentrunner.verification.rooms.registries import registries_of

    if not is_safe_id(name):
        raise BadName(f'"{name}" cannot name a task: letters, digits, ".", "_" and "-" only.')
    repo = here()
    refuse_state(repo)
    file = Path(f"{name}.yaml" if as_yaml else f"{name}.md")
    if os.path.lexists(file):
        raise _exists(file, name)
    part = part_of(repo, Path.cwd())
    candidates, setup = candidates_of(repo / part), setup_for(repo, part)
    around = ci_environment(repo)
    state = environment.state_dir(state_dir)
    trial = SandboxTrial(repo, candidates, state, skip=no_try, env=around.env, part=part).run()
    best = trial.best
    written = setup if setup and _wants_setup(setup, best) else None
    hosts = registries_of(repo, os.environ) if written else ()
    env = FoundCommand(around.text, f"{around.where} sets it for the tests") if around.env else None
    text = render_task_file(
        name,
        tests=_with_trial_result(best),
        setup=written,
        hosts=hosts,
        env=env,
        part=part,
        yaml=as_yaml,
    )
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise _exists(file, name) from error
    except OSError as error:
        raise Unreadable(
            f"{file} cannot be written: {error.strerror}.",
            path=str(file.absolute()),
            remedy="work in a folder that you may write to",
        ) from error
    facts = _facts(repo, part, trial, setup, env, state)
    if as_json:
        ignored = ignore_notes(repo, gitignore) if gitignore else is_ignored(repo)
        rows = [{"name": label, "value": value, "note": note} for label, value, note in facts]
        return show_json({"file": str(file), "facts": rows, "notes_ignored": ignored})
    show(init_screen(facts, str(file), width_of(sys.stdout)))
    _offer(repo, gitignore, Output(no_input=no_input))
    return 0


def _offer(repo: Path, wanted: bool | None, output: Output) -> None:
    """Offer to keep the notes of runs out of the repository's list of new files."""
    if is_ignored(repo) or wanted is False or not (repo / ".git").exists():
        return
    if wanted is None and interactive(output):
        wanted = asked_yes(f"Each run leaves a note in {NOTES}. Add it to .gitignore? [Y/n] ")
    if wanted:
        ignore_notes(repo, wanted)
        tell(f"Added {NOTES} to .gitignore.")
    else:
        tell(f"Notes of runs go to {NOTES}; a line of .gitignore may say so later.")


def asked_yes(prompt: str) -> bool | None:
    """Ask until the answer is yes or no; Enter means yes, and None means that the person left.

    What was typed before the question was there is no answer to it.
    """
    from agentrunner.commands.command_line import is_no, is_yes
    from agentrunner.commands.question_prompt import (
        discard_typed,
        interruptible,
        left_cleanly,
        read_line,
    )

    with interruptible(), left_cleanly():
        discard_typed()
        while not is_no(line := read_line(prompt)):
            if not line.strip() or is_yes(line):
                return True
            prompt = "y or n > "
        return False
    return None


def _exists(file: Path, name: str) -> UsageError:
    return AlreadyExists(
        f"{file} is there already; nothing was written.",
        remedy=f"agentrunner init {name}-2",
    )


def _wants_setup(setup: FoundCommand, best: TriedCommand | None) -> bool:
    """Whether to write the set-up: if a lock file proves it, or if no tests run without it."""
    from agentrunner.discovery.set_up import LOCKED

    works = best is not None and (best.runs or best.kind == "no_count")
    return setup.where in LOCKED or not works


def _with_trial_result(best: TriedCommand | None) -> FoundCommand | None:
    """Return the command with its place and trial result, for readers of the file."""
    if best is None:
        return None
    return FoundCommand(
        best.found.command, "; ".join(filter(None, (best.found.where, best.summary)))
    )


def _facts(
    repo: Path,
    part: str,
    trial: SandboxTrial,
    setup: FoundCommand | None,
    env: FoundCommand | None,
    state_dir: Path,
) -> list[tuple[str, str, str]]:
    from agentrunner.discovery.git import read_branch
    from agentrunner.discovery.services import likely_lacking

    where = "git root" if read_branch(repo) else "no git repository"
    facts = [("repository", tilde(str(repo), os.environ.get("HOME", "")), where)]
    if part != ".":
        facts.append(("part", part, "the tests run there; checks run at the git root"))
    facts += test_rows(trial)
    best = trial.best
    if setup and _wants_setup(setup, best):
        facts.append(("setup", setup.command, setup.where))
    if env:
        facts.append(("env", env.command, env.where))
    lacks = (
        best.lacks
        if best and best.lacks
        else ()
        if best and best.runs
        else likely_lacking(repo / part)
    )
    facts += [("needs", "", text) for text in lacks]
    # These are what `run` uses if the task names no others.
    for finding in chosen(repo, os.environ, state_dir, best is not None, None).items:
        kind, _, reason = finding.text.partition(": ")
        ready = finding.mark == "ok"
        facts.append(
            (finding.name, *((kind, reason) if ready else ("none yet", "agentrunner doctor")))
        )
    if trial.problem is not None:
        return [*facts, ("sandbox", "none works", trial.problem.message)]
    sandbox, _, detail = trial.sandbox.partition(";")
    return [*facts, ("sandbox", sandbox, detail.strip())]


def test_rows(trial: SandboxTrial) -> list[tuple[str, str, str]]:
    """The three best commands with their trial results, and the tests that are already red."""
    from agentrunner.discovery.candidates import first_part

    if trial.best is None:
        rows = [("tests", "not found", "write their command into the file, at test:")]
        if part := first_part(trial.repo):
            rows.append(("", "", f"{part} has tests of its own: agentrunner init in that folder"))
        return rows
    rows = [
        ("or" if index else "tests", seen.found.command, seen.summary or seen.found.where)
        for index, seen in enumerate(trial.seen[:3])
    ]
    red = trial.best.failing
    for index, test in enumerate(red[:REDS]):
        rows.append(("" if index else "red now", "", test))
    if len(red) > REDS:
        rows.append(("", "", f"and {len(red) - REDS} more"))
    return rows


def is_ignored(repo: Path) -> bool:
    """Whether one of the repository's own ignore files names the folder of the notes."""
    for file in (repo / ".gitignore", repo / ".git" / "info" / "exclude"):
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        name = NOTES.strip("/")
        if any(line.strip().strip("/") in (name, f"**/{name}") for line in lines):
            return True
    return False


def ignore_notes(repo: Path, wanted: bool = True) -> bool:
    """Add the folder to `.gitignore` if it is not ignored yet; raises UsageError."""
    if is_ignored(repo) or not wanted:
        return is_ignored(repo)
    file = repo / ".gitignore"
    try:
        if file.is_symlink():
            raise AlreadyExists(
                f"{file} is a link and is left alone.",
                remedy=f"add {NOTES} to it yourself",
            )
        before = file.read_bytes() if file.exists() else b""
        with file.open("ab") as stream:
            stream.write(b"\n" * bool(before and not before.endswith(b"\n")))
            stream.write(f"{NOTES}\n".encode())
    except OSError as error:
        raise Unreadable(f"{file} cannot be written: {error.strerror}.", path=str(file)) from error
    return True


def render_task_file(
    name: str,
    *,
    tests: FoundCommand | None,
    setup: FoundCommand | None,
    hosts: Sequence[str] = (),
    env: FoundCommand | None = None,
    part: str = ".",
    yaml: bool = False,
) -> str:
    """Return a PRD with front matter (or, with `yaml`, a task file) for a task called `name`.

    `name` is a safe task id, `hosts` are the hosts that the set-up fetches from, `env` is a mapping
    of variables as YAML, and `part` is the folder in which the tests run. `validate` refuses the
    file until the person has filled in the rest.
    """
    margin = "  " if yaml else ""
    inside = part != "."
    value = _quoted(tests.command) if tests else ""
    value = f"{{command: {value}, cwd: {_quoted(part)}}}" if inside else value
    network = f", network: [{', '.join(map(_quoted, hosts))}]" if hosts else ""
    ready = f"{{command: {_quoted(setup.command)}{network}}}" if setup else ""
    title = name.replace("-", " ").replace("_", " ").strip().capitalize()
    return (_YAML if yaml else _PRD).format(
        name=_quoted(name),
        title=_quoted(title) if yaml else title,
        test=_setting("test", value, tests, margin),
        enter=f"cd {shlex.quote(part)} && " if inside else "",
        below=f"{part}/" if inside else "",
        setup=_setting("setup", ready, setup, margin),
        env=f"\n{_setting('env', env.command, env, margin)}" if env else "",
    )


def _setting(key: str, value: str, found: FoundCommand | None, margin: str) -> str:
    if found is None:
        example = '"COMMAND"' if key == "test" else '{command: "COMMAND"}'
        comment = "runs the tests" if key == "test" else "once per sandbox, before the tests"
        return f"{margin}# {key}: {example}    # {comment}"
    return f"{margin}{key}: {value}    # {found.where}"


def _quoted(text: str) -> str:
    """Format as a double-quoted YAML scalar; JSON strings are valid ones."""
    return json.dumps(text, ensure_ascii=False)
