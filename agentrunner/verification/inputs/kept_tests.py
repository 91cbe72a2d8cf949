"""Tests in files of their own, and those inside product files, such as Rust's and doctests.

Tests under new names are accepted if old definitions stay the same byte by byte.
"""

from __future__ import annotations

import ast
import re
from difflib import SequenceMatcher

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.python_source import python_tree
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inputs.kept_part import KeptPart, Surrounding, old, whole
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.regions import regions_of_tests, with_regions_of

NEW_TESTS = "a test under a new name"
HOOKS = lazy_regex(
    r"(?i)^(pytest|setup|teardown|load_tests|__|before|after|conftest|autouse|collect_ignore)"
)
MARKS = lazy_regex(
    r"(pytest\.)?mark\.|(pytest\.)?param|given|example|settings|(mock\.)?patch|unittest\."
    r"|pytest\.fixture|fixture|staticmethod|classmethod|property|skip|expectedFailure|ddt|data"
)
OPENERS = {
    "javascript": r"(test|it|describe|specify|context|suite)(\.(each|skip|todo|concurrent))?"
    r"\s*[(`]",
    "go": r"func\s+(?!TestMain\b|init\b)\w+\s*\(",
    "rust": r"#\[(\w+::)*(test|rstest)\b|(async\s+)?fn\s+\w+|mod\s+\w+",
    "jvm": r"@(Test|ParameterizedTest|DisplayName|RepeatedTest|Nested|Disabled|\w+Source)"
    r"|(public|private|internal)?\s*(void|fun)\s+\w+\s*\(",
    "dotnet": r"\[(Fact|Theory|Test|TestCase|TestMethod|InlineData|DataRow)\b"
    r"|(public|private)\s+(async\s+)?(void|Task)\s+\w+\s*\(",
    "ruby": r"(it|specify|describe|context|test|scenario)\s*[(\"']|def\s+test_\w+",
    "php": r"#\[Test\]|/\*\*|\*|public\s+function\s+test\w+|(it|test)\s*\(",
    "perl": r"(subtest|is|ok|is_deeply|like|isnt|cmp_ok|unlike)\b",
    "shell": r"@test\s|test_\w+\s*\(\)",
}
"""How a test begins. Anything else that is added to a test file is not understood."""
IMPORT_LINE = lazy_regex(r"\s*(import\b|from\b|use\b|const\s.*\brequire\(|require\b|\"[\w./-]+\"$)")
REJECTED = lazy_regex(r"\.only\b|\bfdescribe\b|\bfit\s*\(|process\.exit|os\.Exit|\binit\s*\(\)")
MOST_LINES = 20_000


def keep_tests(before: str, after: str, around: Surrounding) -> KeptPart:
    """Return the new test file if only tests under new names were added, else the old one."""
    if around.path.endswith(".py"):
        fine = _python(before, after)
    elif around.path.endswith(".feature"):
        fine = _insertions(before, after, r"(@|#|Scenario|Example|Rule)", balanced=False)
    elif opener := OPENERS.get(family_of(around.path)):
        fine = _insertions(before, after, opener, balanced=True)
    else:
        fine = False
    return whole(after, NEW_TESTS) if fine else old(before)


# -- Python -------------------------------------------------------------------------------------


def _python(before: str, after: str) -> bool:
    old_tree, new_tree = python_tree(before), python_tree(after)
    if old_tree is None or new_tree is None:
        return False
    known = set(re.findall(r"\w+", before))
    return _only_adds_tests(old_tree.body, new_tree.body, before, after, known, in_class=False)


def _only_adds_tests(
    one: list[ast.stmt], two: list[ast.stmt], before: str, after: str, known: set[str],
    *, in_class: bool,
) -> bool:  # fmt: skip
    """Whether the new statements are the old ones, in order, plus further tests."""
    old_texts = [_text(node, before) for node in one]
    at = 0
    for node in two:
        if (at < len(one) and _text(node, after) == old_texts[at]) or (
            at < len(one) and _extends(one[at], node, before, after, known)
        ):
            at += 1
        elif not _is_new(node, known, in_class=in_class):
            return False
    return at == len(one)


def _text(node: ast.stmt, source: str) -> str:
    lines = source.split("\n")
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return "\n".join(lines[first - 1 : node.end_lineno])


def _extends(was: ast.stmt, now: ast.stmt, before: str, after: str, known: set[str]) -> bool:
    """Whether it is the same class with further tests, or the same import with further names."""
    if isinstance(was, ast.ImportFrom) and isinstance(now, ast.ImportFrom):
        old_names = {(a.name, a.asname) for a in was.names}
        new_names = {(a.name, a.asname) for a in now.names}
        same = (was.module, was.level) == (now.module, now.level) and old_names <= new_names
        added = {asname or name for name, asname in new_names - old_names}
        return same and "*" not in added and known.isdisjoint(added)
    if isinstance(was, ast.ClassDef) and isinstance(now, ast.ClassDef) and was.name == now.name:
        heads = [_text(n, t).split("\n")[: n.body[0].lineno - n.lineno] for n, t in
                 ((was, before), (now, after))]  # fmt: skip
        same = heads[0] == heads[1] and _decorators(was) == _decorators(now)
        return same and _only_adds_tests(was.body, now.body, before, after, known, in_class=True)
    return False


def _decorators(node: ast.ClassDef) -> list[str]:
    return [ast.dump(one) for one in node.decorator_list]


