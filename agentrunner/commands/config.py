"""`config`: show which settings are in force and where they come from, and change them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from agentrunner.commands import options as opt
from agentrunner.commands.console import (
    Output,
    interactive,
    show,
    show_error,
    show_json,
    tell,
    width_of,
)
from agentrunner.commands.which_run import here
from agentrunner.errors import UsageError
from agentrunner.errors.command_line import BadEnvironment
from agentrunner.errors.task_files import Unreadable

_NEW = """\
# Settings for every task, as in the section `runner` of a task file. For example:
# runner:
#   worker: {kind: codex-cli}
#   budget: {usd: 5}
# notify: notify-send AgentRunner "it needs you, or has ended"
"""


_TAKES = {
    "show": ("at most a FILE", 0, 1),
    "set": ("KEY and VALUE", 2, 2),
    "unset": ("KEY", 1, 1),
    "edit": ("nothing", 0, 0),
}
"""By action: what it takes, in words, and the least and most of that."""


@opt.with_file
def config(
    action: Annotated[
        Literal["show", "set", "unset", "edit"],
        typer.Argument(metavar="show|set|unset|edit", help="What to do."),
    ],
    rest: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE | KEY [VALUE]]",
            help="show: a task file or PRD; set: a setting, its value in YAML; unset: a setting.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="show: also settings at their default.")
    ] = False,
    project: Annotated[
        bool,
        typer.Option("--project", help="set, unset, edit: agentrunner.yaml of this repository."),
    ] = False,
    as_json: opt.OneJson = False,
) -> int:
    """The settings in force, each with where it comes from; change them in your own file.

    That is ~/.config/agentrunner/config.yaml, or with --project agentrunner.yaml of the repository.
    """
    words = list(rest or [])
    takes, least, most = _TAKES[action]
    if not least <= len(words) <= most:
        raise UsageError(f"config {action} takes {takes}.", remedy="agentrunner config --help")
    if action == "show":
        return _show(words[0] if words else None, everything, as_json)
    file = _file(project)
    if action == "set":
        return _set(file, words[0], words[1], as_json)
    if action == "unset":
        return _unset(file, words[0], as_json)
    return _edit(file)


def _show(file: str | None, everything: bool, as_json: bool) -> int:
    from agentrunner.commands.start import load, source_of
    from agentrunner.config.config_files import PROJECT_FILE, own_settings, user_file
    from agentrunner.config.load import load_settings
    from agentrunner.config.origins import settings_of
    from agentrunner.screens.worker_table import settings_screen

    if file is None:
        repo = here()
        runner, places = load_settings(repo, os.environ, auto=True)
    else:
        spec = load(source_of(file, None, None), [], {})
        repo, runner, places = Path(spec.repo), spec.runner, spec.places
    looked_for = [path for path in (repo / PROJECT_FILE, user_file(os.environ)) if path is not None]
    found = settings_of(runner, places, os.environ, everything=everything)
    found += own_settings(os.environ)
    files = [(str(path), path.is_file()) for path in looked_for]
    if as_json:
        settings = [{"key": key, "value": value, "from": where} for key, value, where in found]
        files_read = [{"path": path, "read": there} for path, there in files]
        return show_json({"settings": settings, "files": files_read})
    show(settings_screen(found, files, os.environ.get("HOME", ""), width_of(sys.stdout)))
    return 0


def _file(project: bool) -> Path:
    from agentrunner.config.config_files import PROJECT_FILE, user_file

    found = here() / PROJECT_FILE if project else user_file(os.environ)
    if found is None:
        raise BadEnvironment(
            "Neither HOME nor XDG_CONFIG_HOME says where your settings are.",
            remedy="set HOME, or write them with --project",
        )
    return found


def _text_of(file: Path) -> str:
    from agentrunner.config.text_files import read_text

    return read_text(file, name=str(file)) if file.exists() else ""


def _set(file: Path, key: str, value: str, as_json: bool) -> int:
    from agentrunner.config.settings_text import key_path, with_setting

    path = key_path(key)
    before = _text_of(file)
    name = ".".join(map(str, path))
    try:
        _write_checked(file, with_setting(before, path, value, str(file)), before)
    except UsageError as error:
        if error.source_line and error.source_line not in map(str.strip, before.splitlines()):
            error.path, error.source_line = f"config set {name}", ""  # no line of the file has it
        raise
    if as_json:
        show_json({"key": name, "value": value, "file": str(file)})
    else:
        tell(f"{name} is {value} from now on, in {file}.")
    return 0


def _unset(file: Path, key: str, as_json: bool) -> int:
    from agentrunner.config.settings_text import key_path, without_setting

    path = key_path(key)
    before = _text_of(file)
    name = ".".join(map(str, path))
    after = without_setting(before, path, str(file))
    if after != before:
        _write_checked(file, after, before)
    if as_json:
        show_json({"key": name, "removed": after != before, "file": str(file)})
    elif after != before:
        tell(f"{name} is not set any more in {file}.")
    else:
        tell(f"{name} is not set in {file}.")
    return 0


def _write_checked(file: Path, text: str, before: str) -> None:
    """Write a settings file; if tasks could not be read with it, restore the previous one."""
    from agentrunner.config.load import load_settings

    was_there = file.exists()
    _write(file, text)
    try:
        load_settings(here(), os.environ, auto=True)
    except UsageError:
        if was_there:
            _write(file, before)
        else:
            file.unlink()
        raise


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Through links, since a folder of dot files may consist of those.
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Unreadable(f"{file} cannot be written: {error.strerror}.", path=str(file)) from error


def begin_settings(file: Path) -> None:
    """Write a settings file that sets nothing and shows how; raises UsageError."""
    _write(file, _NEW)


def _edit(file: Path) -> int:
    """Open the file in the person's editor until it is valid or they give up."""
    from agentrunner.commands.editing import open_editor
    from agentrunner.commands.question_prompt import interruptible, read_line
    from agentrunner.config.load import load_settings

    if not interactive(Output()):
        raise UsageError(
            "an editor needs a terminal.",
            remedy="agentrunner config set KEY VALUE",
        )
    before, made = _text_of(file), not file.exists()
    if made:
        _write(file, _NEW)
    while True:
        open_editor(file)
        try:
            load_settings(here(), os.environ, auto=True)
        except UsageError as error:
            show_error(error)
            with interruptible():
                typed = read_line("[Enter] edit it again, [q] put it back as it was > ")
            if typed.strip().lower() == "q":
                _write(file, before)
                break
        else:
            break
    text = _text_of(file)
    if made and text in ("", _NEW):
        file.unlink()
    changed = text != before and not (made and text == _NEW)
    tell(f"{file} {'is in force' if changed else 'is as it was'}.")
    return 0
