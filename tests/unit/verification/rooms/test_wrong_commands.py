"""Whether a command is itself at fault, by what the tools say; outputs as they were recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.text.mentions import speaks_of, speaks_of_place
from agentrunner.verification.rooms.own_code import own_programs
from agentrunner.verification.rooms.wrong_commands import wrong_command

NODE = """[eval]:1
if(


SyntaxError: Unexpected end of input
    at makeContextifyScript (node:internal/vm:185:14)
    at node:internal/process/execution:107:22
"""
JSON_ERROR = """[eval]:1
JSON.parse(shop())
SyntaxError: Unexpected token o in JSON at position 1
    at JSON.parse (<anonymous>)
"""
IN_PRODUCT = """Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "/room/calc.py", line 3
    def
SyntaxError: invalid syntax
"""
LACKS_IN_PRODUCT = """Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "/room/calc.py", line 1, in <module>
    import money
ModuleNotFoundError: No module named 'money'
"""
NO_SUM = "unrecognized arguments: --sum"
INLINE_LACKS = """Traceback (most recent call last):
  File "<string>", line 1, in <module>
ModuleNotFoundError: No module named '{}'
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "calc.py").write_text("x = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("shell", "code", "output"),
    [
        ("node -e 'if('", 1, NODE),
        ("ruby -e 'def'", 1, "-e:1: syntax error, unexpected end-of-input"),
        ("perl -e 'if('", 255, "syntax error at -e line 1, at EOF"),
        ("awk '{' calc.py", 2, "mawk: line 2: syntax error at or near end of file"),
        ("sed -n 's/a' calc.py", 1, "sed: -e expression #1, char 3: unterminated `s' command"),
        ("jq '.a |' x.json", 3, "jq: error: syntax error, unexpected end of file at <top-level>"),
        ("go test ./...", 1, "go: go.mod file not found in current directory or any parent"),
        (
            "go test ./...",
            1,
            "pattern ./...: directory prefix . does not contain main module or its selected dep",
        ),
        ("cargo test", 101, "error: could not find `Cargo.toml` in `/room` or any parent"),
        ("npm run nowhere", 1, 'npm error Missing script: "nowhere"'),
        ("make nowhere", 2, "make: *** No rule to make target 'nowhere'.  Stop."),
        ("make nowhere", 2, "make: *** No targets specified and no makefile found.  Stop."),
        ("just nowhere", 1, "error: Justfile does not contain recipe `nowhere`"),
        ("ruff check --nope", 2, "error: unexpected argument '--nope' found\n\nUsage: ruff check"),
        ("grep -Z0y x calc.py", 2, "grep: invalid option -- 'y'\nUsage: grep [OPTION]... PATTERNS"),
        ("find . -nope", 1, "find: unknown predicate `-nope'"),
        ("black --nope .", 2, "Usage: black [OPTIONS] SRC ...\n\nError: No such option: --nope"),
        ("git diff --nope", 129, "error: invalid option: --nope"),
        ("diff calc.py", 2, "diff: missing operand after 'calc.py'\nTry 'diff --help' for more"),
        ("bash nowhere.sh", 127, "bash: nowhere.sh: No such file or directory"),
        ("node nowhere.js", 1, "Error: Cannot find module '/room/nowhere.js'"),
        ("nope | grep x", 1, "sh: 1: nope: not found"),
        ("python3 -c 'import nope'", 1, INLINE_LACKS.format("nope")),
    ],
)
def test_a_command_that_its_tool_refuses_is_at_fault(
    shell: str, code: int, output: str, repo: Path
) -> None:
    assert wrong_command(shell, code, output, repo) is not None


