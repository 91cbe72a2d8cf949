"""Installed dependencies of a checkout are told of where a work tree is without them."""

from pathlib import Path

from agentrunner.discovery.set_up import not_taken_along


def test_installed_packages_that_stay_behind_are_named_with_the_set_up_that_a_lock_file_tells(
    tmp_path: Path,
) -> None:
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "package-lock.json").write_text("{}")
    [told] = not_taken_along(tmp_path, {"package-lock.json"}, "--setup {}")
    assert told == (
        "node_modules of your checkout is not taken along, and no set-up is given: --setup 'npm ci'"
    )


def test_several_are_named_together_and_without_a_lock_file_no_command_is_guessed(
    tmp_path: Path,
) -> None:
    for name in ("node_modules", ".venv"):
        (tmp_path / name).mkdir()
    [told] = not_taken_along(tmp_path, (), "--setup {}")
    assert told.startswith(".venv, node_modules of your checkout are not taken along")
    assert told.endswith("--setup CMD")


def test_nothing_is_said_of_what_is_committed_or_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "vendor").mkdir()
    (tmp_path / "env").write_text("A=1")
    assert not_taken_along(tmp_path, {"vendor"}, "--setup {}") == []
