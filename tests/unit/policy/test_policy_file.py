"""Where policies come from, and which files are believed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from agentrunner.errors import UsageError
from agentrunner.policy.load import load_policies
from agentrunner.policy.policy_file import policy_schema

NOWHERE = Path("/nonexistent/policy.yaml")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rules" / "policy.yaml"
    path.parent.mkdir(mode=0o755)
    path.write_text("version: 1\nbudget: {usd: 5}\n", encoding="utf-8")
    path.chmod(0o644)
    return path


def refused(file: Path, repo: Path | None = None) -> UsageError:
    with pytest.raises(UsageError) as refusal:
        load_policies(file, {}, repo, system=NOWHERE)
    return refusal.value


def test_without_any_policy_nothing_is_capped() -> None:
    assert load_policies(None, {}, system=NOWHERE) == ()


def test_a_policy_knows_its_path_its_hash_and_its_lines(file: Path) -> None:
    (policy,) = load_policies(file, {}, system=NOWHERE)
    assert policy.path == file
    assert policy.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert policy.caps.budget.usd == 5
    assert policy.place("budget.usd").where == f"{file}:2"


def test_all_that_are_named_are_in_force_the_machines_first(file: Path, tmp_path: Path) -> None:
    others = [tmp_path / "system.yaml", tmp_path / "variable.yaml"]
    for other in others:
        other.write_text("version: 1\n", encoding="utf-8")
        other.chmod(0o600)
    environ = {"AGENTRUNNER_POLICY": str(others[1])}
    found = load_policies(file, environ, kept=[file, others[1]], system=others[0])
    assert [policy.path for policy in found] == [others[0], file, others[1]]


@pytest.mark.parametrize("value", ["", "/nonexistent/policy.yaml"])
def test_a_variable_that_names_no_policy_is_never_passed_over(value: str) -> None:
    with pytest.raises(UsageError) as refusal:
        load_policies(None, {"AGENTRUNNER_POLICY": value}, system=NOWHERE)
    assert (refusal.value.code, refusal.value.path) == ("policy-missing", "AGENTRUNNER_POLICY")


def test_an_option_that_names_no_file_is_an_error(tmp_path: Path) -> None:
    assert refused(tmp_path / "gone.yaml").code == "policy-missing"


def test_a_policy_that_a_run_was_started_under_must_still_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refusal:
        load_policies(None, {}, kept=[tmp_path / "gone.yaml"], system=NOWHERE)
    assert refusal.value.code == "policy-missing"


def test_a_policy_in_the_repository_is_refused(file: Path) -> None:
    assert refused(file, repo=file.parent).code == "policy-unsafe"


def test_a_link_into_the_repository_is_refused(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(file)
    assert refused(link, repo=file.parent).code == "policy-unsafe"


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_can_write_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    error = refused(file)
    assert error.code == "policy-unsafe"
    assert error.remedy == f"chmod go-w {file}"


def test_a_folder_that_others_can_write_to_is_refused_unless_it_is_sticky(file: Path) -> None:
    file.parent.chmod(0o777)
    assert refused(file).code == "policy-unsafe"
    file.parent.chmod(0o1777)
    assert load_policies(file, {}, system=NOWHERE)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_strangers_file_is_refused(file: Path) -> None:
    os.chown(file, 12345, 12345)
    assert refused(file).code == "policy-unsafe"


def test_a_fifo_is_refused_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert refused(pipe).code == "policy-unsafe"


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("version: 1\nsandbox: {kind: [bwrap]}\n", "unknown-key", "did you mean kinds?"),
        ("version: 1\nsanbox: {}\n", "unknown-key", "did you mean sandbox?"),
        ("version: 1\nworker: {kinds: [codexcli]}\n", "bad-value", "did you mean codex-cli?"),
        ("version: 1\nsandbox: {hosts: [example.org]}\n", "bad-value", "names no port"),
        ("version: 1\nsandbox: {read_paths: [lib]}\n", "bad-value", "is not absolute"),
        ("version: 1\nmeta: {base_urls: [api.openai.com]}\n", "bad-value", "no address like"),
        ("version: 1\nbudget: {usd: -1}\n", "bad-value", "greater than or equal to 0"),
        ("sandbox: {}\n", "missing-key", "version: 1"),
        ("version: 2\n", "bad-value", ""),
        ("version: 1\ncompletion: loose\n", "bad-value", "judged"),
        ("", "bad-value", "empty"),
        ("version: 1\nversion: 1\n", "duplicate-key", ""),
        ("version: 1\nbudget: &a {}\n", "forbidden-yaml", ""),
    ],
)
def test_mistakes_are_told_with_their_line(file: Path, text: str, code: str, told: str) -> None:
    file.write_text(text, encoding="utf-8")
    error = refused(file)
    assert error.code == code
    assert error.path.startswith(str(file))
    assert told in f"{error.message} {error.remedy}"


def test_every_setting_of_the_schema_is_explained() -> None:
    def properties(node: object) -> list[dict[str, object]]:
        if isinstance(node, dict):
            own = list(node.get("properties", {}).values())
            return own + [found for value in node.values() for found in properties(value)]
        return []

    found = properties(policy_schema())
    assert len(found) > 20
    assert [one for one in found if "description" not in one and "$ref" not in one] == []
