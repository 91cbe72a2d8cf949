"""What a run cost, by role, model and worker run, from its run log. Pure.

The rows add up to the counters that limits are checked against: both come from the same records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from agentrunner.money.amount import NOTHING, Amount, Known, total
from agentrunner.storage.run_folder import RunFolder, runs_root
from agentrunner.storage.run_log import RunLog

if TYPE_CHECKING:
    from agentrunner.results import BillEntry

Role = Literal["planner", "assess", "worker"]

LOST: Mapping[str, Any] = {"usage": {}, "usd": None, "known": "unknown"}
"""What is known of a call whose end nobody saw: that it was made."""


class BillRow(Struct, frozen=True):
    """One line of the bill."""

    role: Role
    candidate: str
    """The candidate for the role; for workers the name in `runner.workers`."""
    run: str
    """The worker run; "" for the planner."""
    amount: Amount

    def entry(self) -> BillEntry:
        """Return the line for the result. `usd` is None if no call's cost is known."""
        from agentrunner.results import BillEntry  # takes all models, which `spent_by` is not for

        usd = self.amount.least_usd
        return BillEntry(
            role=self.role,
            candidate=self.candidate,
            run=self.run,
            **{**self.amount.as_dict(), "usd": None if usd is None else round(usd, 6)},
        )


def bill_of(log: RunLog) -> list[BillEntry]:
    """Return the bill of a run, from its log as it is now."""
    return [row.entry() for row in rows_of(log)]


def spent_by(state_dir: Path, run_id: str) -> Amount:
    """Return what one run has used so far, from its log; nothing if its folder is gone."""
    folder = RunFolder(runs_root(state_dir) / run_id)
    if not run_id or not folder.log_file.exists():
        return NOTHING
    return total(row.amount for row in rows_of(RunLog(folder.log_file)))


def rows_of(log: RunLog) -> list[BillRow]:
    """Return the rows of a run's bill, from its log as it is now."""
    runs = [record.data for record in log.records("worker_run")]
    return bill(MadeCalls(log).known(), runs)


def bill(calls: Iterable[Mapping[str, Any]], runs: Iterable[Mapping[str, Any]]) -> list[BillRow]:
    """Return rows for the planner by role, candidate and model, then for each worker run by model.

    `calls` and `runs` are the data of records `meta_call` and `worker_run`.
    """
    sums: dict[tuple[Role, str, str], Amount] = {}
    for call in calls:
        role: Role = "assess" if call.get("type") == "completion_assessment" else "planner"
        amount = amount_of_record(call)
        key = (role, str(call.get("candidate") or ""), f"{amount.model}|{amount.subscription}")
        sums[key] = sums.get(key, NOTHING) + amount
    rows = [BillRow(role, candidate, "", amount) for (role, candidate, _), amount in sums.items()]
    for run in runs:
        name, own = str(run.get("member") or run.get("worker") or ""), str(run["worker_run_id"])
        rows += [BillRow("worker", name, own, Amount(**used)) for used in run.get("usage", [])]
    return sorted(rows, key=lambda row: row.role == "worker")


class MadeCalls:
    """The calls of the planner in a run's log, followed as it grows.

    A repeated number is another call: the node that made the first one was killed before its state
    was saved.
    """

    def __init__(self, log: RunLog) -> None:
        self.log = log
        self._seen = 0
        self._calls: list[Mapping[str, Any]] = []
        self._begun: dict[tuple[int, str], int] = {}
        """The positions in `_calls` of calls without an end so far."""

    def known(self) -> Sequence[Mapping[str, Any]]:
        """Return the data of every call that was made, in the order they began."""
        fresh = self.log.written(self._seen)
        self._seen += len(fresh)
        for record in fresh:
            name = (record.attempt, record.key)
            if record.kind == "meta_begun":
                self._begun[name] = len(self._calls)
                self._calls.append({**record.data, **LOST})
            elif record.kind == "meta_call":
                if (place := self._begun.pop(name, None)) is None:
                    self._calls.append(record.data)
                else:
                    self._calls[place] = record.data
        return self._calls


def amount_of_record(call: Mapping[str, Any]) -> Amount:
    """Return what one call of the planner used, from the data of its record."""
    usage = call.get("usage") or {}
    known: Known = call.get("known", "reported")
    usd, subscription = call.get("usd"), bool(call.get("subscription"))
    return Amount(
        model=str(call.get("model") or ""),
        calls=1,
        input_tokens=usage.get("input_tokens") or 0,
        cached_tokens=usage.get("cached_tokens") or 0,
        output_tokens=usage.get("output_tokens") or 0,
        usd=usd or 0,
        unpriced_calls=int(usd is None and not subscription),
        unknown_calls=int(known == "unknown"),
        known=known,
        subscription=subscription,
    )
