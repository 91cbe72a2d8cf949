"""Where both commands begin, and `python -m agentrunner`: before anything else is imported."""

import os
import sys

# `python -m` looks for modules in the folder it is started from, which may be a hostile
# repository with a yaml.py of its own.
_started_by_name = __name__ == "__main__" and not sys.flags.safe_path
if _started_by_name and sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109
    del sys.path[0]


def _import_quietly() -> None:
    """Import what both need, so that a Ctrl-C meanwhile ends without Python's traceback."""
    import signal

    ours = signal.getsignal(signal.SIGINT)
    if ours is signal.default_int_handler:  # else it is ignored, and stays so
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    import agentrunner.cli  # noqa: F401

    signal.signal(signal.SIGINT, ours)


def main() -> None:
    """Entry point of `agentrunner`."""
    _import_quietly()
    from agentrunner import cli

    cli.main()


def stdin_main() -> None:
    """Entry point of `agent-runner`."""
    _import_quietly()
    from agentrunner import cli

    cli.stdin_main()


if __name__ == "__main__":
    main()
