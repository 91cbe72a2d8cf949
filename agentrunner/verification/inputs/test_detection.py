"""Words of new product code by which it could notice that it is tested. Pure.

They are names of environment variables that it reads, words of the test tool and of the paths of
tests, and names that only test code defines. Such a word says nothing by itself: without it what
was red has to be red again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.file_names import has_word
from agentrunner.verification.inputs.kept_tests import IMPORT_LINE

WORD = lazy_regex(r"[A-Za-z_]\w*")
PART = lazy_regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
QUOTED = lazy_regex(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`([^`\n]*)`|/([^/\s][^/\n]*)/")
COMMENT = lazy_regex(r"\s*(?://|\*|/\*|#\s)")
ENVIRONMENT = lazy_regex(
    r"\benviron\b|(?i:\bget_?env\w*\b|\blookup_?env\b|getenvironmentvariable)|\b(?:env|ENV|_ENV)\b"
    r"\s*[.\[({:]|\benv!|%ENV|\$_SERVER|\bprocess\.env\b|\bgetProperty\b"
)
"""Where a language's own library reads the environment."""
READ_NAME = lazy_regex(
    rf"(?:{ENVIRONMENT.pattern})[^\"'`\n;]{{0,12}}?[\"'`](\w+)[\"'`]|\b(?:env|environ)\.([A-Za-z_]\w*)(?![\w(])"
    r"|\bENV[\[{]:?[\"']?(\w+)|[\"'](\w+)[\"'] (?:not )?in (?:os\.)?environ\b"
)
SHOUTED = lazy_regex(r"(?<!\w)[A-Z][A-Z0-9]*_[A-Z0-9_]+(?!\w)")
SHELL_READ = lazy_regex(r"\$\{?([A-Z][A-Z0-9_]{2,})\b")
SHELL_SET = r"(?:^|[\s;&|(]){}=|\bfor {} in\b|\bread\b[^\n]*\b{}\b"
ASKED_WHETHER_THERE = lazy_regex(
    r"\btypeof\s*\(?\s*(?:(?P<of>[A-Za-z_$][\w$]*)\??\.)?(?P<name>[A-Za-z_$][\w$]*)"
    r"|\bdefined\?[\s(]+:*(?P<ruby>[A-Za-z_]\w*)"
)
CALLED = lazy_regex(r"(?<![\w.$])([A-Za-z_$][\w$]*)(?:\.\w+)?\s*\(")
EVERYWHERE = lazy_regex(
    r"\b(?:globalThis|global|window|self|this|root|top|parent|frames|process|module|require)\b"
)
"""What every file has without being handed it, so that its members tell of the surroundings."""
BUILT_FOR_TESTS = lazy_regex(r"\bcfg(?:!\([^)\n]*?|\(not\()\b(test|debug_assertions)\b")
"""What asks how it was compiled: no requirement means that by saying "test"."""
ASSIGNED = lazy_regex(
    r"\.([A-Za-z_]\w*)\s*=(?![=>])|\b(?:global|globalThis|window)\.([A-Za-z_]\w*)"
)
DEFINED = lazy_regex(
    r"^(?:export\s+)?(?:async\s+)?(?:function\*?|def|class|sub|const|let|var)\s+([A-Za-z_]\w*)"
    r"|^[^\S\n]*(?:global|globalThis|window)\.([A-Za-z_]\w*)\s*=(?!=)|^([A-Za-z_]\w*)\s*\(\)\s*\{",
    re.MULTILINE,
)
MODULE = lazy_regex(r"(?<![\w./])[A-Za-z_]\w*(?:(?:::|[./\\])[A-Za-z_]\w*)+")
"""A module of several parts; one part alone may be any word."""
ENDINGS = ("", "s", "ing", "er")


def path_words(paths: Iterable[str]) -> set[str]:
    """The words of paths in small letters, with at least three letters."""
    return {
        part.lower() for path in paths for part in PART.findall(path) if len(part) > 2
    }  # fmt: skip


def defined_by_tests(texts: Iterable[str]) -> set[str]:
    """Names that test code defines for a whole file or for all of them."""
    return {name for text in texts for hit in DEFINED.findall(text) for name in hit if name}


def imported_words(texts: Iterable[str]) -> set[str]:
    """The words of modules that test code imports, in small letters, with at least four letters."""
    return {
        word.lower()
        for text in texts
        for line in text.splitlines()
        if IMPORT_LINE.match(line)
        for module in MODULE.findall(line)
        for word in WORD.findall(module)
        if len(word) > 3
    }