@pytest.mark.parametrize(
    ("shell", "code", "output"),
    [
        ("node -e 'JSON.parse(shop())'", 1, JSON_ERROR),
        ("python3 -c 'import calc'", 1, IN_PRODUCT),
        ("python3 -c 'import calc'", 1, LACKS_IN_PRODUCT),
        ("python3 -c 'import calc.more'", 1, INLINE_LACKS.format("calc.more")),
        ("python3 -m calc.more", 1, "python3: No module named calc.more"),
        ("python3 calc.py --sum", 2, "usage: calc.py [-h]\ncalc.py: error: " + NO_SUM),
        ("shop --sum", 2, "usage: shop [-h]\nshop: error: " + NO_SUM),
        ("./shop --sum", 2, "error: unknown option '--sum'"),
        ("make; ./shop", 127, "calc.c:1: error\nsh: 1: ./shop: not found"),
        ("make all", 2, "make: *** No rule to make target 'money.c', needed by 'all'.  Stop."),
        ("grep -q x README.md", 2, "grep: README.md: No such file or directory"),
        ("cat out.txt", 1, "cat: out.txt: No such file or directory"),
        ("./run.sh", 1, "./run.sh: line 3: nope: command not found"),
        ("grep --nope x calc.py", 0, "grep: unrecognized option '--nope'"),
        ("go run . --json", 1, "flag provided but not defined: -json\nUsage of /tmp/x/shop:\n"),
        ("cargo run -- --json", 2, "error: unexpected argument '--json' found\n\nUsage: shop\n"),
        ("npx . --json", 1, "error: unknown option '--json'\n"),
    ],
)
def test_what_the_product_lacks_is_no_fault_of_the_command(
    shell: str, code: int, output: str, repo: Path
) -> None:
    (repo / "pyproject.toml").write_text('[project]\nname = "x"\nscripts = {shop = "calc:main"}\n')
    assert wrong_command(shell, code, output, repo) is None


def test_where_there_are_only_texts_everything_is_still_to_be_written(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("A shop\n")
    said = "make: *** No rule to make target 'nowhere'.  Stop."
    assert wrong_command("make nowhere", 2, said, tmp_path) is None


def test_programs_of_the_repository_itself(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "@a/cart", "bin": {"buy": "b.js"}}')
    (tmp_path / "setup.cfg").write_text("console_scripts =\n    sell = shop.cli:main\n")
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "till"\n[[bin]]\nname = "pay"\n')
    (tmp_path / "cmd" / "shopd").mkdir(parents=True)
    assert {"cart", "buy", "sell", "till", "pay", "shopd"} <= own_programs(tmp_path)


@pytest.mark.parametrize(
    "entries",
    [
        "{'console_scripts': ['sell=shop.cli:main']}",
        '"""\n[console_scripts]\nsell = shop:main\n"""',
    ],
)
def test_programs_of_a_set_up_in_one_line(tmp_path: Path, entries: str) -> None:
    (tmp_path / "setup.py").write_text(f"setup(name='shop', entry_points={entries}, version='1')\n")
    assert own_programs(tmp_path) == {"shop", "sell"}


@pytest.mark.parametrize(
    ("name", "text"), [("pyproject.toml", "a = " + "[" * 100_000), ("package.json", "[" * 100_000)]
)
def test_a_manifest_that_no_parser_gets_through_names_nothing(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    assert own_programs(tmp_path) == frozenset()


@pytest.mark.parametrize(
    ("text", "name", "speaks"),
    [
        ("Add a target check.", "check", True),
        ("`make check` has to pass.", "check", True),
        ("check ターゲットを足す。", "check", True),
        ("The tests check that it adds.", "check", False),
        ("All tests pass.", "tests", False),
        ("Put them into tests/.", "tests", True),
        ("Put them into the tests folder.", "tests", True),
    ],
)
def test_a_common_word_is_a_name_only_where_it_stands_as_one(
    text: str, name: str, speaks: bool
) -> None:
    assert speaks_of_place(text, name) is speaks


def test_letters_of_other_scripts_are_no_part_of_a_name() -> None:
    assert speaks_of("run.shを書く", "run.sh") and not speaks_of("prerun.sh", "run.sh")


@pytest.mark.parametrize("manifest", ["pyproject.toml", "Cargo.toml"])
@pytest.mark.parametrize(
    "text",
    ["bin = 3", "bin = [3]", "tool = 3", "project = []", "tool.poetry = 3", "package.name = 3",
     "project.scripts = 3", "no toml"],
)  # fmt: skip
def test_a_manifest_of_another_form_names_no_programs(
    tmp_path: Path, manifest: str, text: str
) -> None:
    (tmp_path / manifest).write_text(text)
    assert own_programs(tmp_path) <= {"3"}


def test_a_command_that_starts_no_program_lacks_none(repo: Path) -> None:
    assert wrong_command("timeout 5", 127, "sh: 1: ./run.sh: not found", repo) is None
