"""`python -m agentrunner`, the same as the command `agentrunner`."""

import os
import sys

# `python -m` looks for modules in the folder it is started from, which may be a hostile
# repository with a yaml.py of its own.
if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109
    del sys.path[0]

from agentrunner.cli import main

if __name__ == "__main__":
    main()
