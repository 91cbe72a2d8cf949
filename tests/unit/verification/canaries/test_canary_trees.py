"""Tests of a random name: they are looked for by the names that they have in their language."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.canaries.canary_trees import CanaryTrees, CommandOnTrees
from agentrunner.verification.unknown_names import UnknownNames
from tests.kit.examinations import trees
from tests.kit.repository import uncommitted

FILES = {
    "tests/test_a.py": "def test_a():\n    assert 1 == 1\n",
    "a.test.js": "test('a', () => {\n  expect(1).toBe(1);\n});\n",
    "a_test.go": 'package a\n\nimport "testing"\n\nfunc TestA(t *testing.T) {\n}\n',
    "ATest.java": "import org.junit.Test;\n\npublic class ATest {\n  @Test\n  public void a() {\n"
    "  }\n}\n",
    "tests/a.rs": "#[test]\nfn a() {\n    assert_eq!(1, 1);\n}\n",
    "t/a.t": "use Test::More;\nis(1, 1, 'a');\ndone_testing;\n",
}


@pytest.mark.parametrize("path", FILES)
def test_the_file_declares_the_names_that_are_looked_for(tmp_path: Path, path: str) -> None:
    snapshots = Snapshots(tmp_path / "store", uncommitted(tmp_path / "repo", FILES))
    tree = snapshots.take().tree
    world = replace(trees(), snapshots=snapshots, old=tree, new=tree)
    unused = cast("Any", None)
    command = CommandOnTrees(unused, unused, world, unused)
    made = CanaryTrees(command, UnknownNames()).random_on_old({path: ()})
    assert made is not None and set(made.random.values()) == {path}
    text = (snapshots.read(made.tree, path) or b"").decode()
    assert [name for name in made.random if name not in text] == []
