"""The words for what decides a criterion, who wrote it, and what it is worth."""

from __future__ import annotations

from typing import Literal

Origin = Literal["task", "human", "model"]
Status = Literal["passed", "failed", "unknown"]
EvidenceKind = Literal["checked", "tested", "accepted", "judged", "none"]
Author = Literal["person", "planner", "worker", "product", ""]
"""Who wrote what proves something; "" where nothing does."""
Grade = Literal["proven", "shown", "accepted", "judged", "kept", "none"]
"""What evidence is worth (docs/decisions/0004). `kept`: a person's check that was green before the
run and still is, which is accepted in every mode and proves no work."""
LESS_THAN_PROVEN: tuple[Grade, ...] = ("shown", "accepted", "kept")
"""Grades that the head of a COMPLETE run names; of judged criteria it says how many there are."""
NOT_IN_GIT = "not_in_git"
"""Code of the finding about files of the work that git ignores."""
