"""unittest itself, through instrument, run and read."""

import sys
from pathlib import Path

import pytest

from agentrunner.verification.results.tools import base
from tests.kit.files import write
from tests.kit.reporting import narrowed, plain, reported

PY = sys.executable
SUITE = {
    "tests/__init__.py": "",
    "tests/test_a.py": """
import unittest

class TestA(unittest.TestCase):
    def test_bad(self): self.assertEqual(1, 2, "sums differ")
    def test_broken(self): raise KeyError("x")
    def test_good(self): pass
    @unittest.expectedFailure
    def test_known(self): self.fail()
    @unittest.expectedFailure
    def test_mended(self): pass
    @unittest.skip("later")
    def test_skipped(self): pass
    def test_subtests(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertNotEqual(i, 1)

class TestB(unittest.TestCase):
    def setUp(self): raise RuntimeError("no server")
    def test_set_up(self): pass

class TestC(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise RuntimeError("no class")
    def test_never(self): pass

@unittest.skip("whole class")
class TestD(unittest.TestCase):
    def test_skipped(self): pass
""",
}
PATH = "tests.test_a"
EXPECTED = {
    (f"{PATH}.TestA.test_bad", "failed"),
    (f"{PATH}.TestA.test_broken", "failed"),
    (f"{PATH}.TestA.test_good", "passed"),
    (f"{PATH}.TestA.test_known", "xfailed"),
    (f"{PATH}.TestA.test_mended", "xpassed"),
    (f"{PATH}.TestA.test_skipped", "skipped"),
    (f"{PATH}.TestA.test_subtests", "failed"),
    (f"{PATH}.TestA.test_subtests (i=1)", "failed"),
    (f"{PATH}.TestB.test_set_up", "error"),
    ("setUpClass (tests.test_a.TestC)", "error"),
    (f"{PATH}.TestD.test_skipped", "skipped"),
}
PASSING = {(f"{PATH}.TestA.test_subtests (i={i})", "passed") for i in (0, 2)}


@pytest.mark.parametrize("python", [PY, *(f"python3.{n}" for n in (8, 9, 10, 12, 13, 14))])
def test_every_outcome_by_name(tree: Path, python: str) -> None:
    if plain(tree, f"{python} -W error -c ''").returncode:
        pytest.skip(f"{python} is not installed")  # one of them is enough, also under CI
    write(tree, SUITE)
    shell = f"{python} -W error -m unittest"
    seen = reported(tree, shell)
    before = plain(tree, shell)
    assert seen.exit_code == before.returncode == 1
    assert seen.stderr.splitlines()[0] == before.stderr.splitlines()[0]
    assert set(seen.outcomes) - PASSING == EXPECTED
    assert seen.results is not None and not seen.results.all_named
    bad = seen.results.named(f"{PATH}.TestA.test_bad")[0]
    assert (bad.file, bad.line) == ("tests/test_a.py", 5)
    assert "sums differ" in bad.message
    (subtest,) = seen.results.named(f"{PATH}.TestA.test_subtests (i=1)")
    assert (subtest.file, subtest.line) == ("tests/test_a.py", 17)


def test_the_text_of_v_is_the_weaker_means(tree: Path) -> None:
    write(tree, SUITE)
    seen = reported(tree, f"{PY} -m unittest discover", means=1)
    assert seen.results is not None and seen.results.weak
    assert (f"{PATH}.TestA.test_bad", "failed") in seen.outcomes
    assert (f"{PATH}.TestA.test_known", "xfailed") in seen.outcomes
    if sys.version_info[:3] != (3, 12, 1):  # it prints no name for what a decorator skips
        assert (f"{PATH}.TestA.test_skipped", "skipped") in seen.outcomes


RUNNERS = {
    "tests/run.py": "import unittest, sys\n"
    "suite = unittest.defaultTestLoader.discover('tests', top_level_dir='.')\n"
    "ok = unittest.TextTestRunner(verbosity=0).run(suite).wasSuccessful()\nsys.exit(not ok)\n",
    "tests/own.py": "import unittest, sys\n"
    "class Quiet(unittest.TestResult):\n"
    "    def addSuccess(self, test):\n        super().addSuccess(test)\n"
    "result = Quiet()\n"
    "unittest.defaultTestLoader.discover('tests', top_level_dir='.').run(result)\n"
    "sys.exit(not result.wasSuccessful())\n",
    "tests/__init__.py": "",
    "tests/test_a.py": "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"
    "if __name__ == '__main__':\n    unittest.main()\n",
}


@pytest.mark.parametrize(
    ("shell", "name"),
    [
        (f"{PY} tests/run.py", "tests.test_a.T.test_a"),
        (f"{PY} tests/own.py", "tests.test_a.T.test_a"),
        (f"{PY} tests/test_a.py", "tests/test_a.py::T.test_a"),
        (f"{PY} -m unittest -q tests.test_a", "tests.test_a.T.test_a"),
        (f"{PY} -m unittest discover -s tests", "test_a.T.test_a"),
        (f"cd tests && {PY} -m unittest", "tests:test_a.T.test_a"),
    ],
)
def test_runners_of_projects(tree: Path, shell: str, name: str) -> None:
    write(tree, RUNNERS)
    seen = reported(tree, shell, env={"PYTHONPATH": str(tree)})
    assert seen.outcomes == [(name, "passed")], seen.stderr
    assert seen.results is not None and seen.results.complete
    assert seen.exit_code == 0


