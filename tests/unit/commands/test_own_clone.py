"""`doctor` in AgentRunner's own clone leaves its suite out."""

from __future__ import annotations

from pathlib import Path

import agentrunner
from agentrunner.commands.setup import is_own_clone


def test_the_clone_is_known_by_the_package_that_runs_in_it(tmp_path: Path) -> None:
    assert is_own_clone(Path(agentrunner.__file__).parents[1])
    (tmp_path / "agentrunner").mkdir()
    (tmp_path / "agentrunner" / "__init__.py").write_text("")
    assert not is_own_clone(tmp_path), "a project of the same name is another one"
