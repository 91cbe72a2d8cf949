"""What a sentence wants to have in the code, and what it only speaks of."""

from __future__ import annotations

import re

import pytest

from agentrunner.verification.syntax.words import (
    quoted_lists,
    stated_names,
    without_unwanted,
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("An overdraw is refused with a ValueError.", ["ValueError"]),
        ("An overdraw raises ValueError", ["ValueError"]),
        ("Anything else is a RangeError.", ["RangeError"]),
        ("The gateway is in the environment variable SMS_GATEWAY.", ["SMS_GATEWAY"]),
        ("Settings are kept in `settings.json`.", ["settings.json"]),
        ("Use `hashlib.scrypt` with a salt.", ["hashlib.scrypt"]),
        ("It gets the rates from https://rates.example.org/BASE.", ["rates.example.org"]),
        ("It fetches `/api/users/ID`.", ["/api/users"]),
        ("POST /users answers 201, a taken name is answered with 409.", ["201", "409"]),
        ("GET /x: answer 405 with an Allow header for other methods.", ["405"]),
        ("POST /x currently answers 500 for bad JSON.", []),
        # What goes wrong, what is an example, and what is no wish.
        ("It fails with a KeyError for an empty text.", []),
        ("Currently it raises KeyError.", []),
        ("`mean([])` raises ZeroDivisionError now.", []),
        ("It must raise KeyError now.", ["KeyError"]),
        ("`load('')` raises an IndexError. Return None instead.", []),
        ("`average([])` raises ZeroDivisionError, but it should return 0.", []),
        ("# load crashes\n\n`load('')` raises IndexError.", []),
        ("Add withdraw. An overdraw raises ValueError and changes nothing else.", ["ValueError"]),
        ("The old name emits a DeprecationWarning.", ["DeprecationWarning"]),
        ("See https://example.org/docs for more.", []),
        ("Use something like `argparse`.", []),
        ("Wait with 200 ms of delay.", []),
        ("Do not use `eval`.", []),
    ],
)
def test_stated_names(text: str, names: list[str]) -> None:
    found = stated_names(text)
    assert sorted(found.values()) == sorted(names)
    assert all(re.compile(pattern) for pattern in found)


def test_an_answer_of_http_may_stand_by_its_name() -> None:
    (pattern,) = stated_names("A taken name is answered with the status 409.")
    for text in ("return 409", "http.StatusConflict", "HTTPStatus.CONFLICT"):
        assert re.search(pattern, text)
    assert not re.search(pattern, "return 4091")


def test_a_list_of_texts_in_quotes() -> None:
    points = 'Errors:\n- "too short" below 8\n- "no digit"\n- "common", if it is\n\nDone.'
    assert quoted_lists(points) == [["too short", "no digit", "common"]]
    assert quoted_lists('It says "red one", "green one" or "blue one".') == [
        ["red one", "green one", "blue one"]
    ]
    assert quoted_lists("Cells that begin with `=`, `+`, `-` or `@`.") == [["=", "+", "-", "@"]]
    assert quoted_lists("Codes:\n* 418 I'm a teapot\n* 429 Too Many\n* 503 Gone") == [
        ["418", "429", "503"]
    ]
    assert quoted_lists('"Hello there" becomes "hello-there".') == []


def test_what_is_not_wanted_is_no_wish() -> None:
    text = "Add `--dry-run`.\n\nNot wanted: `--force`.\n## Out of scope\n- `a(b)`\n## Next\n`e(f)`"
    left = without_unwanted(text)
    assert "--dry-run" in left
    assert "e(f)" in left
    assert "--force" not in left
    assert "a(b)" not in left
