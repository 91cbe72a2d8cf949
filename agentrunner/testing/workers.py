"""What every worker adapter promises, tried without starting its CLI.

from agentrunner.testing.workers import check_worker

assert not [one for one in check_worker(MyWorker) if one.status == "failed"]
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, get_args

from agentrunner.config.agents import WorkerSpec
from agentrunner.testing.sandboxes.workbench import CheckResult, expect, outcome_of
from agentrunner.workers.base import (
    Ended,
    ProcessOutcome,
    Reports,
    Worker,
    WorkerEvent,
    WorkerRequest,
)

GARBAGE = (
    b"",
    b"\x00\xff\xfe not text\n",
    b'{"type": "result"\n',
    b'[]\nnull\n42\n"x"\n',
    b'{"type": ["a"], "usage": "none", "exit_code": {}}\n' * 50,
    b"x" * 200_000,
)
"""What a CLI, or somebody in its place, may print."""
PROMPT = "Fix it.\n$(touch evil) `id` \"quoted\" 'single' --help"
SECRET = "a-secret-of-the-environment"


def check_worker(adapter: type[Any], spec: WorkerSpec | None = None) -> list[CheckResult]:
    """Try the promises of `agentrunner.workers.base.Worker` on a class.

    `spec` are the settings that it is made with; left out, its kind alone.
    """
    made = spec or WorkerSpec(kind=adapter.kind)
    results = list[CheckResult]()
    for check in CHECKS:
        with tempfile.TemporaryDirectory() as folder, outcome_of(check, results):
            check(adapter(made), Path(folder))
    return results


def it_says_what_it_is(worker: Worker, folder: Path) -> None:
    """All that the engine reads of an adapter is there."""
    expect(isinstance(worker.kind, str) and worker.kind, "kind is a name")
    expect(isinstance(worker.reports, Reports), "reports is a Reports")
    expect(worker.wire in ("", "openai", "anthropic", "gemini"), "wire is one of those there are")
    expect(bool(worker.wire) <= bool(worker.provider_url), "with a wire there is a provider_url")
    expect(isinstance(worker.verified, str), "verified is a text")
    expect(all(isinstance(name, str) for name in worker.key_names), "key_names are names")
    expect(not (worker.key_names and not worker.needs_model), "keys are for a model only")
    for rules in (worker.flag_rules, worker.tool_rules):
        expect(all(isinstance(rule, str) for rule in rules.values()), "rules are regular texts")


def looking_for_its_program_never_fails(worker: Worker, folder: Path) -> None:
    """`probe` and `program` work where nothing is installed."""
    with _changed("PATH", str(folder)):
        worker.probe()
        expect(isinstance(worker.program(), str), "program is the first word of the command")


def a_call_is_one_command(worker: Worker, folder: Path) -> None:
    """The command is words without a NUL, the same twice, and nothing is written to make it."""
    before = sorted(folder.rglob("*"))
    first, second = (worker.command(_call(folder)) for _ in range(2))
    expect(first == second, "the same call gives the same command")
    expect(first.argv and all(isinstance(word, str) for word in first.argv), "argv is words")
    expect(not any("\0" in word for word in first.argv), "no word holds a NUL")
    expect(isinstance(first.stdin, bytes), "stdin is bytes")
    expect(sorted(folder.rglob("*")) == before, "making a command writes nothing")
    home = folder / "home"
    expect(all(path.is_relative_to(home) for path in first.files), "files are below the home")


def a_command_holds_no_secret(worker: Worker, folder: Path) -> None:
    """What the environment holds is not in the command: the caller adds the credential."""
    names = [*worker.key_names, "AGENTRUNNER_CONFORMANCE_CANARY"]
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(_changed(name, SECRET))
        made = worker.command(_call(folder))
    texts = [*made.argv, *made.env.values(), *made.files.values()]
    texts.append(made.stdin.decode("utf-8", "replace"))
    expect(not any(SECRET in text for text in texts), "no secret is in the command")


def its_reader_takes_anything(worker: Worker, folder: Path) -> None:
    """Whatever a program prints, in whatever pieces, the reader of events goes on."""
    for text in GARBAGE:
        for size in (1 if len(text) < 1_000 else 4_096, len(text) or 1):
            reader = worker.events()
            for at in range(0, len(text), size):
                for event in reader.feed(text[at : at + size]):
                    expect(isinstance(event, WorkerEvent), "events are WorkerEvents")


def what_failed_is_not_completed(worker: Worker, folder: Path) -> None:
    """A process that did not end by itself with exit code 0 is never completed."""
    for text in GARBAGE:
        for outcome in get_args(ProcessOutcome):
            for code in (0, 1, None):
                reading = worker.read(_ended(folder, text, outcome, code))
                failed = code != 0 or outcome not in ("exited", "lingered")
                expect(not (reading.completed and failed), f"{outcome} {code} is not completed")
                expect(len(reading.summary) <= 600, "a summary has 600 characters at most")
                expect(len(reading.error) <= 600, "an error has 600 characters at most")
    nothing = Ended(0, "exited", folder / "missing", folder / "missing", folder / "home")
    worker.read(nothing)


CHECKS: tuple[Callable[[Worker, Path], None], ...] = (
    it_says_what_it_is,
    looking_for_its_program_never_fails,
    a_call_is_one_command,
    a_command_holds_no_secret,
    its_reader_takes_anything,
    what_failed_is_not_completed,
)


def _call(folder: Path) -> WorkerRequest:
    return WorkerRequest(
        worker_run_id="1-001",
        prompt=PROMPT,
        workdir=folder / "repo",
        home=folder / "home",
        prompt_file=folder / "prompt.md",
        new_session_id="00000000-0000-4000-8000-000000000000",
    )


def _ended(folder: Path, text: bytes, outcome: ProcessOutcome, code: int | None) -> Ended:
    out, err = folder / "stdout", folder / "stderr"
    out.write_bytes(text)
    err.write_bytes(text[:1000])
    return Ended(code, outcome, out, err, folder / "home")


@contextmanager
def _changed(name: str, value: str) -> Iterator[None]:
    kept = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if kept is None:
            del os.environ[name]
        else:
            os.environ[name] = kept
