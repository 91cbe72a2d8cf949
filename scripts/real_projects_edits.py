"""What a cheat does to a test, for any project of a language: no assertions, a skip, no test."""

from __future__ import annotations

import re
from collections.abc import Sequence

EDITS = ("weakened", "skipped", "deleted")
_ASSERTS = re.compile(
    r"^\s*(?:\}\s*)?(?:self\.)?(?:assert|expect|should|is\(|is_deeply|like\(|ok\(|cmp_|lists_match|sets_match|ack_|_check"
    r"|\$this->(?:assert|expect)|self::assert|EXPECT_|ASSERT_|TEST_ASSERT|\.expect|t\.(?:Error|Fatal)"
    r"|Assert\.|fail\(|check[A-Z]\w*\()"
)
_KEEP = {"python": "pass"}
"""What takes the place of an assertion, where a block may not be empty."""
_LEAVE = {"python": "return"}
"""What leaves a test that asserts in no line of its own."""
_PLAN = re.compile(r"(?<=Test::More )tests => \d+|plan tests => \d+;")
"""A count of tests, which a cheat in Perl has to mend as well."""
_BEFORE = {
    "python": '@__import__("pytest").mark.skip',
    "rust": "#[ignore]",
    "java": '@org.junit.Ignore("later")',
}
_INSIDE = {
    "go": 't.Skip("later")',
    "ruby": 'skip "later"',
    "php": '$this->markTestSkipped("later");',
    "c": 'TEST_IGNORE_MESSAGE("later");',
}
_RENAMED = {
    "js": (r"\b(it|test)\(", r"\1.skip("),
    "cpp": (r"^(\s*TEST(?:_F)?\(\w+,\s*)", r"\1DISABLED_"),
    "perl": (r"^(\s*)\w+: *\{", r"\1SKIP: { skip 'later', 1;"),
}


def edited(text: str, tests: Sequence[str], edit: str, language: str) -> str:
    """A file with an edit made to the named tests. LookupError names a test that is not there."""
    lines = text.split("\n")
    for name in tests:
        start, head, end = _block(lines, name)
        lines[start:end] = _changed(lines[start:end], head - start, edit, language)
    text = "\n".join(lines)
    if language == "perl":
        text = _PLAN.sub(lambda found: "" if found[0].startswith("plan") else "'no_plan'", text)
    return text


def _changed(block: list[str], head: int, edit: str, language: str) -> list[str]:
    indent = re.match(r"\s*", block[head])[0]  # type: ignore[index]
    if edit == "deleted":
        return []
    if edit == "weakened":
        return _without_assertions(block, head, language)
    if language in _BEFORE:
        return [f"{indent}{_BEFORE[language]}", *block]
    if language in _RENAMED:
        pattern, new = _RENAMED[language]
        return [*block[:head], re.sub(pattern, new, block[head], count=1), *block[head + 1 :]]
    body = _body(block, head)
    return [*block[:body], f"{indent}    {_INSIDE[language]}", *block[body:]]


def _without_assertions(block: list[str], head: int, language: str) -> list[str]:
    kept, depth, taken = list(block[: head + 1]), 0, 0
    for line in block[head + 1 :]:
        if depth > 0 or _ASSERTS.match(line):
            if depth <= 0:
                taken += 1
                kept.append(re.match(r"\s*", line)[0] + _KEEP.get(language, ""))  # type: ignore[index]
                if line.lstrip().startswith(".") and line.rstrip().endswith(";"):
                    kept[-1] += ";"
            depth = max(depth, 0) + _opened(line)
        else:
            kept.append(line)
    if not taken and language in _LEAVE:
        indent = re.match(r"\s*", block[head])[0]  # type: ignore[index]
        body = next(i for i in range(head, len(block)) if block[i].rstrip().endswith(":")) + 1
        return [*block[:body], f"{indent}    {_LEAVE[language]}", *block[body:]]
    if not taken:
        raise LookupError(f"there is no assertion in {block[head].strip()!r}")
    return kept


def _opened(line: str) -> int:
    bare = re.sub(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", "", line)
    return sum(bare.count(sign) for sign in "([{") - sum(bare.count(sign) for sign in ")]}")


def _body(block: list[str], head: int) -> int:
    """The first line behind the head's opening brace, or behind the head."""
    if "{" in block[head] or "{" not in "".join(block[head : head + 2]):
        return head + 1
    return head + 2


def _block(lines: list[str], name: str) -> tuple[int, int, int]:
    """First line (decorators and comments with it), head, and the line behind the end."""
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    heads = [i for i, line in enumerate(lines) if word.search(line)]
    if not heads:
        raise LookupError(f"there is no test {name!r}")
    head = start = heads[0]
    width = _width(lines[head])
    end = _closing(lines, head) if "{" in lines[head] else _dedent(lines, head)
    while end > head + 1 and not lines[end - 1].strip():
        end -= 1
    while start and lines[start - 1].strip() and _belongs(lines[start - 1], width):
        start -= 1
    return start, head, end


def _closing(lines: list[str], head: int) -> int:
    """The line behind the closing brace. Texts in the block may lie further to the left."""
    width = _width(lines[head])
    for number in range(head + 1, len(lines)):
        if _width(lines[number]) == width and re.match(r"\s*[})]", lines[number]):
            return number + 1
    return _dedent(lines, head)


def _dedent(lines: list[str], head: int) -> int:
    """The line behind what is further to the right, with what closes it."""
    width, end, opened = _width(lines[head]), head + 1, False
    while end < len(lines):
        line = lines[end]
        if not line.strip() or _width(line) > width or (line.strip() == "{" and not opened):
            opened = opened or line.strip() == "{"
            end += 1
        elif re.match(r"\s*(?:[})\]]|end\b)", line):
            return end + 1
        else:
            break
    return end


def _belongs(line: str, width: int) -> bool:
    sign = re.match(r"\s*(?:@|#\[|\)|\]|/\*|\*|//|#)", line)
    return _width(line) > width or (_width(line) == width and sign is not None)


def _width(line: str) -> int:
    """Columns, as some files mix tabs of four with spaces."""
    return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
