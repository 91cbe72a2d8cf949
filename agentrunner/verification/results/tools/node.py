"""Reads Node's test runner: by a reporter of ours in NODE_OPTIONS; else its TAP or spec text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.lines import read_lines
from agentrunner.verification.results.model import (
    Command,
    Instrumented,
    Ran,
    Results,
    TestResult,
)
from agentrunner.verification.results.names import made, uncoloured
from agentrunner.verification.results.reporters import text_of
from agentrunner.verification.results.tap import read_tap
from agentrunner.verification.results.tools.base import Tool, added, printed

REPORTER, TEXT = range(2)
SPEC = lazy_regex(r"^( *)([✔✖﹣⚠]) (.*?)(?: \([\d.]+ms\))?(?: # .*)?$")
MARKS = {"✔": "passed", "✖": "failed", "﹣": "skipped", "⚠": "xfailed"}


class Node(Tool):
    """Results by file and the titles from the outermost to the test's own."""

    name = "node"
    by_path = True
    means = ("reporter", "text")
    named_by = ("--test-name-pattern",)

    def matches(self, run: Run) -> bool:
        """`node --test`, `node test.js`, and programs that start it with these arguments."""
        return run.program in ("node", "tsx", "ts-node", "nodejs") or "--test" in run.words[1:]

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """Add our reporter to Node's environment; destinations are in the order of reporters."""
        if means != REPORTER:
            return None
        options = [f"--require={place}/node/agentrunner_look.cjs"]
        options.append(f"--test-reporter={place}/node/agentrunner_node.mjs")
        options.append("--test-reporter-destination=/dev/null")
        words = {word.partition("=")[0] for run in self.runs(command) for word in run.words}
        if "--test-reporter" not in words:
            options.append(f"--test-reporter={place}/node/agentrunner_node_usual.mjs")
        if "--test-reporter-destination" not in words:
            options.append("--test-reporter-destination=stdout")
        files = ("agentrunner_look.cjs", "agentrunner_node.mjs", "agentrunner_node_usual.mjs")
        return Instrumented(
            command.shell,
            {"NODE_OPTIONS": " ".join(options)},
            {f"node/{name}": text_of(name) for name in files},
        )

    def read(self, ran: Ran, means: int) -> Results | None:
        """Read what the reporter wrote, or the text."""
        if means == REPORTER:
            return read_lines(ran.place, "node", ran.folder)
        results = read_tap(ran.stdout, self.name, ran.exit_code)
        return results or _spec(ran)

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow by a pattern before the files; tests of the same own title in them run too."""
        if not run.direct or run.program not in ("node", "nodejs") or "--test" not in run.words:
            return None
        titles = [name.split(" > ")[-1] for name in names]
        wanted = "|".join(re.escape(title).replace("/", r"\/") for title in dict.fromkeys(titles))
        return added(shell, run, [f"--test-name-pattern=/^(?:{wanted})$/"], 1)


def _spec(ran: Ran) -> Results | None:
    found: list[TestResult] = []
    stack: list[str] = []
    for line in ran.stdout.splitlines():
        plain = uncoloured(line)
        if plain.startswith("✖ failing tests"):
            break
        if hit := SPEC.match(plain):
            depth = len(hit[1]) // 2
            found.append(made(" > ".join([*stack[:depth], hit[3]]), MARKS[hit[2]]))
        elif suite := re.match(r"^( *)▶ (.*)$", plain):
            stack[len(suite[1]) // 2 :] = [re.sub(r" \([\d.]+ms\)$", "", suite[2])]
    return printed("node", found, complete=ran.exit_code in (0, 1))
