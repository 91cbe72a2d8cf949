"""Languages of programs: how the one of a program is known, and how its process is killed. Pure."""

from __future__ import annotations

import posixpath
import re

from agentrunner.verification.syntax.languages import SCRIPTS, language_of

WITH_TREES = frozenset({"python", *SCRIPTS})
"""Those whose programs are read by a grammar; all others by their words."""
KILLS = {
    "python": '(__import__("os").kill(__import__("os").getpid(), 9))',
    **dict.fromkeys(SCRIPTS, '(process.kill(process.pid, "SIGKILL"), process.reallyExit(86))'),
    "php": r"(\exec('kill -9 $PPID') || exit(86))",
    "ruby": "(Process.kill(:KILL, $$); exit!(86))",
    "sh": "kill -9 $$",
    "perl": "kill 9, $$",
    "lua": 'os.execute("kill -9 $PPID")',
    "c": "__builtin_trap()",
    "java": "Runtime.getRuntime().halt(134)",
    "go": 'panic("made to end here")',
    "rust": "std::process::abort()",
}
"""What ends the process and leaves no handler a chance; an expression up to Ruby's."""
_ENDINGS = {
    **dict.fromkeys((".sh", ".bash"), "sh"),
    **dict.fromkeys((".pl", ".t"), "perl"),
    **dict.fromkeys((".c", ".cc", ".cpp", ".cxx"), "c"),
    ".php": "php",
    ".rb": "ruby",
    ".lua": "lua",
}
_FIRST_LINE = re.compile(rb"#!.*\b(python|node|php|ruby|perl|lua|(?:ba|da|z|k)?sh)[\d.]*(?!\w)")


def program_language(path: str, source: bytes = b"") -> str:
    """The language of a program, by its ending or first line; "" for one not in `KILLS`."""
    ending = posixpath.splitext(path)[1]
    named = language_of(path) or _ENDINGS.get(ending, "")
    # A file for `prove` is in any language.
    if (not named or ending == ".t") and (hit := _FIRST_LINE.match(source)):
        word = hit[1].decode()
        named = "sh" if word.endswith("sh") else {"node": "javascript"}.get(word, word)
    return named if named in KILLS else ""
