"""What is exchanged with the change alone."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from agentrunner.state.state_model import FileRef
from agentrunner.verification.evidence.findings import WAITING
from agentrunner.verification.evidence.measure import results_as_lines, results_of_lines
from agentrunner.verification.evidence.target import Measured, Target
from agentrunner.verification.proof.integrity import SILENT, exchanged, newly_exchanged
from agentrunner.verification.proof.trees_without_work import TreesWithoutWork
from agentrunner.verification.results.lines import by_path, read_lines
from agentrunner.verification.results.model import Exchanged, Results, TestOutcomeKind, TestResult
from agentrunner.verification.rooms.decision_sandbox import CommandOutcome
from tests.kit.examinations import trees as trees_of

TARGET = Target("test", "pytest")
WORLD = trees_of(kept="new")
EQUAL = Exchanged("unittest.case.TestCase.assertEqual", "test_a.T.test_x")
RAN = CommandOutcome(1, FileRef(path="out"), "", None, 0)
HOOK = Exchanged("Module._load (by setup.js)")


def results(*found: Exchanged, looked: int = 2) -> Results:
    tests = (TestResult("test_a.T.test_x", "passed"),)
    return Results("unittest", tests, looked=looked, exchanged=found)


def asked(
    before: Results | None,
    now: Results,
    without: Results | None,
    held: Results | None = None,
) -> tuple[str | None, list[str]]:
    seen = []

    async def run(target: Target, tree: str, only: Sequence[str]) -> Measured:
        seen.append(tree)
        assert not only
        return Measured(target, RAN, without)

    finding = asyncio.run(exchanged(run, TARGET, before, now, WORLD, held))
    return (finding.message if finding else None), seen


def test_what_the_old_tree_exchanges_too_costs_no_run() -> None:
    assert asked(results(HOOK), results(HOOK), None) == (None, [])
    assert asked(results(), results(), None) == (None, [])


def test_what_the_tests_exchange_without_the_product_is_theirs() -> None:
    assert asked(results(), results(HOOK), results(HOOK)) == (None, ["mixed"])


def test_what_is_exchanged_with_the_change_alone_is_named_with_its_test() -> None:
    message, trees = asked(results(HOOK), results(HOOK, EQUAL), results())
    assert trees == ["mixed"]
    assert message is not None
    assert "unittest.case.TestCase.assertEqual (seen at test_a.T.test_x)" in message
    assert "Module._load" not in message


def test_tests_of_the_worker_do_not_cover_what_the_product_exchanges() -> None:
    """They exchange the same function without the product; with the old tests the product does."""
    message, trees = asked(results(), results(EQUAL), results(EQUAL), held=results(EQUAL))
    assert trees == []
    assert message is not None
    assert EQUAL.what in message
    assert asked(results(), results(EQUAL), results(EQUAL), held=results())[0] is None


OWN = Exchanged(
    "shop.Logged.setUp of lib/shop.py, which T of test_a.py inherits", files=("lib/shop.py",),
    place="test_a.py", member="Logged.setUp", heir="T", digest="0",
)  # fmt: skip
CHANGED = replace(OWN, digest="1")
CLASS = b"class T(Logged, unittest.TestCase):"
PRODUCT = ("src/lib/shop.py",)


def inherits(before: Results, now: Results, product: tuple[str, ...], text: bytes) -> str | None:
    async def run(target: Target, tree: str, only: Sequence[str]) -> Measured:
        return Measured(target, RAN, before)

    paths = frozenset(("src/lib/shop.py", "src/lib/other.py", "src/test_a.py"))
    world = trees_of({"src/test_a.py": text}, kept="new", product=product, old_paths=paths)
    target = Target("test", "pytest", cwd="src")
    finding = asyncio.run(exchanged(run, target, before, now, world))
    return finding.message if finding else None


def test_what_tests_of_before_inherit_from_changed_product_is_named_without_its_code() -> None:
    message = inherits(results(OWN), results(CHANGED), PRODUCT, CLASS)
    assert message is not None
    assert OWN.what in message
    assert inherits(results(OWN), results(OWN), PRODUCT, CLASS) is None


def test_what_new_classes_inherit_or_what_stands_in_files_of_tests_does_not_matter_here() -> None:
    assert inherits(results(), results(OWN), PRODUCT, b"class Test:") is None
    assert inherits(results(), results(OWN), ("src/lib/other.py",), CLASS) is None


@pytest.mark.parametrize("files", [("",), ("conftest.py", ""), ("../../elsewhere/shop.py",)])
def test_what_is_inherited_from_nobody_knows_where_counts(files: tuple[str, ...]) -> None:
    unknown = replace(CHANGED, files=files)
    assert inherits(results(OWN), results(unknown), ("src/lib/other.py",), CLASS) is not None


def test_a_class_that_does_not_stand_where_it_says_may_have_been_there_before() -> None:
    assert inherits(results(), results(replace(OWN, place="")), PRODUCT, b"") is not None


class Trees:
    """Says which tree was asked for."""

    def __init__(self, former: str | None = "former") -> None:
        self.former = former
        self.members: dict[str, set[str]] = {}
        self.gone: dict[str, set[str]] = {}

    async def with_former(self, tree: str, members: dict[str, set[str]]) -> str | None:
        self.members = members
        return f"{self.former} {tree}" if self.former else None

    async def without_classes(self, classes: dict[str, set[str]]) -> str:
        self.gone = classes
        return "without"


def found_with(
    trees: Trees, now: Results, held: Results | None = None, **ran: Results
) -> tuple[bool, list[str]]:
    """Whether there is a finding, and on which trees the tests ran for it."""
    asked = []

    async def run(target: Target, tree: str, only: Sequence[str]) -> Measured:
        asked.append(tree)
        return Measured(target, RAN, ran[tree.replace(" ", "_")])

    paths = frozenset(("shop.py", "test_a.py"))
    world = trees_of({"test_a.py": CLASS}, product=("shop.py",), old_paths=paths)
    made = cast(TreesWithoutWork, trees)
    finding = asyncio.run(exchanged(run, TARGET, results(), now, world, held or now, trees=made))
    return finding is not None, asked


REPR = Exchanged(
    "shop.Logged.__repr__", files=("shop.py",), place="test_a.py", member="Logged.__repr__",
    heir="T", digest="0",
)  # fmt: skip
NEW_TEST = TestResult("test_log.L.test_repr", "passed")


def with_new(outcome: TestOutcomeKind, *found: Exchanged) -> Results:
    one = results(*found)
    return replace(one, tests=(*one.tests, replace(NEW_TEST, outcome=outcome)))


def test_an_inherited_method_without_which_all_passes_decides_nothing() -> None:
    trees = Trees()
    found = found_with(trees, results(REPR), mixed=results(), former_new=results())
    assert found == (False, ["mixed", "former new"])
    assert trees.members == {"shop.py": {"Logged.__repr__"}}


def test_an_inherited_method_without_which_a_test_fails_decides() -> None:
    red = replace(results(), tests=(TestResult("test_a.T.test_x", "failed"),))
    assert found_with(Trees(), results(REPR), mixed=results(), former_new=red)[0]
    silent = results(looked=0)
    assert found_with(Trees(), results(REPR), mixed=results(), former_new=silent)[0]
    still = results(REPR)
    assert found_with(Trees(), results(REPR), mixed=results(), former_new=still)[0]
    assert found_with(Trees(None), results(REPR), mixed=results()) == (True, ["mixed"])
    both = results(REPR, EQUAL)
    assert found_with(Trees(), both, mixed=results()) == (True, ["mixed"])


def test_what_decides_with_the_inputs_as_they_were_decides() -> None:
    red = replace(results(), tests=(TestResult("test_a.T.test_x", "failed"),))
    held, now = results(REPR), results(REPR)
    ran = {"former_new": results()}
    assert not found_with(Trees(), now, held, former_kept=results(), **ran)[0]
    assert found_with(Trees(), now, held, former_kept=red, **ran)[0]


def test_a_new_test_of_the_method_has_to_pass_where_no_test_inherits_it() -> None:
    now, less = with_new("passed", REPR), with_new("failed")
    alone = Results("unittest", (NEW_TEST,), looked=1)
    trees = Trees()
    runs = {"mixed": results(), "former_new": less}
    assert not found_with(trees, now, **runs, without=alone)[0]
    assert trees.gone == {"test_a.py": {"T"}}
    assert found_with(Trees(), now, **runs, without=Results("unittest", looked=1))[0]
    heir = replace(alone, exchanged=(replace(REPR, place="test_log.py", heir="L"),))
    assert found_with(Trees(), now, **runs, without=heir)[0]


@pytest.mark.parametrize(
    ("place", "files", "is_found"),
    [
        ("", (), True),
        ("", ("conftest.py",), False),
        ("", ("shop.py",), True),
        ("", ("conftest.py", ""), True),
        ("helpers.py", ("",), True),
        ("helpers.py", ("conftest.py",), False),
        ("shop.py", ("",), False),
    ],
)
def test_which_file_is_one_of_tests_is_decided_here(
    place: str, files: tuple[str, ...], is_found: bool
) -> None:
    async def run(target: Target, tree: str, only: Sequence[str]) -> Measured:
        return Measured(target, RAN, None)

    now = results(Exchanged("json.loads", files=files, place=place))
    decides = {"conftest.py", "helpers.py"}.__contains__
    finding = asyncio.run(exchanged(run, TARGET, results(), now, WORLD, decides=decides))
    assert (finding is not None) == is_found


def test_it_blocks_and_says_what_settles_it() -> None:
    async def run(target: Target, tree: str, only: Sequence[str]) -> Measured:
        return Measured(target, RAN, None)

    finding = asyncio.run(exchanged(run, TARGET, None, results(EQUAL), WORLD))
    assert finding is not None
    assert (finding.code, finding.blocks) == ("tool_exchanged", True)
    assert WAITING.yes in finding.remedy


def test_a_look_that_falls_silent_counts_as_exchanged() -> None:
    assert newly_exchanged(results(looked=0), results()) == [Exchanged(SILENT)]
    assert newly_exchanged(results(looked=0), results(looked=0)) == []
    assert newly_exchanged(results(looked=0), None) == []


def test_what_was_seen_is_kept_with_results() -> None:
    kept = results(EQUAL, OWN)
    assert results_of_lines(results_as_lines(kept)) == kept


def test_looks_are_read_beside_results(tmp_path: Path) -> None:
    events = [
        {"k": "start", "tool": "node", "cwd": "/repo/web"},
        {"k": "exchanged", "n": "assert.equal (by a.js)", "t": "a.test.js"},
        {"k": "exchanged", "n": "assert.equal (by a.js)", "t": "b.test.js"},
        {"k": "exchanged", "n": "bad\x1bname", "t": 5},
        {
            "k": "exchanged",
            "n": "shop.A.setUp",
            "p": ["/repo/shop.py", ""],
            "f": "/repo/web/a.py",
            "m": "A.setUp",
            "c": "T",
            "d": "12",
        },
        {"k": "exchanged", "n": "shop.A.setUp", "p": 7, "d": "13"},
        {"k": "end", "looked": 3},
        {"k": "end", "looked": -7},
        {"k": "end", "looked": "many"},
    ]
    lines = "\n".join(json.dumps(event) for event in events)
    (tmp_path / "look-node-1.jsonl").write_text(lines + "\nnothing\n")
    assert read_lines(tmp_path, "node", "/repo", by_path) is None, "a look alone is no report"
    (tmp_path / "node-1.jsonl").write_text(
        '{"k": "start", "cwd": "/repo"}\n{"k": "test", "n": "a", "o": "passed"}\n{"k": "end"}\n'
    )
    seen = read_lines(tmp_path, "node", "/repo", by_path)
    assert seen is not None
    assert seen.looked == 3
    assert seen.exchanged == (
        Exchanged("assert.equal (by a.js)", "web/a.test.js"),
        Exchanged("bad\\x1bname", "web/5"),
        Exchanged("shop.A.setUp", "", ("shop.py", ""), "web/a.py", "A.setUp", "T", "12"),
        Exchanged("shop.A.setUp", digest="13"),
    )
