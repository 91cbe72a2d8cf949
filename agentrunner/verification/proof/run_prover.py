"""The prover of a run, made when a verdict first needs it: its modules take a tenth of a start."""

from __future__ import annotations

import asyncio
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agentrunner.verification.evidence.verifier import Verifier
from agentrunner.verification.proof.kept_runs import KeptRuns

if TYPE_CHECKING:
    from agentrunner.verification.proof.proving import Prover


class RunProver(Struct, dict=True):
    """What a run proves with; what has run for it is kept in a folder until the run ends."""

    verifier: Verifier
    kept_in: Path

    @cached_property
    def prover(self) -> Prover:
        """The prover itself. The first use imports it, and so blocks."""
        from agentrunner.verification.proof.proving import make_prover

        return make_prover(self.verifier, self.kept_in)

    async def forget(self) -> None:
        """Remove what is kept of examinations and for them: the run has ended."""
        await KeptRuns(self.kept_in).end()
        await asyncio.to_thread(self.verifier.sandbox.forget)
