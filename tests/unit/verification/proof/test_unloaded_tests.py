"""What could not be loaded before a run, and has lost tests after it."""

from __future__ import annotations

import pytest

from agentrunner.verification.proof.unloaded_tests import lost_unloaded
from agentrunner.verification.results.model import Results, TestResult
from agentrunner.verification.results.names import made, unloaded
from tests.kit.text_trees import TextTrees

ONE = "import zzbank\n\n\ndef test_pay():\n    assert zzbank.pay(1)\n"
FAR = f"{ONE}\n\ndef test_show():\n    assert zzbank.show(1)\n"
OTHER = made("test_a.py::test_a", "passed", "test_a.py")
STILL = (OTHER, unloaded("test_far.py", "test_far.py"))


def _lost(
    after: dict[str, str],
    now: tuple[TestResult, ...] = STILL,
    before: TestResult = STILL[1],
    may_go: str = "",
) -> list[str]:
    old = {"test_far.py": FAR, "far/far_test.go": "package far\n\nfunc TestPay(t *testing.T) {}\n"}
    new = {path: text for path, text in (old | after).items() if text}
    return lost_unloaded(
        Results("pytest", (OTHER, before)),
        Results("pytest", now),
        ".",
        (TextTrees(old, new).reader("old"), TextTrees(old, new).reader("new")),
        list(after),
        [],
        lambda name, file: bool(may_go) and may_go in name,
    )  # fmt: skip


def test_what_is_as_it_was_has_lost_nothing() -> None:
    assert _lost({}) == []
    assert _lost({"test_far.py": FAR + "\n\ndef test_more():\n    assert zzbank.more(1)\n"}) == []


def test_a_test_that_is_taken_out_is_lost_and_one_that_moved_is_not() -> None:
    assert _lost({"test_far.py": ONE}) == ["test_far.py::test_show"]
    assert _lost({"test_far.py": ONE}, may_go="test_show") == []
    assert _lost({"test_far.py": "", "test_bank.py": FAR}, (OTHER,)) == []


@pytest.mark.parametrize("now", [(OTHER,), STILL])
def test_a_file_that_is_deleted_has_lost_all_of_its_tests(now: tuple[TestResult, ...]) -> None:
    assert _lost({"test_far.py": ""}, now) == ["test_far.py::test_pay", "test_far.py::test_show"]


def test_one_that_asks_something_else_is_lost_unless_it_runs_now() -> None:
    weaker = FAR.replace("assert zzbank.pay(1)", "assert True")
    assert _lost({"test_far.py": weaker}) == ["test_far.py::test_pay"]
    assert _lost({"test_far.py": weaker}, may_go="test_pay") == []
    assert _lost({"test_far.py": f"# of the bank\n{FAR}"}) == []
    loaded = made("test_far.py::test_pay", "failed", "test_far.py")
    assert _lost({"test_far.py": weaker}, (OTHER, loaded)) == []


def test_one_that_is_left_out_now_is_lost_and_one_whose_tests_run_is_not() -> None:
    assert _lost({}, (OTHER,)) == ["test_far.py"]
    assert _lost({}, (OTHER, made("test_far.py", "skipped", "test_far.py"))) == ["test_far.py"]
    loaded = made("test_far.py::test_pay", "failed", "test_far.py")
    assert _lost({}, (OTHER, loaded)) == []


def test_a_package_stands_for_the_files_that_it_has() -> None:
    far = TestResult("x/far", "error", unloaded=True, files=("far/far_test.go",))
    red = (OTHER, far)
    assert _lost({}, red, far) == []
    assert _lost({"far/far_test.go": "package far\n"}, red, far) == ["far/far_test.go::TestPay"]
