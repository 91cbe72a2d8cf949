"""Merges are judged by the names of tests: of what stood before, and of what each side brought."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentrunner.plans.execution.merging.merge_verdict import MergeVerdict
from agentrunner.verification.results.model import Results, TestResult
from tests.kit.merges import Trees

CALC = "def base():\n    return 1\n\n\n# one\n\n\n# two\n"
HEAD = "import unittest\n\nimport calc\n\n\nclass T(unittest.TestCase):\n"
OLD = "    def test_old(self):\n        self.assertTrue(calc.base())\n"
SUITE = f"{HEAD}{OLD}\n    # one\n\n    # two\n\n    # three\n"
ONE = "    def test_{}(self):\n        self.assertEqual(calc.base(), 1)\n"
TWO = "    def test_{}(self):\n        self.assertLess(calc.base(), 9)\n"
FILES = {"calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": SUITE}


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    made = Trees.make(tmp_path)
    made.base = made.write(made.base, FILES)
    made.test = f"{sys.executable} -m unittest -q"
    return made


def suite(place: str, text: str) -> dict[str, str | None]:
    return {"tests/test_calc.py": SUITE.replace(f"    # {place}\n", text)}


def ran(*names: str) -> Results:
    """As the run of the work reports it."""
    return Results("unittest", tuple(TestResult(f"tests.test_calc.T.{n}", "passed") for n in names))


async def merged(trees: Trees, head: str, mine: str, *own: str) -> MergeVerdict:
    commit = trees.merge(head, mine)
    return await trees.look(commit, head, mine=mine, passed=ran(*own))


async def test_two_tests_of_one_name_that_a_merge_brings_together_are_told(trees: Trees) -> None:
    head = trees.write(trees.base, suite("one", ONE.format("new")))
    mine = trees.write(trees.base, suite("three", TWO.format("new")))
    found = await merged(trees, head, mine, "test_old", "test_new")
    assert "both definitions in one file" in found.evidence and "T.test_new" in found.evidence
    assert found.anew and not found.broken
    other = trees.write(trees.base, suite("three", TWO.format("other")))
    assert await merged(trees, head, other, "test_old", "test_other") == MergeVerdict()
    same = trees.write(trees.base, suite("one", ONE.format("new")))
    same = trees.write(same, {"calc.py": CALC.replace("# two", "TWO = 2")})
    assert await merged(trees, head, same, "test_old", "test_new") == MergeVerdict()


async def test_a_test_of_its_own_that_the_merge_does_not_run_is_told(trees: Trees) -> None:
    """Both bring a class of one name: the second takes the place of the first, with all tests."""
    whole = "\n\nclass New(unittest.TestCase):\n"
    head = trees.write(
        trees.base,
        {
            "tests/test_calc.py": SUITE.replace(
                HEAD, f"{HEAD[:31]}{whole}{ONE.format('a')}{HEAD[30:]}"
            )
        },
    )
    mine = trees.write(trees.base, {"tests/test_calc.py": SUITE + whole + TWO.format("b")})
    names = Results(
        "unittest",
        tuple(TestResult(f"tests.test_calc.{n}", "passed") for n in ("T.test_old", "New.test_b")),
    )
    commit = trees.merge(mine, head)
    found = await trees.look(commit, mine, mine=head, passed=ran("test_old", "test_a"))
    assert "missing or skipped here" in found.evidence and "New.test_a" in found.evidence
    found = await trees.look(commit, head, mine=mine, passed=names)
    assert "passed before, and are missing or skipped" in found.evidence
    assert found.anew


async def test_as_many_tests_as_before_do_not_make_up_for_one_that_is_gone(trees: Trees) -> None:
    swapped = {"tests/test_calc.py": SUITE.replace(OLD, ONE.format("else"))}
    mine = trees.write(trees.base, swapped)
    found = await trees.look(mine, trees.base)
    assert "T.test_old" in found.evidence and "does not run tests that passed" in found.evidence
    taken = frozenset({"tests.test_calc.T.test_old"})
    assert await trees.look(mine, trees.base, taken=taken) == MergeVerdict()


async def test_what_one_side_moves_and_the_other_adds_to_is_not_lost(trees: Trees) -> None:
    head = trees.write(trees.base, {"tests/test_calc.py": None, "tests/test_sums.py": SUITE})
    mine = trees.write(trees.base, suite("two", TWO.format("new")))
    assert await merged(trees, head, mine, "test_old", "test_new") == MergeVerdict()


async def test_what_turned_green_has_to_be_green_on_the_merge(trees: Trees) -> None:
    """Red before the task and on the head: only its own commit had it green."""
    trees.base = trees.write(trees.base, suite("one", ONE.format("new").replace("1)", "2)")))
    head = trees.write(
        trees.base, {"other.py": "", "calc.py": CALC.replace("# two", "base = lambda: 7")}
    )
    mine = trees.write(trees.base, {"calc.py": CALC.replace("return 1", "return 2")})
    found = await merged(trees, head, mine, "test_old", "test_new")
    assert "fail with the work of others" in found.evidence and "T.test_new" in found.evidence
    assert not found.anew
    calm = trees.write(trees.base, {"other.py": ""})
    assert await merged(trees, calm, mine, "test_old", "test_new") == MergeVerdict()


async def test_a_merge_that_is_green_by_chance_is_told(trees: Trees) -> None:
    seen = trees.place / "seen"
    test = (
        f"    def test_chance(self):\n        import os\n"
        f"        both = calc.A and calc.B\n"
        f"        first = both and not os.path.exists('{seen}')\n"
        f"        if first: open('{seen}', 'w').close()\n"
        f"        self.assertFalse(both and not first)\n"
    )
    calc = CALC.replace("# one", "A = False").replace("# two", "B = False")
    trees.base = trees.write(trees.base, {"calc.py": calc, **suite("one", test)})
    head = trees.write(trees.base, {"calc.py": calc.replace("A = False", "A = True")})
    mine = trees.write(trees.base, {"calc.py": calc.replace("B = False", "B = True")})
    found = await merged(trees, head, mine, "test_old", "test_chance")
    assert "T.test_chance" in found.evidence and "red once and green once" in found.evidence


async def test_a_test_that_is_red_by_chance_before_as_well_is_no_reason(trees: Trees) -> None:
    seen = trees.place / "seen"
    test = (
        f"    def test_chance(self):\n        import pathlib\n"
        f"        seen = pathlib.Path('{seen}')\n"
        f"        number = len(seen.read_text()) if seen.exists() else 0\n"
        f"        seen.write_text('x' * (number + 1))\n"
        f"        self.assertNotIn(number, (0, 3))\n"
    )
    trees.base = trees.write(trees.base, suite("one", test))
    mine = trees.write(trees.base, {"other.py": ""})
    assert await trees.look(mine, trees.base) == MergeVerdict()
