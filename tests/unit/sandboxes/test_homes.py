"""A package cache that is copied for commands that write to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentrunner.sandboxes import homes
from agentrunner.sandboxes.base import Cache, Caches, Request, SandboxOrder
from agentrunner.sandboxes.homes import home_mounts, written_caches
from agentrunner.sandboxes.layers import copy_tree
from tests.kit.files import write


def test_a_copy_of_a_cache_never_has_its_credentials_also_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write(tmp_path / "cargo", {"credentials.toml": "key", "in/secret": "key", "in/x": ""})
    cache = Cache("rust", source, "pkgs", hidden=("credentials.toml", "in/secret"))
    home = tmp_path / "run/base"
    spec = SandboxOrder(tmp_path, tmp_path / "run/home", caches=Caches((cache,), {}, {}))
    request = Request(("true",), tmp_path, home=home)

    def killed(*words: Any, **options: Any) -> None:
        copy_tree(*words, **options)
        raise KeyboardInterrupt

    def copied() -> list[str]:
        return [path.name for path in written_caches(home).rglob("*") if path.is_file()]

    spec.home.mkdir(parents=True)
    with monkeypatch.context() as kill:
        kill.setattr(homes, "copy_tree", killed)
        with pytest.raises(KeyboardInterrupt):
            home_mounts(request, spec, overlays=False)
    assert copied() == ["x"]
    assert home_mounts(request, spec, overlays=False)[-1].source == written_caches(home) / "pkgs"
    assert copied() == ["x"]
