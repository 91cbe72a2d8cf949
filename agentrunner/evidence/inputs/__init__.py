"""Inputs of the proof: what decides what tests and checks say, found by what it is. Pure.

find      works the list out from commands and the tree before the run
model     an input, and the list that answers for any path
follow    from a command to what it executes; shell, make, recipes, tools_* are its languages
fixtures  what tests read and product code does not; product, leads, programs, shadows help it
"""

from agentrunner.evidence.inputs.find import find_inputs
from agentrunner.evidence.inputs.model import Input, Inputs

__all__ = ["Input", "Inputs", "find_inputs"]
