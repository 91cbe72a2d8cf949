"""Functions of Ruby, PHP and Perl that do nothing, or give back what they are handed."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.emptied_text_functions import (
    changed_in_text,
    emptied_in_text,
    giving_back,
)

RUBY = b"def a(x) # why\n  x\nend\ndef b(x) = x + 1\ndef c=(x)\n  @c = x\nend\n"
PHP = b"<?php\nfunction a(int $x): %s\n{\n    return f($x);\n}\n"


def test_functions_of_ruby_do_nothing() -> None:
    made = b"def a(x)\nreturn nil\n # why\n  x\nend\ndef b(x) = nil\ndef c=(x)\n  @c = x\nend\n"
    assert emptied_in_text(None, RUBY, "ruby") == made


@pytest.mark.parametrize(
    ("kind", "nothing"),
    [
        ("int", "return 0;"),
        ("?Cart", "return null;"),
        ("void", "return;"),
        ("Cart", "throw new \\Error('this function was emptied');"),
    ],
)
def test_functions_of_php_give_the_zero_value_of_their_type(kind: str, nothing: str) -> None:
    made = emptied_in_text(None, PHP % kind.encode(), "php")
    assert made is not None
    assert f"{{ {nothing}\n".encode() in made


def test_a_function_of_perl_does_nothing() -> None:
    assert emptied_in_text(None, b"sub a { return $_[0] }\n", "perl") == (
        b"sub a { return; return $_[0] }\n"
    )


def test_only_what_the_work_changed_is_emptied() -> None:
    after = RUBY.replace(b"x + 1", b"x + 2")
    assert changed_in_text(RUBY, after, "ruby") == {"b"}
    assert emptied_in_text(RUBY, after, "ruby", added=True) is None
    assert emptied_in_text(RUBY, after, "ruby", "a") is None


def test_a_function_gives_back_what_it_is_handed_first() -> None:
    made = giving_back(None, PHP % b"int", "php", "a")
    assert made is not None
    assert b"{ return $x;\n" in made
    assert giving_back(None, b"def a\n  1\nend\n", "ruby", "a") is None
