"""Tests and functions in sources, by syntax tree: found, made to fail, emptied, compared. Pure."""

from agentrunner.evidence.syntax.beside import random_tests
from agentrunner.evidence.syntax.calls import names_called, names_changed
from agentrunner.evidence.syntax.canary import changed_literal, failing_end
from agentrunner.evidence.syntax.definitions import definition, definitions
from agentrunner.evidence.syntax.edits import Canary, Edit, combined
from agentrunner.evidence.syntax.empty import Emptied, empty_functions
from agentrunner.evidence.syntax.find import TestSpan, all_tests, find_test
from agentrunner.evidence.syntax.languages import language_of
from agentrunner.evidence.syntax.mutants import Mutant, changed_lines, mutants
from agentrunner.evidence.syntax.regions import (
    Region,
    regions_of_tests,
    with_regions_of,
    without_regions,
)
from agentrunner.evidence.syntax.same import is_same_code
from agentrunner.evidence.syntax.substance import assertions, is_empty_test
from agentrunner.evidence.syntax.words import identifiers

__all__ = [
    "Canary",
    "Edit",
    "Emptied",
    "Mutant",
    "Region",
    "TestSpan",
    "all_tests",
    "assertions",
    "changed_lines",
    "changed_literal",
    "combined",
    "definition",
    "definitions",
    "empty_functions",
    "failing_end",
    "find_test",
    "identifiers",
    "is_empty_test",
    "is_same_code",
    "language_of",
    "mutants",
    "names_called",
    "names_changed",
    "random_tests",
    "regions_of_tests",
    "with_regions_of",
    "without_regions",
]
