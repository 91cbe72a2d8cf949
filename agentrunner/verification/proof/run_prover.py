"""The prover of a run, made when a verdict first needs it: its modules take a tenth of a start."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agentrunner.state.run_state import Baseline, Criterion, Evidence
from agentrunner.verification.proof.kept_runs import KeptRuns
from agentrunner.verification.verifier import Verifier

if TYPE_CHECKING:
    from agentrunner.verification.proof.proving import Prover


@dataclass
class RunProver:
    """Examines trees for a run's verdicts; what has run is kept in a folder until it ends."""

    verifier: Verifier
    kept_in: Path
    _prover: Prover | None = field(default=None, init=False)

    async def prove(
        self,
        criteria: Sequence[Criterion],
        baseline: Baseline,
        evidence: Evidence,
        allowed: Sequence[str] = (),
        approved: Collection[str] = (),
        step: str = "",
    ) -> Evidence:
        """Return what `Prover.prove` does."""
        prover = await asyncio.to_thread(self._made)
        return await prover.prove(criteria, baseline, evidence, allowed, approved, step)

    async def forget(self) -> None:
        """Remove what is kept of examinations: the run has ended."""
        await KeptRuns(self.kept_in).end()

    def _made(self) -> Prover:
        from agentrunner.verification.proof.proving import make_prover

        self._prover = self._prover or make_prover(self.verifier, self.kept_in)
        return self._prover
