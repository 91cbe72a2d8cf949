import pytest

from agentrunner.evidence.scripts import scripts_run

TREE = {
    "Makefile": (
        "PY := python3\n.PHONY: test\n\nrun:\n\t$(PY) main.py\n\n"
        "test: lint\n\t@$(PY) tools/verify.py --all\n\n\t-sh ci/more.sh\n\nlint:\n\tsh ci/lint.sh\n"
    ),
    "main.py": "",
    "tools/verify.py": "",
    "ci/more.sh": "cd web && node check.js\n",
    "ci/lint.sh": "",
    "web/check.js": "",
    "package.json": (
        '{"scripts": {"start": "node main.js", "test": "npm run unit && node ./verify.js",'
        ' "unit": "jest --config conf/jest.cjs", "pretest": "sh ci/lint.sh"}}'
    ),
    "conf/jest.cjs": "",
    "verify.js": "",
    "main.js": "",
    "justfile": "test *args:\n    python tools/verify.py {{args}}\n",
    "pkg/verify": "#!/bin/sh\n. ./helper.sh\n",
    "pkg/helper.sh": "",
    "calc.c": "",
    "expected.txt": "",
    "calc.py": "",
}


@pytest.mark.parametrize(
    ("command", "cwd", "runs"),
    [
        ("make test", ".", {"tools/verify.py", "ci/more.sh", "ci/lint.sh"}),
        ("npm test --silent", ".", {"verify.js", "ci/lint.sh", "conf/jest.cjs"}),
        ("npm run unit", ".", {"conf/jest.cjs"}),
        ("just test", ".", {"tools/verify.py"}),
        ("./verify", "pkg", {"pkg/verify"}),
        ("cd pkg && sh ./verify", ".", {"pkg/verify"}),
        ("bash -ec 'cd pkg; sh verify'", ".", {"pkg/verify"}),
        ("env A=1 timeout 60 python -W ignore tools/verify.py", ".", {"tools/verify.py"}),
        ("python -m tools.verify", ".", {"tools/verify.py"}),
        ("gcc calc.c -o calc && ./calc", ".", set()),
        ("cp pkg/helper.sh dist/ && sh -e ci/lint.sh", ".", {"ci/lint.sh"}),
        ("python main.py | diff - expected.txt", ".", {"main.py", "expected.txt"}),
        ("python -m doctest calc.py", ".", set()),
        ("pytest -c conf/jest.cjs calc.py", ".", {"conf/jest.cjs"}),
        ("uv run pytest -q", ".", set()),
        ("unclosed 'quote", ".", set()),
    ],
)
def test_a_command_is_followed_to_what_it_runs(command: str, cwd: str, runs: set[str]) -> None:
    files = {path: text.encode() for path, text in TREE.items()}
    assert scripts_run(command, cwd, files.get) & files.keys() == runs


def test_a_named_script_counts_before_it_exists() -> None:
    assert "ci/new.sh" in scripts_run("sh ci/new.sh", ".", lambda path: None)


def test_recipes_that_run_each_other_end() -> None:
    files = {"Makefile": b"a: b\n\tmake b\nb: a\n\tmake a; sh x.sh\n", "x.sh": b""}
    assert "x.sh" in scripts_run("make a", ".", files.get)


def test_a_hostile_makefile_is_read_quickly() -> None:
    files = {"Makefile": b"a" * 100_000 + b"\n" + b"x: \n \n" * 20_000}
    assert scripts_run("make test", ".", files.get)
