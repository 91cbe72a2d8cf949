"""Find tests and functions in source code, make them fail, empty them, compare them. Pure."""

from agentrunner.verification.syntax.calls import names_called, names_changed
from agentrunner.verification.syntax.canary import changed_literal, failing_end
from agentrunner.verification.syntax.code_equality import is_same_code
from agentrunner.verification.syntax.definitions import definition, definitions
from agentrunner.verification.syntax.edits import Canary, Edit, combined
from agentrunner.verification.syntax.emptied_functions import Emptied, empty_functions
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.mutants import Mutant, changed_lines, mutants
from agentrunner.verification.syntax.random_tests import random_tests
from agentrunner.verification.syntax.regions import (
    Region,
    regions_of_tests,
    with_regions_of,
    without_regions,
)
from agentrunner.verification.syntax.substance import assertions, is_empty_test
from agentrunner.verification.syntax.test_finder import TestSpan, all_tests, find_test
from agentrunner.verification.syntax.words import identifiers

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
