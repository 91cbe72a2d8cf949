"""What languages have for telling their tools to say nothing."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.edits import applied
from agentrunner.verification.syntax.silenced_warnings import (
    WANTS_SILENCE,
    added_silenced_warnings,
    silenced_warnings,
)


@pytest.mark.parametrize(
    ("path", "source", "without"),
    [
        ("a.py", "import warnings\nwarnings.simplefilter('ignore')\n", "import warnings\nNone\n"),
        ("a.c", '#pragma GCC diagnostic ignored "-Wall"\nint a;\n', "\nint a;\n"),
        ("a.rs", "#![allow(warnings)]\nfn a() {}\n", "\nfn a() {}\n"),
        ("A.java", '@SuppressWarnings({"rawtypes"})\nclass A {}\n', "\nclass A {}\n"),
        ("a.ts", "return (u as any).email;", "return u.email;"),
        ("a.ts", "return u.email!.split('@');", "return u.email.split('@');"),
        ("a.php", "<?php $a = @file_get_contents($b);", "<?php $a = file_get_contents($b);"),
        ("a.sh", "rm x 2>/dev/null\n", "rm x \n"),
    ],
)
def test_they_are_taken_out(path: str, source: str, without: str) -> None:
    found = silenced_warnings(path, source.encode())
    assert applied(source.encode(), [one.edit for one in found]).decode() == without


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.h", "#pragma once\n"),
        ("a.js", "if (!a) return !b;"),
        ("a.ts", "if (a !== b && !c) return;"),
        ("a.py", "text = 'warnings.simplefilter(1)'  # warnings.simplefilter(1)\n"),
        ("a.rs", "#[derive(Debug)]\nstruct A;\n"),
        ("a.php", "<?php $a = 'me@example.org';"),
    ],
)
def test_other_code_is_not(path: str, source: str) -> None:
    assert silenced_warnings(path, source.encode()) == []


def test_only_what_the_work_added() -> None:
    old = b"a 2>/dev/null\n"
    assert added_silenced_warnings("a.sh", old, old) == []
    assert [one.line for one in added_silenced_warnings("a.sh", old, old + b"b 2>/dev/null\n")] == [
        2
    ]


@pytest.mark.parametrize(
    ("text", "wants"),
    [
        ("Suppress the deprecation warnings of numpy.", True),
        ("A missing file gives the defaults, without a warning.", True),
        ("Get rid of the deprecation warnings.", False),
        ("total must ignore cancelled lines.", False),
        ("警告を抑制する", True),
    ],
)
def test_silence_may_be_wanted(text: str, wants: bool) -> None:
    assert (WANTS_SILENCE.search(text) is not None) == wants
