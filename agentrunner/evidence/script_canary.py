"""A script that decides, made to fail wherever it ends. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agentrunner.evidence.checks import ReadFile
from agentrunner.evidence.scripts import scripts_run

SHELL_EXIT = re.compile(r"^(\s*)(exit)\b[^\n;|&]*", re.MULTILINE)
PYTHON_EXIT = re.compile(r"^(\s*)(?:sys\.exit|exit|quit|raise SystemExit)\b.*$", re.MULTILINE)
NODE_FAILS = "process.exit = ((exit) => () => exit({0}))(process.exit.bind(process));\n"
FAIL = 86
"""The exit code of a script that was made to fail."""


def failing_script(shell: str, cwd: str, read: ReadFile) -> Mapping[str, bytes]:
    """The scripts that a command runs, by path, with a failure at each of their ends."""
    found: dict[str, bytes] = {}
    for path in sorted(scripts_run(shell, cwd, read)):
        content = read(path)
        text = content.decode("utf-8", "surrogateescape") if content else ""
        made = _failing(path, text)
        if made is not None:
            found[path] = made.encode("utf-8", "surrogateescape")
    return found


def _failing(path: str, text: str) -> str | None:
    first = text.split("\n", 1)[0]
    if path.endswith((".sh", ".bash")) or re.match(r"#!.*\b(ba|da|z|k)?sh\b", first):
        return SHELL_EXIT.sub(rf"\g<1>exit {FAIL}", text).rstrip("\n") + f"\nexit {FAIL}\n"
    if path.endswith(".py") or re.match(r"#!.*\bpython", first):
        made = PYTHON_EXIT.sub(rf"\g<1>raise SystemExit({FAIL})", text)
        return made.rstrip("\n") + f"\nraise SystemExit({FAIL})\n"
    if path.endswith((".js", ".mjs", ".cjs")) or re.match(r"#!.*\bnode", first):
        line, _, rest = text.partition("\n") if first.startswith("#!") else ("", "", text)
        head = f"{line}\n" if line else ""
        body = rest.rstrip("\n") + f"\nprocess.exitCode = {FAIL};\n"
        return head + NODE_FAILS.format(FAIL) + body
    return None
