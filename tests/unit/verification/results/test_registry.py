"""Which tools a command runs, how it is made to report, and how it is narrowed."""

import json
import re
from pathlib import Path

import pytest

from agentrunner.verification.results import registry
from agentrunner.verification.results.model import Command, Instrumented, Ran, Results, TestResult
from agentrunner.verification.results.registry import (
    instrument,
    read_results,
    readers_of,
    select,
    weaker,
)
from agentrunner.verification.results.shell import simple_commands
from agentrunner.verification.results.tools.base import Tool
from agentrunner.verification.results.tools.jest import title_pattern
from agentrunner.verification.results.tools.pytest import Pytest
from tests.kit.files import write
from tests.kit.reporting import need, plain, reported

FILES = {
    "Makefile": "test: lint\n\t$(PYTHON) -m pytest -q\nlint:\n\truff check .\n"
    "all:\n\t$(MAKE) test\njs:\n\tcd web && npm test\n",
    "justfile": "test:\n    cargo test\n",
    "package.json": json.dumps({"scripts": {"test": "tsc && jest", "unit": "vitest run",
                                            "pretest": "eslint ."}}),
    "web/package.json": json.dumps({"scripts": {"test": "cross-env CI=1 mocha"}}),
    "tox.ini": "[testenv]\ncommands =\n    pytest {posargs}\n",
    "noxfile.py": "def tests(session):\n    session.run('python', '-m', 'pytest', *args)\n",
    "tasks.py": "@task\ndef test(c):\n    c.run('go test ./...')\n",
    ".pre-commit-config.yaml": "repos:\n- hooks: [{id: other}]\n- repo: local\n  hooks:\n"
    "  - {id: lint, entry: ruff check .}\n  - {id: t, entry: python3, args: [-m, pytest]}\n",
    "composer.json": json.dumps({"scripts": {"test": ["@lint", "phpunit"], "lint": "phpstan"}}),
    "scripts/test.sh": "#!/bin/bash\nset -e\ngo vet ./...\ngo test ./... \\\n  -count=1\n",
    "node_modules/.bin/vitest": "#!/bin/sh\nexec node \"$basedir/../vitest/vitest.mjs\" \"$@\"\n",
    ".venv/bin/pytest": "#!/bin/sh\n'''exec' \"/long/python\" \"$0\" \"$@\"\n' '''\nmain()\n",
    "ci": "#!/usr/bin/env bash\nprove -r t\n",
}  # fmt: skip


def read(path: str) -> bytes | None:
    text = FILES.get(path)
    return None if text is None else text.encode()


def names(shell: str, cwd: str = ".") -> list[str]:
    return [reader.name for reader in readers_of(shell, cwd, read)]


@pytest.mark.parametrize("tool", registry.READERS, ids=lambda tool: tool.name)
def test_every_tool_can_be_asked_to_report_and_for_some_of_its_tests(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(tool), "matches", lambda *_: True)
    command = Command("tool --all", ".", read)
    for means, _ in enumerate(tool.means):
        made = tool.instrument(command, "/place", means)
        assert made is None or made.shell
    narrow = tool.select(command, ["tests/a.test"])
    assert narrow is None or narrow.startswith("tool")


