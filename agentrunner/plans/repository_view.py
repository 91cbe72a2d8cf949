"""What the planner of a conversation sees of the repository, and the answers to its looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentrunner.config.agents import See, seen_by
from agentrunner.config.kinds import planner_kind
from agentrunner.config.spec import TaskSpec
from agentrunner.discovery.planning_context import repository_context
from agentrunner.discovery.seeing.looks import Looker
from agentrunner.execution.context_length import servers_of, shortest
from agentrunner.execution.looking import Looking
from agentrunner.git.snapshots import Snapshots, worked_mark
from agentrunner.prompts import ContextBudget, budget_for, fixed_tokens
from agentrunner.prompts.context_budget import UNKNOWN, fitted


class RepositoryView(Looking):
    """The repository at the time of a message: a snapshot, never the folder itself."""

    def __init__(
        self,
        spec: TaskSpec,
        place: Path,
        state_dir: Path,
        redact: Callable[[str], str],
        environ: Mapping[str, str],
    ) -> None:
        """`place` is the conversation's own folder. Nothing is read yet."""
        self.see: See = seen_by(spec.runner.meta)
        self._spec = spec
        self._place = place
        self._state_dir = state_dir
        self._redact = redact
        self._environ = dict(environ)
        self._budget = UNKNOWN
        self._taken: tuple[Snapshots, str] | None = None

    @property
    def looks(self) -> bool:
        return self.see == "repo"

    def facts(self, asked: str) -> dict[str, Any] | None:
        """Return what the planner sees; None where no model reads it or nothing may be sent.
        Blocks.

        Raises GitFailed.
        """
        self._taken = self.looker = None  # another message: the files may have changed
        runner = self._spec.runner
        kinds = {one.kind for one in runner.profiles.meta.candidates} or {runner.meta.kind}
        if self.see == "nothing" or not any(planner_kind(kind).calls_model for kind in kinds):
            return None
        self._budget = budget = self._context_budget()
        snapshots, tree = self._snapshot()
        repo = Path(self._spec.repo)
        outline = budget.repository // 3
        facts = repository_context(snapshots, tree, repo, self._redact, asked, outline)
        return fitted(facts, budget.repository) if budget.known else facts

    def _context_budget(self) -> ContextBudget:
        """Return what a prompt of this message may tell; a server on this machine may say it."""
        context = self._spec.runner.meta.context_tokens
        if not context and (servers := servers_of(self._spec, self._environ)):
            context = shortest(servers)
        return budget_for(context, fixed_tokens(self._spec)) if context else UNKNOWN

    def make_looker(self) -> Looker:
        """Return what answers the looks; raise GitFailed."""
        snapshots, tree = self._snapshot()
        return Looker(
            snapshots,
            tree,
            tree,
            self._redact,
            lambda _: None,
            self._budget.looks if self._budget.known else None,
        )

    def _snapshot(self) -> tuple[Snapshots, str]:
        if self._taken is None:
            repo = Path(self._spec.repo)
            worked = worked_mark(self._state_dir, repo)
            folder = self._place / "snapshots"
            snapshots = Snapshots(folder, repo, self._spec.runner.note.dir, worked=worked)
            self._taken = snapshots, snapshots.take().tree
        return self._taken
