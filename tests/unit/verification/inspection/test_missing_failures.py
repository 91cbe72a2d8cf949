"""What has to fail, and does not."""

from __future__ import annotations

import pytest

from agentrunner.verification.inspection.missing_failures import nothing_fails
from tests.kit.text_trees import both_trees

ASKED = "Fetch all. One that fails must reject with an Error that names the URL."


@pytest.mark.parametrize(
    ("asked", "code", "test", "fine"),
    [
        (ASKED, "return null;", "assert.equal(x, null);", False),
        (ASKED, "return null;", "f(() => { throw new Error('x'); });", False),
        (ASKED, "throw new Error(url);", "", True),
        (ASKED, "return all;", "await assert.rejects(f());", True),
        ("It raises no error now. It must not raise.", "return null;", "", True),
        ("例外を投げること。", "return None", "", False),
        ("`load('')` raises an IndexError. Return None instead.", "return None", "", True),
        ("例外を発生させる。空のリストを返すこと。", "return []", "", True),
    ],
)
def test_something_of_the_work_fails(asked: str, code: str, test: str, fine: bool) -> None:
    found = nothing_fails(both_trees({}, {"a.js": code, "a.test.js": test}), asked)
    assert bool(found) is not fine
