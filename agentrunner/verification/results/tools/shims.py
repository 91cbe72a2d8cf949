"""Programs of ours that come before a tool on PATH, so that it reports even behind make."""

from __future__ import annotations

from agentrunner.verification.results.model import Instrumented
from agentrunner.verification.results.reporters import text_of
from agentrunner.verification.results.shell import edited, put_first, quoted, simple_commands


def shimmed(shell: str, place: str, *programs: str) -> Instrumented:
    """The command with a shim for each of these programs; `registry` puts them on PATH.

    Where the command sets PATH itself, as for a toolchain of its own, they come before that, too,
    and so they do where it names a program by its path.
    """
    here = f"{place}/run"
    shell = put_first(_by_name(shell, here, programs), "PATH", here)
    text = text_of("agentrunner_shim.sh")
    return Instrumented(shell, {}, {f"bin/{program}": text for program in programs})


def _by_name(shell: str, here: str, programs: tuple[str, ...]) -> str:
    """The command with `PATH=/opt/go/bin:$PATH go` in place of `/opt/go/bin/go`."""
    edits = []
    for command in simple_commands(shell):
        for word in command.words[:1]:
            folder, slash, name = shell[word.start : word.end].rpartition("/")
            if slash and folder[:1] in ("/", "~", "$") and name in programs:
                set_first = f'PATH={quoted(here)}:{folder}:"$PATH" {name}'
                edits.append((word.start, word.end, set_first))
    return edited(shell, edits)
