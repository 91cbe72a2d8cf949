"""The page on policies says what the models say, and its sample loads."""

from __future__ import annotations

import re
from pathlib import Path

from agentrunner.config.mistakes import all_keys
from agentrunner.policy.load import load_policies
from agentrunner.policy.policy_file import PolicyFile, policy_schema

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "policy.md"
SECTIONS = {"sandbox", "worker", "meta", "budget"}


def test_every_setting_is_on_the_page_with_its_meaning() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w.]+)` \| [^|]+ \| ([^|]+) \|$", text, re.MULTILINE))
    assert set(rows) == set(all_keys(PolicyFile)) - SECTIONS
    schema = policy_schema()
    models = [schema, *schema["$defs"].values()]
    meanings = {
        " ".join(field["description"].split())
        for model in models
        for field in model["properties"].values()
        if "description" in field
    }
    assert set(rows.values()) <= meanings


def test_the_sample_is_a_policy(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "policy.yaml"
    file.write_text(re.sub(r"^   ", "", blocks[0], flags=re.MULTILINE), encoding="utf-8")
    file.chmod(0o600)
    (policy,) = load_policies(file, {}, system=Path("/nonexistent/policy.yaml"))
    assert policy.caps.worker.login is False
