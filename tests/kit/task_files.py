"""Task files of a repository, loaded as a command would."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.spec import TaskSpec
from tests.kit.files import write

Load = Callable[..., TaskSpec]


ENVIRON = {"CI_TOKEN": "x", "AWS_SECRET": "y"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def load(repo: Path) -> Load:
    """Writes a file into the repository and loads it."""

    def load_text(
        text: str | bytes,
        name: str = "task.yaml",
        *,
        overrides: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        **more: Any,
    ) -> TaskSpec:
        write(repo, {name: text})
        return load_task(
            TaskSource("file", name),
            overrides=overrides,
            options=options,
            environ=environ or {},
            cwd=repo,
            **more,
        )

    return load_text
