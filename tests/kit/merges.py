"""Work that is merged into the branch of a plan, and what examines it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentrunner.config.spec import Check
from agentrunner.git.private_clone import CloneStore
from agentrunner.plans.execution.merging.merge_checks import MergedTests
from agentrunner.plans.execution.merging.merge_verdict import MergeCandidate, MergeVerdict
from agentrunner.plans.execution.merging.proofs import ProvenCriterion
from agentrunner.state.run_state import Criterion
from tests.kit.project import Project
from tests.kit.repository import AT, WHO

PATH = {"PATH": "/usr/bin:/bin"}


@dataclass
class Tests:
    """Gives these verdicts in their order, and keeps what it was asked."""

    __test__ = False

    answers: list[str] = field(default_factory=list)
    asked: list[MergeCandidate] = field(default_factory=list)
    doubted: tuple[ProvenCriterion, ...] = ()
    stuck: bool = False

    async def examine(self, candidate: MergeCandidate) -> MergeVerdict:
        self.asked.append(candidate)
        told = self.answers.pop(0) if self.answers else ""
        return MergeVerdict(told, doubts=self.doubted, stuck=self.stuck)

    async def joined(self, commit: str, onto: str, head: str) -> MergeVerdict:
        return await self.examine(MergeCandidate(commit, onto, head))

    async def sets_up(self, commit: str, box: tuple[str, str]) -> bool:
        return not self.stuck

    async def doubts(self, task_id: str) -> tuple[ProvenCriterion, ...]:
        return self.doubted


def needs(name: str, task_id: str = "T-1", number: int = 1, **check: Any) -> ProvenCriterion:
    """The check that a file is there."""
    asked = Check(**{"kind": "command", "run": f"test -f {name}", **check})
    return ProvenCriterion(
        task_id, Criterion(id=f"AC-{number}", description=f"{name} is there", check=asked)
    )


@dataclass
class Trees:
    """Commits of a plan, and what examines them; each set-up leaves a line on this machine."""

    place: Path
    project: Project
    clone: CloneStore
    base: str
    test: str | None = None
    setup: str = "true"
    sandbox: dict[str, Any] = field(default_factory=lambda: {"kind": "none"})
    environ: dict[str, str] = field(default_factory=lambda: {"HOME": "/nowhere", **PATH})
    living: list[str] = field(default_factory=lambda: ["T-1"])

    @classmethod
    def make(cls, place: Path) -> Trees:
        """With one commit, of b.txt."""
        project = Project.make(place, {"b.txt": "one\n"})
        clone = CloneStore(place / "clone.git", project.repo)
        return cls(place, project, clone, clone.fetch())

    @property
    def set_ups(self) -> int:
        """How many there were since last asked."""
        log = self.place / "set-ups"
        count = len(log.read_text().splitlines()) if log.exists() else 0
        log.unlink(missing_ok=True)
        return count

    @property
    def folder(self) -> Path:
        return self.place / "merged"

    def commit(self, parent: str, *names: str, gone: Sequence[str] = ()) -> str:
        """A commit with these files more, and with those gone."""
        tree = self.place / "files"
        tree.mkdir(exist_ok=True)
        for name in names:
            (tree / name).write_text("x\n")
        for name in gone:
            (tree / name).unlink(missing_ok=True)
        paths = [*names, *gone]
        return self.clone.commit(tree, paths, parents=(parent,), message="m", author=WHO, at=AT)

    def write(self, parent: str, files: Mapping[str, str | None]) -> str:
        """A commit with these files; None for one that is gone."""
        texts = {name: None if text is None else text.encode() for name, text in files.items()}
        tree = self.clone.with_files(parent, texts)
        return self.clone.commit_tree(tree, parents=(parent,), message="m\n", author=WHO, at=AT)

    def merge(self, head: str, mine: str) -> str:
        """The clean merge of two commits."""
        merged = self.clone.merge(head, mine)
        assert not merged.conflicts
        return self.clone.commit_tree(
            merged.tree, parents=(head, mine), message="m\n", author=WHO, at=AT
        )

    def tests(self) -> MergedTests:
        log = self.place / "set-ups"
        spec = self.project.spec(
            test=self.test,
            setup={"command": f"echo x >> {log}; {self.setup}"},
            runner={"meta": {"kind": "checklist"}, "sandbox": self.sandbox},
        )
        return MergedTests(
            self.clone,
            self.folder,
            spec,
            state_dir=self.project.state_dir,
            environ=self.environ,
            living=lambda: self.living,
        )

    async def look(self, commit: str, before: str, **how: Any) -> MergeVerdict:
        """At the work of T-2, which is the whole commit unless `mine` is another one."""
        candidate = MergeCandidate(commit, before, how.pop("mine", commit), "T-2")
        return await self.tests().examine(replace(candidate, **how))
