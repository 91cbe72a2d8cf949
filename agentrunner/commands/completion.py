"""Completion by Tab: the scripts for the shells, and our answers to them.

A script passes the words of the line so far; the last one is to be completed. The answer is one
candidate per line, with its meaning after a tab; a line ":files" leaves it to the shell. It runs at
every Tab, so it starts no git and imports no library of the engine.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import Annotated, Any, Literal

import typer

from agentrunner import environment
from agentrunner.commands.command_line import COMPLETE_VARIABLE, TASK_FILES
from agentrunner.commands.index import Index, about_option, choices_of
from agentrunner.text.terminal import one_line, sanitize

Candidate = tuple[str, str]
"""A possible word, and its meaning."""
FILES: Candidate = (":files", "")
MOST_CELLS = 60
"""Columns for a meaning, which stands beside its word."""
MOST = 200
"""More candidates would not help anybody."""


_BASH = """\
_agentrunner_complete() {
    local cur="${COMP_WORDS[COMP_CWORD]}" value rest
    COMPREPLY=()
    while IFS=$'\\t' read -r value rest; do
        if [[ $value == :files ]]; then
            compopt -o default 2>/dev/null
        else
            COMPREPLY+=("$(printf '%q' "$value")")
        fi
    done < <(VARIABLE=bash "${COMP_WORDS[0]}" "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o nosort -F _agentrunner_complete agentrunner
"""
_ZSH = """\
#compdef agentrunner
_agentrunner() {
    local -a found
    local line files=0
    while IFS= read -r line; do
        if [[ $line == :files* ]]; then
            files=1
        else
            found+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}")
        fi
    done < <(VARIABLE=zsh "${words[1]}" "${(@)words[2,CURRENT]}" 2>/dev/null)
    (( ${#found} )) && _describe -V 'agentrunner' found
    (( files )) && _files
    return 0
}
if [[ $funcstack[1] == _agentrunner ]]; then
    _agentrunner "$@"
else
    compdef _agentrunner agentrunner
fi
"""
_FISH = """\
function __agentrunner_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (env VARIABLE=fish $words[1] $words[2..-1] 2>/dev/null)
        if string match -q ':files*' -- $line
            __fish_complete_path (commandline -ct)
        else
            printf '%s\\n' $line
        end
    end
end
complete -c agentrunner -f -k -a '(__agentrunner_complete)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        typer.Argument(metavar="bash|zsh|fish", help="Your shell."),
    ],
) -> int:
    """Print the script by which a shell completes commands, options, runs, tasks, files and kinds.

    bash: eval "$(agentrunner completion bash)" in ~/.bashrc. zsh: the same with zsh in ~/.zshrc,
    behind compinit. fish: write it to ~/.config/fish/completions/agentrunner.fish.
    """
    typer.echo(SCRIPTS[shell].replace("VARIABLE", COMPLETE_VARIABLE), nl=False)
    return 0


def complete(program: Any, words: Sequence[str]) -> int:
    """Print candidates for the last of `words`. Never fails: a prompt is no place for errors."""
    with contextlib.suppress(Exception):
        for value, meaning in islice(candidates(program, words), MOST):
            sys.stdout.write(f"{value}\t{meaning}\n")
    return 0


def candidates(program: Any, words: Sequence[str]) -> Iterable[Candidate]:
    """Yield candidates for the last word, in the order to show them."""
    *before, last = words or [""]
    command, arguments, waiting = _parse_words(program, before)
    joined = _option(command, last) if "=" in last and waiting is None else None
    if joined is not None:
        name = last.partition("=")[0]
        found = [(f"{name}={value}", text) for value, text in _values(joined, before)]
    elif waiting is not None:
        last = "" if last == "=" else last
        found = _values(waiting, before)
    elif last.startswith("-") and "--" not in before:
        found = _options(command)
    elif isinstance(command, Index) and not arguments:
        found = [(name, meaning) for name, (_, meaning) in command.entries.items()]
        found += [] if before and before[-1] in command.also else command.also.items()
    else:
        found = _argument_values(command, len(arguments), before)
    for value, meaning in found:
        clean = sanitize(value)
        if (value.startswith(last) or value == FILES[0]) and clean == value and "\n" not in value:
            yield value, one_line(meaning, MOST_CELLS)


def _parse_words(program: Any, words: Sequence[str]) -> tuple[Any, list[str], Any]:
    """Return the typed command, its arguments so far, and the option that awaits its value."""
    command, waiting = program, None
    arguments: list[str] = []
    for word in words:
        if waiting is not None:
            waiting = waiting if word == "=" else None  # in bash "=" is a word of its own
        elif word.startswith("-") and word != "-":
            option = _option(command, word)
            if option is not None and "=" not in word and not option.is_flag:
                waiting = option
        elif isinstance(command, Index) and not arguments:
            if word == "help" and command is program:
                continue
            below = command.get_command(None, word)
            if below is None:
                arguments.append(word)
            else:
                command = below
        else:
            arguments.append(word)
    return command, arguments, waiting


def _option(command: Any, word: str) -> Any:
    name = word.partition("=")[0]
    return next((one for one in command.params if name in one.opts), None)


def _options(command: Any) -> list[Candidate]:
    shown = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    found = [(max(one.opts, key=len), about_option(one)) for one in shown]
    return [*found, ("--help", "All that it can do.")]


def _argument_values(command: Any, index: int, words: Sequence[str]) -> list[Candidate]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    if not arguments:
        return []
    argument = arguments[min(index, len(arguments) - 1)]
    if argument.name in ("run", "words") and index == 0:
        return _runs(words, str(command.name))
    if argument.name == "words":
        return _criteria(words) if command.name == "accept" else []
    if command.name == "config" and index == 1 and "set" in words:
        return _settings(words)
    if command.name in ("archive", "switch") and index == 0:
        return _plans_aside(words)
    if index >= len(arguments) and argument.nargs == 1:
        return []
    return _values(argument, words)


def _values(parameter: Any, words: Sequence[str]) -> list[Candidate]:
    """Return an option's or argument's possible values: its choices, else those of SOURCES."""
    if choices := choices_of(parameter):
        return [(word, "") for word in choices]
    source = SOURCES.get(parameter.name)
    return list(source(words)) if source else []


def _runs(words: Sequence[str], verb: str = "") -> list[Candidate]:
    """Return the runs of this repository that `verb` may be about, newest first; else all."""
    from agentrunner.api import ListedRun
    from agentrunner.commands.pick import FITS
    from agentrunner.commands.which_run import here
    from agentrunner.storage.index import RunIndex
    from agentrunner.storage.locks import is_driven

    state = environment.state_dir(_option_value(words, "--state-dir"))
    if not (state / "index.sqlite").is_file():
        return []
    found = []
    for row in RunIndex(state).runs(here())[:MOST]:
        driven = row.finished_at is None and is_driven(state, row.run_id)
        listed = ListedRun(**vars(row), running=driven)
        if verb not in FITS or any(fits(listed) for fits in FITS[verb][1]):
            found.append((row.run_id, f"{listed.stands}: {row.title}"))
    return found


def _criteria(words: Sequence[str]) -> list[Candidate]:
    """Return the criteria of the run that is named, from its log; of the newest one else."""
    from agentrunner.storage.run_folder import RunFolder, runs_root
    from agentrunner.storage.run_log import RunLog

    state = environment.state_dir(_option_value(words, "--state-dir"))
    runs = [run for run, _ in _runs(words)]
    named = next((word for word in words if word in runs), runs[0] if runs else "")
    plans = RunLog(RunFolder(runs_root(state) / named).log_file).records("plan") if named else []
    rows = plans[-1].data["criteria"] if plans else []
    return [(str(one["id"]), str(one["description"])) for one in rows if one["id"] not in words]


def _settings(words: Sequence[str]) -> list[Candidate]:
    """Return the settings as `config set` takes them: below `runner`, and with it in front."""
    from agentrunner.config.mistakes import all_keys

    keys = [key for key in all_keys() if key.startswith("runner.")]
    return [(key, "") for key in [*(key.removeprefix("runner.") for key in keys), *keys]]


def _tasks(words: Sequence[str]) -> list[Candidate]:
    """Return the tasks of this repository's plan."""
    from agentrunner.commands.plan_place import store_of

    plan = store_of(_option_value(words, "--repo"), _option_value(words, "--state-dir")).load()
    return [(name, plan.designs[task.node_id].title) for name, task in plan.tasks.items()]


def _plans_aside(words: Sequence[str]) -> list[Candidate]:
    """Return the plans of this repository that `plan new` or `plan archive` has put aside."""
    from agentrunner.commands.which_run import here
    from agentrunner.storage.plan_shelf import plans_aside

    state = environment.state_dir(_option_value(words, "--state-dir"))
    return [(one.name, "archived" if one.archived else "") for one in plans_aside(state, here())]


def _task_files(words: Sequence[str]) -> list[Candidate]:
    """Return PRDs and task files of this folder; the shell completes the rest."""
    with os.scandir(".") as entries:
        names = sorted(e.name for e in entries if e.name.endswith(TASK_FILES) and e.is_file())
    return [*((name, "") for name in names), FILES]


def _files(words: Sequence[str]) -> list[Candidate]:
    return [FILES]


def _names(place: str, *more: str, end: str = "") -> Callable[[Sequence[str]], list[Candidate]]:
    """Return a source of the names at `module:name`: a list, or a function that returns one."""

    def of_place(words: Sequence[str]) -> list[Candidate]:
        module, _, name = place.partition(":")
        found = getattr(import_module(f"agentrunner.{module}"), name)
        return [(f"{one}{end}", "") for one in (*more, *(found() if callable(found) else found))]

    return of_place


def _option_value(words: Sequence[str], option: str) -> str | None:
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word == option:
            return after
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


_MOMENTS = ("plan", "worker", "complete", "plan,worker,complete")
SOURCES: Mapping[str, Callable[[Sequence[str]], list[Candidate]]] = {
    "run": _runs,
    "task": _tasks,
    "question": _tasks,
    "only": _tasks,
    "file": _task_files,
    "prd": _task_files,
    "meta": _names("registry:PLANNERS", "auto"),
    "planner": _names("registry:PLANNERS"),
    "worker": _names("registry:WORKERS", "auto"),
    "kind": _names("registry:WORKERS", "all-in-one", "host"),
    "sandbox": _names("registry:SANDBOXES", "auto"),
    "budget": _names("state.budget:NAMES", end="="),
    "overrides": _names("config.mistakes:all_keys", end="="),
    "code": _names("errors.reference:by_code"),
    "of": _names("commands.texts:SCHEMAS"),
    "state": _names("commands.look:STATES"),
    "approve": lambda words: [(one, "") for one in _MOMENTS],
    **dict.fromkeys(
        ("repo", "folder", "state_dir", "policy", "events", "record", "replay", "edit", "source",
         "output_file", "scenes"),
        _files,
    ),
}  # fmt: skip
"""By parameter name, for all commands."""
