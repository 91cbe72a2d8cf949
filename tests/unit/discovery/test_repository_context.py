"""What a planner is told of a repository: useful of a plain one, harmless of a hostile one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrunner.discovery.planning_context import (
    INSTRUCTION_CHARS,
    LINE_CHARS,
    MOST_LINES,
    MOST_TREE_CHARS,
    README_CHARS,
    facts_of,
    repository_context,
    tree_lines,
)
from agentrunner.git.snapshots import Snapshots
from tests.kit.files import write


def looked_at(tmp_path: Path, secret: str = "") -> dict[str, Any]:
    repo = tmp_path / "repo"
    snapshots = Snapshots(tmp_path / "objects", repo)

    def redact(text: str) -> str:
        return text.replace(secret, "[KEY redacted]") if secret else text

    return repository_context(snapshots, snapshots.take().tree, repo, redact)


def test_a_plain_repository(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    write(repo, {"README.md": "# Shop\n\nSells things.\n"})
    write(repo, {"AGENTS.md": "Use tabs."})
    write(repo, {".github/copilot-instructions.md": "Use blanks."})
    write(repo, {"pyproject.toml": "[tool.pytest.ini_options]\n"})
    write(repo, {"uv.lock": ""})
    write(repo, {"web/package.json": "{}"})
    write(repo, {"src/shop/cart.py": ""})
    write(repo, {".gitignore": "node_modules\n"})
    write(repo, {"node_modules/left-pad/index.js": ""})
    facts = looked_at(tmp_path)
    assert facts["files"] == 8
    assert "src/shop/cart.py" in facts["tree"]
    assert not any("node_modules" in line for line in facts["tree"])
    assert facts["readme"] == {"path": "README.md", "text": "# Shop\n\nSells things."}
    assert [one["path"] for one in facts["agent_instructions"]] == [
        "AGENTS.md", ".github/copilot-instructions.md",
    ]  # fmt: skip
    assert facts["stack"] == ["Python: pyproject.toml", "Node.js: web/package.json"]
    assert facts["test_command"] == {
        "command": "uv run pytest -q", "found_in": "pyproject.toml, line 1",
    }  # fmt: skip
    assert facts["setup_command"]["command"] == "uv sync --frozen"
    assert json.loads(json.dumps(facts)) == facts
    assert facts == looked_at(tmp_path)


def test_an_empty_repository(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    facts = looked_at(tmp_path)
    assert (facts["files"], facts["tree"], facts["readme"]) == (0, [], None)
    assert (facts["stack"], facts["agent_instructions"], facts["test_command"]) == ([], [], None)


def test_nothing_of_the_host_and_nothing_that_blocks(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    secret = write(tmp_path, {"outside.md": "the host's own words"}) / "outside.md"
    write(repo, {"real.md": "inside"})
    (repo / "README.md").symlink_to(secret)
    (repo / "CLAUDE.md").symlink_to("/etc/passwd")
    (repo / "AGENTS.md").symlink_to("real.md")
    os.mkfifo(repo / "GEMINI.md")
    write(repo, {".cursorrules": b"\x00\x01\xff binary"})
    facts = looked_at(tmp_path)
    assert facts["readme"] is None
    assert facts["agent_instructions"] == [{"path": "AGENTS.md", "text": "inside"}]
    assert "own words" not in json.dumps(facts) and "root:" not in json.dumps(facts)


def test_a_file_that_says_the_same_is_told_once(tmp_path: Path) -> None:
    write(tmp_path / "repo", {"AGENTS.md": "Use tabs.\n"})
    write(tmp_path / "repo", {"CLAUDE.md": "Use tabs."})
    assert len(looked_at(tmp_path)["agent_instructions"]) == 1


def test_long_texts_are_cut_and_secrets_go_before_the_cut(tmp_path: Path) -> None:
    secret = "hunter2" * 10
    write(tmp_path / "repo", {"README.md": "x" * (README_CHARS - 30) + secret})
    write(tmp_path / "repo", {"AGENTS.md": "界" * 5_000})
    write(tmp_path / "repo", {"CLAUDE.md": "x" * (1 << 20) + "y"})
    write(tmp_path / "repo", {f"{secret}.txt": ""})
    facts = looked_at(tmp_path, secret)
    assert facts["readme"]["text"].endswith("[KEY redacted]")
    (instructions,) = facts["agent_instructions"]
    assert instructions["text"] == "界" * (INSTRUCTION_CHARS - 1) + "…"
    assert "hunter2" not in json.dumps(facts)


def test_a_large_tree_is_shown_as_deep_as_there_is_room() -> None:
    wide = [f"src/part{n:02}/deep/{m}/x.py" for n in range(30) for m in range(10)]
    assert tree_lines(wide)[0] == "src/part00/deep/ (10 files)"
    assert len(tree_lines(wide)) == 30
    flat = [f"file-{n:04}.txt" for n in range(1_000)]
    assert len(tree_lines(flat)) == MOST_LINES + 1
    assert tree_lines(flat)[-1] == f"… and {1_000 - MOST_LINES} more"
    long = ["a" * 300, "b\nc\x1b[2J"]
    assert tree_lines(long) == ["a" * (LINE_CHARS - 1) + "…", "b\ufffdc\ufffd[2J"]


@pytest.mark.parametrize("name", ["readme", "Readme.RST", "README.txt"])
def test_readmes_of_all_spellings(name: str) -> None:
    facts = facts_of([name], lambda _: b"Hello", str)
    assert facts["readme"] == {"path": name, "text": "Hello"}


NAMES = st.lists(
    st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=200),
    min_size=1,
    max_size=6,
).map("/".join)


@given(st.dictionaries(NAMES, st.binary(max_size=200), max_size=300))
def test_facts_are_bounded_and_plain_whatever_is_there(files: dict[str, bytes]) -> None:
    facts = facts_of(files, files.get, str)
    assert sum(map(len, facts["tree"])) <= MOST_TREE_CHARS + 40
    assert len(facts["tree"]) <= MOST_LINES + 1
    assert all(line.isprintable() for line in facts["tree"])
    text = json.dumps(facts, ensure_ascii=False)
    text.encode()  # no half characters
    assert facts == facts_of(sorted(files, reverse=True), files.get, str)
