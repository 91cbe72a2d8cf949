"""Outcomes of tests and checks on trees, kept so that none is run twice for the same tree."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from agentrunner.config.spec import TaskSpec
from agentrunner.plans.execution.merging.merge_verdict import CheckOutput, CommitFindings
from agentrunner.state.run_state import TestOutcome
from agentrunner.storage.run_folder import make_private, write_private
from agentrunner.text.unicode import clean
from agentrunner.verification.evidence.measure import results_as_lines, results_of_lines


class OutcomeBook:
    """One small file for each outcome; by tree, by what is run, and by the sandbox it ran in.

    Methods may raise OSError.
    """

    def __init__(self, folder: Path, spec: TaskSpec) -> None:
        self._folder, self._spec = folder, spec

    def read(self, tree: str, sandbox: tuple[str, str], checks: Iterable[str]) -> CommitFindings:
        """Return known outcomes on a tree: of the tests and these `ProvenCriterion.key`s.

        An outcome that was reported by name and has lost its names is not known.
        """
        test = results = None
        with contextlib.suppress(FileNotFoundError, ValueError, TypeError, KeyError):
            file = self._file(tree, sandbox)
            outcome = TestOutcome.model_validate_json(file.read_bytes())
            if outcome.reader:
                results = results_of_lines(file.with_suffix(".jsonl").read_text("utf-8"))
            test = outcome
        seen = {}
        for check in checks:
            with contextlib.suppress(FileNotFoundError, ValueError, TypeError, KeyError):
                red = json.loads(self._file(tree, sandbox, check).read_bytes())["red"]
                if isinstance(red, bool):
                    seen[check] = CheckOutput(red)
        return CommitFindings(test, seen, results=results)

    def keep(self, tree: str, sandbox: tuple[str, str], look: CommitFindings) -> None:
        """Save outcomes; a red one of the tests is not, as it may be red by chance."""
        make_private(self._folder)
        if look.test is not None and look.test.green:
            test = look.test.model_copy(update={"output": None})
            file = self._file(tree, sandbox)
            text = clean(json.dumps(test.model_dump(mode="json"), ensure_ascii=False))
            if look.results is not None:
                lines = results_as_lines(look.results).encode()
                write_private(file.with_suffix(".jsonl"), lines, sync=False)
            write_private(file, text.encode(), sync=False)
        for check, seen in look.seen.items():
            file = self._file(tree, sandbox, check)
            write_private(file, json.dumps({"red": seen.red}).encode(), sync=False)

    def _file(self, tree: str, sandbox: tuple[str, str], *check: str) -> Path:
        task = self._spec.task
        kind, image = sandbox
        asked = [
            tree,
            task.test.model_dump_json() if task.test else "",
            task.setup.model_dump_json() if task.setup else "",
            kind or self._spec.runner.sandbox.kind,
            image,
            *check,
        ]
        name = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]
        return self._folder / f"{name}.json"
