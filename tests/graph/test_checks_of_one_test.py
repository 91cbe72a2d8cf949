"""A check that names one test is decided by that test, whatever else has its name in its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.metas import assess, finish, give_up, plan, work
from tests.kit.project import PYTEST, Project
from tests.kit.runs import Run

FILES = {
    "stats.py": "def mean(values):\n    return sum(values) / len(values)\n",
    "tests/test_stats.py": (
        "import pytest\n\nfrom stats import mean\n\n\n"
        "def test_mean():\n    assert mean([1, 3]) == 2\n\n\n"
        "def test_mean_of_nothing():\n    with pytest.raises(ValueError):\n        mean([])\n"
    ),
}
FIX = (
    "printf 'def mean(values):\\n    if not values:\\n        raise ValueError(values)\\n"
    "    return sum(values) / len(values)\\n' > stats.py"
)


def criterion(number: int, name: str) -> dict[str, Any]:
    check = {"kind": "test", "name": name}
    return {"id": f"AC-{number}", "description": f"{name} holds.", "check": check}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(Project.make(tmp_path, FILES))


def of_ids(run: Run, field: str) -> dict[str, str]:
    criteria = run.result["acceptance_criteria"]
    return {one["id"]: one[field] for one in criteria if one["origin"] == "task"}


def test_a_test_that_was_green_is_kept_beside_a_longer_name_that_was_red(run: Run) -> None:
    criteria = [criterion(1, "test_mean_of_nothing"), criterion(2, "test_mean")]
    run.start([plan(), work(), finish(), assess()], FIX, test=PYTEST, acceptance_criteria=criteria)
    assert run.result["state"] == "COMPLETE", run.result["missing"]
    assert of_ids(run, "grade") == {"AC-1": "proven", "AC-2": "kept"}


@pytest.mark.whole
def test_it_passes_while_a_longer_name_is_still_red(run: Run) -> None:
    run.start(
        [plan(), work(), give_up()], "touch done", test=PYTEST,
        acceptance_criteria=[criterion(1, "test_mean_of_nothing"), criterion(2, "test_mean")],
    )  # fmt: skip
    assert of_ids(run, "status") == {"AC-1": "failed", "AC-2": "passed"}


@pytest.mark.series(3)
@pytest.mark.parametrize("name", ["test_me", "test_mean_of", "nothing"])
def test_a_name_that_no_test_has_is_decided_by_none_that_contains_it(run: Run, name: str) -> None:
    criteria = [criterion(1, name), criterion(2, "test_mean_of_nothing")]
    run.start(
        [plan(), work(), give_up()], FIX, test=PYTEST, acceptance_criteria=criteria
    )  # fmt: skip
    assert of_ids(run, "status") == {"AC-1": "failed", "AC-2": "passed"}
    assert f"no test is called {name}" in of_ids(run, "detail")["AC-1"]


@pytest.mark.whole
def test_a_test_that_is_still_to_be_written_is_red_beside_one_that_contains_its_name(
    run: Run,
) -> None:
    worker = (
        f"{FIX}; printf '\\n\\ndef test_mean_of():\\n    assert mean([4, 6]) == 5\\n' "
        ">> tests/test_stats.py"
    )
    criteria = [criterion(1, "test_mean_of")]
    run.start(
        [plan(), work(), finish(), assess()], worker, test=PYTEST, acceptance_criteria=criteria
    )
    before = {one["target"]: one["outcome"] for one in run.project.told("baseline")}
    assert before["AC-1"] == "failed"
    assert of_ids(run, "grade")["AC-1"] != "proven"
