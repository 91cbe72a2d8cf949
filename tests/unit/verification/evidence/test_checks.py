import json

import pytest

from agentrunner.config.spec import Check, TestSpec
from agentrunner.verification.evidence.checks import command_of, is_executable, read_check

PYTEST = TestSpec(command="uv run pytest -q")


@pytest.mark.parametrize(
    ("check", "test", "shell"),
    [
        (Check(kind="command", run="make lint"), None, "make lint"),
        (Check(kind="test", name="t.py::test_a"), PYTEST, "uv run pytest -q -k 't.py and test_a'"),
        (Check(kind="test", name="a or b"), PYTEST, "uv run pytest -q -k 'a or b'"),
        (
            Check(kind="test", name="TestA"),
            TestSpec(command="go test ./..."),
            "go test ./... -run '^TestA$'",
        ),
        (Check(kind="test", name="adds"), TestSpec(command="npm test"), "npm test -- -t adds"),
        (
            Check(kind="pytest", file="t/test_a.py", test_name="test_b"),
            PYTEST,
            "uv run pytest -q t/test_a.py::test_b",
        ),
        (Check(kind="pytest", file="t/test_a.py"), None, "python -m pytest -q t/test_a.py"),
        (Check(kind="go-test", test_name="TestA"), None, "go test ./... -run '^TestA$'"),
        (Check(kind="npm-script", test_name="lint"), None, "npm run --silent lint"),
        (
            Check(kind="playwright", file="e2e/login.spec.ts", test_name="logs in"),
            None,
            "npx playwright test e2e/login.spec.ts -g 'logs in'",
        ),
    ],
)
def test_a_check_becomes_a_command(check: Check, test: TestSpec | None, shell: str) -> None:
    command = command_of(check, test)
    assert command is not None
    assert command.shell == shell


@pytest.mark.parametrize(
    "check",
    [
        Check(kind="by-looking"),
        Check(kind="command"),
        Check(kind="test", name="x"),
        Check(kind="file"),
        Check(kind="diff"),
    ],
)
def test_what_cannot_be_executed_says_so(check: Check) -> None:
    assert command_of(check, None) is None
    assert not is_executable(check, None)


@pytest.mark.parametrize(
    ("command", "script", "shell"),
    [
        ("node --test", "", "node --test --test-name-pattern=adds"),
        ("node --test lib", "", "node --test --test-name-pattern=adds lib"),
        (
            "npm test",
            "node --test lib",
            "PATH=$PWD/node_modules/.bin:$PATH; node --test --test-name-pattern=adds lib",
        ),
        ("npm test", "jest --ci", "npm test -- -t adds"),
        ("npm test", "", "npm test -- -t adds"),
    ],
)
def test_nodes_own_runner_gets_its_own_option(command: str, script: str, shell: str) -> None:
    package = json.dumps({"scripts": {"test": script}}).encode() if script else None
    files = {"web/package.json": package}
    test = TestSpec(command=command, cwd="web")
    found = command_of(Check(kind="test", name="adds"), test, files.get)
    assert found is not None
    assert found.shell == shell


def test_a_test_name_is_no_pattern_for_node() -> None:
    found = command_of(Check(kind="test", name="a (b)?"), TestSpec(command="node --test"))
    assert found is not None
    assert found.shell == r"node --test '--test-name-pattern=a \(b\)\?'"


def test_a_hostile_test_name_stays_one_word() -> None:
    command = command_of(Check(kind="test", name="$(touch x)"), PYTEST)
    assert command is not None
    assert command.shell == "uv run pytest -q -k '$(touch x)'"


FILES = {"README.md": b"# Shop\n\n## Users\n"}


@pytest.mark.parametrize(
    ("check", "passed", "detail"),
    [
        (Check(kind="file", path="README.md", contains="## Users"), True, "README.md:3"),
        (Check(kind="file", path="./README.md"), True, "README.md"),
        (Check(kind="file", path="README.md", contains="Nope"), False, "has no"),
        (Check(kind="file", path="README.md", matches=r"^## \w+$"), True, "README.md:3"),
        (Check(kind="file", path="README.md", matches="("), None, "cannot be read"),
        (Check(kind="file", path="gone.md"), False, "does not exist"),
        (Check(kind="file", path="gone.md", exists=False), True, "is absent"),
        (Check(kind="diff", must_change=["src/**"]), True, "as asked"),
        (Check(kind="diff", must_change=["docs/**"]), False, "nothing changed"),
        (Check(kind="diff", must_not_change=["src/a.py"]), False, "changed: src/a.py"),
    ],
)
def test_files_and_diffs_are_read_off_the_tree(
    check: Check, passed: bool | None, detail: str
) -> None:
    reading = read_check(check, FILES.get, ["src/a.py"])
    assert reading is not None
    assert reading.passed is passed
    assert detail in reading.detail


@pytest.mark.parametrize(
    ("command", "name", "narrowed"),
    [
        ("pytest", "test_named[three pieces]", "pytest -k test_named"),
        ("pytest", "test_a.py::TestCart::test_a", "pytest -k 'test_a.py and TestCart and test_a'"),
        ("pytest", "./tests/test_cart.py", "pytest tests/test_cart.py"),
        ("go test", "TestTotal/v1.2_[x]", "go test -run '^TestTotal$/^v1\\.2_\\[x\\]$'"),
        ("go test", "example.com/cart.TestAdds", "go test -run '^TestAdds$'"),
        ("cargo test", "kit src/lib.rs tests::odd", "cargo test tests::odd"),
        ("go test", "TestTotal/three pieces", "go test -run '^TestTotal$/^three_pieces$'"),
        ("npx jest", "cart > three (v1.2)", "npx jest -t 'cart three \\(v1\\.2\\)'"),
        ("node --test", "cart > four", "node --test --test-name-pattern=four"),
    ],
)  # fmt: skip
def test_names_are_handed_to_each_tool_as_it_takes_them(
    command: str, name: str, narrowed: str
) -> None:
    found = command_of(Check(kind="test", name=name), TestSpec(command=command))
    assert found is not None and found.shell == narrowed
