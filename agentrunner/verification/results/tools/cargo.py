"""Reads cargo test: the log of each test program, through a runner of ours; else its text."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Sequence

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.files import reports
from agentrunner.verification.results.model import (
    Command,
    Instrumented,
    Ran,
    Results,
    TestResult,
)
from agentrunner.verification.results.names import made, uncoloured
from agentrunner.verification.results.tools.base import Tool, added, printed, shimmed

LOG, TEXT = range(2)
RUNNING = lazy_regex(
    r"(?:^|(?<! ) ) ++(?:Running (?:unittests )?(?P<target>\S+)? ?\((?P<binary>[^)]*)\)"
    r"|Doc-tests (?P<doc>\S+))$",
    re.MULTILINE,
)
BLOCK = lazy_regex(r"^running (\d+) tests?$", re.MULTILINE)
LINE = lazy_regex(r"^test (.+?) \.\.\. (ok|FAILED|ignored)(?:, .*| <.*)?$", re.MULTILINE)
PRINTED = lazy_regex(
    r"^---- (.+?) stdout ----\n(.*?)(?=^---- |^failures:$)", re.MULTILINE | re.DOTALL
)
WORDS = {"ok": "passed", "FAILED": "failed", "failed": "failed", "ignored": "skipped"}
NEXTEST = lazy_regex(
    r"^ +(PASS|FAIL|SIGABRT|SIGSEGV|TIMEOUT|LEAK|FLAKY \d+/\d+) \[[^\]]*\] +"
    r"(?:\( *\d+/\d+\) +)?(\S+) (\S+)$",
    re.MULTILINE,
)


class Cargo(Tool):
    """Results by package, target and test, as in `shop src/lib.rs tests::adds`."""

    name = "cargo"
    means = ("log", "text")

    def matches(self, run: Run) -> bool:
        """`cargo test` and `cargo nextest run`."""
        words = [word for word in run.words[1:3] if not word.startswith("+")]
        return run.program == "cargo" and words[:1] in (["test"], ["t"], ["nextest"])

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """Put a `cargo` before the real one, which passes our runner to it."""
        return shimmed(command.shell, place, "cargo", "agentrunner_cargo") if means == LOG else None

    def read(self, ran: Ran, means: int) -> Results | None:
        """The logs and the text of doctests; or the text of all."""
        sections = _sections(ran)
        if means == LOG and (results := _logs(ran, sections)) is not None:
            return results
        if means == LOG and "nextest" not in ran.stderr and not sections:
            return None
        return _text(sections) or _nextest(ran)

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """`--exact` and the names without package and target."""
        tests = [name.split(" ", 2)[-1] for name in names]
        if "nextest" in run.words or any(" " in test for test in tests):
            return None
        dashes = [] if "--" in run.words else ["--"]
        return added(shell, run, [*dashes, "--exact", *dict.fromkeys(tests)])


def _sections(ran: Ran) -> list[tuple[str, str, str]]:
    """Target, binary and printed text of each test program, in their order.

    Cargo names them on stderr, and the programs print on stdout, in the same order.
    """
    heads = [
        (
            hit["target"] or f"doc {hit['doc']}" if hit["doc"] else hit["target"] or "",
            hit["binary"] or "",
        )
        for hit in RUNNING.finditer(uncoloured(ran.stderr))
    ]
    starts = [hit.start() for hit in BLOCK.finditer(ran.stdout)]
    ends = [*starts[1:], len(ran.stdout)][: len(starts)]
    blocks = [ran.stdout[start:end] for start, end in zip(starts, ends, strict=True)]
    if len(heads) != len(blocks):
        return [("", "", block) for block in blocks]
    return [(target, binary, block) for (target, binary), block in zip(heads, blocks, strict=True)]


def _logs(ran: Ran, sections: list[tuple[str, str, str]]) -> Results | None:
    found: list[TestResult] = []
    complete, any_report = True, False
    targets = {binary.rsplit("/", 1)[-1]: target for target, binary, _ in sections if binary}
    messages = {hit[1]: hit[2] for _, _, block in sections for hit in PRINTED.finditer(block)}
    for report in reports(ran.place, "agentrunner_cargo-*.cargo"):
        any_report = True
        log = report.content.decode("utf-8", "replace")
        complete &= _log(log, targets, messages, found, ran)
        complete &= not report.cut
    docs = [section for section in sections if section[0].startswith("doc ")]
    if docs and (text := _text(docs)) is not None:
        # Doctests have no log: only what rustdoc prints is known.
        found += text.tests
        complete &= text.complete
    if not any_report:
        return None
    if ran.exit_code and not any(test.red for test in found):
        complete = False
    return Results("cargo", tuple(found), complete=complete)


def _log(
    text: str,
    targets: dict[str, str],
    messages: dict[str, str],
    found: list[TestResult],
    ran: Ran,
) -> bool:
    package, binary, root, ended = "", "", "", False
    listed: dict[str, None] = {}
    seen: set[str] = set()
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "#package":
            package = rest
        elif word == "#binary":
            binary = rest.rsplit("/", 1)[-1]
        elif word == "#root" and posixpath.normpath(posixpath.join(ran.cwd, rest)) in ran.paths:
            root = rest
        elif word == "#listed":
            listed[rest] = None
        elif word == "#exit":
            ended = True
        elif word.rstrip(":,") in WORDS:
            # `failed name`, `ignored: reason name`
            words = rest.split(" ")
            tails = (" ".join(words[at:]) for at in range(len(words)))
            test = next((tail for tail in tails if tail in listed), rest)
            seen.add(test)
            test = re.sub(r" - should panic$", "", test)
            target = targets.get(binary) or root or re.sub(r"-[0-9a-f]{16}$", "", binary)
            crate = root or target
            file = file_of(crate, test, ran.cwd, ran.paths) if crate.endswith(".rs") else ""
            outcome = WORDS[word.rstrip(":,")]
            found.append(
                made(f"{package} {target} {test}", outcome, file, message=messages.get(test, ""))
            )
    return ended and not [test for test in listed if test not in seen]


def _text(sections: list[tuple[str, str, str]]) -> Results | None:
    found: list[TestResult] = []
    complete = True
    for target, binary, block in sections:
        messages = {hit[1]: hit[2] for hit in PRINTED.finditer(block)}
        crate = re.sub(r"-[0-9a-f]{16}$", "", binary.rsplit("/", 1)[-1])
        where = " ".join(part for part in (crate, target) if part)
        tests = list(LINE.finditer(block))
        for hit in tests:
            test = re.sub(r" - should panic$", "", hit[1])
            name = f"{where} {test}".strip()
            found.append(made(name, WORDS[hit[2]], message=messages.get(hit[1], "")))
        wanted = BLOCK.match(block)
        complete &= (
            wanted is not None and int(wanted[1]) == len(tests) and "\ntest result: " in block
        )
    return Results("cargo", tuple(found), weak=True, complete=complete) if sections else None


def _nextest(ran: Ran) -> Results | None:
    hits = list(NEXTEST.finditer(uncoloured(ran.stderr)))
    statuses = {f"{hit[2]} {hit[3]}": hit[1] for hit in hits}
    passing = ("PASS", "LEAK", "FLAKY")
    tests = [
        made(name, "passed" if word.startswith(passing) else "failed")
        for name, word in statuses.items()
    ]
    total = re.search(r"Summary \[.*?\] +(\d+) tests? run", ran.stderr)
    complete = total is not None and int(total[1]) == len(tests)
    return printed("cargo", tests, complete=complete)


def file_of(root: str, test: str, cwd: str, paths: Collection[str]) -> str:
    """The file of a test, relative to the command's folder; the crate's file where none is found.

    `total::tests::adds` of `src/lib.rs` is in `src/total.rs` or `src/total/mod.rs`. Below a module
    that is in its parent's file, no file is looked for.
    """
    folder, found = posixpath.dirname(root), root
    for part in test.split("::")[:-1]:
        below = posixpath.join(folder, part)
        here = next(
            (
                path
                for path in (f"{below}.rs", f"{below}/mod.rs")
                if path != root and posixpath.normpath(posixpath.join(cwd, path)) in paths
            ),
            "",
        )
        if not here:
            return found
        folder, found = below, here
    return found
