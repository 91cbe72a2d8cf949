"""What build tools say where a part of themselves is not there."""

import pytest

from agentrunner.verification.rooms.complaints import unresolved

PLUGIN = (
    "Plugin org.apache.maven.plugins:maven-jar-plugin:2.6 or one of its dependencies could not"
    " be resolved: The following artifacts could not be resolved: maven-core:jar:2.0.6:"
    " Cannot access central (https://repo.example.org) in offline mode"
)
GOAL = "org.apache.maven.plugins:maven-jar-plugin:2.6:resources"


@pytest.mark.parametrize(
    "before",
    [
        "",
        f"Failed to execute goal {GOAL} (default-resources) on project isbn: Execution"
        f" default-resources of goal {GOAL} failed: ",
    ],
)
def test_a_plugin_of_maven_that_is_not_here_is_no_red_test(before: str) -> None:
    """Maven says of a plugin's own parts which goal they are for."""
    assert unresolved(f"[INFO] x\n[ERROR] {before}{PLUGIN} and ….\n") == (
        f"[ERROR] {before}{PLUGIN} and …."
    )
    assert not unresolved(f"[ERROR] {before}There are test failures.\n")
