"""Words of new code by which it could notice that it is tested."""

from __future__ import annotations

import pytest

from agentrunner.verification.inputs.test_detection import (
    added_lines,
    built_for_tests,
    defined_by_tests,
    imported_words,
    is_quoted_in,
    path_words,
    taken_from_tests,
    variables,
    with_other_words,
    words_of_tools,
)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("x = process.env.NODE_TEST_CONTEXT ? 1 : 2", {"NODE_TEST_CONTEXT"}),
        ("x = process.env['CI_' + 'ON_TEST']", {"CI_", "ON_TEST"}),
        ("if os.environ.get('STAGE', 'live') == 'a':", {"STAGE"}),
        ("return 'STAGE' in os.environ", {"STAGE"}),
        ('x := os.Getenv("STAGE")', {"STAGE"}),
        ('let x = std::env::var("STAGE");', {"STAGE"}),
        ('String x = System.getenv("STAGE");', {"STAGE"}),
        ("x = ENV['STAGE']", {"STAGE"}),
        ("my $x = $ENV{STAGE};", {"STAGE"}),
        ('char *x = getenv("STAGE");', {"STAGE"}),
        ("MOST_LINES = 5", set()),
        ("return os.environ.get(name)", set()),
        ("environment = load('STAGE')", set()),
    ],
)
def test_variables_that_are_read(line: str, names: set[str]) -> None:
    assert variables([line]) == names


def test_a_script_reads_what_it_does_not_set() -> None:
    lines = ['echo "$MAKELEVEL ${NAME}"', "NAME=$1"]
    assert variables(lines, shell=True, text="\n".join(lines)) == {"MAKELEVEL"}


def test_words_of_tools_are_in_quotes_or_asked_for() -> None:
    tools = path_words(["test/parse_spec.js"]) - path_words(["src/parse.js"]) | {"pytest"}
    assert tools == {"test", "spec", "pytest"}
    assert words_of_tools(["'pytest' in sys.modules", "re.test(x)"], tools) == {"pytest"}
    assert words_of_tools(['flag.Lookup("test.v")'], tools) == {"test"}
    assert words_of_tools(["x = 'latest'; y = 'special'"], tools) == set()
    assert words_of_tools(["typeof describe === 'function'"], tools) == {"describe"}
    assert words_of_tools(["typeof globalThis.it !== 'undefined'"], tools) == {"it"}
    assert words_of_tools(["const g = globalThis;", "typeof g.it"], tools) == {"it"}
    assert words_of_tools(["if (r && typeof r.then === 'function')"], tools) == set()
    assert built_for_tests(["if cfg!(test) {"]) == {"test"}
    assert built_for_tests(["#[cfg(not(test))]"]) == {"test"}
    assert built_for_tests(["#[cfg(test)]", "#[cfg(unix)]"]) == set()


def test_names_of_tests_are_taken_by_assigning_or_in_quotes() -> None:
    defined = defined_by_tests(["global.expectOrder = (a) => {}", "def near(a):\n    def inner():"])
    assert defined == {"expectOrder", "near"}
    assert taken_from_tests(["global.expectOrder = () => {};"], defined) == {"expectOrder"}
    assert taken_from_tests(["setattr(tests, 'near', print)"], defined) == {"near"}
    assert taken_from_tests(["near(1)", "def near(a):"], defined) == set()


def test_a_word_that_a_test_expects_is_quoted_and_an_import_quotes_nothing() -> None:
    assert is_quoted_in("test", "assert kind('a test') == 1")
    assert not is_quoted_in("test", "import { test } from 'node:test'\nconst t = require('test')")


def test_only_new_lines_get_other_words() -> None:
    before, after = "a = STAGE\n# STAGE\n", "a = STAGE\n# STAGE\nb = STAGE + STAGES\n// STAGE\n"
    assert added_lines(before, after) == ["b = STAGE + STAGES"]
    assert with_other_words(before, after, ["STAGE"], "_x") == (
        "a = STAGE\n# STAGE\nb = STAGE_x + STAGES\n// STAGE_x\n"
    )
    rust = "#[cfg(test)]\n#[test]\nif cfg!(test)\n"
    assert with_other_words("", rust, ["test"], "_x") == rust.replace("!(test", "!(test_x")


def test_words_of_modules_that_tests_import() -> None:
    tests = (
        "import org.junit.jupiter.api.Test;\nuse Test::More;\nimport os\nimport a from './own/x'"
    )
    assert imported_words([tests]) == {"junit", "jupiter", "test", "more"}
