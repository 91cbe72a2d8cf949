"""Inputs of the proof: what decides what tests and checks say, found by what it is. Pure.

find      works the list out from commands and the tree before the run
model     an input, and the list that answers for any path
follow    from a command to what it executes; shell, make, recipes, tools_* are its languages
fixtures  what tests read and product code does not; product, leads, programs, shadows help it
changes   which changed paths are inputs, what needs no question, what is put back; kept_* by file
asked     whether the PRD itself wants a path changed
smallest  the smallest set of changes that matters
"""

from agentrunner.evidence.inputs.asked import asked_in
from agentrunner.evidence.inputs.changes import (
    ProofChange,
    ProofChanges,
    judge_changes,
    put_back,
)
from agentrunner.evidence.inputs.find import find_inputs
from agentrunner.evidence.inputs.model import Input, Inputs
from agentrunner.evidence.inputs.smallest import smallest

__all__ = [
    "Input",
    "Inputs",
    "ProofChange",
    "ProofChanges",
    "asked_in",
    "find_inputs",
    "judge_changes",
    "put_back",
    "smallest",
]
