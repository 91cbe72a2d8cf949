"""The rounds of a run that prompts tell, as the run log keeps them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property

from agentrunner.prompts import Round
from agentrunner.protocol.known_ids import TEST_ID
from agentrunner.state.state_model import FileRef
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import Record, RunLog


@dataclass(frozen=True)
class SavedRound:
    """A round as it is kept."""

    round: Round
    shown: dict[str, str]
    """Digests of what was shown up to it."""
    runs: list[str]
    """Worker runs that were shown up to it."""
    before: str
    """Its change lies between this tree and `after`."""
    after: str
    tests: dict[str, str] = field(default_factory=dict)
    """Long names of tests that it showed first, by their ids."""

    @cached_property
    def test_ids(self) -> frozenset[str]:
        return frozenset(TEST_ID.findall(self.round.report))


class SavedRounds:
    """All rounds of a run. None of them ever changes, so that each is read once."""

    def __init__(self, log: RunLog, folder: RunFolder) -> None:
        self._log = log
        self._folder = folder
        self._read: dict[str, SavedRound] = {}

    def all(self) -> list[SavedRound]:
        """Return them in order. Blocks. Raises CheckpointCorrupt where one cannot be read."""
        records = self._log.records("round")
        for record in records:
            if record.key not in self._read:
                self._read[record.key] = self._round_of(record)
        return [self._read[record.key] for record in records]

    def _round_of(self, record: Record) -> SavedRound:
        saved = dict(record.data)
        if (file := saved.get("file")) is not None:  # as older versions kept it
            saved = json.loads(self._folder.read(FileRef.model_validate(file)))
        shown = dict(saved.pop("round"))
        return SavedRound(Round(**{**shown, "cut": tuple(shown["cut"])}), **saved)