def _is_new(node: ast.stmt, known: set[str], *, in_class: bool) -> bool:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            calls = any(isinstance(n, ast.Call) for d in defaults for n in ast.walk(d))
            if calls or node.name in known or HOOKS.match(node.name):
                return False
            if in_class and not node.name.startswith("test"):
                return False
            return all(_is_mark(one) for one in node.decorator_list)
        case ast.ClassDef():
            if node.name in known or node.keywords or HOOKS.match(node.name):
                return False
            marks = all(_is_mark(one) for one in node.decorator_list)
            return marks and all(_is_plain(one) for one in node.body)
        case ast.Import():
            return known.isdisjoint((a.asname or a.name).partition(".")[0] for a in node.names)
        case ast.ImportFrom():
            names = {alias.asname or alias.name for alias in node.names}
            return "*" not in names and known.isdisjoint(names)
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name not in known and not HOOKS.match(name) and _is_literal(node.value)
    return False


def _is_plain(node: ast.stmt) -> bool:
    """Whether a statement of a new class runs nothing when it is read."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return all(_is_mark(one) for one in node.decorator_list)
    if isinstance(node, ast.Assign):
        return _is_literal(node.value)
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _is_mark(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return bool(MARKS.match(text)) and "autouse" not in text


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


# -- other languages ----------------------------------------------------------------------------


def _insertions(before: str, after: str, opener: str, *, balanced: bool) -> bool:
    """Whether the new text is the old one with whole tests inserted."""
    one, two = before.splitlines(), after.splitlines()
    if len(one) > MOST_LINES or len(two) > MOST_LINES:
        return False
    known = set(re.findall(r"\w+", before))
    found = False
    for tag, a, b, c, d in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if tag == "replace" and _imports_more(one[a:b], two[c:d], known):
            continue
        if tag != "insert" or not _fits(two, c, d, one, opener, balanced):
            return False
        found = True
    return found


def _imports_more(was: list[str], now: list[str], known: set[str]) -> bool:
    if not all(IMPORT_LINE.match(line) for line in [*was, *now] if line.strip()):
        return False
    left, right = re.findall(r"[\w./@-]+", "\n".join(was)), re.findall(r"[\w./@-]+", "\n".join(now))
    added = [word for word in right if word not in left]
    return [word for word in right if word in left] == left and known.isdisjoint(added)


def _fits(two: list[str], c: int, d: int, one: list[str], opener: str, balanced: bool) -> bool:
    """Whether the lines are whole tests; the same insertion can be cut in several ways."""
    for _ in range(200):
        chunk = two[c:d]
        after = next((line.strip() for line in two[d:] if line.strip()), "")
        ends_well = balanced or not after or re.match(opener, after)
        if ends_well and _is_test(chunk, one, opener, balanced):
            return True
        if c == 0 or two[c - 1] != two[d - 1]:
            return False
        c, d = c - 1, d - 1
    return False


def _is_test(chunk: list[str], one: list[str], opener: str, balanced: bool) -> bool:
    text = "\n".join(chunk)
    if REJECTED.search(text):
        return False
    plain = [line.strip() for line in chunk if line.strip()]
    plain = [line for line in plain if not line.startswith(("//", "#!", "/*", "# "))]
    old_lines = {line.strip() for line in one}
    known = set(re.findall(r"\w+", "\n".join(one)))
    while plain and IMPORT_LINE.match(plain[0]):
        if plain[0] in old_lines:
            return False
        bound = re.findall(r"\w+", re.split(r"\bfrom\b|=\s*require", plain[0])[0])
        if not known.isdisjoint(set(bound) - {"import", "const", "type", "use"}):
            return False
        plain.pop(0)
    if not plain:
        return True
    if not re.match(opener, plain[0]):
        return False
    if balanced and not _is_balanced(text):
        return False
    # A test whose name already exists would be a second definition.
    heads = [line for line in plain if re.match(opener, line) and re.search(r"[\"'`(]", line)]
    return all(
        line not in old_lines or line.startswith(("#[", "@", "[", "*", "/")) for line in heads
    )


def _is_balanced(text: str) -> bool:
    bare = re.sub(r"\"(\\.|[^\"\\\n])*\"|'(\\.|[^'\\\n])*'|`(\\.|[^`\\])*`|//[^\n]*", "", text)
    depth = 0
    for char in bare:
        depth += (char in "({[") - (char in ")}]")
        if depth < 0:
            return False
    blocks = len(re.findall(r"\b(do|def|class|module|if|case|begin)\b(?!:)", bare))
    if re.search(r"^[^\S\n]*end\b", bare, re.MULTILINE):
        return depth == 0 and blocks == len(re.findall(r"^[^\S\n]*end\b", bare, re.MULTILINE))
    return depth == 0


def keep_region(before: str, after: str, around: Surrounding) -> KeptPart:
    """Return the new product with the old tests of the same file."""
    language = language_of(around.path)
    if language is None:
        return old(before)
    was, now = to_bytes(before), to_bytes(after)
    old_tests, new_tests = _tests_in(was, language), _tests_in(now, language)
    restored = with_regions_of(now, was, language)
    if old_tests == new_tests:
        return whole(after, "the tests inside stay as they were", restored)
    added = [text for text in new_tests if text not in old_tests]
    same = [text for text in new_tests if text in old_tests] == old_tests
    names = [name for _, name, _ in old_tests]
    if same and all(kind != "main" and name not in names for kind, name, _ in added):
        return whole(after, NEW_TESTS, restored)
    joined = ["\n".join(text.decode("utf-8", "replace") for _, _, text in part)
              for part in (old_tests, new_tests)]  # fmt: skip
    if keep_tests(joined[0], joined[1], around).understood:
        return whole(after, NEW_TESTS, restored)
    return KeptPart(restored)


def _tests_in(source: bytes, language: str) -> list[tuple[str, str, bytes]]:
    return [
        (one.kind, one.name, source[one.start : one.end])
        for one in regions_of_tests(source, language)
    ]
