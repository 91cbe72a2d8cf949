"""Conditions that only the surroundings decide are told from those on what is handed in."""

from textwrap import dedent

import pytest

from agentrunner.verification.syntax.conditions import ambient_conditions


def found(language: str, source: str, before: str | None = None) -> list[str]:
    old = dedent(before).encode() if before is not None else None
    made = ambient_conditions(old, dedent(source).encode(), language, {"shop", "own"})
    return [one.text for one in made]


PYTHON = """
    import inspect, os, sys
    from shop.util import quick
    _cache = {}
    DEBUG = False
    TTY = sys.stdout.isatty()

    def hot():
        return os.path.exists(".git")

    def f(a, b=1):
        if CONDITION:
            return 1
        seen = set()
        seen.add(a)
        frames = inspect.stack()
        os.chdir(sys.argv[1])
        for line in sys.stdin:
            print(line)

    class A:
        def g(self):
            if self.y:
                return 1
"""


@pytest.mark.parametrize(
    "condition",
    [
        "sys.stdin.isatty()",
        "TTY",
        "not hot()",
        'any("test" in one.filename for one in inspect.stack())',
        'frames[1].filename.endswith("x.py")',
        'os.getcwd() == "/"',
    ],
)
def test_ambient_conditions_are_found_however_they_are_asked(condition: str) -> None:
    assert found("python", PYTHON.replace("CONDITION", condition)) == [condition]


@pytest.mark.parametrize(
    "condition",
    [
        "a > sys.maxsize",
        "_cache",
        "DEBUG",
        "quick()",
        "not seen",
        'line.startswith("#")',
        "any(one in a for one in sys.path)",
        "undefined_here",
        "self.x",
    ],
)
def test_what_is_handed_in_filled_or_the_projects_own_is_none(condition: str) -> None:
    assert not found("python", PYTHON.replace("CONDITION", condition))


def test_old_conditions_guards_and_the_start_of_a_program_are_none() -> None:
    source = """
        import os, sys

        def f():
            if os.environ.get("X") is None:
                raise ValueError("X is not set")
            if sys.flags.dev_mode:
                return 1

        if __name__ == "__main__":
            f()
    """
    assert found("python", source) == ["sys.flags.dev_mode"]
    assert not found("python", source, source)


def test_options_of_a_command_line_are_none() -> None:
    source = """
        import argparse

        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--json")
            args = parser.parse_args()
            return 1 if args.json else 2
    """
    assert not found("python", source)


def test_javascript() -> None:
    source = """
        const fs = require('fs');
        const { own } = require('./own');
        function f(x) {
          if (process.stdout.isTTY) return 1;
          if (x) return 2;
          const s = new Error().stack;
          if (own()) return 3;
          return s.includes('test') ? 4 : 5;
        }
        class K { m() { return this.n ? fs.existsSync('.git') ? 1 : 2 : 3; } }
    """
    wanted = ["process.stdout.isTTY", "s.includes('test')", "fs.existsSync('.git')"]
    assert found("javascript", source) == wanted


def test_go() -> None:
    source = """
        package a

        import ("os"; "strings"; "example.com/a/own")

        func F(x int) int {
            if strings.HasSuffix(os.Args[0], ".test") { return 1 }
            if x > 1 || sibling { return 2 }
            if own.Fast { return 3 }
            n := 0
            for _, one := range os.Args { if one != "" { n++ } }
            if n > 1 { return 4 }
            return 0
        }
    """
    assert found("go", source) == ['strings.HasSuffix(os.Args[0], ".test")']


def test_rust_and_java() -> None:
    rust = """
        use std::env;
        fn f(x: u32) -> u32 {
            if env::args().next().unwrap().contains("deps") { return 1; }
            if x > 1 { 2 } else { 3 }
        }
    """
    assert found("rust", rust) == ['env::args().next().unwrap().contains("deps")']
    java = """
        class A {
          int n;
          int f(int x) {
            if (System.console() == null) return 1;
            if (x > 1 || n > 1) return 2;
            return 3;
          }
        }
    """
    assert found("java", java) == ["System.console() == null"]


def test_both_ways_are_made_and_names_of_what_it_asks_for_are_known() -> None:
    (one,) = ambient_conditions(None, b"import os\nx = 1 if os.isatty(1) else 2\n", "python", ())
    assert (one.line, set(one.words)) == (2, {"isatty"})
    assert (one.always.text, one.never.text) == (
        "(os.isatty(1)) or True",
        "(os.isatty(1)) and False",
    )
