"""Programs in recipes, npm scripts and shell scripts, and what they are as files."""

import pytest

from agentrunner.verification.inputs.recipes import carrier_of

MAKE = """WANT = 0
check: build
\t@python3 -c "import shop; assert shop.total() == 1"
\t-python3 -c "print(1)"
\t@test "$$(python3 -c 'print(1)')" = 1
build:
\tpython3 -c "assert $(WANT)"
"""


@pytest.mark.parametrize(
    ("path", "source", "files"),
    [
        ("sub/Makefile", MAKE, ["import shop\nassert shop.total() == 1"]),
        (
            "package.json",
            '{"scripts": {"check": "node -e \\"require(\'./a\')\\"", "other": "tsc"}}',
            ["require('./a')"],
        ),
        (
            "check.sh",
            "set -e\nx=$(python3 -c 'print(1)')\npython3 -c 'import a\nassert a.b'\n",
            ["import a\nassert a.b"],
        ),
    ],
)
def test_a_program_stands_in_a_file_and_goes_back(path: str, source: str, files: list[str]) -> None:
    found = carrier_of(path, source.encode(), "x")
    assert found is not None
    assert [text.decode() for text in found.files.values()] == files
    assert all(path.rpartition("/")[2] in found.text for path in found.files)
    assert "false " in found.failing([*found.files]) and found.only([]).files == {}


def test_a_program_of_several_lines_reaches_the_shell_of_make_as_it_is() -> None:
    found = carrier_of("Makefile", MAKE.encode(), "x")
    assert found is not None and found.unread and "\tfalse -c" in found.blind
    (path,) = found.files
    made = found.put_back(found.text, {path: b"a = 1\nprint('$a')"})
    assert made.startswith("define x0_0_py\na = 1\nprint('$$a')\nendef\nexport x0_0_py\n")
    assert '\t@python3 -c "$$x0_0_py"\n' in made


def test_files_without_programs() -> None:
    assert carrier_of("Makefile", b"check:\n\tpython3 -m pytest\n", "x") is None
    assert carrier_of("README.md", b"python3 -c 'print(1)'\n", "x") is None
    assert carrier_of("package.json", b"[1]", "x") is None
