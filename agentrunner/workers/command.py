"""The worker for any command line: `runner.worker.command`.

The only assumption is that exit code 0 means done. The command may or may not call a model; if it
needs the network, the task sets `runner.sandbox.network: full`.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from agentrunner.config.agents import WorkerSpec
from agentrunner.environment import find_program
from agentrunner.errors import UsageError
from agentrunner.errors.workers import BadWorkerCommand
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.workers.base import Probe, WorkerCommand, WorkerRequest
from agentrunner.workers.plain import PlainWorker

_PLACEHOLDER = lazy_regex(r"\{(prompt_file|prompt|repo|home)\}")
_ASSIGNMENT = lazy_regex(r"[A-Za-z_]\w*=")
_INTERPRETER = lazy_regex(r"(?:(?:ba|da|k|z)?sh|python|node|deno|bun|ruby|perl|php)[\d.]*")
_MAX_ARGUMENT_BYTES = 128 * 1024 - 1
"""Linux refuses a longer single argument (MAX_ARG_STRLEN, including its closing NUL)."""


class CommandWorker(PlainWorker):
    """Runs a command of the task file, with the prompt by stdin, as a file or as an argument."""

    kind = "command"
    verified = "any command line"

    def __init__(self, spec: WorkerSpec, repo: Path | None = None) -> None:
        command = spec.command
        self._shell = isinstance(command, str)
        self._template = ("sh", "-c", command) if isinstance(command, str) else tuple(command or ())
        self._repo = repo
        if not command or not "".join(command).strip():
            raise _unusable("The worker kind `command` needs a command.", 'command: ["./agent.sh"]')
        if self._shell and "{prompt}" in command:
            raise _unusable(
                "A shell string can't hold {prompt}: the shell would run what stands in it.",
                "read the prompt from stdin or {prompt_file}, or write the command as a list",
            )
        if spec.flags:
            raise _unusable(
                "The worker kind `command` has no flags.", "write them into runner.worker.command"
            )

    def probe(self) -> Probe:
        """Return where the first word is on this host; it may still exist only in the sandbox.

        A path of the repository (`./agent.sh`) is one: the task names it, and not the repository.
        """
        word = self.program()
        path = find_program(word, avoid=self._repo) or self._own(word)
        problem = "" if path else f"{word} is not found on this machine; the sandbox may have it"
        return Probe(path=path, problem=problem)

    def _own(self, word: str) -> Path | None:
        path = self._repo / word if self._repo and "/" in word else None
        return path if path and path.is_file() and os.access(path, os.X_OK) else None

    def program(self) -> str:
        """Return the first word of the command; `sh` if it is a placeholder."""
        words = _words(self._template[2]) if self._shell else list(self._template)
        named = [word for word in words if not _ASSIGNMENT.match(word)]
        return "sh" if not named or _PLACEHOLDER.search(named[0]) else named[0]

    def script(self) -> Path | None:
        """Return the script outside of the repository that an interpreter is to run, if any.

        `sh /srv/agent.sh` has one: it is on this machine, and not in every sandbox.
        """
        path = self._named_script()
        if path is None or not path.is_file():
            return None
        return None if self._repo and path.is_relative_to(self._repo) else path

    def lacking_script(self) -> Path | None:
        """Return the script that an interpreter is to run and that is not on this machine, if any.

        Of an option, a module or a text for the shell nobody can know that; nor of a name that an
        interpreter completes (`node agent` runs agent.js).
        """
        path, whole = self._named_script(), " ".join(self._template)
        if path is None or (self._shell and re.search(r"[|&;<>$`(){}*?~\n]", whole)):
            return None
        plain = re.fullmatch(r"/(?:[\w@%+=,./-]*/)?[\w@%+=,][\w@%+=,.-]*\.\w+", str(path))
        return path if plain and not any(path.parent.glob(f"{path.name}*")) else None

    def _named_script(self) -> Path | None:
        words = _words(self._template[2]) if self._shell else list(self._template)
        while words and _ASSIGNMENT.match(words[0]):
            words = words[1:]
        if len(words) < 2 or not _INTERPRETER.fullmatch(Path(words[0]).name):
            return None
        if words[1].startswith("-"):  # of its value nobody can tell a path
            return None
        # It runs in the repository; which one, nobody may know yet.
        path = Path(os.path.normpath(self._repo / words[1] if self._repo else words[1]))
        return path if path.is_absolute() else None

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """Fill in the template, each placeholder once; paths are quoted in a shell string.

        Raises UsageError if the prompt is too long for an argument.
        """
        values = {
            "prompt": call.prompt,
            "prompt_file": str(call.prompt_file),
            "repo": str(call.workdir),
            "home": str(call.home),
        }
        quote = shlex.quote if self._shell else str
        argv = tuple(
            _PLACEHOLDER.sub(lambda match: quote(values[match[1]]), word) for word in self._template
        )
        if any(len(word.encode()) > _MAX_ARGUMENT_BYTES for word in argv):
            raise _unusable(
                "The prompt is too long for an argument (128 KiB).", "use {prompt_file} or stdin"
            )
        takes_prompt = any(
            match[1] in ("prompt", "prompt_file")
            for word in self._template
            for match in _PLACEHOLDER.finditer(word)
        )
        return WorkerCommand(argv=argv, stdin=b"" if takes_prompt else call.prompt.encode())


def _words(command: str) -> list[str]:
    """Return the words of a shell string, with `;`, `&&` and the like as words of their own."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:
        return []


def _unusable(message: str, remedy: str) -> UsageError:
    return BadWorkerCommand(message, path="runner.worker.command", remedy=remedy)
