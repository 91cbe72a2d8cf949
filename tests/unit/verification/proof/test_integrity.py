"""What is exchanged with the change alone."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agentrunner.state.state_model import FileRef
from agentrunner.verification.findings import WAITING
from agentrunner.verification.proof.integrity import SILENT, exchanged, newly_exchanged
from agentrunner.verification.results.lines import by_path, read_lines
from agentrunner.verification.results.model import Exchanged, Results, TestResult
from agentrunner.verification.rooms.decision_sandbox import CommandOutcome
from agentrunner.verification.target import Measured, Target
from agentrunner.verification.world import SnapshotTrees

TARGET = Target("test", "pytest")
WORLD = SnapshotTrees("old", "new", "new", "mixed", (), frozenset(), ())
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
    trees = []

    async def run(target: Target, tree: str, only: Sequence[str]) -> Measured:
        trees.append(tree)
        assert not only
        return Measured(target, RAN, without)

    finding = asyncio.run(exchanged(run, TARGET, before, now, WORLD, held))
    return (finding.message if finding else None), trees


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


OWN = "shop.Logged.setUp ({}) of lib/shop.py, which T of test_a.py inherits"
CLASS = b"class T(Logged, unittest.TestCase):"


def inherits(before: Results, now: Results, product: tuple[str, ...], text: bytes) -> str | None:
    async def run(target: Target, tree: str, only: Sequence[str]) -> Measured:
        return Measured(target, RAN, before)

    world = replace(WORLD, product=product)
    target = Target("test", "pytest", cwd="src")
    old = {"src/test_a.py": text}.get
    finding = asyncio.run(exchanged(run, target, before, now, world, stood=old))
    return finding.message if finding else None


def test_what_tests_of_before_inherit_from_changed_product_is_named_without_its_code() -> None:
    was, now = Exchanged(OWN.format("0" * 8)), Exchanged(OWN.format("1" * 8))
    message = inherits(results(was), results(now), ("src/lib/shop.py",), CLASS)
    assert message is not None
    assert "shop.Logged.setUp of lib/shop.py, which T of test_a.py inherits" in message
    assert inherits(results(was), results(was), ("src/lib/shop.py",), CLASS) is None


def test_what_new_classes_inherit_or_what_stands_in_files_of_tests_does_not_matter_here() -> None:
    now = Exchanged(OWN.format("1" * 8))
    assert inherits(results(), results(now), ("src/lib/shop.py",), b"class Test:") is None
    assert inherits(results(), results(now), ("src/lib/other.py",), CLASS) is None


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


def test_looks_are_read_beside_results(tmp_path: Path) -> None:
    events = [
        {"k": "start", "tool": "node", "cwd": "/repo/web"},
        {"k": "exchanged", "n": "assert.equal (by a.js)", "t": "a.test.js"},
        {"k": "exchanged", "n": "assert.equal (by a.js)", "t": "b.test.js"},
        {"k": "exchanged", "n": "bad\x1bname", "t": 5},
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
    )
