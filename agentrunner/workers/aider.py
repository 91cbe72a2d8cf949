"""The worker for aider: it edits text, runs no commands, and prints no JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from agentrunner.config.agents import DEFAULT_PLANNER_MODEL
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.workers import fact
from agentrunner.workers.base import (
    Ended,
    EventReader,
    OutputWatch,
    Reports,
    WorkerCommand,
    WorkerRequest,
)
from agentrunner.workers.cli import CliWorker
from agentrunner.workers.streams import TextEvents, lines_of

TESTED = "0.86.2"
KEY_ENV = "OPENAI_API_KEY"
RETRY = r"^(?:litellm\.\w+: |The API provider|Retrying in \d)"
"""Each try prints three such lines."""
MAX_MESSAGE_LINES = 200

_OPTIONS = (
    *("--edit-format", "whole", "--yes-always", "--no-stream", "--no-pretty", "--no-fancy-input"),
    # The work tree must only contain its work: no commits, no entry in .gitignore, no cached map.
    *("--no-auto-commits", "--no-dirty-commits", "--no-gitignore", "--map-tokens", "0"),
    # It would run linters, tests and commands of the model, and fetch every address it sees.
    *("--no-auto-lint", "--no-auto-test", "--no-suggest-shell-commands", "--no-detect-urls"),
    *("--no-check-update", "--analytics-disable", "--no-show-release-notes"),
    "--no-show-model-warnings",
)
_PRICES = ".aider/caches/model_prices_and_context_window.json"
"""Where it keeps prices that it would otherwise fetch from GitHub each time."""
_IDENTITY = "[user]\n\tname = aider\n\temail = aider@example.invalid\n"
"""Without an identity aider writes one into the repository's configuration."""

_ANSWERED = lazy_regex(r"Tokens: [\d.,]+[kM]? sent, [\d.,]+[kM]? received")
_APPLIED = lazy_regex(r"Applied edit to (.+)")
_FAILED = lazy_regex(r"litellm\.\w+: |Model \S+ has hit a token limit!")
_EXHAUSTED = "possibly exhausted context window"
_MODEL = lazy_regex(r"Model: (\S+) with ")


class AiderWorker(CliWorker):
    """Builds aider's command line and reads its output.

    Its exit code is useless: it is 0 even if the key is refused. Its last word is the line that
    counts the tokens of the model's answer, if no error comes after it.
    """

    kind = "aider"
    title = "aider"
    binary = "aider"
    binary_env = "AGENTRUNNER_AIDER"
    tested = TESTED
    verified = f"aider {TESTED}, real"
    cure = f"pipx install aider-chat=={TESTED}"
    key_names = (KEY_ENV,)
    wire = "openai"
    reports = Reports(actions=True)
    key_env = KEY_ENV
    watch = OutputWatch(retry=RETRY, retries=9)
    reads_stdin = False

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """Return `aider` with the prompt in a file, which can have any length and is no option."""
        home = call.home / "aider"
        objects = home / "objects"
        prompt = home / "prompt.md"
        words = [
            *("--model", f"openai/{self.model_of(call) or DEFAULT_PLANNER_MODEL}"),
            # A variable in the repository's .env would override one of the environment.
            *("--openai-api-base", self.url_of(call)),
            *_OPTIONS,
            *("--chat-history-file", str(home / "chat.md")),
            *("--input-history-file", str(home / "input")),
            *self.flags_of(call),
            *("--message-file", str(prompt)),
        ]
        env = {
            "HOME": str(home),
            "COLUMNS": "1000",  # otherwise its errors are broken into lines
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            # It adds new files to git's index, which is the user's, and read-only in a sandbox.
            "GIT_INDEX_FILE": str(home / "index"),
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(call.workdir / ".git" / "objects"),
        }
        files = {
            prompt: call.prompt,
            home / ".gitconfig": _IDENTITY,
            home / _PRICES: json.dumps({"none": {}}),
        }
        return self.prepare(call, home, words, env, files, folders=(objects,))

    def facts(self, record: Mapping[str, object]) -> Iterable[fact.Fact]:
        """Return no facts: it prints no records."""
        return ()

    def events(self) -> EventReader:
        return TextEvents()

    def facts_in(self, ended: Ended) -> Iterator[fact.Fact]:
        return facts_of(lines_of(ended.stdout))


def facts_of(lines: Iterable[str]) -> Iterator[fact.Fact]:
    """Yield the facts in the lines of a run, in order."""
    latest: list[str] = []
    for line in lines:
        if _ANSWERED.match(line):
            yield fact.WorkerMessage("\n".join(latest).strip())
            yield fact.Finished(clean=True)
            latest.clear()
        elif found := _APPLIED.match(line):
            yield fact.FileChanged(found[1])
        elif found := _MODEL.match(line):
            yield fact.Model(found[1])
        elif _FAILED.match(line):
            yield fact.Trouble(line)
            yield fact.Finished(clean=False)
        elif _EXHAUSTED in line:
            yield fact.Trouble(line, "context")
        elif line.startswith("Repo-map: "):
            latest.clear()  # the banner ends
        else:
            latest = [*latest[-MAX_MESSAGE_LINES:], line]
