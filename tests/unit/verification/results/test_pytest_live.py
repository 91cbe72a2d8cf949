"""pytest itself, through instrument, run and read."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.kit.files import write
from tests.kit.missing import missing
from tests.kit.reporting import narrowed, plain, reported

PY = sys.executable
SUITE = {
    "tests/test_a.py": """
import pytest

def test_good(): pass

def test_bad(): assert 1 == 2, "sums differ"

@pytest.mark.skip(reason="later")
def test_skipped(): pass

@pytest.mark.xfail
def test_known(): assert False

@pytest.mark.xfail
def test_mended(): pass

@pytest.mark.xfail(strict=True)
def test_mended_strictly(): pass

@pytest.fixture
def broken(): raise RuntimeError("no server")

def test_set_up(broken): pass

@pytest.fixture
def torn():
    yield
    raise RuntimeError("no way down")

def test_take_down(torn): pass

@pytest.mark.parametrize("number", [1, "two words", "a::b"])
def test_many(number): assert number != 1

class TestBox:
    def test_in_class(self): pass
""",
}
EXPECTED = [
    ("tests/test_a.py::test_good", "passed"),
    ("tests/test_a.py::test_bad", "failed"),
    ("tests/test_a.py::test_skipped", "skipped"),
    ("tests/test_a.py::test_known", "xfailed"),
    ("tests/test_a.py::test_mended", "xpassed"),
    ("tests/test_a.py::test_mended_strictly", "failed"),
    ("tests/test_a.py::test_set_up", "error"),
    ("tests/test_a.py::test_take_down", "error"),
    ("tests/test_a.py::test_many[1]", "failed"),
    ("tests/test_a.py::test_many[two words]", "passed"),
    ("tests/test_a.py::test_many[a::b]", "passed"),
    ("tests/test_a.py::TestBox::test_in_class", "passed"),
]


@pytest.mark.parametrize("means", [0, 1, 2])
@pytest.mark.parametrize("options", ["-q --tb=no -p no:cacheprovider", "-rxXs"])
def test_every_outcome_by_name(tree: Path, options: str, means: int) -> None:
    write(tree, SUITE)
    shell = f"{PY} -m pytest {options} tests"
    seen = reported(tree, shell, means=means)
    assert seen.exit_code == plain(tree, shell).returncode == 1
    assert seen.results is not None and seen.results.weak == (means == 2)
    if means == 2:
        assert {name for name, _ in seen.outcomes} <= {name for name, _ in EXPECTED}
        return
    assert seen.results.complete
    expected = EXPECTED
    if means == 1:
        # The XML knows of no test that passed though it was expected to fail.
        expected = [(name, "passed" if outcome == "xpassed" else outcome)
                    for name, outcome in EXPECTED]  # fmt: skip
        assert set(expected) <= set(seen.outcomes)
    else:
        assert seen.outcomes == expected
        bad = seen.results.named("tests/test_a.py::test_bad")[0]
        assert (bad.file, bad.line) == ("tests/test_a.py", 6)
        assert "sums differ" in bad.message


def test_under_xdist_it_is_the_same(tree: Path) -> None:
    write(tree, SUITE)
    seen = reported(tree, f"{PY} -m pytest -p xdist -n 2 -q tests")
    assert sorted(seen.outcomes) == sorted(EXPECTED)
    assert seen.results is not None and seen.results.complete


def test_a_file_that_cannot_be_imported_is_an_error_of_its_own(tree: Path) -> None:
    write(tree, {"test_a.py": "import nothing_of_that_name\n", "test_b.py": "def test_b(): pass\n"})
    shell = f"{PY} -m pytest -q"
    assert plain(tree, shell).returncode == 2
    lost, other = ("test_a.py", "error"), ("test_b.py::test_b", "passed")
    # The plug-in has pytest go on: a file that cannot be imported hides no other.
    for means, code, outcomes in ((0, 1, [lost, other]), (1, 2, [lost])):
        seen = reported(tree, shell, means=means)
        assert (seen.exit_code, seen.outcomes) == (code, outcomes)
        assert seen.results is not None and not seen.results.all_named
        assert "nothing_of_that_name" in seen.results.tests[0].message
        if means == 0:
            first, *_ = seen.results.tests[0].message.splitlines()
            assert first == "ModuleNotFoundError: No module named 'nothing_of_that_name'"
            assert (seen.results.tests[0].file, seen.results.tests[0].line) == ("test_a.py", 1)
    seen = reported(tree, f"{shell} --continue-on-collection-errors")
    assert seen.outcomes == [("test_a.py", "error"), ("test_b.py::test_b", "passed")]


@pytest.mark.parametrize("options", ["-x", "--maxfail=1", "-x -p xdist -n 2"])
def test_a_run_that_stops_early_is_not_complete(tree: Path, options: str) -> None:
    many = "".join(f"def test_{n}(): pass\n" for n in range(9))
    write(tree, {"test_a.py": f"def test_bad(): assert 0\n{many}"})
    seen = reported(tree, f"{PY} -m pytest -q {options}")
    assert seen.results is not None and not seen.results.complete
    assert ("test_a.py::test_bad", "failed") in seen.outcomes


def test_a_process_that_ends_itself_leaves_what_was_known(tree: Path) -> None:
    write(tree, {"test_a.py": "import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\n"})
    seen = reported(tree, f"{PY} -m pytest -q")
    assert seen.exit_code == 0
    assert seen.outcomes == [("test_a.py::test_a", "passed"), ("test_a.py::test_b", "error")]
    assert seen.results is not None and not seen.results.complete


def test_names_are_seen_from_the_folder_of_the_command(tree: Path) -> None:
    suite = {"tests/test_a.py": "def test_a(): pass\n"}
    write(tree, {f"one/{k}": v for k, v in suite.items()})
    write(tree, {f"two/{k}": v for k, v in suite.items()})
    write(tree, {"pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-q'\n"})
    seen = reported(tree, f"cd one && {PY} -m pytest && cd ../two && {PY} -m pytest tests")
    assert [name for name, _ in seen.outcomes] == [
        "one/tests/test_a.py::test_a",
        "two/tests/test_a.py::test_a",
    ]
    seen = reported(tree, f"{PY} -m pytest", cwd="one")
    assert seen.outcomes == [("tests/test_a.py::test_a", "passed")]


def test_sessions_inside_of_a_session_are_not_told(tree: Path) -> None:
    write(
        tree,
        {
            "conftest.py": "pytest_plugins = ['pytester']\n",
            "test_a.py": f"""
