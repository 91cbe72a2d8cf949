"""Makes programs that decide by their exit code fail wherever they end. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes, to_text
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.languages import program_language

SHELL_EXIT = lazy_regex(r"^([^\S\n]*)(exit)\b[^\n;|&]*", re.MULTILINE)
NODE_EXIT = lazy_regex(r"\bprocess\.exit\((?:[^()]|\([^()]*\))*\)")
NODE_CODE = lazy_regex(r"\bprocess\.exitCode\s*=(?!=)[^;\n]*")
C_ENDINGS = (".c", ".cc", ".cpp", ".cxx")
C_MAIN = lazy_regex(r"\bmain\s*\([^)]*\)[^{;]*\{")
FRAMEWORK_TEST = lazy_regex(r"(?m)^[A-Z][A-Z0-9_]*\s*\([^;{}]*\)\s*\{")
"""A macro that opens a function: `TEST(Shop, adds) {`, `TEST_CASE("adds") {`."""
C_RETURN = lazy_regex(r"\breturn\b[^;]*;")
C_EXIT = lazy_regex(r"\b(_?exit|_Exit|quick_exit)\s*\([^;]*\)\s*;")
FAIL = 1
"""The exit code of a program that was made to fail, the usual one for a failure."""


class Ends(Struct, frozen=True):
    """How programs of a language end, and what replaces these ends."""

    exits: re.Pattern[str]
    failing: str
    joint: str = ""
    """What surrounds a statement on a line of its own."""


ENDS = {
    "python": Ends(
        lazy_regex(r"^(?P<indent>\s*)(?:sys\.exit|exit|quit|raise SystemExit)\b.*$", re.MULTILINE),
        f"raise SystemExit({FAIL})",
    ),
    "perl": Ends(
        lazy_regex(
            r"(?<![$@%&>\w])exit\b(?:\s*\([^;\n]*\)|[^;}\n]*?)(?=\s*[;}]|\s+(?:if|unless)\b)"
        ),
        f"exit({FAIL})",
        ";",
    ),
    "ruby": Ends(
        lazy_regex(
            r"(?<![.\w:])exit!?(?![\w:])(?:\s*\([^\n]*?\)(?=\s|\Z|;)|[ ](?!if\b|unless\b)\w+)?"
        ),
        f"exit({FAIL})",
    ),
    "php": Ends(
        lazy_regex(r"(?<![$\w>:])(?:exit|die)\b\s*(?:\([^;]*\))?\s*;"),
        f"exit({FAIL});",
    ),
    "lua": Ends(lazy_regex(r"\bos\.exit\s*\([^)\n]*\)"), f"os.exit({FAIL})"),
}
GARBAGE = b"agentrunner: this is another text\n"
"""What replaces a text that something is compared with."""


def program_is_known(path: str, source: bytes) -> bool:
    """Whether `failing_by_code` can make a program fail."""
    return failing_by_code(path, to_text(source)) is not None


def changed_texts(paths: Sequence[str], read: ReadFile) -> dict[str, bytes]:
    """These programs, made to fail; those that cannot be are left out."""
    found: dict[str, bytes] = {}
    for path in paths:
        content = read(path)
        made = failing_by_code(path, to_text(content)) if content else None
        if made is not None:
            found[path] = to_bytes(made)
    return found


def failing_by_code(path: str, text: str) -> str | None:
    """The program with a failing exit code at each of its ends; None for an unknown language."""
    language = program_language(path, to_bytes(text))
    if language == "sh":
        # The trap is for an exit in the middle of a line, the rest for a trap of the script itself.
        head, body = _after_first_line(text)
        made = SHELL_EXIT.sub(rf"\g<1>exit {FAIL}", body).rstrip("\n")
        return f"{head}trap 'exit {FAIL}' EXIT\n{made}\nexit {FAIL}\n"
    if language == "javascript":
        made = NODE_EXIT.sub(f"process.exit({FAIL})", text)
        made = NODE_CODE.sub(f"process.exitCode = {FAIL}", made)
        return made.rstrip("\n") + f"\nprocess.exitCode = {FAIL};\n"
    if path.endswith(".java"):
        made = re.sub(r"\bSystem\.exit\s*\([^;]*\)\s*;", f"System.exit({FAIL});", text)
        hit = C_MAIN.search(made)
        end = _end_of_block(made, hit.end()) if hit else -1
        return f"{made[:end]} System.exit({FAIL}); {made[end:]}" if end >= 0 else None
    if language in ENDS:
        return _with_ends(text, ENDS[language])
    return _failing_main(path, text) or _dying_at_start(path, text)


def _dying_at_start(path: str, text: str) -> str | None:
    """C or C++ tests whose `main` comes from a framework: their program dies as it starts."""
    if not path.endswith(C_ENDINGS) or C_MAIN.search(text) or not FRAMEWORK_TEST.search(text):
        return None
    dies = "__attribute__((constructor)) static void agentrunner_dies(void)"
    return f"{text.rstrip()}\n{dies} {{ __builtin_trap(); }}\n"


def _with_ends(text: str, ends: Ends) -> str | None:
    """The program with a failing exit instead of every exit, and at its end."""
    statement = ends.failing
    made = ends.exits.sub(lambda hit: (hit.groupdict().get("indent") or "") + statement, text)
    last = made.rstrip("\n").rsplit("\n", 1)[-1]
    if "?>" in text or last.startswith("return"):
        return None
    hit = re.search(r"(?m)^__(?:END|DATA)__$", made)  # data of Perl and Ruby
    at = hit.start() if hit else len(made)
    return f"{made[:at].rstrip(chr(10))}\n{ends.joint}{statement}{ends.joint}\n{made[at:]}"


def _after_first_line(text: str) -> tuple[str, str]:
    """The line that names the interpreter ("" where there is none), and the rest."""
    if not text.startswith("#!"):
        return "", text
    line, _, rest = text.partition("\n")
    return f"{line}\n", rest


def _failing_main(path: str, text: str) -> str | None:
    """A C program that returns a failure at each end of `main`."""
    statement = f"return {FAIL};"
    hit = C_MAIN.search(text) if path.endswith(C_ENDINGS) else None
    end = _end_of_block(text, hit.end()) if hit else -1
    if hit is None or end < 0:
        return None
    body = C_RETURN.sub(lambda one: f"{{ {statement} {one[0]} }}", text[hit.end() : end])
    body = C_EXIT.sub(f"exit({FAIL});", body)
    return f"{text[: hit.end()]}{body} {statement} {text[end:]}"


def _end_of_block(text: str, start: int) -> int:
    """The position where the block that begins at `start` ends; -1 where it does not."""
    depth, at = 1, start
    while at < len(text):
        if text[at] in "\"'":
            quote, at = text[at], at + 1
            while at < len(text) and text[at] != quote:
                at += 2 if text[at] == "\\" else 1
        elif text[at] == "{":
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return -1