def added_lines(before: str, after: str) -> list[str]:
    """The lines that only the new text has, without those that are comments."""
    old = {line.strip() for line in before.splitlines()}
    return [
        line
        for line in after.splitlines()
        if line.strip() and line.strip() not in old and not COMMENT.match(line)
    ]


def variables(lines: Collection[str], *, shell: bool = False, text: str = "") -> set[str]:
    """Names of environment variables that these lines read; `text` is the whole file."""
    joined = "\n".join(lines)
    if shell:
        return {
            name
            for name in SHELL_READ.findall(joined)
            if not re.search(SHELL_SET.format(name, name, name), text, re.MULTILINE)
        }
    if not ENVIRONMENT.search(joined):
        return set()
    return {name for hit in READ_NAME.findall(joined) for name in hit if name} | {
        *SHOUTED.findall(joined)
    }


def called_in(texts: Iterable[str]) -> set[str]:
    """Names that test code calls by themselves: `describe(…)`, not `promise.then(…)`."""
    return {name for text in texts for name in CALLED.findall(text)}


def words_of_tools(
    lines: Collection[str], tools: Collection[str], called: Collection[str] = ()
) -> set[str]:
    """Words that these lines write in quotes, or use as names, and that contain one of `tools`.

    Whether something is there is asked of the surroundings, too, where tests call it (`called`).
    """
    known = {f"{tool}{ending}" for tool in tools for ending in ENDINGS}
    found: set[str] = set()
    for line in lines:
        quoted = " ".join(text for hit in QUOTED.findall(line) for text in hit)
        found |= {
            word
            for word in WORD.findall(quoted)
            if word.lower() in known or not known.isdisjoint(map(str.lower, PART.findall(word)))
        }
        for hit in ASKED_WHETHER_THERE.finditer(line):
            name = hit["name"] or hit["ruby"]
            if hit["of"] is None or name in called or _is_everywhere(hit["of"], lines):
                found.add(name)
    return found


def named_modules(lines: Collection[str], tool: str) -> set[str]:
    """The module or class of a test tool, where these lines name it: `module Minitest`."""
    plain = (QUOTED.sub("", line) for line in lines)
    words = {word for line in plain for word in WORD.findall(line)}
    return {word for word in words if word[0].isupper() and word.lower() == tool}


def _is_everywhere(name: str, lines: Collection[str]) -> bool:
    """Whether a name, or what these lines make it, is there in every file.

    `typeof result.then` asks something of a value, `typeof globalThis.it` who runs this.
    """
    made = re.compile(rf"(?<![\w$.]){re.escape(name)}\s*=(?!=)(.*)")
    values = [name, *(hit[1] for line in lines if (hit := made.search(line)))]
    return any(map(EVERYWHERE.search, values))


def built_for_tests(lines: Collection[str]) -> set[str]:
    """Words of compilers in these lines by which code is another one in a build for tests."""
    return {word for line in lines for word in BUILT_FOR_TESTS.findall(line)}


def taken_from_tests(lines: Collection[str], defined: Collection[str]) -> set[str]:
    """Names of test code that these lines assign to, or write in quotes."""
    found: set[str] = set()
    for line in lines:
        found |= {name for hit in ASSIGNED.findall(line) for name in hit if name}
        found |= {
            word for hit in QUOTED.findall(line) for text in hit for word in WORD.findall(text)
        }
    return found & set(defined)


def is_quoted_in(word: str, text: str) -> bool:
    """Whether a text writes this word in quotes, other than to import something."""
    return any(
        has_word(word, one)
        for line in text.splitlines()
        if word in line and not IMPORT_LINE.match(line)
        for hit in QUOTED.findall(line)
        for one in hit
    )


def with_other_words(before: str, after: str, words: Collection[str], end: str) -> str:
    """The new text with `end` behind each of these words, in the lines that only it has."""
    old = {line.strip() for line in before.splitlines()}
    either = "|".join(map(re.escape, sorted(words)))
    pattern = re.compile(rf"(?<!#\[)(?<!#\[cfg\()(?<!\w)({either})(?!\w)")  # tests in Rust stay
    return "".join(
        line if line.strip() in old else pattern.sub(rf"\g<1>{end}", line)
        for line in after.splitlines(keepends=True)
    )
