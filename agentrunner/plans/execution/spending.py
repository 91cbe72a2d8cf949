"""What the runs of a plan have cost so far, held against the plan's budget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agentrunner.config.agents import BudgetSpec
from agentrunner.notes.bill import bill_of
from agentrunner.storage.run_folder import RunFolder, runs_root
from agentrunner.storage.run_log import RunLog

LIMITS = ("usd", "tokens")
"""What a plan's budget limits over all its runs."""


@dataclass(frozen=True)
class Spent:
    """As far as it is known."""

    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.tokens + other.tokens, self.usd + other.usd)

    def limit_of(self, budget: BudgetSpec) -> str:
        """The name of a limit that is reached; "" where there is none."""
        for name in LIMITS:
            limit = getattr(budget, name)
            if limit is not None and getattr(self, name) >= limit:
                return name
        return ""

    def left(self, budget: BudgetSpec) -> BudgetSpec:
        """A budget with what is left of money and tokens."""
        tokens = None if budget.tokens is None else max(0, budget.tokens - self.tokens)
        usd = None if budget.usd is None else round(max(0.0, budget.usd - self.usd), 6)
        return budget.model_copy(update={"tokens": tokens, "usd": usd})


NOTHING = Spent()


def spent_by(state_dir: Path, run_id: str) -> Spent:
    """What one run has used so far, as its log has it; nothing for one whose folder is gone."""
    folder = RunFolder(runs_root(state_dir) / run_id)
    if not run_id or not folder.log_file.exists():
        return Spent()
    rows = bill_of(RunLog(folder.log_file))
    return Spent(
        sum(row["input_tokens"] + row["output_tokens"] for row in rows),
        sum(row["usd"] or 0.0 for row in rows),
    )


class Spending:
    """The plan's budget while it is carried out."""

    def __init__(self, state_dir: Path, budget: BudgetSpec, run_ids: Iterable[str]) -> None:
        """`run_ids` are the runs of earlier processes."""
        self._state_dir = state_dir
        self._budget = budget
        self._by_run = {run_id: spent_by(state_dir, run_id) for run_id in run_ids if run_id}
        self._spent = sum(self._by_run.values(), Spent())

    @property
    def spent(self) -> Spent:
        """Of all runs of the plan."""
        return self._spent

    @property
    def budget(self) -> BudgetSpec:
        """The limits."""
        return self._budget

    def renew(self, budget: BudgetSpec) -> None:
        """Other limits from now on."""
        self._budget = budget

    @property
    def reached(self) -> str:
        """The name of the limit that is reached; "" while there is room."""
        return self._spent.limit_of(self._budget)

    def left(self, budget: BudgetSpec) -> BudgetSpec:
        """The limits of the next run: none beyond what the plan has left."""
        rest = self._spent.left(self._budget)
        return budget.model_copy(update={"tokens": rest.tokens, "usd": rest.usd})

    def count(self, run_id: str) -> None:
        """Look again at what a run has used."""
        now = spent_by(self._state_dir, run_id)
        before = self._by_run.get(run_id, Spent())
        self._by_run[run_id] = now
        self._spent += Spent(now.tokens - before.tokens, now.usd - before.usd)
