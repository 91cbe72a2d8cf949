"""The command line (under construction)."""


def main() -> None:
    """Entry point of `agentrunner`."""


def stdin_main() -> None:
    """Entry point of `agent-runner`."""
