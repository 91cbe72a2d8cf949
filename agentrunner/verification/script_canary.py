"""Programs that decide by their exit code, made to fail wherever they end. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from agentrunner.verification.checks import ReadFile

SHELL_EXIT = re.compile(r"^(\s*)(exit)\b[^\n;|&]*", re.MULTILINE)
SHELL_EQUAL = re.compile(r"""((?:\btest\b|\[)[^|;&\n]*\s==?\s+)(?:"[^"$]*"|'[^']*'|[\w./:-]+)""")
PYTHON_EXIT = re.compile(r"^(\s*)(?:sys\.exit|exit|quit|raise SystemExit)\b.*$", re.MULTILINE)
NODE_EXIT = re.compile(r"\bprocess\.exit\((?:[^()]|\([^()]*\))*\)")
NODE_CODE = re.compile(r"\bprocess\.exitCode\s*=(?!=)[^;\n]*")
PERL_EXIT = re.compile(
    r"(?<![$@%&>\w])exit\b(?:\s*\([^;\n]*\)|[^;}\n]*?)(?=\s*[;}]|\s+(?:if|unless)\b)"
)
RUBY_EXIT = re.compile(
    r"(?<![.\w:])exit!?(?![\w:])(?:\s*\([^\n]*?\)(?=\s|\Z|;)|[ ]\w+(?=\s*$))?", re.MULTILINE
)
PHP_EXIT = re.compile(r"(?<![$\w>:])(?:exit|die)\b\s*(?:\([^;]*\))?\s*;")
LUA_EXIT = re.compile(r"\bos\.exit\s*\([^)\n]*\)")
C_MAIN = re.compile(r"\bmain\s*\([^)]*\)[^{;]*\{")
C_RETURN = re.compile(r"\breturn\b[^;]*;")
C_EXIT = re.compile(r"\b(_?exit|_Exit|quick_exit)\s*\([^;]*\)\s*;")
FAIL = 1
"""The exit code of a program that was made to fail: the one that programs fail with."""
GARBAGE = b"agentrunner: this is another text\n"
"""What stands in the place of a text that something is compared with."""

Make = Callable[[str, str], str | None]


def failing_programs(paths: Sequence[str], read: ReadFile) -> Mapping[str, bytes]:
    """These programs, each with a failure at all of its ends; those that are not known left out."""
    return _made(paths, read, _failing)


def program_is_known(path: str, source: bytes) -> bool:
    """Whether `failing_programs` can make a program fail."""
    return _failing(path, source.decode("utf-8", "surrogateescape")) is not None


def failing_assertions(paths: Sequence[str], read: ReadFile) -> Mapping[str, bytes]:
    """Programs in C that assert, each with an assertion that fails at the end of `main`."""
    return _made(paths, read, _asserting)


def unequal_scripts(paths: Sequence[str], read: ReadFile) -> Mapping[str, bytes]:
    """Shell scripts whose comparisons, as far as they end the script, expect something else."""
    return _made(paths, read, _unequal)


def _unequal(path: str, text: str) -> str | None:
    first = text.split("\n", 1)[0]
    if not (path.endswith((".sh", ".bash")) or re.match(r"#!.*\b(ba|da|z|k)?sh\b", first)):
        return None
    ends = re.search(r"(?m)^\s*set\s+-\w*e", text)
    lines = [
        SHELL_EQUAL.sub(r"\g<1>agentrunner", line) if ends or "||" in line else line
        for line in text.split("\n")
    ]
    made = "\n".join(lines)
    return made if made != text else None


MINITEST_END = re.compile(r"(?ms)^class [^\n]*\bTest\w*\n.*?^(?P<end>end)\b")
"""A class of tests at the top of a file."""
FOREIGN = re.compile(r"\s*#\s*language:\s*(?!en\b)")
"""A feature whose keywords are not English."""


def unequal_test(source: bytes, path: str, name: str) -> bytes | None:
    """A test file with one more test, in its framework's own equality, that has to fail.

    For languages without a syntax tree here: RSpec, Minitest, PHPUnit, Perl's Test::More, and
    Gherkin, where it has a step that nobody defines.
    """
    text = source.decode("utf-8", "surrogateescape")
    if path.endswith("_spec.rb") and (hit := list(re.finditer(r"(?m)^end\b", text))):
        added, at = f'  it("{name}") {{ expect("made").to eq("to fail") }}\n', hit[-1].start()
    elif path.endswith(".rb") and (hit := list(MINITEST_END.finditer(text))):
        call = 'assert_equal "made", "to fail"'
        added, at = f"  def test_{name}; {call}; end\n", hit[-1].start("end")
    elif path.endswith(".php") and "assert" in text and (at := text.rstrip().rfind("}")) > 0:
        call = '$this->assertSame("made", "to fail");'
        added = f"    public function test_{name}(): void {{ {call} }}\n"
    elif path.endswith(".t") and re.search(r"\b(is|ok)\b", text):
        ends = re.search(r"(?m)^done_testing\b", text)
        added, at = f'is("made", "to fail", "{name}");\n', ends.start() if ends else len(text)
    elif path.endswith(".feature") and not FOREIGN.match(text):
        added, at = f"\n  Scenario: {name}\n    Then {name} has to fail\n", len(text)
    else:
        return None
    return (text[:at] + added + text[at:]).encode("utf-8", "surrogateescape")


