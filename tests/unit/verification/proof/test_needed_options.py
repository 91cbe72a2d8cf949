"""Sources of tests that do not give an option any more."""

import pytest

from agentrunner.verification.proof.other_tests import without_option


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ('run(path, "list", "--json")', 'run(path, "list")'),
        ('run("--json", path)', "run(path)"),
        ("main(['--json'])", "main([])"),
        ('sh("list --json")', 'sh("list")'),
        ("bin/list --json room | grep x", "bin/list room | grep x"),
        ('assert "--json" in text', 'assert "--json" in text'),
        ('run("--json-lines")', 'run("--json-lines")'),
        ('run("list", "--json=2")', 'run("list")'),
        ('run("list", f"--json={n}", 3)', 'run("list", 3)'),
        ("bin/list --json=2 room", "bin/list room"),
        ('run("list", "--json-x=2")', 'run("list", "--json-x=2")'),
    ],
)
def test_an_option_is_no_longer_given(given: str, left: str) -> None:
    assert without_option(given.encode(), "json").decode() == left
