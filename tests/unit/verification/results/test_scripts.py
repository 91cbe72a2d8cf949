"""Commands are followed through the recipes of make, just and package managers."""

import json

import pytest

from agentrunner.verification.results.commands import runs_of, texts_run
from agentrunner.verification.results.tools.base import added

TREE = {
    "Makefile": (
        "PY := python3\n.PHONY: test\n\nrun:\n\t$(PY) main.py\n\n"
        "test: lint\n\t@$(PY) tools/verify.py --all\n\n\t-sh ci/more.sh\n\nlint:\n\tsh ci/lint.sh\n"
    ),
    "package.json": (
        '{"scripts": {"start": "node main.js", "test": "npm run unit && node ./verify.js",'
        ' "unit": "jest --config conf/jest.cjs", "pretest": "sh ci/lint.sh"}}'
    ),
    "justfile": "test *args:\n    python tools/verify.py {{args}}\n",
}


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("make test", {"tools/verify.py", "ci/more.sh", "ci/lint.sh"}),
        ("npm test --silent", {"./verify.js", "ci/lint.sh", "conf/jest.cjs"}),
        ("npm run unit", {"conf/jest.cjs"}),
        ("just test", {"tools/verify.py"}),
        ("bash -ec 'cd pkg; make -C .. test'", {"tools/verify.py", "ci/lint.sh"}),
        ("cd pkg && make -C .. test", {"tools/verify.py"}),
        ("uv run pytest -q", set()),
        ("unclosed 'quote", set()),
    ],
)
def test_a_command_is_followed_to_the_texts_it_runs(command: str, runs: set[str]) -> None:
    files = {path: text.encode() for path, text in TREE.items()}
    first, *behind = texts_run(command, ".", files.get)
    assert first == command
    assert all(any(run in text for text in behind) for run in runs)
    assert not any("main" in text for text in behind)


def test_recipes_that_run_each_other_end() -> None:
    files = {"Makefile": b"a: b\n\tmake b\nb: a\n\tmake a; sh x.sh\n"}
    assert any("x.sh" in text for text in texts_run("make a", ".", files.get))


def test_a_hostile_makefile_is_read_quickly() -> None:
    files = {"Makefile": b"a" * 100_000 + b"\n" + b"x: \n \n" * 20_000}
    assert texts_run("make test", ".", files.get)[0] == "make test"


@pytest.mark.parametrize(
    ("command", "scripts", "with_option"),
    [
        ("npm test", {"test": "mocha spec"}, "npm test -- -x"),
        ("npm test", {"test": "npm run a", "a": "mocha"}, "npm test -- -- -x"),
        (
            "npm test",
            {"test": "npm run a && npm run b", "a": "true", "b": "mocha"},
            "npm test -- -- -x",
        ),
        ("npm test", {"test": "npm run a --", "a": "mocha"}, "npm test -- -x"),
        ("npm test --", {"test": "npm run a", "a": "mocha"}, "npm test -- -- -x"),
        ("npm test -- --bail", {"test": "mocha spec"}, "npm test -- --bail -x"),
        ("yarn test", {"test": "yarn a", "a": "mocha"}, "yarn test -x"),
        ("npm test", {"test": "mocha && echo done"}, None),
    ],
)
def test_an_option_reaches_the_tool_through_scripts_that_run_scripts(
    command: str, scripts: dict[str, str], with_option: str | None
) -> None:
    tree = {"package.json": json.dumps({"scripts": scripts})}
    runs = runs_of(command, ".", lambda path: tree[path].encode() if path in tree else None)
    (run,) = [one for one in runs if one.program == "mocha"]
    assert added(command, run, ["-x"]) == with_option
