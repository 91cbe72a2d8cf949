"""The language of a program, and the statement that kills its process. Pure."""

from __future__ import annotations

import posixpath

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.languages import SCRIPTS, language_of

WITH_TREES = frozenset({"python", *SCRIPTS})
"""Languages whose programs are read with a grammar; all others are read by patterns."""
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
"""Code that ends the process without giving handlers a chance; an expression up to Ruby's entry."""
_ENDINGS = {
    **dict.fromkeys((".sh", ".bash"), "sh"),
    **dict.fromkeys((".pl", ".t"), "perl"),
    **dict.fromkeys((".c", ".cc", ".cpp", ".cxx"), "c"),
    ".php": "php",
    ".rb": "ruby",
    ".lua": "lua",
}
_FIRST_LINE = lazy_regex(rb"#!.*\b(python|node|php|ruby|perl|lua|(?:ba|da|z|k)?sh)[\d.]*(?!\w)")


def program_language(path: str, source: bytes = b"") -> str:
    """Return a program's language by its ending or first line; "" if it is not in `KILLS`."""
    ending = posixpath.splitext(path)[1]
    named = language_of(path) or _ENDINGS.get(ending, "")
    # Files for `prove` can be in any language.
    if (not named or ending == ".t") and (hit := _FIRST_LINE.match(source)):
        word = hit[1].decode()
        named = "sh" if word.endswith("sh") else {"node": "javascript"}.get(word, word)
    return named if named in KILLS else ""