def _made(paths: Sequence[str], read: ReadFile, make: Make) -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    for path in paths:
        content = read(path)
        made = make(path, content.decode("utf-8", "surrogateescape")) if content else None
        if made is not None:
            found[path] = made.encode("utf-8", "surrogateescape")
    return found


def _failing(path: str, text: str) -> str | None:
    first = text.split("\n", 1)[0]
    if path.endswith((".sh", ".bash")) or re.match(r"#!.*\b(ba|da|z|k)?sh\b", first):
        # The trap is for an exit in the middle of a line, the rest for a trap of the script's own.
        head, body = _after_first_line(text)
        made = SHELL_EXIT.sub(rf"\g<1>exit {FAIL}", body).rstrip("\n")
        return f"{head}trap 'exit {FAIL}' EXIT\n{made}\nexit {FAIL}\n"
    if path.endswith(".py") or re.match(r"#!.*\bpython", first):
        made = PYTHON_EXIT.sub(rf"\g<1>raise SystemExit({FAIL})", text)
        return made.rstrip("\n") + f"\nraise SystemExit({FAIL})\n"
    if path.endswith((".js", ".mjs", ".cjs")) or re.match(r"#!.*\bnode", first):
        made = NODE_EXIT.sub(f"process.exit({FAIL})", text)
        made = NODE_CODE.sub(f"process.exitCode = {FAIL}", made)
        return made.rstrip("\n") + f"\nprocess.exitCode = {FAIL};\n"
    if (dying := _by_exception(path, text, first)) is not None:
        return dying
    if path.endswith(".java"):
        made = re.sub(r"\bSystem\.exit\s*\([^;]*\)\s*;", f"System.exit({FAIL});", text)
        hit = C_MAIN.search(made)
        end = _closing(made, hit.end()) if hit else -1
        return f"{made[:end]} System.exit({FAIL}); {made[end:]}" if end >= 0 else None
    return _in_main(path, text, f"return {FAIL};", everywhere=True)


def _by_exception(path: str, text: str, first: str) -> str | None:
    """A program of Perl, Ruby, PHP or Lua that dies of an error at each of its ends."""
    what = '"made to fail"'
    if path.endswith(".pl") or re.match(r"#!.*\bperl", first):
        return _before_data(PERL_EXIT.sub(f"die({what})", text), f"die({what});\n")
    if path.endswith(".rb") or re.match(r"#!.*\bruby", first):
        return _before_data(RUBY_EXIT.sub(f"raise({what})", text), f"raise({what})\n")
    if path.endswith(".lua") or re.match(r"#!.*\blua", first):
        made = LUA_EXIT.sub(f"error({what})", text).rstrip("\n")
        last = made.rsplit("\n", 1)[-1]
        return None if last.startswith("return") else f"{made}\nerror({what})\n"
    if (path.endswith(".php") or re.match(r"#!.*\bphp", first)) and "?>" not in text:
        throws = f"throw new \\Exception({what});"
        return PHP_EXIT.sub(lambda _: throws, text).rstrip("\n") + f"\n{throws}\n"
    return None


def _before_data(text: str, statement: str) -> str:
    """A program with a last statement; in Perl and Ruby data may follow it."""
    hit = re.search(r"(?m)^__(?:END|DATA)__$", text)
    at = hit.start() if hit else len(text)
    return text[:at].rstrip("\n") + "\n" + statement + text[at:]


def _after_first_line(text: str) -> tuple[str, str]:
    """The line that names the interpreter, "" where there is none, and the rest."""
    if not text.startswith("#!"):
        return "", text
    line, _, rest = text.partition("\n")
    return f"{line}\n", rest


def _asserting(path: str, text: str) -> str | None:
    if not re.search(r"\bassert\s*\(", text):
        return None
    return _in_main(path, text, 'assert(0 && "made to fail");', everywhere=False)


def _in_main(path: str, text: str, statement: str, *, everywhere: bool) -> str | None:
    """A C program with a statement before each end of `main`."""
    hit = C_MAIN.search(text) if path.endswith((".c", ".cc", ".cpp", ".cxx")) else None
    end = _closing(text, hit.end()) if hit else -1
    if hit is None or end < 0:
        return None
    body = C_RETURN.sub(lambda one: f"{{ {statement} {one[0]} }}", text[hit.end() : end])
    if everywhere:
        body = C_EXIT.sub(f"exit({FAIL});", body)
    return f"{text[: hit.end()]}{body} {statement} {text[end:]}"


def _closing(text: str, start: int) -> int:
    """Where the block that begins at `start` ends; -1 where it does not."""
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
