"""Find tests and functions in source code, make them fail, empty them, compare them. Pure.

languages, tokens     what a file is written in: its syntax tree, or its tokens where there is none
test_finder           tests of a file by name; `scripts` JavaScript, `word_tests` without a grammar
functions, context    functions by name, what a test depends on; `text_functions` without a grammar
edits                 changes of a source; `canary`, `ends`, `random_tests` make a test fail by them
emptied_functions     sources without the work; `stand_ins`, `raising_functions`, `mutants` likewise
asserts, substance    what tests assert; `native_asserts`, `script_asserts` by language
words, stated_names   names of code in a sentence, and those that it wants to have
silenced_warnings     code that tells tools to say nothing
"""

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
