"""Where both commands begin, and `python -m agentrunner`: before anything else is imported."""

import atexit
import os
import sys
import time

_GIVEN_AT = time.time()
"""When the command was given. The system has only when its process was forked, which is long before
for `sh -c 'sleep 60; exec agentrunner …'`."""
_code: list[int] = []
"""The exit code, once it is known."""


def _end_at_once() -> None:
    if not _code:
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # what reads them has gone, of which Python's own end tells
    os._exit(_code[0])


# What is registered first runs last: then nothing is left but to take half a million objects apart,
# which takes Python as long as a fifth of its imports.
atexit.register(_end_at_once)

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


def _run(name: str, *given: float) -> None:
    """Run a function of `cli` that ends the process; it has printed everything by then."""
    _import_quietly()
    from agentrunner import cli

    try:
        getattr(cli, name)(*given)
    except SystemExit as end:
        if isinstance(end.code, int):
            _code.append(end.code)
        raise


def main() -> None:
    """Entry point of `agentrunner`."""
    _run("main", _GIVEN_AT)


def stdin_main() -> None:
    """Entry point of `agent-runner`."""
    _run("stdin_main")


if __name__ == "__main__":
    main()