@pytest.mark.parametrize(
    ("shell", "expected"),
    [
        ("pytest", ["pytest"]),
        ("python3.12 -W error -m pytest -k 'a or b; c'", ["pytest"]),
        (".venv/bin/python -m unittest discover -s tests", ["unittest"]),
        ("python tests/run.py", ["pytest", "unittest"]),
        ("python -m http.server", []),
        ("uv run --with x pytest -q", ["pytest"]),
        ("poetry run python -m pytest", ["pytest"]),
        ("timeout -k 5 60 env A=1 nice -n 5 pytest", ["pytest"]),
        ("coverage run --branch -m pytest tests", ["pytest"]),
        ("coverage run -m unittest", ["unittest"]),
        ("make", ["pytest"]),
        ("make -s test", ["pytest"]),
        ("make js", ["mocha"]),
        ("just test", ["cargo"]),
        ("npm test", ["jest"]),
        ("npm run unit -- --run", ["vitest"]),
        ("yarn test", ["jest"]),
        ("npx --yes jest", ["jest"]),
        ("pnpm exec vitest", ["vitest"]),
        ("pnpm vitest run", ["vitest"]),
        ("yarn jest --ci", ["jest"]),
        ("bun run vitest", ["vitest"]),
        ("yarn", []),
        ("yarn ''", []),
        ("npx run-s ''", []),
        ("corepack yarn test", ["jest"]),
        ("npx run-s 'te*'", ["jest"]),
        ("node_modules/.bin/vitest run", ["vitest"]),
        (".venv/bin/pytest", ["pytest"]),
        ("node --experimental-vm-modules node_modules/jest/bin/jest.js", ["jest", "node"]),
        ("node --unhandled-rejections strict node_modules/jest/bin/jest.js", ["jest", "node"]),
        ("node --test-timeout 100 -C dev node_modules/.bin/mocha", ["mocha", "node"]),
        ("node --env-file .env --report-dir a/b node_modules/mocha/bin/mocha", ["mocha", "node"]),
        ("node --import ./a.mjs -r esm --inspect=9 node_modules/.bin/jest", ["jest", "node"]),
        ("node --inspect scripts/test.js --config node_modules/jest/bin/jest.js", ["node"]),
        ("node -e 'run()' node_modules/jest/bin/jest.js", ["node"]),
        ("node node_modules/tape/bin/tape test/*.js", ["node", "tap"]),
        ("node test/mocha/run.js", ["node"]),
        ("node --test", ["node"]),
        ("npx tsx --test a.ts", ["node"]),
        ("npm test --prefix web", ["mocha"]),
        ("tox -e py312", ["pytest"]),
        ("nox -s tests", ["pytest"]),
        ("python3 -X dev -m nox -s tests", ["pytest"]),
        ("python -mpre_commit run --all-files", ["pytest"]),
        ("invoke test", ["go"]),
        ("pre-commit run --all-files", ["pytest"]),
        ("composer test", ["phpunit"]),
        ("php vendor/bin/phpunit", ["phpunit"]),
        ("sh scripts/test.sh", ["go"]),
        ("./ci", ["tap"]),
        ("bash -ec 'cd a && cargo test --workspace'", ["cargo"]),
        ("cargo +nightly nextest run", ["cargo"]),
        ("go test ./... && (cd web; npm test) || exit 1", ["mocha", "go"]),
        ("mvn -q verify", ["maven"]),
        ("./gradlew test", ["gradle"]),
        ("bundle exec rspec", ["rspec"]),
        ("behave && ctest --test-dir build", ["behave", "ctest"]),
        ("dotnet test", ["dotnet"]),
        ("echo pytest", []),
        ("ls # pytest", []),
        ("cat <<EOF", []),
        ("'unbalanced", []),
        ("", []),
    ],
)
def test_tools_are_found_behind_what_starts_them(shell: str, expected: list[str]) -> None:
    assert names(shell) == expected


def test_a_recipe_that_calls_itself_ends() -> None:
    FILES["loop/Makefile"] = "test:\n\tmake -C . test\n\tmake test\n"
    assert names("make test", "loop") == []


def test_what_is_not_a_tool_stays_as_it_is() -> None:
    assert instrument("./check", ".", read, "/place") == Instrumented("./check")
    assert read_results("./check", ".", read, Path("/nowhere"), "1 passed", "", 0) is None
    assert weaker("./check", ".", read) is None


def test_weaker_means_end() -> None:
    assert weaker("pytest", ".", read, 0) == 1
    assert weaker("pytest", ".", read, 1) == 2
    assert weaker("pytest", ".", read, 2) is None
    assert weaker("mvn test", ".", read) is None


@pytest.mark.parametrize(
    ("shell", "wanted", "expected"),
    [
        ("pytest -q tests", ["t/test_a.py::test_b"], "pytest -q  t/test_a.py::test_b"),
        ("cd x && pytest -k z -x", ["x/a.py::b"], "cd x && pytest -k z -x a.py::b"),
        ("pytest", ["a.py::b[two words]"], "pytest 'a.py::b[two words]'"),
        ("npm run unit", ["a.test.ts > box > opens"], "npm run unit -- -t '^ ?(box opens)$'"),
        ("python -m unittest", ["a.T.b"], "python -m unittest -k '*a.T.b'"),
        ("python -m unittest -v a b", ["a.T.c"], "python -m unittest -v   a.T.c"),
        ("mvn -q test", ["shop.A#b(int)[1]"], "mvn -q test '-Dtest=shop.A#b'"),
        ("rspec", ["spec/a.rb > is good"], "rspec -e 'is good'"),
        ("dotnet test", ["A.B(n: 1)"], "dotnet test --filter FullyQualifiedName=A.B"),
        ("cargo test -- --nocapture", ["s src/lib.rs a::b"],
         "cargo test -- --nocapture --exact a::b"),
        ("go test ./... -race", ["x.io/a/b.TestC/d"], "go test -run '^(TestC)$' x.io/a/b  -race"),
        ("make test", ["a.py::b"], None),
        ("jest -t square", ["a.test.js > square"], None),
        ("vitest run --testNamePattern=square", ["a.test.js > square"], None),
        ("mocha --grep square", ["a.js > square"], None),
        ("pytest && pytest b", ["a.py::b"], None),
        ("./check", ["a"], None),
    ],
)  # fmt: skip
def test_a_command_is_narrowed(shell: str, wanted: list[str], expected: str | None) -> None:
    found = select(shell, wanted, ".", read)
    assert (found or "").startswith(expected or "\0") or found == expected


