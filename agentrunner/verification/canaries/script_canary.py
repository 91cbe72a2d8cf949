"""Makes programs that decide by their exit code fail wherever they end. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes, to_text
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.languages import program_language
from agentrunner.verification.syntax.word_tests import GTEST

SHELL_EXIT = lazy_regex(r"^([^\S\n]*)(exit)\b[^\n;|&]*", re.MULTILINE)
SHELL_EQUAL = lazy_regex(
    r"""((?:\btest\b|(?<!\[)\[)[^|;&\n]*\s==?\s+)(?:"[^"$]*"|'[^']*'|[\w./:-]+)"""
)
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
    by_code: str
    by_error: str
    joint: str = ""
    """What surrounds a statement on a line of its own."""


ENDS = {
    "python": Ends(
        lazy_regex(r"^(?P<indent>\s*)(?:sys\.exit|exit|quit|raise SystemExit)\b.*$", re.MULTILINE),
        f"raise SystemExit({FAIL})",
        'raise AssertionError("made to fail")',
    ),
    "javascript": Ends(
        NODE_EXIT,
        f"process.exit({FAIL})",
        '(() => { throw new (require("assert").AssertionError)({ message: "made to fail" }); })()',
        ";",
    ),
    "perl": Ends(
        lazy_regex(
            r"(?<![$@%&>\w])exit\b(?:\s*\([^;\n]*\)|[^;}\n]*?)(?=\s*[;}]|\s+(?:if|unless)\b)"
        ),
        f"exit({FAIL})",
        'die("made to fail")',
        ";",
    ),
    "ruby": Ends(
        lazy_regex(
            r"(?<![.\w:])exit!?(?![\w:])(?:\s*\([^\n]*?\)(?=\s|\Z|;)|[ ](?!if\b|unless\b)\w+)?"
        ),
        f"exit({FAIL})",
        'raise("made to fail")',
    ),
    "php": Ends(
        lazy_regex(r"(?<![$\w>:])(?:exit|die)\b\s*(?:\([^;]*\))?\s*;"),
        f"exit({FAIL});",
        'throw new \\Exception("made to fail");',
    ),
    "lua": Ends(
        lazy_regex(r"\bos\.exit\s*\([^)\n]*\)"),
        f"os.exit({FAIL})",
        'error("made to fail")',
    ),
}
GARBAGE = b"agentrunner: this is another text\n"
"""What replaces a text that something is compared with."""

Make = Callable[[str, str], str | None]


def program_is_known(path: str, source: bytes) -> bool:
    """Whether `failing_by_code` can make a program fail."""
    return failing_by_code(path, to_text(source)) is not None


def with_other_values(path: str, text: str) -> str | None:
    """A shell script whose comparisons expect another value, if these can end the script."""
    if program_language(path, to_bytes(text)) != "sh":
        return None
    ends = re.search(r"(?m)^[^\S\n]*set\s+-\w*e", text)
    lines = [
        SHELL_EQUAL.sub(r"\g<1>agentrunner", line) if ends or "||" in line else line
        for line in text.split("\n")
    ]
    made = "\n".join(lines)
    return made if made != text else None


MINITEST_END = lazy_regex(r"(?ms)^class [^\n]*\bTest\w*\n.*?^(?P<end>end)\b")
"""A class of tests at the top level of a file."""
OTHER_LANGUAGE = lazy_regex(r"\s*#\s*language:\s*(?!en\b)")
"""A feature file whose keywords are not English."""


def unequal_test(source: bytes, path: str, name: str) -> bytes | None:
    """A test file with one more test that has to fail, by the framework's own equality.

    For languages without a grammar here: RSpec, Minitest, PHPUnit, GoogleTest, Perl's
    Test::More, and Gherkin, where the test has a step that nobody defines.
    """
    text = to_text(source)
    if path.endswith("_spec.rb") and (hit := list(re.finditer(r"(?m)^end\b", text))):
        added, at = f'  it("{name}") {{ expect("made").to eq("to fail") }}\n', hit[-1].start()
    elif path.endswith(".rb") and (hit := list(MINITEST_END.finditer(text))):
        call = 'assert_equal "made", "to fail"'
        added, at = f"  def test_{name}; {call}; end\n", hit[-1].start("end")
    elif path.endswith(".php") and "assert" in text and (at := text.rstrip().rfind("}")) > 0:
        call = '$this->assertSame("made", "to fail");'
        added = f"    public function test_{name}(): void {{ {call} }}\n"
    elif (
        path.endswith(".t")
        and program_language(path, source) == "perl"
        and re.search(r"\b(is|ok)\b", text)
    ):
        ends = re.search(r"(?m)^done_testing\b", text)
        added, at = f'is("made", "to fail", "{name}");\n', ends.start() if ends else len(text)
    elif program_language(path, source) == "c" and GTEST.search(text):
        added, at = f"\nTEST({name}, HasToFail) {{ EXPECT_EQ(1, 2); }}\n", len(text)
    elif path.endswith(".feature") and not OTHER_LANGUAGE.match(text):
        added, at = f"\n  Scenario: {name}\n    Then {name} has to fail\n", len(text)
    else:
        return None
    return to_bytes(text[:at] + added + text[at:])


def changed_texts(paths: Sequence[str], read: ReadFile, make: Make) -> dict[str, bytes]:
    """These programs as `make` changes them; those that it cannot change are left out."""
    found: dict[str, bytes] = {}
    for path in paths:
        content = read(path)
        made = make(path, to_text(content)) if content else None
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
        return _with_ends(text, ENDS[language], ENDS[language].by_code)
    return _with_in_main(path, text, f"return {FAIL};", everywhere=True) or _dying_at_start(
        path, text
    )


def _dying_at_start(path: str, text: str) -> str | None:
    """C or C++ tests whose `main` comes from a framework: their program dies as it starts."""
    if not path.endswith(C_ENDINGS) or C_MAIN.search(text) or not FRAMEWORK_TEST.search(text):
        return None
    dies = "__attribute__((constructor)) static void agentrunner_dies(void)"
    return f"{text.rstrip()}\n{dies} {{ __builtin_trap(); }}\n"


def failing_by_error(path: str, text: str) -> str | None:
    """The program dying of an error at each of its ends, for languages that have errors."""
    ends = ENDS.get(program_language(path, to_bytes(text)))
    return _with_ends(text, ends, ends.by_error) if ends else None


def _with_ends(text: str, ends: Ends, statement: str) -> str | None:
    """The program with `statement` instead of every exit, and at its end."""
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


def with_failing_assertion(path: str, text: str) -> str | None:
    """A C program that asserts, with an assertion that fails at the end of `main`."""
    if not re.search(r"\bassert\s*\(", text):
        return None
    return _with_in_main(path, text, 'assert(0 && "made to fail");', everywhere=False)


def _with_in_main(path: str, text: str, statement: str, *, everywhere: bool) -> str | None:
    """A C program with a statement before each end of `main`."""
    hit = C_MAIN.search(text) if path.endswith(C_ENDINGS) else None
    end = _end_of_block(text, hit.end()) if hit else -1
    if hit is None or end < 0:
        return None
    body = C_RETURN.sub(lambda one: f"{{ {statement} {one[0]} }}", text[hit.end() : end])
    if everywhere:
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