import os, subprocess, unittest

def test_inline(pytester):
    pytester.makepyfile("def test_inner(): assert 0")
    pytester.runpytest_inprocess().assert_outcomes(failed=1)

def test_process(pytester):
    pytester.makepyfile("def test_inner(): assert 0")
    pytester.runpytest_subprocess().assert_outcomes(failed=1)

def test_plain(tmp_path):
    (tmp_path / "test_x.py").write_text("def test_x(): assert 0")
    assert subprocess.run([{PY!r}, "-m", "pytest", "-q"], cwd=tmp_path).returncode == 1

def test_environment():
    assert "PYTHONPATH" not in os.environ

class TestOld(unittest.TestCase):
    def test_case(self):
        with self.subTest(i=1):
            pass
""",
        },
    )
    seen = reported(tree, f"{PY} -m pytest -q")
    assert [each for each in seen.outcomes if "(i=1)" not in each[0]] == [
        ("test_a.py::test_inline", "passed"),
        ("test_a.py::test_process", "passed"),
        ("test_a.py::test_plain", "passed"),
        ("test_a.py::test_environment", "passed"),
        ("test_a.py::TestOld::test_case", "passed"),
    ]


@pytest.mark.series(2)
@pytest.mark.parametrize(
    ("shell", "env"),
    [
        (f"PYTHONPATH=src {PY} -W error -m pytest -q -W error", {}),
        (f"PYTHONPATH=src {PY} -m pytest -q", {}),
        (f"{PY} -m pytest -q", {"PYTHONPATH": "src"}),
        (f"{PY} -m pytest -q", {"PYTHONSAFEPATH": "1", "PYTHONPATH": "src"}),
        (f"{PY} -m pytest -p no:terminal -p no:junitxml", {"PYTHONPATH": "src"}),
        (f"{PY} run.py", {"PYTHONPATH": "src"}),
        ("make test", {"PYTHONPATH": "src"}),
        ("sh scripts/test.sh", {"PYTHONPATH": "src"}),
    ],
)
def test_it_reports_however_it_is_started(tree: Path, shell: str, env: dict[str, str]) -> None:
    write(
        tree,
        {
            "src/shop.py": "PRICE = 1\n",
            "test_a.py": "import shop\ndef test_a(): assert shop.PRICE\n",
            "run.py": "import sys, pytest\nsys.exit(pytest.main(['-q']))\n",
            "Makefile": f"test:\n\t@{PY} -m pytest -q\n",
            "scripts/test.sh": f"set -e\n{PY} -m pytest -q\n",
        },
    )
    if shutil.which("make") is None and shell.startswith("make"):
        pytest.skip("make is not installed")
    seen = reported(tree, shell, env=env)
    assert seen.outcomes == [("test_a.py::test_a", "passed")], seen.stderr
    assert seen.results is not None and seen.results.complete and not seen.results.weak
    assert seen.exit_code == 0
    assert seen.stderr == ""


@pytest.mark.parametrize("flag", ["-E", "-I", "-S"])
def test_where_python_is_closed_the_exit_stays_and_there_is_no_report(
    tree: Path, flag: str
) -> None:
    write(tree, {"test_a.py": "def test_a(): assert 0\n"})
    shell = f"{PY} {flag} -m pytest -q test_a.py"
    seen = reported(tree, shell)
    assert seen.results is None
    assert seen.exit_code == plain(tree, shell).returncode
    if flag != "-S":
        assert reported(tree, shell, means=1).outcomes == [("test_a.py::test_a", "failed")]


def test_the_sitecustomize_of_the_project_still_runs(tree: Path) -> None:
    write(
        tree,
        {
            "src/sitecustomize.py": "import os\nos.environ['SEEN'] = 'yes'\n",
            "test_a.py": "import os, sys\n\ndef test_a():\n    assert os.environ['SEEN'] == 'yes'\n"
            "    assert 'src' in sys.modules['sitecustomize'].__file__\n",
        },
    )
    seen = reported(tree, f"{PY} -m pytest -q", env={"PYTHONPATH": str(tree / "src")})
    assert seen.outcomes == [("test_a.py::test_a", "passed")]


def test_sub_tests_have_names_of_their_own_and_run_with_their_test(tree: Path) -> None:
    write(
        tree,
        {
            "test_a.py": """
import unittest

class TestA(unittest.TestCase):
    def test_many(self):
        for n in (1, 2):
            with self.subTest("half", n=n):
                self.assertEqual(n, 1)
        with self.subTest():
            self.fail()

    def test_other(self): pass
"""
        },
    )
    seen = dict(reported(tree, f"{PY} -m pytest -q").outcomes)
    if len(seen) == 2:
        missing("this pytest reports no sub-tests")
    name = "test_a.py::TestA::test_many"
    assert seen[f"{name} [half] (n=2)"] == seen[f"{name} (<subtest>)"] == "failed"
    again = dict(narrowed(tree, f"{PY} -m pytest -q", f"{name} [half] (n=2)").outcomes)
    assert "test_a.py::TestA::test_other" not in again
    assert again[f"{name} [half] (n=2)"] == "failed"
