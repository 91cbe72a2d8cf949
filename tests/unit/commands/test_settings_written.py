"""`config set` and `config edit`: the file stays as it is written, but for what is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.config.settings_text import key_path, with_setting, without_setting
from agentrunner.config.yaml_text import read_yaml
from agentrunner.errors import UsageError
from tests.unit.commands.shell import Shell

FILE = """\
# mine
runner:
    worker:   # who works
        kind: codex-cli   # for now
    budget: {usd: 5}

    note:
        language: ja
"""


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("runner.worker.kind", "claude-code", "        kind: claude-code   # for now"),
        ("worker.model", "opus", "        model: opus"),
        ("runner.meta.max_loops", "3", "    meta:"),
        ("note.detail", "full", "        detail: full"),
        ("runner.worker.model", '"yes: no"', '        model: "yes: no"'),
        ("runner.protect", "[a, b]", '    protect: ["a", "b"]'),
    ],
)
def test_one_line_changes_and_comments_stay(key: str, value: str, line: str) -> None:
    changed = with_setting(FILE, key_path(key), value, "c.yaml")
    assert line in changed.split("\n")
    assert "# mine" in changed and "# who works" in changed
    found = read_yaml(changed, "c.yaml").value
    for part in key_path(key):
        found = found[part]
    assert found == read_yaml(value, "v").value


@pytest.mark.parametrize(
    "text", ["", "# nothing yet\n", "runner:\n", "runner: {worker: {kind: x}}\n"]
)
def test_any_file_takes_a_setting(text: str) -> None:
    changed = with_setting(text, key_path("worker.model"), "opus", "c.yaml")
    assert read_yaml(changed, "c.yaml").value["runner"]["worker"]["model"] == "opus"
    assert ("# nothing yet" in changed) is ("# nothing yet" in text)


def test_a_section_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        with_setting("runner:\n  worker: x\n", key_path("worker.kind"), "mock", "c.yaml")
    assert caught.value.code == "bad-option"


def test_config_set_writes_the_person_s_file(shell: Shell) -> None:
    file = shell.repo.parent / ".config" / "agentrunner" / "config.yaml"
    assert shell("config", "set", "worker.kind", "claude-code") == 0
    assert file.read_text() == "runner:\n  worker:\n    kind: claude-code\n"
    assert shell("config", "set", "runner.budget.usd", "5") == 0
    assert shell("config", "show") == 0
    assert "runner.budget.usd" in shell.out and "claude-code" in shell.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["runner.worker.kind", "codx"], "unknown-kind"),
        (["runner.worker.kynd", "mock"], "unknown-key"),
        (["runner.budget.usd", "much"], "bad-value"),
        (["runner", "x"], "bad-option"),
        (["runner.worker.kind"], "usage"),
        (["runner.worker.kind", "mock", "--project"], "project-setting"),
    ],
)
def test_what_no_task_could_have_is_not_written(
    arguments: list[str], code: str, shell: Shell
) -> None:
    assert shell("config", "set", *arguments) == 2
    assert f"error[{code}]" in shell.err
    assert not (shell.repo.parent / ".config" / "agentrunner" / "config.yaml").exists()
    assert not (shell.repo / "agentrunner.yaml").exists()


def test_no_line_is_cited_that_the_file_does_not_have(shell: Shell) -> None:
    assert shell("config", "set", "budget.usd", "3") == 0
    assert shell("config", "set", "runner.foo", "3") == 2
    assert "foo: 3" not in shell.err and "at config set runner.foo" in shell.err


def test_a_project_may_ask_for_more(shell: Shell) -> None:
    assert shell("config", "set", "completion", "strict", "--project") == 0
    assert (shell.repo / "agentrunner.yaml").read_text() == "runner:\n  completion: strict\n"


def test_an_editor_needs_a_terminal(shell: Shell) -> None:
    assert shell("config", "edit") == 2 and "agentrunner config set" in shell.err


def test_init_can_keep_the_notes_out_of_git(shell: Shell) -> None:
    from agentrunner.commands.init import ignore_notes, is_ignored

    place: Path = shell.repo / ".gitignore"
    assert not is_ignored(shell.repo)
    place.write_bytes(b"*.pyc")
    ignore_notes(shell.repo)
    assert place.read_text() == "*.pyc\n.agent-runner/\n"
    ignore_notes(shell.repo)
    assert place.read_text().count("agent-runner") == 1
    place.write_text("/.agent-runner\n")
    assert is_ignored(shell.repo)


@pytest.mark.parametrize(
    ("text", "key", "after"),
    [
        ("runner:\n  # mine\n  budget:\n    usd: 5\n    tokens: 9\n", "budget.usd",
         "runner:\n  # mine\n  budget:\n    tokens: 9\n"),
        ("# all\nrunner:\n  budget:\n    usd: 5\nnotify: beep\n", "budget.usd",
         "# all\nnotify: beep\n"),
        ("# all\nnotify: beep\n", "notify", "# all\n"),
        ("notify: beep\n", "worker.kind", "notify: beep\n"),
        ("runner: {worker: {kind: mock, model: x}}\n", "worker.kind",
         "runner:\n  worker:\n    model: x\n"),
    ],
)  # fmt: skip
def test_a_setting_is_taken_out_with_the_sections_that_held_it_alone(
    text: str, key: str, after: str
) -> None:
    assert without_setting(text, key_path(key), "c.yaml") == after


def test_config_unset_takes_back_what_set_wrote(shell: Shell) -> None:
    assert shell("config", "set", "worker.kind", "claude-code") == 0
    assert shell("config", "unset", "worker.kind") == 0 and "not set any more" in shell.out
    assert shell("config", "show") == 0 and "claude-code" not in shell.out
    assert shell("config", "unset", "worker.kind") == 0 and "is not set in" in shell.out
    assert shell("config", "unset") == 2