@pytest.mark.parametrize("ending", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_a_process_that_ends_itself_leaves_what_was_known(tree: Path, ending: str) -> None:
    write(
        tree,
        {
            "test_a.py": "import os, unittest\nclass T(unittest.TestCase):\n"
            f"    def test_a(self): pass\n    def test_b(self): {ending}\n"
            "    def test_c(self): pass\n"
        },
    )
    seen = reported(tree, f"{PY} -m unittest")
    assert seen.outcomes == [("test_a.T.test_a", "passed"), ("test_a.T.test_b", "error")]
    assert seen.results is not None and not seen.results.all_named


def test_files_that_cannot_be_imported_and_early_stops(tree: Path) -> None:
    write(tree, {"test_a.py": "import os\nimport nothing_of_that_name\n"})
    seen = reported(tree, f"{PY} -m unittest")
    assert seen.outcomes == [("test_a", "error")]
    assert seen.results is not None and not seen.results.all_named
    (lost,) = seen.results.tests
    assert lost.message.splitlines()[0] == (
        "ModuleNotFoundError: No module named 'nothing_of_that_name'"
    )
    assert (lost.file, lost.line) == ("test_a.py", 2)
    write(tree, SUITE)
    seen = reported(tree, f"{PY} -m unittest -f tests.test_a")
    assert seen.results is not None and not seen.results.complete


def test_results_inside_of_a_test_are_not_told(tree: Path) -> None:
    write(
        tree,
        {
            "test_a.py": """
import os, subprocess, sys, unittest

class Inner(unittest.TestCase):
    def runTest(self): self.fail()

class T(unittest.TestCase):
    def test_inline(self):
        result = unittest.TestResult()
        Inner().run(result)
        self.assertEqual(len(result.failures), 1)

    def test_process(self):
        code = "import unittest; unittest.main(module='test_b')"
        ran = subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
        self.assertEqual(ran.returncode, 1)

    def test_fork(self):
        if os.fork() == 0:
            unittest.TestResult().startTest(self)
            os._exit(0)
        os.wait()

def load_tests(loader, tests, pattern):
    return loader.loadTestsFromTestCase(T)
""",
            "test_b.py": "import unittest\nclass B(unittest.TestCase):\n"
            "    def test_b(self): self.fail()\n",
        },
    )
    seen = reported(tree, f"{PY} -W ignore -m unittest test_a")
    assert seen.exit_code == 0, seen.stderr
    assert seen.outcomes == [
        (f"test_a.T.{name}", "passed") for name in ("test_fork", "test_inline", "test_process")
    ]


def test_a_runner_that_breaks_is_not_complete(tree: Path) -> None:
    write(tree, RUNNERS)
    write(tree, {"tests/run.py": RUNNERS["tests/run.py"] + "raise SystemExit(3)\n"})
    write(tree, {"tests/own.py": RUNNERS["tests/own.py"].replace("sys.exit(", "raise KeyError(")})
    seen = reported(tree, f"{PY} tests/own.py", env={"PYTHONPATH": str(tree)})
    assert seen.exit_code == 1
    assert seen.results is not None and not seen.results.complete
    seen = reported(tree, f"{PY} tests/run.py", env={"PYTHONPATH": str(tree)})
    assert seen.results is not None and seen.results.complete


@pytest.mark.parametrize(
    ("asked", "name", "file", "unloaded"),
    [
        ("tests.test_a.TestA.test_new", "test_new", "", False),
        ("tests.test_a.TestNew.test_new", "TestNew", "", False),
        ("tests.test_new.TestNew", "test_new", "", False),
        ("tests.test_far", "tests.test_far", "tests/test_far.py", True),
        ("tests.test_far.TestFar.test_a", "tests.test_far", "tests/test_far.py", True),
        ("far.test_a", "far", "", True),
    ],
)
def test_what_is_not_written_yet_is_told_from_what_cannot_be_loaded(
    tree: Path, asked: str, name: str, file: str, unloaded: bool
) -> None:
    write(
        tree,
        {**SUITE, "tests/test_far.py": "import no_such\n", "far/__init__.py": "import no_such\n"},
    )
    seen = reported(tree, f"{PY} -m unittest {asked}")
    assert seen.results is not None
    (one,) = seen.results.tests
    assert (one.name, one.outcome, one.unloaded) == (name, "error", unloaded)
    assert one.file == file


@pytest.mark.parametrize(
    "shell",
    [
        "-m unittest -k good -k bad",
        "-m unittest -kgood",
        "-m unittest -v -k good tests.test_a",
        "-m unittest discover -s tests -t . -k good",
    ],
)
def test_a_selection_by_a_pattern_is_narrowed_to_the_names(tree: Path, shell: str) -> None:
    write(tree, SUITE)
    names = [f"{PATH}.TestA.test_good", f"{PATH}.TestA.test_mended"]
    assert [name for name, _ in narrowed(tree, f"{PY} {shell}", *names).outcomes] == names


def test_a_python_of_another_kind_than_ours_compiles_our_files_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = write(tmp_path / "tree", SUITE)
    usual = reported(tree, f"{PY} -m unittest").outcomes
    monkeypatch.setattr(base, "_compiled", dict)
    assert reported(tree, f"{PY} -m unittest").outcomes == usual