def test_titles_are_found_with_the_space_that_older_versions_of_vitest_put_before_them() -> None:
    pattern = title_pattern(['a.test.ts > join > join("a", ".b") === "a/b"'])
    for title in ('join join("a", ".b") === "a/b"', ' join join("a", ".b") === "a/b"'):
        assert re.search(pattern, title)
        assert not re.search(pattern, f"other{title}")


def test_words_and_their_places() -> None:
    shell = "A=1 x 'a b'\"c\" >out 2>&1 &&\ty \\\n z # no\n(w; v)|u &"
    found = simple_commands(shell)
    assert [each.texts for each in found] == [["x", "a bc"], ["y", "z"], ["w"], ["v"], ["u"]]
    assert [each.after for each in found] == ["&&", "\n", ";", ")", "&"]
    word = found[0].words[1]
    assert shell[word.start : word.end] == "'a b'\"c\""


class Failing(Pytest):
    """A reader that fails on what it reads."""

    def read(self, ran: Ran, means: int) -> Results | None:
        raise RuntimeError("no")


def test_a_reader_that_fails_is_a_report_that_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "READERS", [Failing()])
    results = read_results("pytest", ".", read, Path("/nowhere"), "", "", 0)
    assert results == Results("pytest", complete=False)


def test_several_tools_in_one_command(tmp_path: Path) -> None:
    need("prove", "node")
    tree = tmp_path / "tree"
    write(
        tree,
        {
            "t/a.t": "use Test::More tests => 1;\nok(1, 'a');\n",
            "a.test.js": "require('node:test').test('a', () => {});\n",
            "bad.test.js": "require('node:test').test('bad', () => { throw 1 });\n",
        },
    )
    seen = reported(tree, "prove t/ && node --test a.test.js")
    assert seen.results is not None and seen.results.complete
    assert seen.results.reader == "node+tap"
    assert set(seen.outcomes) == {("t/a.t > a", "passed"), ("a.test.js > a", "passed")}
    seen = reported(tree, "node --test bad.test.js && prove t/")
    assert seen.exit_code == 1
    assert seen.outcomes == [("bad.test.js > bad", "failed")]
    assert seen.results is not None and not seen.results.complete, "prove did not run"


@pytest.mark.parametrize(
    "code", ["exit 7", "kill -9 $$", "exec sh -c 'exit 9'", "false\ntrue", "("]
)
def test_the_exit_code_stays(tmp_path: Path, code: str) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    made = instrument(f"true || mvn; {code}", ".", read, str(tmp_path / "place"))
    write(tmp_path / "place", dict(made.files))
    before = plain(tree, f"true || mvn; {code}").returncode
    after = plain(tree, made.shell).returncode
    assert after in (before, 128 - before)


def test_tox_hands_our_variables_on(tmp_path: Path) -> None:
    need("tox")
    tree = tmp_path / "tree"
    write(
        tree,
        {
            "tox.ini": "[tox]\nskipsdist = true\nenv_list = py\n[testenv]\nskip_install = true\n"
            "commands = python -m unittest -q test_a\n",
            "test_a.py": "import unittest\nclass T(unittest.TestCase):\n"
            "    def test_a(self): pass\n",
        },
    )
    seen = reported(tree, "tox -q")
    assert seen.exit_code == 0, seen.stderr
    assert seen.outcomes == [("test_a.T.test_a", "passed")]


def test_names_of_one_test(tmp_path: Path) -> None:
    results = Results("x", (TestResult("a", "passed"), TestResult("a", "failed")))
    assert results.names["a"] == 2 and not results.passed("a") and results.red
